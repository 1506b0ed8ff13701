"""The rows that a table must hold, computed from what was written and never from what is read.

Each write that completed is an effect at its instant. The rows as of an instant are what the effects up to it make of
an empty table, in the order in which they completed: a rollback or a restore takes effects out, everything else leaves
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from tests.torture.program import TableShape, Write

Row = Mapping[str, Any]
DELETED: Final = "_hoodie_is_deleted"
ADDED: Final = ((pa.string(), "added {}"), (pa.float64(), None), (pa.int64(), None))
"""Types of columns that are added, in turn, and how a value of text is made."""
ORDER_STEP: Final = 1000
"""Between the ordering values of two writes: a late row lies between them."""


@dataclass(frozen=True)
class Effect:
    """What one write does. `columns` are the table's after it; `rows` replace those of their keys (`overwritten`: all
    rows of these partitions are gone before, None for all partitions); `keys` are deleted.
    """

    instant: str
    columns: tuple[tuple[str, pa.DataType], ...]
    rows: tuple[Row, ...] = ()
    keys: frozenset[str] = frozenset()
    overwritten: frozenset[str] | None = frozenset()


@dataclass(frozen=True)
class State:
    """The table at one time: its columns, and by key the row and the instant that wrote it."""

    columns: tuple[tuple[str, pa.DataType], ...]
    rows: Mapping[str, tuple[Row, str]]

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return [name for name, _ in self.columns]

    def values(self, rows: Iterable[Row] | None = None) -> list[tuple[Any, ...]]:
        """The rows (or these) over all columns, by key; a column that came later is null."""
        chosen = [row for row, _ in self.rows.values()] if rows is None else rows
        return sorted((tuple(row.get(name) for name in self.names) for row in chosen), key=lambda row: str(row[0]))


def key_of(number: int) -> str:
    """The record key."""
    return f"k{number:04d}"


def partition_of(number: int, table: TableShape) -> str:
    """The partition of a key, the same in each write: so a key is in one partition only, whichever index finds it."""
    return f"p{number * 7 % 10 % max(1, table.partitions)}"


def folders(numbers: Iterable[int], table: TableShape) -> list[str]:
    """The folders of the partitions of keys."""
    hive = table.options["hoodie.datasource.write.hive_style_partitioning"] == "true"
    names = sorted({partition_of(number, table) for number in numbers})
    return [f"part={name}" if hive else name for name in names]


@dataclass
class Model:
    """The effects of a table of this shape, in the order in which they completed."""

    table: TableShape
    effects: list[Effect] = field(default_factory=list)

    def state(self, upto: str | None = None) -> State:
        """The table now, or as of an instant."""
        columns = self.effects[0].columns if self.effects else self._first_columns()
        rows: dict[str, tuple[Row, str]] = {}
        for effect in self.effects:
            if upto is not None and effect.instant > upto:
                break
            columns = effect.columns
            self._apply(effect, rows)
        return State(columns, rows)

    def instants(self) -> list[str]:
        """The instants of the writes that are in the table."""
        return [effect.instant for effect in self.effects]

    def remove(self, instants: Iterable[str]) -> None:
        """These writes were rolled back."""
        gone = set(instants)
        self.effects = [effect for effect in self.effects if effect.instant not in gone]

    def history(self) -> dict[str, list[Row]]:
        """Every row that a key ever had."""
        found: dict[str, list[Row]] = {}
        for effect in self.effects:
            for row in effect.rows:
                found.setdefault(row["id"], []).append(row)
        return found

    def deleted(self) -> set[str]:
        """The keys that some write deleted."""
        by_rows = {row["id"] for effect in self.effects for row in effect.rows if row.get(DELETED)}
        return by_rows.union(*(effect.keys for effect in self.effects))

    def effect_of(self, write: Write, instant: str = "") -> Effect:
        """What a write does to the table as it is now."""
        now = self.state()
        columns = _evolved(now.columns, write)
        numbers = write.keys
        if write.operation == "delete_partition":
            gone = frozenset(partition_of(number, self.table) for number in numbers)
            return Effect(instant, now.columns, overwritten=gone)
        if write.operation == "delete":
            return Effect(instant, now.columns, keys=frozenset(map(key_of, numbers)))
        rows = tuple(self._row(number, write, columns, now) for number in numbers)
        overwritten: frozenset[str] | None = frozenset()
        if write.operation == "insert_overwrite":
            overwritten = frozenset(row["part"] for row in rows)
        if write.operation == "insert_overwrite_table":
            overwritten = None
        return Effect(instant, columns, rows, overwritten=overwritten)

    def rows_to_write(self, write: Write) -> pa.Table:
        """The rows as the writer gets them; for a delete and a delete_partition, rows of the keys."""
        now = self.state()
        columns = _evolved(now.columns, write)
        rows = [self._row(number, write, columns, now) for number in write.keys]
        return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(list(columns)))

    def _first_columns(self) -> tuple[tuple[str, pa.DataType], ...]:
        columns = [("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("name", pa.string())]
        columns += [("amount", pa.int32()), ("rate", pa.float64())]
        return tuple([*columns, (DELETED, pa.bool_())] if self.table.soft_deletes else columns)

    def _row(self, number: int, write: Write, columns: Sequence[tuple[str, pa.DataType]], now: State) -> Row:
        key, salt = key_of(number), write.number
        held = now.rows.get(key)
        late = number in write.late and held is not None and self.table.event_time
        row: dict[str, Any] = {
            "id": key,
            "part": partition_of(number, self.table),
            "ts": held[0]["ts"] - 1 if late and held is not None else salt * ORDER_STEP,
            "name": None if (number + salt) % 11 == 0 else f"n{salt:04d}-{number % 5}",
            "amount": None if (number + salt) % 13 == 0 else (number * 31 + salt * 17) % 200 - 100,
            "rate": (number % 50) / 4 + salt,
            DELETED: number in write.dropped and not late,
        }
        for name, kind in columns:
            if name.startswith("e"):
                text = ADDED[int(name[1:]) % len(ADDED)][1]
                row[name] = text.format(salt) if text else pa.scalar(salt + number, kind).as_py()
        return {name: row[name] for name, _ in columns}

    def _apply(self, effect: Effect, rows: dict[str, tuple[Row, str]]) -> None:
        gone = effect.overwritten
        for key in [key for key, (row, _) in rows.items() if gone is None or row["part"] in gone]:
            del rows[key]
        for key in effect.keys:
            rows.pop(key, None)
        for row in effect.rows:
            held = rows.get(row["id"])
            if held is not None and self.table.event_time and held[0]["ts"] > row["ts"]:
                continue
            if row.get(DELETED):
                rows.pop(row["id"], None)
            else:
                rows[row["id"]] = row, effect.instant


def _evolved(columns: tuple[tuple[str, pa.DataType], ...], write: Write) -> tuple[tuple[str, pa.DataType], ...]:
    if write.evolution == "add_column":
        number = len(columns)
        return (*columns, (f"e{number}", ADDED[number % len(ADDED)][0]))
    if write.evolution == "widen":
        return tuple((name, pa.int64() if name == "amount" else kind) for name, kind in columns)
    return columns
