"""The files of a job on a storage that a cluster reads, named by content: running jobs keep theirs."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from dataclasses import dataclass, fields
from typing import Final

from airflow_hudi.hooks import HudiHook
from airflow_hudi.jobs.zip import entry_file, publish_zip, stored_zip
from hudi_core import VERSION
from hudi_core.errors import ConfigError, CorruptFileError, StorageExistsError, StorageNotFoundError
from hudi_core.request.secrets import refuse_secret_address
from hudi_core.storage.base import Storage

_ENDINGS = {"entry": ".py", "zip": ".zip", "wheel": ".whl"}
_SEPARATOR = re.compile(r"[\s,'\"]")
_DIGITS = 16

PROJECT: Final = "hudi_jobs"
"""The wheel's name, which is not that of this package: on the cluster no Airflow is installed."""
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


@dataclass(frozen=True, slots=True)
class JobFiles:
    """As the cluster reads them (`s3://…`, `/Volumes/…`), or templates; Databricks alone needs the wheel."""

    entry: str
    zip: str
    wheel: str = ""

    def __post_init__(self) -> None:
        """Raises ConfigError for an address that an argument of a submission cannot hold, or that holds a secret."""
        for name, ending in _ENDINGS.items():
            address = getattr(self, name)
            if "{{" in address or (name == "wheel" and not address):
                continue
            refuse_secret_address(address, what=f"the address of the {name}")
            if not address.endswith(ending) or _SEPARATOR.search(address):
                raise ConfigError(
                    f"{address!r} is no address of the job's {name}",
                    remedy=f"give one that ends in {ending}, without spaces, commas and quotation marks",
                )

    @classmethod
    def of_task(cls, task_id: str) -> JobFiles:
        """Templates of the addresses that a task of this id returns, such as `asdict` of publish_job_files. Raises
        ConfigError for an id with a quotation mark.
        """
        if _SEPARATOR.search(task_id):
            raise ConfigError(f"{task_id!r} is no id of a task", remedy="give the id as Airflow shows it")
        return cls(*(f"{{{{ ti.xcom_pull(task_ids='{task_id}')['{item.name}'] }}}}" for item in fields(cls)))


def publish_job_files(folder: str, hudi_conn_id: str | None = HudiHook.default_conn_name) -> JobFiles:
    """Puts the job's files into a folder, a path or URI that Airflow and the cluster reach, or a path below the
    connection's base path, where they are not there yet, and returns their addresses. Call it where a task runs, or
    when a release is deployed, and not while a DAG file is read: it builds the zip once, and looks at the storage.

    Raises ConfigError when the storage cannot be opened, CorruptFileError when another file has the name of one of
    them, StorageError.
    """
    hook = HudiHook(hudi_conn_id)
    storage, address = hook.storage(folder), hook.table_uri(folder).rstrip("/")
    entry, job_zip = entry_file().read_bytes(), publish_zip().read_bytes()
    wheel_name, wheel = build_wheel(job_zip)
    contents = {
        f"hudi-main-{_digest(entry)}.py": entry,
        f"hudi-jobs-{_digest(job_zip)}.zip": job_zip,
        wheel_name: wheel,
    }
    for name, data in contents.items():
        _put(storage, name, data)
    return JobFiles(*(f"{address}/{name}" for name in contents))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def _put(storage: Storage, name: str, data: bytes) -> None:
    """Puts a file that no other content can have the name of, also where others do so at the same time."""
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
    """The size of the file that is there now."""
    if not storage.supports_exclusive_create:
        # Where nothing can be created exclusively, objects are replaced as a whole, and by the same bytes.
        storage.write(name, data)
        return len(data)
    try:
        storage.create_exclusive(name, data)
    except StorageExistsError:
        return storage.stat(name).size
    return len(data)


def build_wheel(job_zip: bytes) -> tuple[str, bytes]:
    """The name and the bytes of the wheel of a job zip, without requirements and compiled modules. The version ends in
    a number by content: an installer leaves an installed version as it is.
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
