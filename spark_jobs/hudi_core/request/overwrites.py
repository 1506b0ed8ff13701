"""Requests of insert_overwrite and delete_partition."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hudi_core.errors import ConfigError
from hudi_core.request.requests import Request
from hudi_core.request.secrets import refuse_secret_address, refuse_secrets

MAX_TOKEN: Final = 250
"""Characters of a token."""
_TOKEN: Final = re.compile(rf"[^\x00-\x1f\x7f]{{1,{MAX_TOKEN}}}")
_FUNCTION: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
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
            remedy = f"use 1 to {MAX_TOKEN} printable characters"
            raise ConfigError(f"{_WHAT}: {self.token!r} is no token", remedy=remedy)
        if len(set(self.partitions)) != len(self.partitions):
            raise ConfigError(f"{_WHAT}: a partition is named twice", remedy="name each partition once in `partitions`")


@dataclass(frozen=True, slots=True)
class InsertOverwriteRequest(_OverwriteRequest):
    """Replaces the partitions that the rows belong to, `partitions`, or with `whole_table` all.

    The rows are those of `source`, a Parquet file or a folder of them, on the table's storage or where its storage
    options are good, or those of `query`, which Spark answers, or of the DataFrame that `dataframe` returns: the
    `module:function` that the driver imports and calls with the Spark session and `dataframe_args` by their names. The
    same `token` again does nothing; with `dry_run` the table stays as it is, and rows of a query or a DataFrame are
    kept beside it until they are counted.
    """

    verb = "insert_overwrite"
    source: str = ""
    query: str = ""
    dataframe: str = ""
    dataframe_args: Mapping[str, str] = field(default_factory=dict)
    whole_table: bool = False

    def _check(self) -> None:
        _OverwriteRequest._check(self)
        given = [name for name in ("source", "query", "dataframe") if getattr(self, name).strip()]
        if not given:
            raise ConfigError(f"{_WHAT}: {self.verb} needs a source, a query or a dataframe", remedy="give one of them")
        if len(given) > 1:
            raise ConfigError(f"{_WHAT}: {' and '.join(given)} exclude each other", remedy="give one of them")
        if self.dataframe and _FUNCTION.fullmatch(self.dataframe) is None:
            raise ConfigError(f"{_WHAT}: {self.dataframe!r} is no function", remedy="give package.module:function")
        if self.dataframe_args and not self.dataframe:
            raise ConfigError(
                f"{_WHAT}: dataframe_args are for a dataframe",
                remedy="name its function in `dataframe`, or leave them out",
            )
        refuse_secrets(self.dataframe_args, where="dataframe_args")
        refuse_secret_address(self.source, what="the address of the source")
        if self.whole_table and self.partitions:
            raise ConfigError(
                f"{_WHAT}: partitions and whole_table exclude each other",
                remedy="leave `partitions` empty to replace all of the table, or turn `whole_table` off",
            )


@dataclass(frozen=True, slots=True)
class DeletePartitionRequest(_OverwriteRequest):
    """Replaces the file groups of `partitions` by none; `token` and `dry_run` as of InsertOverwriteRequest."""

    verb = "delete_partition"

    def _check(self) -> None:
        _OverwriteRequest._check(self)
        if not self.partitions:
            raise ConfigError(
                f"{_WHAT}: {self.verb} needs a partition",
                remedy="name them in `partitions`, as their folders are named; of hudictl: --partition",
            )
