from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from hudi_core.errors import (
    CredentialsMissingError,
    FormatError,
    HudiError,
    LockError,
    StorageError,
    StorageExistsError,
    StorageNotFoundError,
    is_transient,
)
from hudi_core.storage.failures import check_file_path, service_code, to_storage_error, translated
from tests.support.tiers import tiered


class ServiceError(Exception):
    response = {"Error": {"Code": "NoSuchBucket"}}  # noqa: RUF012


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (FileNotFoundError(), StorageNotFoundError),
        (NotADirectoryError(), StorageNotFoundError),
        (IsADirectoryError(), StorageNotFoundError),
        (FileExistsError(), StorageExistsError),
        (PermissionError("no"), StorageError),
        (TimeoutError("late"), StorageError),
        (OSError(errno.ENAMETOOLONG, "File name too long"), FormatError),
    ],
)
def test_errors_of_the_port(error: Exception, expected: type[HudiError]) -> None:
    found = to_storage_error(error, "a/b", "s3://bucket")
    assert type(found) is expected
    assert (found.path, "s3://bucket" in found.message) == ("a/b", True)
    assert found.remedy or expected is StorageExistsError


def test_what_the_client_of_s3_raises_is_an_error_of_the_port() -> None:
    with pytest.raises(StorageError, match="Unable to locate credentials"), translated("a", "s3://bucket"):
        raise NoCredentialsError


class _TooManyRequests(Exception):
    status_code = 429


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "SlowDown", "Message": "Reduce your request rate."}}, "PutObject"),
        ClientError({"Error": {"Code": "503"}}, "HeadObject"),
        OSError("When getting information for key 'a': AWS Error SLOW_DOWN during HeadObject operation"),
        _TooManyRequests("slower"),
    ],
)
def test_a_busy_service_is_no_matter_of_the_address(error: Exception) -> None:
    translated_error = to_storage_error(error, "a", "s3://bucket/t")
    assert "overloaded" in translated_error.message
    assert (translated_error.remedy or "").startswith("run again in some minutes")
    assert "overloaded" not in to_storage_error(OSError("no route"), "a", "s3://bucket/t").message


def test_a_name_of_the_table_is_no_answer_of_a_service() -> None:
    uri, path = "/data/Throttling", "event=SlowDown/a"
    said = f"{uri}/{path}"
    assert type(to_storage_error(FileNotFoundError(2, "no such file", said), path, uri)) is StorageNotFoundError
    assert type(to_storage_error(FileExistsError(17, "there", said), path, uri)) is StorageExistsError
    assert "overloaded" not in to_storage_error(OSError(5, "I/O error", said), path, uri).message


def test_our_own_errors_pass() -> None:
    error = LockError("lost")
    assert to_storage_error(error, "a", "u") is error
    assert is_transient(to_storage_error(TimeoutError(), "a", "u"))


def test_a_missing_bucket_is_no_missing_file() -> None:
    error = FileNotFoundError("a")
    error.__cause__ = ServiceError()
    assert service_code(error) == "NoSuchBucket"
    assert service_code(FileNotFoundError("a")) is None
    found = to_storage_error(error, "a", "s3://bucket/t")
    assert type(found) is StorageError
    assert "bucket of s3://bucket/t does not exist" in found.message


def test_only_failures_of_the_layer_below_are_translated() -> None:
    with pytest.raises(StorageNotFoundError), translated("a", "u"):
        raise FileNotFoundError
    with pytest.raises(StorageError, match="KeyError in u"), translated("a", "u", (KeyError,)):
        raise KeyError("x")
    with pytest.raises(KeyError), translated("a", "u"):
        raise KeyError("x")


@pytest.mark.parametrize("path", ["../a", "/a", "a//b", "a/./b"])
def test_paths_stay_below_the_root(path: str) -> None:
    with pytest.raises(FormatError):
        check_file_path(path, "u")


def test_the_root_is_no_file() -> None:
    with pytest.raises(StorageError, match="not a file"):
        check_file_path("", "u")
    assert check_file_path("a/b", "u") == "a/b"


def test_missing_credentials_are_named_with_what_gives_them() -> None:
    direct = NoCredentialsError()
    wrapped = OSError("no answer")
    wrapped.__cause__ = direct
    for error in (direct, wrapped):
        found = to_storage_error(error, "a", "s3://b/t")
        assert isinstance(found, CredentialsMissingError)
        assert (found.exit_code, is_transient(found)) == (2, False)
        assert "has no credentials for s3://b/t" in found.message
        assert {"env_vars", "storage_options_file"} <= set(re.findall(r"\w+", found.remedy or ""))


@pytest.mark.parametrize("command", tiered(["timeline", "files", "run compaction"], ["timeline", "run compaction"]))
def test_hudictl_without_credentials_for_s3_says_what_gives_them(tmp_path: Path, command: str) -> None:
    """The real client, with nothing in its environment or home, and an endpoint that refuses."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{unused.getsockname()[1]}",
        }
        done = subprocess.run(
            [sys.executable, "-m", "hudi_cli.main", *command.split(), "s3://bucket/t"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert "no credentials for s3://bucket/t" in done.stderr
    remedy = done.stderr.split("fix:", 1)[1]
    assert {"env_vars", "storage_options_file"} <= set(re.findall(r"\w+", remedy))
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_what_is_wrong_with_a_disk_is_not_a_matter_of_credentials(number: int) -> None:
    found = to_storage_error(OSError(number, os.strerror(number)), "a/b", "/table")
    assert type(found) is StorageError
    assert (found.path, "/table" in found.message) == ("a/b", True)
    assert "credentials" not in (found.remedy or "credentials")
