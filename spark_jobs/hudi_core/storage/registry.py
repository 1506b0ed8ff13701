"""Opens the control side of an address: which storage serves which scheme. Light, so that Airflow may import it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hudi_core.errors import ConfigError
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.options import fsspec_options, scheme_of

if TYPE_CHECKING:
    from hudi_core.storage.fsspec_store import FsspecStorage


def open_storage(uri: str, options: Mapping[str, str] | None = None) -> Storage:
    """The control side: timeline, locks, properties, listings.

    A plain path or `file:` is local, everything else uses fsspec. Raises ConfigError for a scheme whose library is not
    installed and for options that the scheme does not know.
    """
    scheme = scheme_of(uri)
    if scheme == "file":
        return LocalStorage(uri)
    return open_fsspec(uri, scheme, options or {})


def open_fsspec(uri: str, scheme: str, options: Mapping[str, str]) -> FsspecStorage:
    """The fsspec storage of an address, without any cache; the errors of open_storage."""
    address = f"{scheme}://{uri.split('://', 1)[1]}"
    try:
        import fsspec  # here, so that executors, whose data path is Arrow, need no fsspec

        from hudi_core.storage.fsspec_store import FsspecStorage

        kind = fsspec.get_filesystem_class(scheme)
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"no storage library for {scheme}:// : {error}",
            path=uri,
            remedy="install the fsspec package of this scheme",
        ) from error
    # Neither cache may live on: a listing must show what others created a moment ago.
    fs = kind(**fsspec_options(scheme, options), use_listings_cache=False, skip_instance_cache=True)
    return FsspecStorage(fs, str(kind._strip_protocol(address)), uri)
