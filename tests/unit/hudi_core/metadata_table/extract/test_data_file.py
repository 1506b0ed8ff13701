"""Statistics of one data file: from its footer where that has them, else from its rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import CorruptFileError, StorageNotFoundError, UnsupportedError
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.indexed_table import indexed_types, is_indexable
from hudi_core.metadata_table.records.bounds import Bound
from hudi_core.metadata_table.records.column_stats import ColumnStatsRules, file_record, statistics_table
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef, Expression, FileStatistics
from hudi_core.metadata_table.records.range_merge import is_unknown
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.schemas import ColumnSource
from tests.support.golden_data import GoldenCase
from tests.support.golden_metadata_cells import GoldenCells, plain_datum
from tests.support.memory_storage import MemoryStorage

Golden = Callable[[str, str], GoldenCase]
NAME = "a0b1c2d3-0000-0000-0000-000000000000-0_0-1-0_20240101000000000.parquet"
TYPES = [
    ("6", "types_cow"),
    ("8", "types_mor"),
    ("9", "types_mor"),
    ("9", "types_timestamp_millis"),
    ("9", "types_timestamp_ntz"),
    ("8", "types_3level_lists_cow"),
]


def schema_of(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "r",
        "fields": [{"name": name, "type": ["null", kind], "default": None} for name, kind in fields],
    }


def written(folder: Path, table: pa.Table, **options: Any) -> DataFileRef:
    pq.write_table(table, folder / NAME, **options)
    return DataFileRef("", NAME, (folder / NAME).stat().st_size, True)


def by_column(statistics: FileStatistics) -> dict[str, ColumnRange]:
    return {found.column: found for found in statistics.ranges}


@pytest.mark.parametrize(("version", "case"), TYPES)
def test_ranges_of_real_files_come_back_as_the_columns_own_values(golden: Golden, version: str, case: str) -> None:
    table = GoldenCells(golden(version, case).table)
    index_version = table.table.version_of("column_stats")
    types = {name: kind for name, kind in indexed_types(table.table).items() if is_indexable(kind, index_version)}
    requirements = StatisticsRequirements(table.table.stored_schema(), tuple(types), index_version)
    logs = 0
    for statistics in table.statistics(table.files(), requirements):
        logs += not statistics.file.is_base
        assert [found.column for found in statistics.ranges] == list(types)
        for found in statistics.ranges:
            assert not is_unknown(found)
            record = file_record(statistics.file, found)
            assert record is not None
            stats = ColumnStatsRules().decode(record[0], plain_datum(record[1]), path="x")
            row = statistics_table(
                [("", stats)], types[found.column], long_unit="ms" if _is_millis(types[found.column]) else "us"
            ).to_pylist()[0]
            assert (row["null_count"], row["value_count"]) == (found.null_count, found.value_count)
            assert (row["min"] is None) == (found.null_count == found.value_count), found
    assert logs > 0 or not table.config.is_merge_on_read


def _is_millis(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ms")


def test_floats_of_a_writer_that_passes_over_nan_are_read(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"a": [1.0, float("nan"), -3.0], "b": [1, 2, None]}))
    statistics = read_file_statistics(
        LocalStorage(tmp_path), file, StatisticsRequirements(schema_of(("a", "double"), ("b", "long")), ("a", "b"), 2)
    )
    a, b = statistics.ranges
    assert a.least == Bound("double", -3.0)
    assert a.greatest is not None
    assert a.greatest.value == math.inf
    assert a.total_size > 0
    assert a.total_uncompressed_size > 0
    assert (b.least, b.greatest, b.null_count, b.value_count) == (Bound("long", 1), Bound("long", 2), 1, 3)
    assert statistics.rows == 3


def test_text_too_long_for_a_footer_is_read(tmp_path: Path) -> None:
    long = "x" * 5000
    file = written(tmp_path, pa.table({"a": ["b", long]}), write_statistics=False)
    (found,) = read_file_statistics(
        LocalStorage(tmp_path), file, StatisticsRequirements(schema_of(("a", "string")), ("a",))
    ).ranges
    assert (found.least, found.greatest, found.null_count) == (Bound("string", "b"), Bound("string", long), 0)


def test_a_column_that_a_file_lacks_is_null_in_all_its_rows(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"a": [1, 2]}))
    found = by_column(
        read_file_statistics(
            LocalStorage(tmp_path),
            file,
            StatisticsRequirements(schema_of(("a", "long"), ("b", "string")), ("a", "b"), 2),
        )
    )
    assert (found["b"].least, found["b"].null_count, found["b"].value_count, found["b"].type.ordinal) == (None, 2, 2, 7)


def test_a_column_that_was_widened_is_read_as_what_it_is_now(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"a": pa.array([1, 2], pa.int32())}))
    (found,) = read_file_statistics(
        LocalStorage(tmp_path), file, StatisticsRequirements(schema_of(("a", "long")), ("a",), 2)
    ).ranges
    assert (found.least, found.greatest, found.type.ordinal) == (Bound("long", 1), Bound("long", 2), 4)


def test_row_groups_add_up(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"a": pa.array([5, 1, None, 9], pa.int32())}), row_group_size=1)
    (found,) = read_file_statistics(
        LocalStorage(tmp_path), file, StatisticsRequirements(schema_of(("a", "int")), ("a",))
    ).ranges
    assert (found.least, found.greatest, found.null_count, found.value_count) == (
        Bound("int", 1),
        Bound("int", 9),
        1,
        4,
    )


def test_a_field_of_a_struct_goes_by_its_dotted_name(tmp_path: Path) -> None:
    inner = {"type": "record", "name": "s", "fields": [{"name": "b", "type": ["null", "string"], "default": None}]}
    for options in ({}, {"write_statistics": False}):
        file = written(
            tmp_path,
            pa.table({"a": pa.array([{"b": "y"}, None, {"b": "x"}], pa.struct([("b", pa.string())]))}),
            **options,
        )
        statistics = read_file_statistics(
            LocalStorage(tmp_path), file, StatisticsRequirements(schema_of(("a", inner)), ("a.b",), 2)
        )
        assert [(found.column, found.least, found.greatest, found.null_count) for found in statistics.ranges] == [
            ("a.b", Bound("string", "x"), Bound("string", "y"), 1)
        ]


def test_a_file_without_rows_has_no_values(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"a": pa.array([], pa.int64())}))
    statistics = read_file_statistics(
        LocalStorage(tmp_path), file, StatisticsRequirements(schema_of(("a", "long")), ("a",))
    )
    assert [(found.value_count, found.least) for found in statistics.ranges] in ([], [(0, None)])


def test_rows_of_some_columns_have_no_values_of_the_others(golden: Golden) -> None:
    table = GoldenCells(golden("8", "partial_update_merge_into").table)
    requirements = StatisticsRequirements(table.table.stored_schema(), tuple(indexed_types(table.table)))
    partial = [statistics for statistics in table.statistics(table.files(), requirements) if statistics.partial]
    assert partial
    for statistics in partial:
        assert {found.value_count for found in statistics.ranges} == {0, statistics.rows}


def test_a_renamed_column_is_found_under_the_name_that_the_file_has(tmp_path: Path) -> None:
    file = written(tmp_path, pa.table({"old": [1, 2], "b": [5, 6]}))
    sources = [ColumnSource("new", "old", ()).to_json(), ColumnSource("b", "b", ()).to_json()]
    requirements = StatisticsRequirements(
        schema_of(("new", "long"), ("b", "long")), ("new", "b"), 1, history=[[0, sources]]
    )
    found = by_column(
        read_file_statistics(
            LocalStorage(tmp_path),
            file,
            from_text(StatisticsRequirements, to_text(requirements)),
        )
    )
    assert {name: (item.least, item.greatest) for name, item in found.items()} == {
        "new": (Bound("long", 1), Bound("long", 2)),
        "b": (Bound("long", 5), Bound("long", 6)),
    }


def test_statistics_survive_the_engine(tmp_path: Path) -> None:
    table = pa.table(
        {"a": [b"\xff", None], "b": pa.array(["1.20", None]).cast(pa.decimal128(10, 2)), "c": [float("inf"), 0.1]}
    )
    file = written(tmp_path, table)
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    expression = Expression("expr_index_c", "c", "identity", {"expr": "identity"}, "column_stats", 2, "UTC")
    requirements = StatisticsRequirements(
        schema_of(("a", "bytes"), ("b", decimal), ("c", "double")), ("a", "b", "c"), 2, True, (expression,)
    )
    again = from_text(StatisticsRequirements, to_text(requirements))
    assert again == requirements
    statistics = read_file_statistics(LocalStorage(tmp_path), file, again)
    assert from_text(FileStatistics, to_text(statistics)) == statistics
    assert statistics.bloom is None
    assert isinstance(statistics.expressions["expr_index_c"], ColumnRange)


def test_nothing_is_opened_when_nothing_is_required(tmp_path: Path) -> None:
    gone = DataFileRef("", NAME, 1, True)
    assert read_file_statistics(
        LocalStorage(tmp_path), gone, StatisticsRequirements(schema_of(("a", "long")))
    ) == FileStatistics(gone)


def test_files_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    requirements = StatisticsRequirements(schema_of(("a", "long")), ("a",))
    with pytest.raises(StorageNotFoundError):
        read_file_statistics(LocalStorage(tmp_path), DataFileRef("", NAME, 1, True), requirements)
    (tmp_path / NAME).write_bytes(b"no parquet")
    with pytest.raises(CorruptFileError):
        read_file_statistics(LocalStorage(tmp_path), DataFileRef("", NAME, 10, True), requirements)
    orc = NAME.replace(".parquet", ".orc")
    with pytest.raises(UnsupportedError):
        read_file_statistics(LocalStorage(tmp_path), DataFileRef("", orc, 10, True), requirements)


def test_a_file_of_a_bootstrap_has_no_statistics() -> None:
    """Its columns are in another table's file: they are not null."""
    file = DataFileRef("p", "f-0_0-1-2_00000000000001.parquet", 1, is_base=True)
    schema = schema_of(("v", "int"))
    for requirements in (StatisticsRequirements(schema, ("v",)), StatisticsRequirements(schema, bloom=True)):
        with pytest.raises(UnsupportedError, match="bootstrap") as caught:
            read_file_statistics(MemoryStorage(), file, requirements)
        assert caught.value.path == "p/f-0_0-1-2_00000000000001.parquet"
    assert read_file_statistics(MemoryStorage(), file, StatisticsRequirements(schema)) == FileStatistics(file)
