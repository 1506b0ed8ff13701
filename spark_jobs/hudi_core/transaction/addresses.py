"""Full addresses, as real Hudi writes them into rollback plans and metadata. This engine never follows one."""

from __future__ import annotations

from hudi_core.storage.base import Storage
from hudi_core.storage.local import local_path
from hudi_core.storage.options import scheme_of


def plan_address(storage: Storage, path: str) -> str:
    """The address of `path` in a rollback plan: an absolute path on a local file system, else one with a scheme."""
    if scheme_of(storage.uri) == "file":
        root = local_path(storage.uri)
        return f"{root.rstrip('/')}/{path}" if path else root
    root = storage.uri.rstrip("/")
    return f"{root}/{path}" if path else root


def status_address(storage: Storage, path: str) -> str:
    """The address of `path` as a Hadoop file status has it: with `file:` before a local path."""
    address = plan_address(storage, path)
    return f"file:{address}" if scheme_of(storage.uri) == "file" else address
