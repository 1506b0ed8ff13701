"""The connection type `hudi`: where tables are, and which Airflow connection opens their storage; its test button.

The fields of its form are in get_provider_info.py.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.sdk import BaseHook, ObjectStoragePath

from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import ConfigError, HudiError, StorageNotFoundError
from hudi_core.model.partition import check_relative_path
from hudi_core.storage.fsspec_store import FsspecStorage
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.registry import open_storage

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from hudi_core.storage.base import Storage

STORAGE_OPTIONS = ("endpoint_url", "region")
"""The only fields of the connection that reach a storage library or a Spark job.

The person who edits connections need not be the author of the DAGs.
"""


class HudiHook(BaseHook):
    """Opens tables of one connection.

    :param hudi_conn_id: id of a connection of type `hudi`; None for none: tables are then absolute paths or URIs, and
    the credentials those
        of the process's environment.
    """

    conn_name_attr = "hudi_conn_id"
    default_conn_name = "hudi_default"
    conn_type = "hudi"
    hook_name = "Apache Hudi"

    def __init__(self, hudi_conn_id: str | None = default_conn_name) -> None:
        super().__init__()
        self.hudi_conn_id = hudi_conn_id

    @cached_property
    def connection(self) -> Connection | None:
        """The connection, or None when the hook was given none. Raises AirflowNotFoundException."""
        return self.get_connection(self.hudi_conn_id) if self.hudi_conn_id else None

    def get_conn(self) -> Storage:
        """The storage at the connection's base path. Raises ConfigError when it has none."""
        return self.storage("")

    @property
    def base_path(self) -> str:
        """The connection's base path without a trailing slash; "" when it has none."""
        host = (self.connection.host if self.connection else None) or ""
        return host.rstrip("/") if host != "/" else host

    @property
    def storage_conn_id(self) -> str | None:
        """The Airflow connection whose credentials open the storage."""
        return self._field("storage_conn_id")

    @property
    def storage_options(self) -> dict[str, str]:
        """The options for storage libraries that the connection sets; none of them secret."""
        return {name: value for name in STORAGE_OPTIONS if (value := self._field(name)) is not None}

    def table_uri(self, table: str) -> str:
        """The table's path or URI: `table` itself when it is absolute, else below the connection's base path.

        Raises ConfigError for a relative table without a base path, FormatError for one that climbs out of it.
        """
        if table.startswith("/") or "://" in table:
            return table.rstrip("/") or "/"
        if not self.base_path:
            raise ConfigError(
                f"the table {table!r} is not absolute and the connection has no base path",
                remedy="give a URI, or set the base path",
            )
        check_relative_path(table, source=f"connection {self.hudi_conn_id}")
        return f"{self.base_path}/{table}" if table else self.base_path

    def storage(self, table: str) -> Storage:
        """The storage of a table. Raises ConfigError when Airflow has no file system for the table's scheme."""
        uri = self.table_uri(table)
        scheme = urlsplit(uri).scheme
        if scheme in ("", "file"):
            return LocalStorage(uri)
        if self.storage_conn_id is None:
            return open_storage(uri, self.storage_options)
        try:
            path = ObjectStoragePath(uri, conn_id=self.storage_conn_id)
            filesystem = path.fs
        except (ImportError, ValueError) as error:
            remedy = "install the provider of this storage, for s3:// apache-airflow-providers-amazon[s3fs]"
            message = f"Airflow cannot open {scheme}:// with connection {self.storage_conn_id!r}: {error}"
            raise ConfigError(message, path=uri, remedy=remedy) from error
        return FsspecStorage(filesystem, path.path, uri)

    def timeline(self, table: str) -> TimelineReader:
        """A reader of the table's timeline. Opens nothing yet but the file system."""
        return TimelineReader(self.storage(table))

    def test_connection(self) -> tuple[bool, str]:
        """For the UI's Test button: reads the table at the base path, or lists what is there."""
        try:
            if not self.base_path:
                return True, "The connection has no base path; tables are named by their own URIs"
            storage = self.storage("")
            if storage.exists(".hoodie/hoodie.properties"):
                config = self.timeline("").config
                return True, f"Found the table {config.name}, version {config.version}"
            return True, f"Listed {self.base_path}: {len(storage.list_folders(''))} folders"
        except StorageNotFoundError as error:
            return False, f"Nothing is there: {error}"
        except (HudiError, OSError) as error:
            return False, str(error)

    def _field(self, name: str) -> str | None:
        extra: dict[str, Any] = self.connection.extra_dejson if self.connection else {}
        value = extra.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise ConfigError(
                f"field {name!r} of connection {self.hudi_conn_id!r} is not text", remedy="edit the connection"
            )
        return value
