"""The addresses of a job's files on a storage that a cluster reads. hudi_submit/job_files.py lists the files."""

from __future__ import annotations

import re
from dataclasses import fields

from airflow_hudi.hooks import HudiHook
from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_core.request.secrets import refuse_secret_address
from hudi_submit.job_files import put_files

_ENDINGS = {"entry": ".py", "zip": ".zip", "wheel": ".whl"}
_SEPARATOR = re.compile(r"[\s,'\"]")


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The addresses of the job's files as the cluster reads them (`s3://…`, `/Volumes/…`), or templates of them. Only
    Databricks needs the wheel.
    """

    entry: str
    zip: str
    wheel: str = ""

    def __post_init__(self) -> None:
        """Raises ConfigError for an address that cannot be an argument of a submission, or that holds a secret."""
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
        """Returns templates of the addresses that the task with this id returns, such as `asdict` of publish_job_files.
        Raises ConfigError for an id with a quotation mark, a comma or a space.
        """
        if _SEPARATOR.search(task_id):
            raise ConfigError(f"{task_id!r} is no id of a task", remedy="give the id as Airflow shows it")
        return cls(*(f"{{{{ ti.xcom_pull(task_ids='{task_id}')['{item.name}'] }}}}" for item in fields(cls)))


def publish_job_files(folder: str, hudi_conn_id: str | None = HudiHook.default_conn_name) -> JobFiles:
    """Puts the job's files into a folder, if they are not there yet, and returns their addresses. Airflow and the
    cluster must reach the folder: a path or URI, or a path below the connection's base path. Call it in a task, or when
    a release is deployed, and not in a DAG file: it builds the zip, and looks at the storage. Raises StorageError,
    ConfigError if the storage cannot be opened, CorruptFileError if another file has the name of a job's file.
    """
    hook = HudiHook(hudi_conn_id)
    storage, address = hook.storage(folder), hook.table_uri(folder).rstrip("/")
    return JobFiles(*(f"{address}/{name}" for name in put_files(storage)))
