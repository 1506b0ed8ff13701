"""The connection type `hudi`: where tables are, which Airflow connection opens their storage, and the test button.

Airflow 3.3 raises the same AirflowNotFoundException for a missing connection and for a secrets backend that fails. It
only logs the backend's error, as debug. asking_for tells the two apart. task_fate.py says what each means for a task.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook, ObjectStoragePath
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.io import has_fs

from airflow_hudi.task_fate import HudiConnectionUnreadable
from airflow_hudi.timeline_reader import TimelineReader
from hudi_core.errors import ConfigError, CredentialsMissingError, HudiError, StorageNotFoundError
from hudi_core.model.partition import check_relative_path
from hudi_core.storage.local import LocalStorage, is_file_uri, local_path
from hudi_core.storage.registry import open_storage, scheme_of
from hudi_core.storage.s3_conditional import fsspec_storage

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from hudi_core.storage.base import Storage

log = logging.getLogger(__name__)

STORAGE_OPTIONS = ("endpoint_url", "region")
"""The only fields that reach a storage library or a job: not only the DAGs' author may edit connections."""

EXTRAS = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "amazon"),
    **dict.fromkeys(("gs", "gcs"), "google"),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), "azure"),
}
"""The extra of this package, by scheme, that installs Airflow's provider of the storage and its fsspec library."""
_OF_VALUES = (ValueError, TypeError, KeyError)
"""The errors of a backend that answered with a connection that cannot be parsed."""


class HudiHook(BaseHook):
    """Opens tables by a connection of type `hudi`, or absolute addresses by the environment's credentials."""

    conn_name_attr = "hudi_conn_id"
    default_conn_name = "hudi_default"
    conn_type = "hudi"
    hook_name = "Apache Hudi"

    def __init__(self, hudi_conn_id: str | None = default_conn_name) -> None:
        super().__init__()
        self.hudi_conn_id = hudi_conn_id

    @cached_property
    def connection(self) -> Connection | None:
        """The connection, or None without a connection id. Raises the errors of asking_for."""
        with asking_for(self.hudi_conn_id):
            return self.get_connection(self.hudi_conn_id) if self.hudi_conn_id else None

    def get_conn(self) -> Storage:
        """Returns the storage at the connection's base path. Raises ConfigError without a base path."""
        return self.storage("")

    @property
    def base_path(self) -> str:
        """The connection's base path without a trailing slash, or ""."""
        host = (self.connection.host if self.connection else None) or ""
        return host.rstrip("/") if host != "/" else host

    @property
    def storage_conn_id(self) -> str | None:
        return self._field("storage_conn_id")

    @property
    def storage_options(self) -> dict[str, str]:
        return {name: value for name in STORAGE_OPTIONS if (value := self._field(name)) is not None}

    @property
    def engine(self) -> str | None:
        """The engine for tables of this connection where the task names none, or None."""
        return self._field("engine")

    @property
    def azure_place(self) -> tuple[str, str] | None:
        """The subscription and the resource group of tables on Azure, for links; None if the connection lacks one."""
        subscription, group = self._field("azure_subscription_id"), self._field("azure_resource_group")
        return None if subscription is None or group is None else (subscription, group)

    def credentials(self, table: str) -> dict[str, str]:
        """Returns the storage options of a table on S3, with secrets; {} for other storages, which the environment's
        credentials open. Raises ConfigError without the connection's provider, CredentialsMissingError.
        """
        if self.storage_conn_id is None or scheme_of(self.table_uri(table)) != "s3":
            return {}
        try:
            from airflow.providers.amazon.aws.hooks.s3 import S3Hook
        except ImportError as error:
            raise ConfigError(
                f"the connection {self.storage_conn_id!r} cannot be used: {error}",
                remedy=_how_to_install("s3"),
            ) from error
        check_backends(self.storage_conn_id)
        hook = S3Hook(aws_conn_id=self.storage_conn_id)
        given = hook.get_session().get_credentials()
        if given is None:
            raise CredentialsMissingError(
                f"neither the connection {self.storage_conn_id!r} nor this process has credentials of S3",
                remedy="give the connection an access key and its secret, or the process a role",
            )
        found = given.get_frozen_credentials()
        options = {
            "key": found.access_key,
            "secret": found.secret_key,
            "token": found.token,
            "endpoint_url": hook.conn_config.get_service_endpoint_url("s3"),
            "region": hook.region_name,
        }
        return {name: value for name, value in options.items() if value} | self.storage_options

    def table_uri(self, table: str) -> str:
        """Returns the table's path or URI. A relative path is below the base path. Raises ConfigError for a relative
        path without a base path, FormatError for a relative path that leads out of the base path.
        """
        if is_absolute(table):
            return table.rstrip("/") or "/"
        if not self.base_path:
            raise ConfigError(
                f"the table {table!r} is not absolute and the connection has no base path",
                remedy="give a URI, or set the base path",
            )
        check_relative_path(table, source=f"connection {self.hudi_conn_id}")
        return f"{self.base_path}/{table}" if table else self.base_path

    def storage(self, table: str) -> Storage:
        """Opens the storage of a table. Raises ConfigError when Airflow has no file system for the table's scheme."""
        uri = self.table_uri(table)
        scheme = scheme_of(uri)
        if scheme == "file":
            return LocalStorage(uri)
        if self.storage_conn_id is None:
            return open_storage(uri, self.storage_options)
        check_backends(self.storage_conn_id)
        try:
            with asking_for(self.storage_conn_id):
                path = ObjectStoragePath(uri, conn_id=self.storage_conn_id)
                filesystem = path.fs
        except (ImportError, ValueError) as error:
            message = f"Airflow cannot open {scheme}:// with connection {self.storage_conn_id!r}: {error}"
            missing = isinstance(error, ImportError) or not has_fs(scheme)
            remedy = _how_to_install(scheme) if missing else "check the fields of that connection"
            raise ConfigError(message, path=uri, remedy=remedy) from error
        return fsspec_storage(filesystem, path.path, uri)

    def timeline(self, table: str, action: str = "") -> TimelineReader:
        """Returns a reader of the table's timeline, for instants of `action`. It opens only the file system."""
        return TimelineReader(self.storage(table), action)

    def test_connection(self) -> tuple[bool, str]:
        """Reads the table at the base path, or lists the base path, for the Test button. False if nothing is there."""
        try:
            if not self.base_path:
                return True, "The connection has no base path; tables are named by their own URIs"
            storage = self.storage("")
            if isinstance(storage, LocalStorage) and (problem := _no_folder(self.base_path)):
                return False, problem
            if storage.exists(".hoodie/hoodie.properties"):
                config = self.timeline("").config
                return True, f"Found the table {config.name}, version {config.version}"
            folders = storage.list_folders("")
            if not folders and not storage.list_files(""):
                return False, f"Nothing is at {self.base_path}: no such folder, or an empty one"
            return True, f"Listed {self.base_path}: {len(folders)} folders"
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


def _how_to_install(scheme: str) -> str:
    extra = EXTRAS.get(scheme)
    if extra is None:
        return f"install the provider whose file systems serve {scheme}://"
    remedy = f"install the provider and the library of this storage: pip install 'airflow-hudi[{extra}]'"
    if scheme.startswith("wasb"):
        remedy += ", and write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net: Airflow has no file system of wasb://"
    return remedy


def _no_folder(base_path: str) -> str | None:
    if not is_absolute(base_path):
        return f"The base path {base_path} is relative: give an absolute path or a URI such as s3://bucket/warehouse"
    path = Path(local_path(base_path))
    if not path.exists():
        return f"There is no folder {base_path} on the machine that serves Airflow's UI"
    return None if path.is_dir() else f"{base_path} is a file, not a folder"


@contextmanager
def asking_for(conn_id: str | None) -> Iterator[None]:
    """Handles Airflow's AirflowNotFoundException: it asks the secrets backends once more. If one fails, or has the
    connection, it raises HudiConnectionUnreadable, else the AirflowNotFoundException, and no retry helps.
    """
    try:
        yield
    except AirflowNotFoundException as error:
        why = _why_it_may_be_there(conn_id) if conn_id else None
        if why is None:
            raise
        raise HudiConnectionUnreadable(
            f"the connection {conn_id!r} was not found, and {why}", remedy="a retry asks again"
        ) from error


def check_backends(conn_id: str) -> None:
    """Asks for the connection before a hook does that goes on without credentials where it finds no connection. Raises
    HudiConnectionUnreadable (asking_for).
    """
    with suppress(AirflowNotFoundException), asking_for(conn_id):
        BaseHook.get_connection(conn_id)


def _why_it_may_be_there(conn_id: str) -> str | None:
    """Returns which backend fails or has the connection, or None; without the error's text, which may hold secrets."""
    from airflow.sdk.execution_time.supervisor import ensure_secrets_backend_loaded

    for backend in ensure_secrets_backend_loaded():
        name = type(backend).__name__
        try:
            found = backend.get_connection(conn_id=conn_id)
        except Exception as error:
            log.debug("%s was asked for the connection %r", name, conn_id, exc_info=True)
            # For a proxy's page in place of the backend's JSON, `requests` raises an error that is also an OSError.
            if isinstance(error, _OF_VALUES) and not isinstance(error, OSError):
                continue
            return f"a secrets backend cannot be asked for it: {name} fails with {type(error).__name__}"
        if found is not None:
            return f"a secrets backend has it now: {name}"
    return None


def is_absolute(address: str) -> bool:
    """Returns whether an address is complete: a URI, or a path that begins with a slash."""
    return address.startswith("/") or "://" in address or is_file_uri(address)


def split_address(address: str) -> tuple[str, str, str]:
    """Returns the scheme (scheme_of), the bucket or host, and the path: `("s3", "bucket", "/path")`, `("file", "",
    "/path")`. `#` and `?` are characters of the path, as in Hadoop's Path. Escapes of a `file:` URI are decoded. A
    relative path stays relative. Raises ConfigError for an empty address, and the errors of local_path.
    """
    scheme = scheme_of(address)
    if scheme == "file":
        return scheme, "", local_path(address) if is_file_uri(address) else address
    place, slash, path = address.split("://", 1)[1].partition("/")
    return scheme, place, slash + path
