"""The address of a table: which storage serves its scheme, with which options, and full addresses of its files.

It opens the control side only; arrow_store opens the data path. It is light, so that Airflow may import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hudi_core.errors import ConfigError
from hudi_core.model.size_limits import SizeLimits, without_limits
from hudi_core.request.secrets import refuse_secret_address
from hudi_core.storage.base import Storage
from hudi_core.storage.failures import to_storage_error
from hudi_core.storage.local import LocalStorage, is_file_uri, local_path

if TYPE_CHECKING:
    from hudi_core.storage.fsspec_store import FsspecStorage

S3_OPTIONS = frozenset({"endpoint_url", "region", "anon", "key", "secret", "token"})
"""Options of an S3 storage: one vocabulary for the control side (fsspec) and the data path (Arrow)."""
LIBRARIES = {
    "s3": "s3fs: pip install 'airflow-hudi-engine[s3]'",
    **dict.fromkeys(("gs", "gcs"), "gcsfs: pip install 'gcsfs>=2026.4'"),
    **dict.fromkeys(("abfs", "abfss", "az"), "adlfs: pip install 'adlfs>=2026.2'"),
}
"""By scheme, the library that serves it and the command that installs it, for the remedy of an error."""
_CONNECTIONS = 32
"""Requests to S3 that may be under way at once; botocore's default is 10."""
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def open_storage(uri: str, options: Mapping[str, str] | None = None) -> Storage:
    """Opens the control side: timeline, locks, properties, listings. A plain path or `file:` is local; everything else
    uses fsspec. `options` may have those of model.size_limits. Raises ConfigError for a scheme whose library is not
    installed, for options that the scheme does not know, and for an address that holds a secret.
    """
    refuse_secret_address(uri, what="the address of the table")
    scheme = scheme_of(uri)
    storage_options = options or {}
    return (
        LocalStorage(uri, SizeLimits.of(storage_options))
        if scheme == "file"
        else open_fsspec(uri, scheme, storage_options)
    )


def open_fsspec(uri: str, scheme: str, options: Mapping[str, str]) -> FsspecStorage:
    """Returns the fsspec storage of an address, without any cache. Raises the errors of open_storage."""
    address = f"{scheme}://{uri.split('://', 1)[1]}"
    try:
        import fsspec  # here, so that executors, whose data path is Arrow, need no fsspec

        from hudi_core.storage.s3_conditional import fsspec_storage

        kind = fsspec.get_filesystem_class(scheme)
    except (ImportError, ValueError) as error:
        message = f"no storage library for {scheme}:// : {error}"
        remedy = f"install {LIBRARIES.get(scheme, 'the fsspec package of this scheme')}"
        raise ConfigError(message, path=uri, remedy=remedy) from error
    arguments = fsspec_options(scheme, without_limits(options))
    try:
        if scheme != "s3":
            arguments = {**kind._get_kwargs_from_urls(address), **arguments}  # such as the host
        # Neither cache may live on: a listing must show what others created a moment ago.
        fs = kind(**arguments, use_listings_cache=False, skip_instance_cache=True)
        root = str(kind._strip_protocol(address))
    except (TypeError, ValueError) as error:
        message = f"the storage library of {scheme}:// cannot be opened: {error}"
        remedy = "check the address, and give what the library needs as storage options"
        raise ConfigError(message, path=uri, remedy=remedy) from error
    except Exception as error:  # of the scheme's library, which may raise anything
        raise to_storage_error(error, "", uri) from error
    return fsspec_storage(fs, root, uri, SizeLimits.of(options))


def scheme_of(uri: str) -> str:
    """Returns the lower-case scheme: `s3` for `s3a`, `s3n`; `file` for a path. Raises ConfigError for no address."""
    if not uri.strip():
        raise ConfigError("the address of the table is empty", remedy="give a path or an address")
    if uri.startswith("/") or ("://" not in uri and not is_file_uri(uri)):
        return "file"
    scheme = uri.split(":", 1)[0].lower()
    return "s3" if scheme in ("s3a", "s3n") else scheme


def plan_address(storage: Storage, path: str) -> str:
    """Returns the address of `path` in a plan of Hudi: a path if local, else an address with a scheme."""
    root = (local_path(storage.uri) if scheme_of(storage.uri) == "file" else storage.uri).rstrip("/")
    return f"{root}/{path}" if path else root or "/"


def status_address(storage: Storage, path: str) -> str:
    """Returns the address of `path` in a Hadoop file status: with `file:` before a local path."""
    address = plan_address(storage, path)
    return f"file:{address}" if scheme_of(storage.uri) == "file" else address


def fsspec_options(scheme: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Returns arguments of the fsspec file system: S3's by the names in S3_OPTIONS, others unchanged."""
    if scheme != "s3":
        return dict(options)
    _check_s3(options)
    arguments: dict[str, Any] = {
        name: options[name] for name in ("endpoint_url", "key", "secret", "token") if name in options
    }
    if "region" in options:
        arguments["client_kwargs"] = {"region_name": options["region"]}
    return arguments | {"anon": _is_anonymous(options), "config_kwargs": {"max_pool_connections": _CONNECTIONS}}


def arrow_s3_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Returns arguments of pyarrow.fs.S3FileSystem for the same options."""
    _check_s3(options)
    names = {"key": "access_key", "secret": "secret_key", "token": "session_token", "region": "region"}
    arguments: dict[str, Any] = {names[name]: value for name, value in options.items() if name in names}
    if _is_anonymous(options):
        arguments["anonymous"] = True
    if "endpoint_url" in options:
        parts = urlsplit(options["endpoint_url"])
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ConfigError(
                "storage option endpoint_url is not an http or https address", remedy="write https://host:port"
            )
        arguments |= {"scheme": parts.scheme, "endpoint_override": parts.netloc}
    return arguments


def _check_s3(options: Mapping[str, str]) -> None:
    unknown = sorted(set(options) - S3_OPTIONS)
    if unknown:
        message = f"unknown storage options for S3: {', '.join(unknown)}"
        raise ConfigError(message, remedy=f"known options: {', '.join(sorted(S3_OPTIONS))}")


def _is_anonymous(options: Mapping[str, str]) -> bool:
    value = options.get("anon", "false")
    if value.lower() not in _BOOLEANS:
        raise ConfigError(
            f"storage option anon is {value!r}, not true or false", remedy="set it to true, or leave it out"
        )
    return _BOOLEANS[value.lower()]
