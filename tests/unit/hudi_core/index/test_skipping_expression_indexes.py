"""Expression indexes: the expression that a definition names, and what a predicate over it excludes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.codec.bloom import BloomFilter
from hudi_core.expr.bind import bind
from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import Call, Column, Literal, Operand
from hudi_core.index.skipping import expression_mask, indexed_operand
from hudi_core.metadata_table.indexed_table import IndexDefinition
from hudi_core.model.names import FileGroupId
from hudi_core.view.file_group import DataFile, FileSlice

SCHEMA = pa.schema(
    [pa.field("name", pa.string()), pa.field("day", pa.date32()), pa.field("at", pa.timestamp("us", "UTC"))]
)
FILES = ("one", "two")


def index(
    function: str, column: str = "name", *, type_: str = "column_stats", options: Mapping[str, str] | None = None
) -> IndexDefinition:
    return IndexDefinition("expr_index_x", type_, function, tuple(column.split()), options or {}, 2)


@pytest.mark.parametrize(
    ("definition", "operand"),
    [
        (index("lower"), Call("lower", (Column(("name",)),))),
        (index("lower", "a.b"), Call("lower", (Column(("a", "b")),))),
        (index("lower", options={"expr": "lower"}), Call("lower", (Column(("name",)),))),
        (index("to_date", options={"expr": "to_date", "format": "yyyy"}), None),
        (
            index("date_format", options={"format": "yyyy"}),
            Call("date_format", (Column(("name",)), Literal.of("yyyy"))),
        ),
        (index("from_unixtime"), Call("from_unixtime", (Column(("name",)),))),
        (index("date_format", options={"format": "yyyy", "days": "1"}), None),
        (index("substring"), None),
        (index("identity"), None),
        (index("lower", "name day"), None),
    ],
)
def test_the_expression_of_an_index(definition: IndexDefinition, operand: Operand | None) -> None:
    assert indexed_operand(definition) == operand


class Metadata:
    """As metadata_table.read.metadata_table.MetadataTable, with one expression index over two files."""

    nulls, values = 0, 1

    def __init__(self, definition: IndexDefinition, bounds: Any = (), blooms: Mapping[str, str] | None = None) -> None:
        self.partition_types = frozenset({definition.name})
        self._definition, self._bounds, self._blooms = definition, bounds, blooms or {}

    def has_index(self, name: str) -> bool:
        return name in self.partition_types

    @property
    def definitions(self) -> dict[str, IndexDefinition]:
        return {self._definition.name: self._definition}

    def expression_stats(self, name: str) -> pa.Table:
        kind = pa.int32() if isinstance(self._bounds[0][0], int) else pa.string()
        low, high = (pa.array([pair[end] for pair in self._bounds], kind) for end in (0, 1))
        counts = pa.array([self.values] * len(low), pa.int64())
        nulls = pa.array([self.nulls] * len(low), pa.int64())
        columns = {"partition": [""] * len(low), "file": FILES[: len(low)], "min": low, "max": high}
        return pa.table(columns | {"null_count": nulls, "value_count": counts, "uncompressed_size": counts})

    def expression_blooms(self, name: str, partition: str, names: list[str]) -> dict[str, BloomFilter]:
        return {file: filter_of(text) for file, text in self._blooms.items() if file in names}


def filter_of(text: str) -> BloomFilter:
    found = BloomFilter()
    found.add_batch(pa.array([text]))
    return found


def kept(text: str, metadata: Any, *, zone: str | None = None, hidden: frozenset[str] = frozenset()) -> list[bool]:
    slices = [FileSlice(FileGroupId("", name), "001", DataFile("", name, 1), ()) for name in FILES]
    mask: list[bool] = expression_mask(
        slices, bind(parse_predicate(text), SCHEMA, zone=zone), metadata, hidden
    ).tolist()
    return mask


def test_files_are_excluded_by_the_statistics_of_the_expression() -> None:
    metadata = Metadata(index("lower"), [("a", "c"), ("d", "f")])
    assert kept("lower(name) = 'e'", metadata) == [False, True]
    assert kept("lower(name) > 'f'", metadata) == [False, False]
    assert kept("name = 'e'", metadata) == [True, True]
    assert kept("upper(name) = 'E'", metadata) == [True, True]


def test_files_are_excluded_by_the_bloom_filters_of_the_expression() -> None:
    metadata = Metadata(index("lower", type_="bloom_filters"), blooms={"one": "a", "two": "b"})
    assert kept("lower(name) = 'b'", metadata) == [False, True]
    assert kept("lower(name) >= 'b'", metadata) == [True, True]
    assert kept("lower(name) = 'b'", Metadata(index("lower", type_="bloom_filters"), blooms={"two": "b"})) == [True] * 2


def test_an_index_that_is_not_built_or_over_a_hidden_column_is_not_used() -> None:
    metadata = Metadata(index("lower"), [("a", "c"), ("d", "f")])
    assert kept("lower(name) = 'e'", metadata, hidden=frozenset({"name"})) == [True, True]
    metadata.partition_types = frozenset()
    assert kept("lower(name) = 'e'", metadata) == [True, True]


def test_an_expression_of_local_time_needs_the_zone_of_the_query() -> None:
    """Of a timestamp with a zone the year depends on the session's zone; of a date it does not."""
    years = [(2020, 2021), (2022, 2023)]
    assert kept("year(at) = 2022", Metadata(index("year", "at"), years)) == [True, True]
    assert kept("year(at) = 2022", Metadata(index("year", "at"), years), zone="UTC") == [False, True]
    assert kept("year(day) = 2022", Metadata(index("year", "day"), years)) == [False, True]


def test_as_many_nulls_as_values_are_not_nulls_alone() -> None:
    """The index counts the values without the nulls (SparkMetadataWriterUtils)."""
    metadata = Metadata(index("lower"), [("a", "c"), ("d", "f")])
    metadata.nulls = 1
    assert kept("lower(name) = 'e'", metadata) == [False, True]
    assert kept("lower(name) IS NOT NULL", metadata) == [True, True]
    assert kept("lower(name) IS NULL", metadata) == [True, True]


def test_nulls_alone_rule_files_out() -> None:
    metadata = Metadata(index("lower"), [(None, None), (None, None)])
    metadata.nulls, metadata.values = 1, 0
    assert kept("lower(name) IS NOT NULL", metadata) == [False, False]
