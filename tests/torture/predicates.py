"""Random predicates, as SQL's text and as what they mean for a row of the model."""

from __future__ import annotations

import operator
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.torture.model import State

OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
HOUR: Final = "from_unixtime(ts, 'yyyyMMddHH')"
COMPUTED: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    HOUR: lambda row: time.strftime("%Y%m%d%H", time.gmtime(row["ts"]))
}
"""What an expression over columns is."""


@dataclass(frozen=True)
class Term:
    """`column operator value`; for `IN` the value is a tuple, for `IS NULL` and `IS NOT NULL` there is none."""

    column: str
    operator: str
    value: Any = None

    @property
    def text(self) -> str:
        """As Spark's SQL writes it."""
        if self.operator.startswith("IS"):
            return f"{self.column} {self.operator}"
        if self.operator == "IN":
            return f"{self.column} IN ({', '.join(map(_literal, self.value))})"
        return f"{self.column} {self.operator} {_literal(self.value)}"

    def holds(self, row: dict[str, Any]) -> bool:
        """Whether the row is in the answer; a comparison with null is not true."""
        value = COMPUTED[self.column](row) if self.column in COMPUTED else row.get(self.column)
        if self.operator.startswith("IS"):
            return (value is None) == (self.operator == "IS NULL")
        if value is None:
            return False
        return value in self.value if self.operator == "IN" else OPERATORS[self.operator](value, self.value)


@dataclass(frozen=True)
class Predicate:
    """All of the terms."""

    terms: Sequence[Term]

    @property
    def text(self) -> str:
        """As Spark's SQL writes it."""
        return " AND ".join(term.text for term in self.terms)

    def rows(self, state: State) -> list[dict[str, Any]]:
        """The rows of the state that it chooses."""
        rows = [{name: row.get(name) for name in state.names} for row, _ in state.rows.values()]
        return [row for row in rows if all(term.holds(row) for term in self.terms)]


def predicates(dice: random.Random, state: State, count: int) -> list[Predicate]:
    """On columns that indexes are about: the record key, the secondary index's column, statistics, the partition. The
    first one is on a key, by which the record index is asked.
    """
    names = [name for name in state.names if not name.startswith("_")]
    rows = [row for row, _ in state.rows.values()]
    found = [Predicate([Term("id", "=", dice.choice(rows)["id"])])] if rows else []
    while len(found) < count:
        columns = dice.sample(names, dice.choice([1, 1, 2]))
        found.append(Predicate([_term(dice, column, [row.get(column) for row in rows]) for column in columns]))
    return found


def by_indexes(dice: random.Random, state: State, partitions: Collection[str]) -> list[Predicate]:
    """A predicate for each of these partitions of the metadata table that leads to rows."""
    rows = [row for row, _ in state.rows.values()]
    if not rows:
        return []
    one, newest = dice.choice(rows), max(rows, key=lambda row: row["ts"])
    terms = {
        "record_index": Term("id", "IN", tuple(row["id"] for row in dice.choices(rows, k=3))),
        "bloom_filters": Term("id", "=", one["id"]),
        "column_stats": Term("rate", "=", one["rate"]),
        "partition_stats": Term("ts", "=", newest["ts"]),
        "secondary_index_by_name": Term("name", "IN", tuple(row["name"] or "" for row in dice.choices(rows, k=2))),
        "expr_index_by_hour": Term(HOUR, "=", COMPUTED[HOUR](one)),
    }
    return [Predicate([term]) for name, term in terms.items() if name in partitions]


def _term(dice: random.Random, column: str, values: list[Any]) -> Term:
    known = [value for value in values if value is not None]
    if not known or dice.random() < 0.1:
        return Term(column, dice.choice(["IS NULL", "IS NOT NULL"]))
    if dice.random() < 0.25:
        return Term(column, "IN", tuple(dice.choices(known, k=3)))
    return Term(column, dice.choice(["=", "=", *OPERATORS]), dice.choice(known))


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    return f"{value!r}D" if isinstance(value, float) else str(value)
