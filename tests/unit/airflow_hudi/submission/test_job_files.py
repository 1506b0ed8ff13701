"""The job's files on a storage: put once, under names by content, and complete."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import fsspec
import pytest
from jinja2 import Environment

from airflow_hudi.submission.job_files import JobFiles, publish_job_files
from hudi_core.errors import ConfigError, CorruptFileError
from hudi_submit.zip import entry_file, publish_zip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "code" / "jobs"


@pytest.fixture
def objects() -> Iterator[str]:
    """A folder of a storage that cannot create a file exclusively."""
    name = f"jobs-{uuid.uuid4().hex}"
    yield f"memory://{name}"
    fsspec.filesystem("memory").rm(f"/{name}", recursive=True)


def test_the_files_are_put_into_the_folder(folder: Path) -> None:
    files = publish_job_files(str(folder), None)
    assert {str(path) for path in folder.iterdir()} == set(asdict(files).values())
    assert Path(files.entry).read_bytes() == entry_file().read_bytes()
    assert Path(files.zip).read_bytes() == publish_zip().read_bytes()


@pytest.mark.slow
def test_the_published_files_are_a_job(folder: Path) -> None:
    """As on a cluster: main.py from its address, the zip on the path, and nothing else of ours."""
    files = publish_job_files(str(folder), None)
    program = (
        "import runpy, sys; entry, zip_file = sys.argv[1:3]; "
        "sys.path = [zip_file, *(path for path in sys.path if 'spark_jobs' not in path)]; "
        "sys.argv = [entry, '--request', '[]']; runpy.run_path(entry, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, files.entry, files.zip], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    (result,) = [line for line in done.stdout.splitlines() if line.startswith("HUDI_RESULT ")]
    assert json.loads(result.removeprefix("HUDI_RESULT "))["error"]["type"] == "ConfigError"


def test_what_is_there_is_left_alone(folder: Path) -> None:
    first = publish_job_files(str(folder), None)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert publish_job_files(f"{folder}/", None) == first
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.slow
def test_several_at_once_agree(folder: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: publish_job_files(str(folder), None), range(4)))
    assert len(found) == 1
    assert len(list(folder.iterdir())) == 3


def test_objects_are_put_where_nothing_is_created_exclusively(objects: str) -> None:
    files = publish_job_files(objects, None)
    assert files.zip.startswith(f"{objects}/hudi-jobs-")
    assert fsspec.filesystem("memory").cat_file(files.zip) == publish_zip().read_bytes()
    assert publish_job_files(objects, None) == files


def test_a_file_of_another_size_is_not_taken_for_one(folder: Path) -> None:
    files = publish_job_files(str(folder), None)
    Path(files.zip).write_bytes(b"PK")
    with pytest.raises(CorruptFileError, match="has 2 bytes") as caught:
        publish_job_files(str(folder), None)
    assert caught.value.path == Path(files.zip).name


def test_the_folder_may_be_below_the_base_path_of_a_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HUDI_TEST", json.dumps({"conn_type": "hudi", "host": str(tmp_path)}))
    assert publish_job_files("jobs", "hudi_test").entry.startswith(f"{tmp_path}/jobs/hudi-main-")


def test_the_files_of_a_task_are_templates() -> None:
    files = JobFiles("s3://c/main.py", "s3://c/jobs.zip", "s3://c/jobs.whl")

    class Ti:
        def xcom_pull(self, task_ids: str) -> dict[str, str]:
            return {"publish": asdict(files)}[task_ids]

    templates = JobFiles.of_task("publish")
    rendered = {name: Environment().from_string(text).render(ti=Ti()) for name, text in asdict(templates).items()}
    assert JobFiles(**rendered) == files
    with pytest.raises(ConfigError, match="no id of a task"):
        JobFiles.of_task("it's")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"entry": "s3://c/main"}, "no address of the job's entry"),
        ({"zip": "s3://c/jobs.whl"}, "no address of the job's zip"),
        ({"wheel": "s3://c/jobs.zip"}, "no address of the job's wheel"),
        ({"zip": "s3://c/a,b.zip"}, "without spaces, commas"),
        ({"entry": "s3://c/a b.py"}, "without spaces, commas"),
        ({"entry": "s3://user:hunter2@c/main.py"}, "must not hold secrets"),
        ({"zip": "https://c/jobs.zip?sig=hunter2&x=.zip"}, "must not hold secrets"),
    ],
)
def test_what_is_no_address_is_refused(files: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        JobFiles(**{"entry": "s3://c/main.py", "zip": "s3://c/jobs.zip", **files})
    assert "hunter2" not in str(caught.value)
