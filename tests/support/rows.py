"""Comparison of tables row by row, whatever their order and file layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PHYSICAL = ("_hoodie_commit_seqno", "_hoodie_file_name")
"""Meta columns that name a file or a position in it: they differ between two correct writers."""


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted((key, _frozen(item)) for key, item in value.items()))
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        return tuple(sorted((_frozen(item) for item in value), key=repr))  # a map: its entries have no order
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    return value


def rows_of(table: pa.Table, columns: Sequence[str]) -> Counter[tuple[Any, ...]]:
    """The multiset of rows over the given columns."""
    return Counter(
        zip(*([_frozen(value) for value in table.column(name).to_pylist()] for name in columns), strict=True)
    )


def assert_same_rows(actual: pa.Table, expected: pa.Table, *, ignore: Iterable[str] = PHYSICAL) -> None:
    """Fails unless both tables hold the same columns and the same multiset of rows over them."""
    ignored = set(ignore)
    columns = [name for name in expected.column_names if name not in ignored]
    assert sorted(name for name in actual.column_names if name not in ignored) == sorted(columns)
    mine, theirs = rows_of(actual, columns), rows_of(expected, columns)
    missing, extra = theirs - mine, mine - theirs
    assert not missing, (
        f"{sum(missing.values())} rows missing, {sum(extra.values())} extra; first missing {next(iter(missing))}; "
        f"extra {list(extra)[:1]}"
    )
    assert not extra, f"{sum(extra.values())} extra rows; first {next(iter(extra))}"


def read_parquet(path: Any) -> pa.Table:
    """One parquet file as a table, with no partition columns guessed from its path."""
    return pq.read_table(path, partitioning=None)
