"""Opens the data path of an address. Apart from the control side's registry, because it loads pyarrow."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_core.storage.arrow_store import ARROW_SCHEMES, open_arrow_storage
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.options import scheme_of
from hudi_core.storage.registry import open_fsspec


def open_data_storage(uri: str, options: Mapping[str, str] | None = None) -> Storage:
    """Base and log files: local files directly, other schemes through Arrow where its wheel has them, else fsspec; errors as open_storage."""
    scheme = scheme_of(uri)
    if scheme == "file":
        return LocalStorage(uri)
    if scheme in ARROW_SCHEMES:
        return open_arrow_storage(uri, scheme, options or {})
    return open_fsspec(uri, scheme, options or {})
