"""Storage options: one vocabulary for the control side (fsspec) and the data path (Arrow)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from hudi_core.errors import ConfigError

S3_OPTIONS = frozenset({"endpoint_url", "region", "anon", "key", "secret", "token"})
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def scheme_of(uri: str) -> str:
    """The scheme in lower case, `s3` for `s3a` and `s3n`; `file` for a plain path.

    Raises ConfigError for an empty address.
    """
    if not uri.strip():
        raise ConfigError("the address of the table is empty")
    if "://" not in uri and not uri.startswith("file:"):
        return "file"
    scheme = uri.split(":", 1)[0].lower()
    return "s3" if scheme in ("s3a", "s3n") else scheme


def fsspec_options(scheme: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of the fsspec file system.

    For S3 the names in S3_OPTIONS; for other schemes the library's own names, unchanged.
    """
    if scheme != "s3":
        return dict(options)
    checked = _check_s3(options)
    arguments: dict[str, Any] = {
        name: checked[name] for name in ("endpoint_url", "key", "secret", "token") if name in checked
    }
    arguments["anon"] = _flag("anon", checked.get("anon", "false"))
    if "region" in checked:
        arguments["client_kwargs"] = {"region_name": checked["region"]}
    return arguments


def arrow_s3_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of pyarrow.fs.S3FileSystem for the same options."""
    checked = _check_s3(options)
    names = {"key": "access_key", "secret": "secret_key", "token": "session_token", "region": "region"}
    arguments: dict[str, Any] = {names[name]: value for name, value in checked.items() if name in names}
    if _flag("anon", checked.get("anon", "false")):
        arguments["anonymous"] = True
    if "endpoint_url" in checked:
        parts = urlsplit(checked["endpoint_url"])
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ConfigError(
                "storage option endpoint_url is not an http or https address", remedy="write https://host:port"
            )
        arguments |= {"scheme": parts.scheme, "endpoint_override": parts.netloc}
    return arguments


def _check_s3(options: Mapping[str, str]) -> Mapping[str, str]:
    unknown = sorted(set(options) - S3_OPTIONS)
    if unknown:
        raise ConfigError(
            f"unknown storage options for S3: {', '.join(unknown)}",
            remedy=f"known options: {', '.join(sorted(S3_OPTIONS))}",
        )
    return options


def _flag(name: str, value: str) -> bool:
    if value.lower() not in _BOOLEANS:
        raise ConfigError(f"storage option {name} is {value!r}, not true or false")
    return _BOOLEANS[value.lower()]
