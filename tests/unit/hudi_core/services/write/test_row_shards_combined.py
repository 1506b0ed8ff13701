"""Rows of one key become one before they are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.config.rows_config import WriteConfig
from hudi_core.config.table_config import update_properties
from hudi_core.errors import FormatError, UnsupportedError
from hudi_core.filegroup.merge.ordering_values import Ordering, OrderingColumn
from hudi_core.model.names import PARTITION_PATH, RECORD_KEY
from hudi_core.services.write.row_shards import Spread, newest, order_keys, shards_of
from hudi_core.storage.local import LocalStorage
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import overwrite, own_rows, put_source
from tests.support.table_files import contents
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.support.writes import write

Golden = Callable[[str, str], GoldenCase]
COMBINE = {"hoodie.combine.before.insert": "true"}


def doubled(rows: pa.Table, column: str, by: int) -> pa.Table:
    """The rows with another value of a number."""
    at = rows.schema.get_field_index(column)
    return rows.set_column(
        at, rows.schema.field(at), pc.add(rows.column(column), pa.scalar(by, rows.schema.field(at).type))
    )


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_the_row_with_the_greatest_ordering_value_stays(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Wherever it is: in the first file or the last, in the same row group or another."""
    chosen = golden(version, "cow_basic")
    table = chosen.table
    ordering = (
        chosen.info["table_config"].get("hoodie.table.ordering.fields")
        or chosen.info["table_config"]["hoodie.table.precombine.field"]
    )
    rows = own_rows(table, read_rows(table))
    half = rows.num_rows // 2
    older, newer = doubled(rows, ordering, -5), doubled(rows, ordering, 7)
    first = pa.concat_tables([newer.slice(0, half), older.slice(half), rows])
    second = pa.concat_tables([rows, older.slice(0, half), newer.slice(half)])
    monkeypatch.setattr(WriteConfig, "piece_bytes", 1 << 10)
    given = put_source(pa.concat_tables([first, second]), tmp_path, files=5)
    result = overwrite(table, given, {**COMBINE, "airflow_hudi.memory.bytes": str(1 << 20)})
    assert result.records == rows.num_rows
    found = read_rows(table)
    keys = "_hoodie_record_key"
    assert Counter(found.column(keys).to_pylist()) == Counter(read_keys(newer))
    by_key = dict(zip(read_keys(newer), newer.column(ordering).to_pylist(), strict=True))
    assert dict(zip(found.column(keys).to_pylist(), found.column(ordering).to_pylist(), strict=True)) == by_key
    assert_metadata_true(table)


def read_keys(rows: pa.Table) -> list[str]:
    return [str(value) for value in rows.column("id").to_pylist()]


def test_of_equal_values_the_last_of_the_source_stays(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = own_rows(table, read_rows(table))
    name = next(field.name for field in rows.schema if pa.types.is_floating(field.type))
    parts = [doubled(rows, name, by) for by in range(4)]
    overwrite(table, put_source(pa.concat_tables(parts), tmp_path, files=3), COMBINE)
    found = read_rows(table)
    expected = dict(zip(read_keys(parts[-1]), parts[-1].column(name).to_pylist(), strict=True))
    assert dict(zip(read_keys(found), found.column(name).to_pylist(), strict=True)) == expected


def test_one_key_in_two_partitions_is_two_rows(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = own_rows(table, read_rows(table)).slice(0, 1)
    at = rows.schema.get_field_index("dt")
    moved = rows.set_column(at, rows.schema.field(at), pa.array(["2031-01-01"], rows.schema.field(at).type))
    result = overwrite(table, put_source(pa.concat_tables([rows, moved, rows]), tmp_path), COMBINE, whole_table=True)
    assert result.records == read_rows(table).num_rows == 2


def test_a_large_partition_has_a_key_in_one_of_its_files(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = own_rows(table, read_rows(table))
    given = put_source(pa.concat_tables([rows, rows]), tmp_path, files=2)
    size = sum(path.stat().st_size for path in given.iterdir())
    result = overwrite(table, given, {**COMBINE, "hoodie.parquet.max.file.size": str(size // 12)}, whole_table=True)
    assert result.files_written >= 6
    assert Counter(read_keys(read_rows(table))) == Counter(read_keys(rows))


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_partitions_of_one_row_each(golden: Golden, tmp_path: Path, version: str, count: int) -> None:
    table = golden(version, "cow_basic").table
    rows = own_rows(table, read_rows(table)).slice(0, count)
    days = [f"2031-01-0{number + 1}" for number in range(count)]
    at = rows.schema.get_field_index("dt")
    rows = rows.set_column(at, rows.schema.field(at), pa.array(days, rows.schema.field(at).type))
    assert overwrite(table, put_source(rows, tmp_path), COMBINE, whole_table=True).records == count
    assert Counter(read_keys(read_rows(table))) == Counter(read_keys(rows))
    assert_metadata_true(table)


def test_a_key_may_fill_several_merged_pieces(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = golden("9", "cow_basic")
    rows = own_rows(chosen.table, read_rows(chosen.table))
    ordering = chosen.info["table_config"]["hoodie.table.ordering.fields"]
    monkeypatch.setattr(WriteConfig, "piece_bytes", 1 << 10)
    monkeypatch.setattr(WriteConfig, "merged_bytes", 1 << 12)
    parts = [doubled(rows.slice(0, 1), ordering, by) for by in range(400)]
    given = put_source(pa.concat_tables([*parts, rows.slice(1, 1)]), tmp_path, files=2)
    result = overwrite(chosen.table, given, {**COMBINE, "airflow_hudi.memory.bytes": str(1 << 20)}, whole_table=True)
    found = read_rows(chosen.table)
    assert result.records == found.num_rows == 2
    by_key = dict(zip(read_keys(found), found.column(ordering).to_pylist(), strict=True))
    assert by_key[read_keys(rows)[0]] == parts[-1].column(ordering)[0].as_py()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("hoodie.index.type", "GLOBAL_BLOOM", "by which keys are of the whole table"),
        ("airflow_hudi.merge.function", "none_such", "merged field by field"),
    ],
)
def test_what_is_not_simply_the_newest_is_refused(
    golden: Golden, tmp_path: Path, name: str, value: str, message: str
) -> None:
    table = golden("9", "cow_basic").table
    given = put_source(own_rows(table, read_rows(table)), tmp_path)
    with pytest.raises(UnsupportedError, match=message):
        overwrite(table, given, {**COMBINE, name: value})


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_rows_are_ordered_by_decimals(golden: Golden, tmp_path: Path, version: str) -> None:
    """Those of the greatest precision are wider on the way than a column of theirs (ordering_values.OrderingColumn)."""
    table = golden(version, "types_cow").table
    name = "hoodie.table.precombine.field" if version == "6" else "hoodie.table.ordering.fields"
    update_properties(LocalStorage(table), {name: "c_dec_38_10"})
    rows = own_rows(table, read_rows(table))
    at, count = rows.schema.get_field_index("c_dec_38_10"), rows.num_rows
    values = [Decimal(number) - 20 for number in range(count)]
    older, newer = (
        rows.set_column(at, rows.schema.field(at), pa.array([value + more for value in values], pa.decimal128(38, 10)))
        for more in (Decimal("-0.5"), 9)
    )
    given = put_source(pa.concat_tables([newer, older]), tmp_path, files=3)
    assert overwrite(table, given, COMBINE).records == count
    assert sorted(read_rows(table).column("c_dec_38_10").to_pylist()) == [value + 9 for value in values]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_rows_without_an_ordering_value_are_refused_as_in_hudi(golden: Golden, tmp_path: Path, version: str) -> None:
    """Before anything is written: no retry would help."""
    table = golden(version, "cow_basic").table
    rows, before = own_rows(table, read_rows(table)), contents(table)
    at = rows.schema.get_field_index("ts")
    rows = rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, rows.schema.field(at).type))
    with pytest.raises(FormatError, match="rows have no value in 'ts'"):
        overwrite(table, put_source(rows, tmp_path), COMBINE)
    with pytest.raises(FormatError, match="rows have no value in 'ts'"):
        write(table, "upsert", put_source(rows, tmp_path, name="upsert"))
    assert contents(table) == before


def keyed(entries: list[tuple[str, str, int]]) -> pa.RecordBatch:
    paths, keys, order = zip(*entries, strict=True) if entries else ((), (), ())
    return pa.RecordBatch.from_arrays(
        [pa.array(paths, pa.string()), pa.array(keys, pa.string()), pa.array(order, pa.int64())],
        names=[PARTITION_PATH, RECORD_KEY, "ts"],
    )


ENTRIES = st.lists(
    st.tuples(st.sampled_from(["a", "b", "é", ""]), st.sampled_from(["k", "k\0", "l", "ß"]), st.integers(-3, 3)),
    max_size=30,
)


@given(ENTRIES, st.integers(1, 7))
@settings(max_examples=200, deadline=None)
def test_random_rows_are_combined_as_one_by_one(entries: list[tuple[str, str, int]], step: int) -> None:
    ordering = Ordering((OrderingColumn("ts", "long", pa.int64()),), hudi_1=True)
    expected: dict[tuple[str, str], tuple[int, int]] = {}
    for at, (path, key, value) in enumerate(entries):
        expected[path, key] = max(expected.get((path, key), (value, at)), (value, at))
    batch = keyed(entries)
    keys = order_keys(batch, ordering, 0, path="p")
    order = pc.sort_indices(keys)
    rows = pa.Table.from_batches([batch]).append_column("at", pa.array(range(len(entries)), pa.int64())).take(order)
    dropped: Counter[str] = Counter()

    def drop(partition: str, count: int) -> None:
        dropped[partition] += count

    def tables() -> Iterator[pa.Table]:
        for at in range(0, max(1, rows.num_rows), step):
            yield rows.slice(at, step)

    pieces = list(newest(tables(), drop))
    assert all(piece.num_rows for piece in pieces)
    found = pa.concat_tables([*pieces, rows.slice(0, 0)]).to_pylist()
    assert {(row[PARTITION_PATH], row[RECORD_KEY]): row["at"] for row in found} == {
        name: at for name, (_, at) in expected.items()
    }
    kept = Counter(path for path, _ in expected)
    assert +dropped == Counter(path for path, _, _ in entries) - kept


def test_a_key_has_one_shard() -> None:
    rows = pa.Table.from_batches(
        [keyed([(path, f"k{at % 50}", 0) for at in range(400) for path in ("large", "small")])]
    )
    found = shards_of(rows, Spread(2, {"large": (2, 3)}))
    by_name: dict[tuple[str, str], set[int]] = {}
    for row, shard in zip(rows.to_pylist(), found.tolist(), strict=True):
        by_name.setdefault((row[PARTITION_PATH], row[RECORD_KEY]), set()).add(shard)
    assert all(len(shards) == 1 for shards in by_name.values())
    assert {shard for (path, _), shards in by_name.items() if path == "large" for shard in shards} == {2, 3, 4}
    assert set(np.unique(found[1::2])) < {0, 1}
