"""A read request on a table: values that are checked before anything is read."""

from __future__ import annotations

from typing import Final, Literal, get_args

from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass

Query = Literal["snapshot", "read_optimized", "incremental", "cdc"]
MetadataMode = Literal["auto", "on", "off"]
"""Whether the metadata table is used: where the table has one, always, or never."""

START: Final = "000"
"""The start of a range that means "from the start"."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One query, checked. `columns` None is all columns. `where` is a predicate in SQL text of `dialect`. `as_of` is an
    instant or a date. `begin` (exclusive) and `end` (inclusive, None is the latest) are instants in table version 6,
    completion times from 8 on. Raises ConfigError for an unknown word, and for times that the query does not use.
    """

    query: Query = "snapshot"
    columns: tuple[str, ...] | None = None
    metadata: MetadataMode = "auto"
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    where: str | None = None
    dialect: str = "spark"

    def __post_init__(self) -> None:
        query = self.query
        if query not in get_args(Query):
            raise ConfigError(f"unknown query {query!r}", remedy=f"one of {', '.join(get_args(Query))}")
        if self.metadata not in get_args(MetadataMode):
            raise ConfigError(
                f"unknown metadata mode {self.metadata!r}", remedy=f"one of {', '.join(get_args(MetadataMode))}"
            )
        if self.columns is not None and len(set(self.columns)) != len(self.columns):
            raise ConfigError("a column is named twice", remedy="name each column once")
        ranged = query in ("incremental", "cdc")
        if ranged and self.begin is None:
            raise ConfigError(
                f"a query {query} needs the time after which it begins", remedy=f"give begin; {START} is from the start"
            )
        for name, is_used in (("as_of", not ranged), ("begin", ranged), ("end", ranged)):
            value = getattr(self, name)
            if value is None:
                continue
            if not is_used:
                raise ConfigError(f"{name} means nothing to a query {query}", remedy="leave it out")
            if not value.strip():
                raise ConfigError(f"{name} is empty", remedy="give an instant or a date")
            if ranged and not (value.isascii() and value.isdigit()):
                message = f"{name} is {value!r}, which is no time of a timeline"
                raise ConfigError(message, remedy="the times of a range are runs of digits")
