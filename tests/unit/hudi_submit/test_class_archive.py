"""The archive of Spark's classes, by a spark-submit that writes what it is told to."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_core.request.java import class_archive, spark_environment
from hudi_submit import class_archive as command
from tests.unit.hudi_core.request.test_java import spark_beside_java

WRITES = """#!/bin/sh
case "$SPARK_SUBMIT_OPTS" in *SharedArchiveFile*) exit 1;; esac
for last; do :; done
test -f "$last" || exit 1
printf classes >"$(echo "$SPARK_SUBMIT_OPTS" | sed 's/.*ArchiveClassesAtExit=\\([^"]*\\).*/\\1/')"
"""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    given = {**spark_beside_java(tmp_path), "PATH": "/usr/bin:/bin"}
    monkeypatch.setattr(command, "spark_environment", lambda: spark_environment(given))
    monkeypatch.setattr(command, "publish_zip", lambda: tmp_path / "jobs.zip")
    return given


def spark_submit(folder: Path, text: str) -> None:
    program = folder / "spark" / "bin" / "spark-submit"
    program.parent.mkdir()
    program.write_text(text)
    program.chmod(0o755)


def test_it_is_written_whole_and_can_be_written_again(
    environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spark_submit(tmp_path, WRITES)
    archive = class_archive(environment)
    assert archive is not None
    for _ in range(2):
        assert command.main() == 0
        assert capsys.readouterr().out == f"{archive} 7 bytes\n"
        assert [path.read_bytes() for path in archive.parent.iterdir()] == [b"classes"]


def test_without_one_the_error_says_what_to_do(
    environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spark_submit(tmp_path, "#!/bin/sh\nexit 0\n")
    assert command.main() == 2
    assert "unset SPARK_CONF_DIR" in capsys.readouterr().err
    assert [*(tmp_path / "the cache" / "airflow-hudi").iterdir()] == []
    environment["SPARK_HOME"] = str(tmp_path / "gone")
    assert command.main() == 2
    assert "airflow-hudi-engine[spark3]" in capsys.readouterr().err
