"""Opens the data path of an address. Apart from the control side's registry, because it loads pyarrow."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_core.errors import ConfigError
from hudi_core.storage.arrow_store import ARROW_SCHEMES, open_arrow_storage
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.options import scheme_of
from hudi_core.storage.registry import open_fsspec


def open_data_storage(uri: str, options: Mapping[str, str] | None = None) -> Storage:
    """Base and log files: local directly, other schemes through Arrow where its wheel has them, else fsspec.

    Errors are those of open_storage.
    """
    scheme = scheme_of(uri)
    if scheme == "file":
        return LocalStorage(uri)
    if scheme in ARROW_SCHEMES:
        return open_arrow_storage(uri, scheme, options or {})
    return open_fsspec(uri, scheme, options or {})


def open_deleting_storage(uri: str, options: Mapping[str, str] | None = None) -> Storage:
    """For tasks that only delete: an object store by fsspec where its library is installed, else as open_data_storage.

    Arrow puts an empty object in the place of the folder, each time that it deletes a file of one
    (S3FileSystem::DeleteFile).
    """
    if scheme_of(uri) == "file":
        return LocalStorage(uri)
    try:
        return open_fsspec(uri, scheme_of(uri), options or {})
    except ConfigError:
        return open_data_storage(
            uri, options
        )  # no such library on this executor; options that are wrong are wrong for Arrow, too
