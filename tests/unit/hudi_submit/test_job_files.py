"""The wheel is one that an installer takes, and the job runs from what it has installed."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from hudi_submit.job_files import build_wheel
from hudi_submit.zip import build_zip


@pytest.fixture(scope="module")
def job_zip() -> bytes:
    return build_zip()


def test_the_same_zip_gives_the_same_wheel(job_zip: bytes) -> None:
    assert build_wheel(job_zip) == build_wheel(job_zip)


def test_another_zip_gives_another_version(job_zip: bytes) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("hudi_core/__init__.py", "")
    names = {build_wheel(data)[0] for data in (job_zip, buffer.getvalue())}
    assert len(names) == 2
    assert all(re.fullmatch(r"hudi_jobs-\d+\.\d+\.\d+\.post\d+-py3-none-any\.whl", name) for name in names)


def test_it_holds_the_modules_as_sources(job_zip: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(job_zip)) as archive:
        sources = {name for name in archive.namelist() if not name.endswith(".pyc")}
    with zipfile.ZipFile(io.BytesIO(build_wheel(job_zip)[1])) as wheel:
        names = set(wheel.namelist())
        assert wheel.testzip() is None
    assert {name for name in names if ".dist-info/" not in name} == sources
    assert {name.rpartition("/")[2] for name in names - sources} == {"METADATA", "WHEEL", "RECORD"}


@pytest.mark.slow
def test_what_is_installed_from_it_is_the_job(job_zip: bytes, tmp_path: Path) -> None:
    name, data = build_wheel(job_zip)
    (tmp_path / name).write_bytes(data)
    target = tmp_path / "installed"
    installer = [str(Path(sys.executable).parent / "uv"), "pip", "install", "--quiet", "--python", sys.executable]
    subprocess.run([*installer, "--no-index", "--target", str(target), str(tmp_path / name)], check=True, timeout=300)
    (info,) = target.glob("*.dist-info")
    distribution = PathDistribution(info)
    assert distribution.metadata["Name"] == "hudi_jobs"
    assert not distribution.requires
    assert all(file.locate().is_file() for file in distribution.files or [])  # type: ignore[attr-defined]
    program = (
        "import sys; sys.path = [sys.argv[1], *(path for path in sys.path if 'spark_jobs' not in path)]; "
        "import hudi_spark.job, hudi_core.codec.avro.datum; print(hudi_spark.job.__file__); "
        "print(hudi_spark.job.main(['--request', '[]']))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, str(target)], capture_output=True, text=True, timeout=300, check=True
    )
    place, result, code = done.stdout.splitlines()
    assert place == str(target / "hudi_spark" / "job.py")
    assert "ConfigError" in result
    assert code == "2"
