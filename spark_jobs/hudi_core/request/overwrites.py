"""Requests of insert_overwrite and delete_partition."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hudi_core.errors import ConfigError
from hudi_core.request.requests import Request
from hudi_core.request.secrets import refuse_secret_address

_TOKEN: Final = re.compile(r"[^\x00-\x1f\x7f]{1,250}")
_WHAT: Final = "run request"


@dataclass(frozen=True, slots=True)
class _OverwriteRequest(Request):
    partitions: tuple[str, ...] = ()
    token: str | None = None
    dry_run: bool = False

    @property
    def needs_executors(self) -> bool:
        """See Request: rows are written, and those that go are taken out of indexes."""
        return True

    def _check(self) -> None:
        if self.token is not None and _TOKEN.fullmatch(self.token) is None:
            raise ConfigError(f"{_WHAT}: {self.token!r} is no token", remedy="use 1 to 250 printable characters")
        if len(set(self.partitions)) != len(self.partitions):
            raise ConfigError(f"{_WHAT}: a partition is named twice")


@dataclass(frozen=True, slots=True)
class InsertOverwriteRequest(_OverwriteRequest):
    """Replaces the partitions that the rows of `source` belong to, `partitions`, or with `whole_table` all.

    `source` is a Parquet file or a folder of them, on the table's storage or where its storage options are good. The
    same `token` again does nothing; with `dry_run` nothing is written.
    """

    verb = "insert_overwrite"
    source: str = ""
    whole_table: bool = False

    def _check(self) -> None:
        _OverwriteRequest._check(self)
        if not self.source.strip():
            raise ConfigError(f"{_WHAT}: {self.verb} needs a source")
        refuse_secret_address(self.source, what="the address of the source")
        if self.whole_table and self.partitions:
            raise ConfigError(f"{_WHAT}: partitions and whole_table exclude each other")


@dataclass(frozen=True, slots=True)
class DeletePartitionRequest(_OverwriteRequest):
    """Replaces the file groups of `partitions` by none; `token` and `dry_run` as of InsertOverwriteRequest."""

    verb = "delete_partition"

    def _check(self) -> None:
        _OverwriteRequest._check(self)
        if not self.partitions:
            raise ConfigError(f"{_WHAT}: {self.verb} needs a partition")
