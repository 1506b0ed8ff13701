"""Finding, checking and counting the rows of a source; nothing of a table is written by that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.schema import field, parse_schema
from hudi_core.config.rows_config import WriteConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import (
    ConfigError,
    ConflictError,
    CorruptFileError,
    FormatError,
    StorageNotFoundError,
    UnsupportedError,
)
from hudi_core.filegroup.read.base_file import base_batches
from hudi_core.filegroup.write.key_generator import KeyGenerator
from hudi_core.services.source import files as source
from hudi_core.services.source.count import counted_rows
from hudi_core.services.source.files import CountUnit, Needs, Source, SourcePart, SourceRows, count_file, find_source
from tests.support.changed_tables import open_context
from tests.support.dropped_columns import name_dropped
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import commit_of, overwrite, own_rows, put_source
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


def test_a_source_is_a_file_or_a_folder(tmp_path: Path) -> None:
    folder = put_source(pa.table({"a": range(10)}), tmp_path, files=2)
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").touch()
    uri, parts = find_source(str(folder), {})
    assert [part.name for part in parts] == ["part-0.parquet", "part-1.parquet"]
    assert uri == str(folder)
    uri, parts = find_source(f"{folder}/part-1.parquet", {})
    assert (uri, [part.name for part in parts]) == (str(folder), ["part-1.parquet"])
    assert parts[0].size == (folder / "part-1.parquet").stat().st_size


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_a_dropped_timestamp_has_the_number_of_spark(tmp_path: Path, unit: str) -> None:
    """Microseconds, however the source stores it."""
    at = pa.array([1_704_067_200_000_000], pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, "UTC"))
    folder = put_source(pa.table({"id": ["a"], "at": at}), tmp_path)
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}]}
    keys = KeyGenerator(("id",), False, ("at",), frozenset(), None, hive_style=False, url_encode=False)
    rows = SourceRows(str(folder), {}, schema, keys, WriteConfig.of({}), dropped=("at",))
    counted = count_file(CountUnit(rows, SourcePart("part-0.parquet", 0)), TaskAttempt(0, 1, 0))
    assert counted.by_partition == {"1704067200000000": 1}


def test_a_source_may_be_a_link_but_hold_none(tmp_path: Path) -> None:
    folder = put_source(pa.table({"a": range(10)}), tmp_path, files=2)
    latest, one = tmp_path / "latest", tmp_path / "one.parquet"
    latest.symlink_to(folder)
    one.symlink_to(folder / "part-1.parquet")
    for address in (str(latest), f"file://{latest}/"):
        uri, parts = find_source(address, {})
        assert (uri, len(parts)) == (str(folder), 2)
    uri, (part,) = find_source(str(one), {})
    assert (uri, part.name) == (str(folder), "part-1.parquet")
    (folder / "part-2.parquet").symlink_to(folder / "part-0.parquet")
    with pytest.raises(FormatError, match="symbolic link"):
        find_source(str(folder), {})


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageNotFoundError, match="no file, and no folder of Parquet files") as absent:
        find_source(str(tmp_path / "nothing"), {})
    assert str(absent.value.remedy).startswith("give the address of a Parquet file")
    folder = put_source(pa.table({"a": [1]}), tmp_path)
    (folder / "notes.txt").touch()
    with pytest.raises(ConfigError, match=r"'notes\.txt', which is not named \.parquet.*give a folder of"):
        find_source(str(folder), {})
    with pytest.raises(StorageNotFoundError, match=r"lacks 1 of its files \(run again\)"):
        find_source(str(folder), {}, frozenset(["part-9.parquet"]))
    (folder / "day=1").mkdir()
    with pytest.raises(UnsupportedError, match="has the folder 'day=1'"):
        find_source(str(folder), {})


@pytest.mark.parametrize("where", ["", "2024-01-01", "files/"])
def test_a_folder_of_a_hudi_table_is_no_source(golden: Golden, where: str) -> None:
    """It holds all versions of its rows."""
    table = golden("9", "cow_basic").table
    folder = table / ".hoodie" / "metadata" / where if where == "files/" else table / where
    with pytest.raises(ConfigError, match="a folder of a Hudi table") as refused:
        find_source(str(folder), {})
    assert "hudictl read" in str(refused.value.remedy)
    one = sorted((table / "2024-01-01").glob("*.parquet"))[0]
    assert find_source(str(one), {})[1][0].name == one.name


@pytest.mark.parametrize("coded", [True, False])
@pytest.mark.parametrize("version", tiered(["6", "9"], ["9"]))
def test_views_are_texts_as_any(golden: Golden, tmp_path: Path, version: str, coded: bool) -> None:
    """With pages of a dictionary and without, also in keys and partition columns."""
    table = golden(version, "types_cow").table
    rows = read_rows(table)
    own = own_rows(table, rows)
    views = {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}
    schema = pa.schema([field.with_type(views.get(field.type, field.type)) for field in own.schema])
    assert schema != own.schema
    given = tmp_path / "views.parquet"
    pq.write_table(own.cast(schema), given, use_dictionary=coded)
    overwrite(table, given, whole_table=True)
    assert_same_rows(own_rows(table, read_rows(table)), own, ignore=())


@pytest.fixture
def table(golden: Golden) -> Path:
    return golden("9", "cow_basic").table


def names(table: Path) -> list[str]:
    return sorted(str(path) for path in table.rglob("*"))


def refused(table: Path, rows: pa.Table, scratch: Path, kind: type[Exception], match: str) -> None:
    before = names(table)
    with pytest.raises(kind, match=match):
        overwrite(table, put_source(rows, scratch))
    assert names(table) == before, "nothing is written after bad input"


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_a_dropped_column_that_the_schema_names_is_read_once(golden: Golden, tmp_path: Path, version: str) -> None:
    """As Hudi's row writer leaves it there. The table's schema stays; files have no such column."""
    table = golden(version, "drop_partition_columns").table
    name_dropped(table)
    before = read_rows(table)
    rows = own_rows(table, before)
    given = put_source(rows, tmp_path / "1")
    result = overwrite(table, given, whole_table=True)
    assert_same_rows(read_rows(table).select(rows.schema.names), rows, ignore=())
    metadata = commit_of(table, result.instant)
    assert field(parse_schema(metadata.schema_text or "", path="commit"), "dt") is not None
    for stat in metadata.write_stats():
        assert "dt" not in pq.read_schema(table / stat.path).names
    with pytest.raises(ConfigError, match="the source has no column 'dt', which the table requires"):
        overwrite(table, put_source(rows.drop_columns(["dt"]), tmp_path / "2"))
    at = rows.schema.get_field_index("dt")
    numbers = rows.set_column(at, "dt", pa.array(range(rows.num_rows), pa.int32()))
    with pytest.raises(ConfigError, match="'dt' is of type int32, and the table's of string"):
        overwrite(table, put_source(numbers, tmp_path / "3"))
    other_case = rows.rename_columns([name.upper() for name in rows.schema.names])
    overwrite(table, put_source(other_case, tmp_path / "4"), whole_table=True)
    assert_same_rows(read_rows(table).select(rows.schema.names), rows, ignore=())


def test_columns_must_be_the_tables(table: Path, tmp_path: Path) -> None:
    rows = own_rows(table, read_rows(table))
    given = put_source(rows, tmp_path / "1")
    pq.write_table(rows.append_column("more", [pa.array(range(rows.num_rows))]), given / "part-1.parquet")
    before = names(table)
    with pytest.raises(ConfigError, match=r"part-1\.parquet: the table has no column 'more'"):
        overwrite(table, given)
    assert names(table) == before
    at = rows.schema.get_field_index("amount")
    wrong = rows.set_column(at, "amount", [pa.array(["x"] * rows.num_rows)])
    refused(table, wrong, tmp_path / "2", ConfigError, "'amount' is of type string, and the table's of double")


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_rows_need_the_column_of_the_partitions(golden: Golden, tmp_path: Path, version: str) -> None:
    """A file out of a folder `dt=…` lacks it; the table's own partitions would stay as they were."""
    table = golden(version, "cow_basic").table
    rows = own_rows(table, read_rows(table)).drop_columns(["dt"])
    refused(table, rows, tmp_path, ConfigError, "the source has no column 'dt', by which the table is partitioned")


def test_rows_of_a_change_log_are_refused(table: Path, tmp_path: Path) -> None:
    """A row that is marked `D` would be dropped, and no service here serves a table with the column."""
    rows = own_rows(table, read_rows(table))
    marks = pa.array(["I", "D"] * rows.num_rows)[: rows.num_rows]
    refused(table, rows.append_column("_hoodie_operation", marks), tmp_path, ConfigError, "leave the column out")


def test_rows_need_keys(table: Path, tmp_path: Path) -> None:
    rows = own_rows(table, read_rows(table))
    at = rows.schema.get_field_index("id")
    keyless = rows.set_column(at, "id", [pa.nulls(rows.num_rows, pa.string())])
    refused(table, keyless, tmp_path, FormatError, r"\d+ rows have no record key in id")
    at = rows.schema.get_field_index("dt")
    outside = rows.set_column(at, "dt", [pa.array(["../elsewhere"] * rows.num_rows)])
    refused(
        table, outside, tmp_path / "2", FormatError, r"\.\./elsewhere.*give each row another value in the partition"
    )


def test_a_damaged_file_is_named(table: Path, tmp_path: Path) -> None:
    given = put_source(own_rows(table, read_rows(table)), tmp_path)
    (given / "part-0.parquet").write_bytes(b"PAR1 and more")
    texts = tmp_path / "rows.csv"
    texts.write_text("id\n1\n")
    for wrong, name in ((given, "part-0.parquet"), (texts, "rows.csv")):
        with pytest.raises(CorruptFileError, match=name) as damaged:
            overwrite(table, wrong)
        assert str(damaged.value.remedy).startswith("give a whole Parquet file")


TWICE: dict[str, Callable[[pa.DataType], pa.DataType]] = {
    "c": lambda kind: kind,
    "c.s": lambda kind: pa.struct([("s", kind)]),
    "c.element": pa.list_,
    "c.element.value": lambda kind: pa.large_list(pa.map_(pa.string(), kind)),
    "c.key": lambda kind: pa.map_(kind, pa.int32()),
}


@pytest.mark.parametrize("column", ["id", "ID", "new", "NEW", *TWICE])
def test_two_columns_of_one_name_are_refused(table: Path, tmp_path: Path, column: str) -> None:
    """Spark reads no table with two that are one to it."""
    rows = own_rows(table, read_rows(table))
    nothing = pa.nulls(rows.num_rows, pa.int32())
    first, second = column.lower(), column
    if column in TWICE:
        first, second = f"{column}.a", f"{column}.A"
        kind = TWICE[column](pa.struct([("a", pa.int32()), ("A", pa.int32())]))
        rows = rows.append_column("c", pa.nulls(rows.num_rows, kind))
    else:
        rows = rows.append_column("new", nothing).append_column(column, nothing)
    match = f"part-0.parquet: the columns '{first}' and '{second}' have one name.*rename one of them in the source"
    refused(table, rows, tmp_path, ConfigError, match)


def test_missing_columns_are_null_and_meta_columns_made_anew(table: Path, tmp_path: Path) -> None:
    rows = read_rows(table)
    overwrite(table, put_source(rows.drop_columns(["amount"]), tmp_path), whole_table=True)
    after = read_rows(table)
    assert after.num_rows == rows.num_rows
    assert after.column("amount").null_count == rows.num_rows
    assert not set(after.column("_hoodie_commit_time").to_pylist()) & set(
        rows.column("_hoodie_commit_time").to_pylist()
    )


def test_a_large_file_is_read_in_parts(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "UNIT_BYTES", 1)
    rows = own_rows(table, read_rows(table))
    given = put_source(rows, tmp_path)
    assert pq.read_metadata(given / "part-0.parquet").num_row_groups > 5
    assert overwrite(table, given, whole_table=True).records == rows.num_rows
    assert read_rows(table).num_rows == rows.num_rows


def test_wide_rows_are_read_by_few_at_a_time(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An eighth of the memory budget is read at once, whatever the rows and the row groups are."""
    rows = own_rows(table, read_rows(table))
    at = rows.schema.get_field_index("name")
    wide = [str(number) * 10_000 for number in range(rows.num_rows)]
    rows = rows.set_column(at, "name", pa.array(wide))
    folder = tmp_path / "wide"
    folder.mkdir()
    pq.write_table(rows, folder / "a.parquet", use_dictionary=False)
    sizes = list[int]()

    def recorded(*given: Any, **named: Any) -> Iterator[pa.RecordBatch]:
        for batch in base_batches(*given, **named):
            sizes.append(batch.nbytes)
            yield batch

    monkeypatch.setattr(source, "base_batches", recorded)
    assert overwrite(table, folder, {"airflow_hudi.memory.bytes": str(1 << 20)}).records == rows.num_rows
    assert sum(sizes) > 4 << 18
    assert max(sizes) < 1 << 18


def test_a_file_that_changes_or_goes_after_the_count_is_refused(golden: Golden, tmp_path: Path) -> None:
    """With as many rows of each partition, but other keys: they would be taken for new ones."""
    table = golden("9", "cow_basic").table
    rows = own_rows(table, read_rows(table))
    folder = put_source(rows, tmp_path)
    context = open_context(table)
    counted = counted_rows(context, Source(str(folder)), LocalEngine(1), Needs())
    assert sum(batch.num_rows for batch in source.read_part(counted.rows, counted.parts[0])) == rows.num_rows
    other = rows.set_column(0, "id", pa.array([f"other{number}" for number in range(rows.num_rows)]))
    pq.write_table(other.replace_schema_metadata(None), folder / "part-0.parquet", row_group_size=7)
    with pytest.raises(ConflictError, match="changed since its rows were counted"):
        list(source.read_part(counted.rows, counted.parts[0]))
    (folder / "part-0.parquet").unlink()
    with pytest.raises(ConflictError, match="deleted since its rows were counted"):
        list(source.read_part(counted.rows, counted.parts[0]))
