"""The parts of an address, as the storage takes it: Airflow's names of a table are made of them."""

from __future__ import annotations

from hudi_core.storage.local import is_file_uri, local_path
from hudi_core.storage.registry import scheme_of


def is_absolute(address: str) -> bool:
    """Whether an address says by itself where it is: a URI, or a path that begins with a slash."""
    return address.startswith("/") or "://" in address or is_file_uri(address)


def split_address(address: str) -> tuple[str, str, str]:
    """Scheme, bucket or host, and path: `("s3", "bucket", "/path")`, `("file", "", "/path")`.

    The scheme is that of scheme_of. `#` and `?` are characters of the path, as for the storages and in Hadoop's Path;
    escapes of a `file:` URI are decoded. A relative path stays one. Raises ConfigError for an empty address, and as
    local_path.
    """
    scheme = scheme_of(address)
    if scheme == "file":
        return scheme, "", local_path(address) if is_file_uri(address) else address
    place, slash, path = address.split("://", 1)[1].partition("/")
    return scheme, place, slash + path
