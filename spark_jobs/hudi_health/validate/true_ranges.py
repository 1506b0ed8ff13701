"""Finds the least and the greatest value of operands in the records, and compares them with stored statistics. Bounds
are compared in the way that readers use them (index.value_ranges): docs/guarantees/metadata-table.md, "validate".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import truncated
from hudi_core.expr.functions import evaluate
from hudi_core.expr.tree import Operand, operand_columns
from hudi_core.frozen import dataclass
from hudi_core.index.value_ranges import indexed_in_order_of
from hudi_health.validate.check import FileHead, Findings, PartitionCheck

UNLISTED: Final = "has statistics, but `files` does not list it"
VALUE: Final = ""
"""The name of the only operand of an expression index."""
_SHOWN: Final = 60


@dataclass(slots=True)
class TrueRange:
    """The values of an operand in the records so far. If all values are NaN or null, there are no bounds."""

    nulls: int = 0
    rows: int = 0
    has_nan: bool = False
    least: pa.Scalar | None = None
    greatest: pa.Scalar | None = None

    def add(self, values: pa.Array) -> None:
        self.rows += len(values)
        self.nulls += values.null_count
        if pa.types.is_boolean(values.type):
            values = values.cast(pa.int8())
        if pa.types.is_floating(values.type):
            nan = pc.is_nan(values)
            self.has_nan |= bool(pc.any(nan).as_py())
            values = values.filter(pc.invert(nan))
        found = pc.min_max(values)
        if not found["min"].is_valid:
            return
        if self.least is not None:
            ends = (found["min"], found["max"], self.least, self.greatest)
            found = pc.min_max(pa.concat_arrays([pa.repeat(value, 1) for value in ends]))
        self.least, self.greatest = found["min"], found["max"]

    @property
    def has_values(self) -> bool:
        return self.rows > self.nulls


@dataclass(frozen=True, slots=True)
class Statistic:
    """The statistics of a column in the metadata table: bounds as scalars, null if unknown, and counts."""

    least: pa.Scalar
    greatest: pa.Scalar
    null_count: int
    value_count: int
    is_tight: bool


def statistics_by(table: pa.Table, key: str) -> dict[str, Statistic]:
    """Returns the rows of a table of statistics (MetadataTable.column_stats), by the values of its column `key`."""
    counts = (table.column(name).to_pylist() for name in (key, "null_count", "value_count", "is_tight"))
    columns = (table.column("min"), table.column("max"), *counts)
    return {
        name: Statistic(least, greatest, nulls, values, tight)
        for least, greatest, name, nulls, values, tight in zip(*columns, strict=True)
    }


@dataclass(frozen=True, slots=True)
class IndexedOperands:
    """The operands of an index's statistics or filters, by name. They name columns exactly. `zone` is the zone of wall
    time. `has_values` is off if the values are not known, because they depend on an unknown zone.
    """

    operands: Mapping[str, Operand]
    zone: str = "UTC"
    has_values: bool = True

    def columns(self) -> frozenset[str]:
        return frozenset(path[0] for operand in self.operands.values() for path in operand_columns(operand))

    def of(self, head: FileHead, carried: frozenset[str] | None = None) -> list[str]:
        """Returns the names of the operands that a file has, or that its records with the columns `carried` have."""
        return [
            name
            for name, operand in self.operands.items()
            if all(head.holds(path[0], carried) for path in operand_columns(operand))
        ]


class TrueRanges:
    def __init__(self, indexed: IndexedOperands) -> None:
        self._indexed = indexed
        self._found = {name: TrueRange() for name in indexed.operands}

    def add(self, batch: pa.RecordBatch, names: Iterable[str]) -> None:
        for name in names:
            self._found[name].add(evaluate(self._indexed.operands[name], batch, self._indexed.zone))

    def of(self, name: str) -> TrueRange:
        return self._found[name]


class Counts(Enum):
    EXACT = "exact"
    AT_LEAST = "at least"
    """The counts may be larger than the number of records, because they include replaced files."""
    LOOSE = "loose"

    def contradict(self, stored: Statistic, true: TrueRange) -> bool:
        if self is Counts.EXACT:
            return (stored.null_count, stored.value_count) != (true.nulls, true.rows)
        return self is Counts.AT_LEAST and (stored.null_count < true.nulls or stored.value_count < true.rows)


def contradictions(stored: Statistic, true: TrueRange, counts: Counts, *, bounds: bool = True) -> Iterator[str]:
    if counts.contradict(stored, true):
        yield (
            f"stored are {stored.null_count} nulls of {stored.value_count} values, but there are {true.nulls} of "
            f"{true.rows}"
        )
    if not bounds or not true.has_values:
        return
    lower, upper = true.least, true.greatest
    in_order_of = pa.float64() if lower is None else lower.type
    least, greatest = (_bound(value, in_order_of) for value in (stored.least, stored.greatest))
    if least is None and greatest is None:
        if stored.least.is_valid is stored.greatest.is_valid is False and 0 < stored.value_count == stored.null_count:
            yield f"stored are {stored.value_count} values, all null, but there is {_text(lower)}"
        return
    if least is not None and lower is not None and (_is_nan(least) or pc.less(lower, least).as_py()):
        yield f"the stored minimum is {_text(least)}, but there is {_text(lower)}"
    if greatest is not None and not _is_nan(greatest):
        if true.has_nan:
            yield f"the stored maximum is {_text(greatest)}, but there is NaN"
        elif upper is not None and pc.greater(upper, greatest).as_py():
            yield f"the stored maximum is {_text(greatest)}, but there is {_text(upper)}"


class StatisticsCheck(PartitionCheck, ABC):
    """The check of file statistics in an index. `stored` has the open partition's, by operand and file."""

    def __init__(self, name: str, indexed: IndexedOperands, findings: Findings) -> None:
        super().__init__(name, findings)
        self.indexed = indexed
        self.stored: Mapping[str, Mapping[str, Statistic]] = {}

    def file_columns(self) -> frozenset[str]:
        return self.indexed.columns()

    def open_file(self, head: FileHead) -> FileStatisticsCheck | None:
        name = head.file.name
        if not self.indexed.of(head):
            return None
        return FileStatisticsCheck(self, head, {of: files[name] for of, files in self.stored.items() if name in files})

    @abstractmethod
    def lacks(self, head: FileHead, names: Sequence[str], records: int) -> None:
        """Handles a file without statistics of the operands `names`, which the file has."""


class FileStatisticsCheck:
    def __init__(self, check: StatisticsCheck, head: FileHead, stored: Mapping[str, Statistic]) -> None:
        self._check = check
        self._head = head
        self._stored = stored
        self._true = TrueRanges(check.indexed)
        self._records = 0

    def add(self, batch: pa.RecordBatch, columns: frozenset[str] | None) -> None:
        self._records += batch.num_rows
        self._true.add(batch, self._check.indexed.of(self._head, columns))

    def close(self) -> None:
        names, counts = self._check.indexed.of(self._head), Counts.EXACT if self._head.is_base else Counts.LOOSE
        for name in names:
            if (stored := self._stored.get(name)) is not None:
                bounds = self._check.indexed.has_values
                for what in contradictions(stored, self._true.of(name), counts, bounds=bounds):
                    self._check.add_of_file(self._head, f"column {name}: {what}" if name else what)
        if missing := [name for name in names if name not in self._stored]:
            self._check.lacks(self._head, missing, self._records)


def _bound(value: pa.Scalar, in_order_of: pa.DataType) -> pa.Scalar | None:
    """Returns a stored bound in the order of the true values; None if it does not bound them."""
    if not value.is_valid:
        return None
    array = pa.repeat(value, 1)
    found = indexed_in_order_of(array.cast(pa.int8()) if pa.types.is_boolean(value.type) else array, in_order_of)
    return None if found is None or not found[0].is_valid else found[0]


def _is_nan(value: pa.Scalar) -> bool:
    return pa.types.is_floating(value.type) and bool(pc.is_nan(value).as_py())


def _text(value: pa.Scalar | None) -> str:
    if value is None:
        return "NaN"
    try:
        shown = str(value.as_py()) if pa.types.is_timestamp(value.type) else repr(value.as_py())
    except OverflowError:
        shown = f"{value.value} {value.type}"  # The time is outside of the years of Python's times.
    except UnicodeDecodeError:
        shown = repr(value.cast(pa.binary()).as_py())
    return truncated(shown, _SHOWN)
