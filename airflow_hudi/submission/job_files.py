"""The files of a job on a storage that a cluster reads: main.py, the job zip, and the same as a wheel.

Services that are not handed local files, as spark-submit is, take their addresses. The files have names by content, so
that jobs that run keep theirs while another release of this package puts its own beside them.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, fields

from airflow_hudi.hooks.hudi import HudiHook
from airflow_hudi.jobs.zip import entry_file, publish_zip
from airflow_hudi.submission.job_wheel import build_wheel
from hudi_core.errors import ConfigError, CorruptFileError, StorageExistsError, StorageNotFoundError
from hudi_core.request.secrets import refuse_secret_address
from hudi_core.storage.base import Storage

_ENDINGS = {"entry": ".py", "zip": ".zip", "wheel": ".whl"}
_SEPARATOR = re.compile(r"[\s,'\"]")
"""What ends an address in an option of spark-submit, or starts another."""
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The addresses of a job's files: `entry` of main.py, `zip` of the job zip, `wheel` of the wheel, which Databricks
    needs and no other. They are as the cluster reads them (`s3://…`, `gs://…`, `/Volumes/…`), or templates of them.
    """

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
        """Templates of the addresses that a task of this id returns as a dict, such as `asdict` of publish_job_files.

        Raises ConfigError for an id with a quotation mark.
        """
        if _SEPARATOR.search(task_id):
            raise ConfigError(f"{task_id!r} is no id of a task", remedy="give the id as Airflow shows it")
        return cls(*(f"{{{{ ti.xcom_pull(task_ids='{task_id}')['{item.name}'] }}}}" for item in fields(cls)))


def publish_job_files(folder: str, hudi_conn_id: str | None = HudiHook.default_conn_name) -> JobFiles:
    """Puts the job's files into a folder, where they are not there yet, and returns their addresses.

    `folder` is a path or URI that Airflow and the cluster reach, or a path below the connection's base path. Call it
    where a task runs, or when a release is deployed, and not while a DAG file is read: it builds the zip once, and
    looks at the storage.

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
