"""Puts the files of a job on a storage that a cluster reads. Their names contain a hash of the content, so a new
release does not replace the files of running jobs.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from typing import Final

from hudi_core import VERSION
from hudi_core.errors import CorruptFileError, StorageExistsError, StorageNotFoundError
from hudi_core.storage.base import Storage
from hudi_submit.zip import entry_file, publish_zip, stored_zip

_DIGITS = 16
PROJECT: Final = "hudi_jobs"
"""The wheel's name. It is not the name of this package, because no Airflow is installed on the cluster."""
_VERSION_DIGITS = 12
_METADATA = """Metadata-Version: 2.1
Name: {project}
Version: {version}
Summary: The Spark jobs of airflow-hudi
License: Apache-2.0
"""
_WHEEL = """Wheel-Version: 1.0
Generator: airflow-hudi
Root-Is-Purelib: true
Tag: py3-none-any
"""


def put_files(storage: Storage) -> tuple[str, str, str]:
    """Puts main.py, the zip and the wheel on the storage if they are not there yet, and returns their names. Raises
    CorruptFileError if another file has the name of one of them, StorageError.
    """
    entry, job_zip = entry_file().read_bytes(), publish_zip().read_bytes()
    wheel_name, wheel = build_wheel(job_zip)
    names = f"hudi-main-{_digest(entry)}.py", f"hudi-jobs-{_digest(job_zip)}.zip", wheel_name
    for name, data in zip(names, (entry, job_zip, wheel), strict=True):
        _put(storage, name, data)
    return names


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def _put(storage: Storage, name: str, data: bytes) -> None:
    """Puts a file whose name belongs to its content. Others may put the same file at the same time."""
    try:
        size = storage.stat(name).size
    except StorageNotFoundError:
        size = _put_new(storage, name, data)
    if size != len(data):
        raise CorruptFileError(
            f"the file in {storage.uri} has {size} bytes, the job's has {len(data)}",
            path=name,
            remedy="remove it, and run again",
        )


def _put_new(storage: Storage, name: str, data: bytes) -> int:
    """Puts a file, unless another process did, and returns the size of the file that is there now."""
    if not storage.supports_exclusive_create:
        # A storage without exclusive create replaces whole objects, here by the same bytes.
        storage.write(name, data)
        return len(data)
    try:
        storage.create_exclusive(name, data)
    except StorageExistsError:
        return storage.stat(name).size
    return len(data)


def build_wheel(job_zip: bytes) -> tuple[str, bytes]:
    """Returns the name and the bytes of the wheel of a job zip, without requirements and compiled modules. The version
    ends with a number from the content, because an installer does not replace an installed version.
    """
    version = f"{VERSION}.post{int(hashlib.sha256(job_zip).hexdigest()[:_VERSION_DIGITS], 16)}"
    info = f"{PROJECT}-{version}.dist-info"
    with zipfile.ZipFile(io.BytesIO(job_zip)) as archive:
        contents = {name: archive.read(name) for name in archive.namelist() if not name.endswith(".pyc")}
    contents[f"{info}/METADATA"] = _METADATA.format(project=PROJECT, version=version).encode()
    contents[f"{info}/WHEEL"] = _WHEEL.encode()
    record = f"{info}/RECORD"
    lines = [f"{name},sha256={_hash(data)},{len(data)}" for name, data in contents.items()]
    contents[record] = "".join(f"{line}\n" for line in (*lines, f"{record},,")).encode()
    return f"{PROJECT}-{version}-py3-none-any.whl", stored_zip(contents)


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
