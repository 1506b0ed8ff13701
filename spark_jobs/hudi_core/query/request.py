"""A read request on a table: values that are checked before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from hudi_core.errors import ConfigError

Query = Literal["snapshot", "read_optimized", "incremental", "cdc"]
MetadataMode = Literal["auto", "on", "off"]
"""Whether the metadata table is used: where the table has one, always, or never."""

START: Final = "000"
"""The start of a range that means "from the start"."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One query. `columns` None is all columns; `where` is a predicate in SQL text of `dialect`.

    `as_of`: an instant or a date, for snapshot and read_optimized. `begin` (exclusive) and `end` (inclusive, None is
    the latest): instants in table version 6, completion times from 8 on; for incremental and cdc.
    """

    query: Query = "snapshot"
    columns: tuple[str, ...] | None = None
    metadata: MetadataMode = "auto"
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    where: str | None = None
    dialect: str = "spark"

    @staticmethod
    def of(
        query: str = "snapshot",
        columns: Sequence[str] | None = None,
        metadata: str = "auto",
        *,
        as_of: str | None = None,
        begin: str | None = None,
        end: str | None = None,
        where: str | None = None,
        dialect: str = "spark",
    ) -> ReadRequest:
        """A checked request; raises ConfigError for an unknown word and for times that the query does not use."""
        if query not in get_args(Query):
            raise ConfigError(f"unknown query {query!r}", remedy=f"one of {', '.join(get_args(Query))}")
        if metadata not in get_args(MetadataMode):
            raise ConfigError(
                f"unknown metadata mode {metadata!r}", remedy=f"one of {', '.join(get_args(MetadataMode))}"
            )
        if columns is not None and len(set(columns)) != len(columns):
            raise ConfigError("a column is named twice", remedy="name each column once")
        ranged = query in ("incremental", "cdc")
        if ranged and begin is None:
            raise ConfigError(
                f"a query {query} needs the time after which it begins", remedy=f"give begin; {START} is from the start"
            )
        for name, value, requested in (("as_of", as_of, not ranged), ("begin", begin, ranged), ("end", end, ranged)):
            if value is None:
                continue
            if not requested:
                raise ConfigError(f"{name} means nothing to a query {query}", remedy="leave it out")
            if not value.strip():
                raise ConfigError(f"{name} is empty", remedy="give an instant or a date")
            if ranged and not (value.isascii() and value.isdigit()):
                raise ConfigError(
                    f"{name} is {value!r}, which is no time of a timeline",
                    remedy="the times of a range are runs of digits",
                )
        chosen = None if columns is None else tuple(columns)
        return ReadRequest(query, chosen, metadata, as_of, begin, end, where, dialect)  # type: ignore[arg-type]
