"""Rows of a source, checked against what the table's own rows show."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from hudi_core.services.source import count
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import delete, in_buckets, overwrite, own_rows, places, put_source
from tests.support.table_invariants import has_metadata_table, read_rows
from tests.support.tiers import tiered
from tests.support.writes import write

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("version", ["6", "9"])
def test_rows_need_the_buckets_that_the_table_has(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "bucket_index_cow").table
    rows = read_rows(table)
    given = put_source(own_rows(table, rows), tmp_path)
    wrong: list[tuple[str, dict[str, str]]] = [
        ("the table has a bucket index", {}),
        ("the table has a bucket index", {**of_buckets(4), "hoodie.index.type": "BLOOM"}),
        ("BUCKET without hoodie.bucket.index.num.buckets", {"hoodie.index.type": "BUCKET"}),
        ("by 5 buckets of id the rows of the file are in another bucket", of_buckets(5)),
        ("by 2 buckets of id the rows", of_buckets(2)),
        ("by 8 buckets of id the rows of the file are in another bucket", of_buckets(8)),
        ("names 'ts', which is not of the record key id", {**of_buckets(4), "hoodie.bucket.index.hash.field": "ts"}),
    ]
    before = sorted(table.rglob("*"))
    for message, options in wrong:
        with pytest.raises(ConfigError, match=re.escape(message)):
            overwrite(table, given, options, whole_table=True)
    with pytest.raises(UnsupportedError, match="consistent hashing"):
        overwrite(table, given, {**of_buckets(4), "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, whole_table=True)
    assert sorted(table.rglob("*")) == before
    delete(table, min(rows.column("_hoodie_partition_path").to_pylist()))
    plain = golden(version, "cow_basic").table
    with pytest.raises(ConfigError, match="is no bucket"):
        overwrite(plain, given, of_buckets(4), whole_table=True)
    (table / ".hoodie" / ".bucket_index" / "consistent_hashing_metadata").mkdir(parents=True)
    with pytest.raises(UnsupportedError, match="consistent hashing"):
        overwrite(table, given, of_buckets(4), whole_table=True)


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("column", ["recordkey", "partitionpath", "precombine"])
def test_an_option_that_names_other_columns_than_the_table_has_is_refused(
    golden: Golden, tmp_path: Path, version: str, column: str
) -> None:
    """Real Hudi does so, too (HoodieWriterUtils.validateTableConfig)."""
    table, name = golden(version, "cow_basic").table, f"hoodie.datasource.write.{column}.field"
    given = put_source(own_rows(table, read_rows(table)).slice(0, 3), tmp_path)
    with pytest.raises(ConfigError, match=rf"{name} is name, and the table's is (id|dt|ts)"):
        write(table, "upsert", given, {name: "name"})
    own = {"recordkey": "ID", "partitionpath": "dt:SIMPLE", "precombine": "ts"}[column]
    assert write(table, "upsert", given, {name: own}).updated == 3


@pytest.mark.parametrize("deleted", ["one", "all"])
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_buckets_are_known_where_nothing_is_replaced(
    golden: Golden, tmp_path: Path, version: str, deleted: str
) -> None:
    """In a new partition, behind a commit that wrote no file, also where no partition is left."""
    wrong: list[tuple[str, dict[str, str], str]] = [
        ("bucket_index_cow", {}, "the table has a bucket index"),
        ("bucket_index_cow", of_buckets(2), "is none of 2 buckets" if deleted == "all" else "are in another bucket"),
        ("cow_basic", of_buckets(4), "is no bucket"),
    ]
    for number, (case, options, message) in enumerate(wrong):
        table = golden(version, case).table
        rows = own_rows(table, read_rows(table))
        (field,) = open_context(table).config.partition_fields
        at, names = rows.schema.get_field_index(field), sorted(set(rows.column(field).to_pylist()))
        moved = rows.set_column(at, rows.schema.field(at), pa.array(["new"] * rows.num_rows, pa.string()))
        delete(table, *(names if deleted == "all" else names[:1]))
        given = put_source(moved, tmp_path, name=f"source{number}")
        before = sorted(table.rglob("*"))
        with pytest.raises(ConfigError, match=message):
            overwrite(table, given, options)
        assert sorted(table.rglob("*")) == before


def test_rows_without_a_bucket_are_found_before_anything_is_written(golden: Golden, tmp_path: Path) -> None:
    """Hudi 0.15 takes the key for the value of a field "10"."""
    table = golden("6", "bucket_index_cow").table
    rows = own_rows(table, read_rows(table))
    at = rows.schema.get_field_index("id")
    keys = [*rows.column("id").to_pylist()[1:], "10:30"]
    given = put_source(rows.set_column(at, rows.schema.field(at), [keys]), tmp_path)
    before = sorted(table.rglob("*"))
    with pytest.raises(FormatError, match="the bucket of the key '10:30' depends on the release"):
        overwrite(table, given, of_buckets(4), whole_table=True)
    assert sorted(table.rglob("*")) == before


def test_buckets_are_sampled_where_rows_come_first(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions may have other numbers of buckets (hoodie.bucket.index.partition.expressions)."""
    context = open_context(golden("9", "bucket_index_cow").table)
    view = context.view(context.active.load())
    *others, last = view.partitions()
    every = [sample.partition for sample in count._samples(context, view, (), replaced=[last])]
    assert len(every) == len(list(count._samples(context, view, ())))
    assert every == sorted(every, key=lambda name: name != last)
    turns = [sample.partition for sample in count._samples(context, view, (), replaced=[*others, last])]
    assert turns[: len(others) + 1] == [*others, last]
    monkeypatch.setattr(count, "_SAMPLED_FILES", 1)
    assert [sample.partition for sample in count._samples(context, view, (), replaced=[last])] == [last]


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_buckets_are_sampled_in_log_files_where_there_are_no_base_files(
    golden: Golden, tmp_path: Path, version: str
) -> None:
    """As before the first compaction of a table with a bucket index."""
    table = golden(version, "mor_log_only").table
    first = open_context(table).active.load().commits().instants[0].requested_time
    for path in [*(table / ".hoodie").rglob(f"{first}*"), *table.glob("2*/*.parquet")]:
        path.unlink()
    rows = read_rows(table)
    assert rows.num_rows
    given = put_source(own_rows(table, rows), tmp_path)
    with pytest.raises(ConfigError, match=r"\.log\.1.*by 4 buckets of id the rows of the file are in another bucket"):
        overwrite(table, given, of_buckets(4), whole_table=True)
    overwrite(table, given, of_buckets(2), whole_table=True)
    assert in_buckets(read_rows(table)) == in_buckets(rows)


def test_numbers_of_buckets_of_single_partitions_are_refused(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "bucket_index_cow").table
    given = put_source(own_rows(table, read_rows(table)), tmp_path)
    expressions = {"hoodie.bucket.index.partition.expressions": "2024.*,2"}
    with pytest.raises(UnsupportedError, match=r"hoodie\.bucket\.index\.partition\.expressions, by which"):
        overwrite(table, given, {**of_buckets(4), **expressions}, whole_table=True)
    (table / ".hoodie" / ".bucket_index" / "partition_bucket_index_meta" / "configs").mkdir(parents=True)
    with pytest.raises(UnsupportedError, match="a number of buckets for each partition"):
        overwrite(table, given, of_buckets(4), whole_table=True)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_keys_of_one_field_are_compared_with_its_values(golden: Golden, tmp_path: Path, version: str) -> None:
    """Values that begin with the name of their field, as `urn:isbn:1` of a field `urn`."""
    table = golden(version, "complex_keygen_single").table
    before = read_rows(table)
    rows = own_rows(table, before)
    at = rows.schema.get_field_index("id")
    values = [f"id:{value}" for value in rows.column("id").to_pylist()]
    rows = rows.set_column(at, rows.schema.field(at), pa.array(values))
    bare = before.column("_hoodie_record_key").to_pylist() == before.column("id").to_pylist()
    assert bare is (version != "9")
    for name in ("first", "second"):
        overwrite(table, put_source(rows, tmp_path, name=name), whole_table=True)
        after = read_rows(table)
        expected = [value if bare else f"id:{value}" for value in after.column("id").to_pylist()]
        assert after.column("_hoodie_record_key").to_pylist() == expected
    contrary = {"hoodie.write.complex.keygen.new.encoding": str(not bare).lower()}
    if version != "9":
        with pytest.raises(ConfigError, match="without the name of their field"):
            overwrite(table, tmp_path / "first", contrary, whole_table=True)


def test_keys_of_both_forms_are_refused(golden: Golden, tmp_path: Path) -> None:
    """As an upsert by another release leaves them."""
    table = golden("6", "complex_keygen_single").table
    given = put_source(own_rows(table, read_rows(table)), tmp_path)
    context = open_context(table)
    view = context.view(context.active.load())
    path = table / view.latest_base_files(view.partitions()[-1])[0].path
    file = pq.ParquetFile(path)
    rows, metadata = file.read(), file.schema_arrow.metadata
    keys = pa.array([f"id:{key}" for key in rows.column("_hoodie_record_key").to_pylist()])
    rows = rows.set_column(2, rows.schema.field(2), keys).replace_schema_metadata(metadata)
    pq.write_table(rows, path)
    with pytest.raises(UnsupportedError, match="are not all its values of 'id'"):
        overwrite(table, given, whole_table=True)


@pytest.mark.parametrize("version", ["6", "9"])
def test_keys_of_a_table_without_rows_go_by_the_option_or_the_version(
    golden: Golden, tmp_path: Path, version: str
) -> None:
    table = golden(version, "complex_keygen_single").table
    rows = own_rows(table, read_rows(table))
    given = put_source(rows, tmp_path)
    delete(table, *open_context(table).view(open_context(table).active.load()).partitions())
    if version == "6":
        with pytest.raises(UnsupportedError, match="no row that shows it"):
            overwrite(table, given)
    overwrite(table, given, {"hoodie.write.complex.keygen.new.encoding": "true"})
    keys = sorted(read_rows(table).column("_hoodie_record_key").to_pylist())
    assert keys == sorted(f"{'' if version == '6' else 'id:'}{key}" for key in rows.column("id").to_pylist())


def partitioned_by_time(golden: Golden, *known: str) -> Path:
    """A table without rows whose partition column is a timestamp, with the partitions `known`."""
    table = golden("9", "types_timestamp_millis").table
    assert not has_metadata_table(table)
    for name in open_context(table).view(open_context(table).active.load()).partitions():
        shutil.rmtree(table / name)
    properties = table / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("partition.fields=dt", "partition.fields=c_ts"))
    for name in known:
        (table / name).mkdir()
        (table / name / ".hoodie_partition_metadata").write_text("commitTime=1\npartitionDepth=1\n")
    return table


def some_times(table: Path, folder: Path) -> Path:
    times = [datetime(2024, 1, 1, 23, tzinfo=timezone.utc), datetime(2024, 7, 1, 23, 0, 0, 5, tzinfo=timezone.utc)]
    rows = pa.table(
        {"id": ["a", "b"], "c_ts": pa.array(times, pa.timestamp("us", "UTC")), "ts": pa.array([1, 2], pa.int64())}
    )
    return put_source(rows.append_column("dt", pa.array(["x", "y"])), folder)


def test_timestamps_in_keys_are_numbers(golden: Golden, tmp_path: Path) -> None:
    """Hudi's bulk_insert of rows writes others, and so do its writers by an option that the table does not have."""
    table = golden("9", "types_timestamp_millis").table
    properties = table / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("recordkey.fields=id", "recordkey.fields=c_ts"))
    given, before = some_times(table, tmp_path), read_rows(table)
    for operation in ("upsert", "delete"):
        with pytest.raises(UnsupportedError, match="hold timestamps in another form than numbers"):
            write(table, operation, given)
    assert read_rows(table) == before
    for name in open_context(table).view(open_context(table).active.load()).partitions():
        shutil.rmtree(table / name)
    assert [write(table, "upsert", given).updated for _ in range(2)] == [0, 2]
    assert sorted(read_rows(table).column("_hoodie_record_key").to_pylist()) == ["1704150000000000", "1719874800000005"]


def test_timestamps_in_paths_are_as_the_partitions_of_the_table(golden: Golden, tmp_path: Path) -> None:
    berlin = {"airflow_hudi.read.zone": "Europe/Berlin"}
    table = partitioned_by_time(golden, "2024-01-01 00%3A00%3A00")
    given = some_times(table, tmp_path)
    with pytest.raises(ConfigError, match="no base file shows the time zone"):
        overwrite(table, given)
    expected = ["2024-01-02 00%3A00%3A00", "2024-07-02 01%3A00%3A00"]
    for replaced in (0, 2):
        assert overwrite(table, given, berlin).replaced_file_groups == replaced
        assert sorted(read_rows(table).column("_hoodie_partition_path").to_pylist()) == expected
    with pytest.raises(ConfigError, match="by the time zone UTC the rows of the file are of another partition"):
        overwrite(table, given)
    (table / "1704067200000000").mkdir()
    (table / "1704067200000000" / ".hoodie_partition_metadata").write_text("commitTime=1\npartitionDepth=1\n")
    with pytest.raises(UnsupportedError, match="show both, or neither"):
        overwrite(table, given, berlin)


def test_timestamps_in_paths_are_numbers_where_they_are(golden: Golden, tmp_path: Path) -> None:
    table = partitioned_by_time(golden, "1704067200000000")
    overwrite(table, some_times(table, tmp_path))
    found = sorted(read_rows(table).column("_hoodie_partition_path").to_pylist())
    assert found == ["1704150000000000", "1719874800000005"]


def test_timestamps_in_paths_need_a_partition_to_go_by(golden: Golden, tmp_path: Path) -> None:
    table = partitioned_by_time(golden)
    given = some_times(table, tmp_path)
    before = sorted(table.rglob("*"))
    with pytest.raises(UnsupportedError, match=r"of 'c_ts' are microseconds.*no partition shows"):
        overwrite(table, given)
    assert sorted(table.rglob("*")) == before


TIMES = "hoodie.keygen.timebased."


def with_times(table: Path, **settings: str | None) -> Path:
    """The table, whose timestamp key generator has these settings, or with None lacks them."""
    properties = table / ".hoodie" / "hoodie.properties"
    names = {TIMES + name.replace("_", "."): value for name, value in settings.items()}
    kept = [line for line in properties.read_text().splitlines() if line.partition("=")[0] not in names]
    added = [f"{name}={value}" for name, value in names.items() if value is not None]
    properties.write_text("\n".join([*kept, *added, ""]))
    return table


@pytest.mark.parametrize(
    ("case", "settings", "error"),
    [
        ("timestamp_keygen_epochmillis", {"timezone": "Asia/Tokyo"}, "are of another partition"),
        ("timestamp_keygen_epochmillis", {"timestamp_type": "EPOCHMICROSECONDS"}, "are of another partition"),
        ("timestamp_keygen_epochmillis", {"timestamp_type": "UNIX_TIMESTAMP"}, "after 9999"),
        ("timestamp_keygen_epochmillis", {"output_dateformat": "yyyy/dd/MM"}, "are of another partition"),
        ("timestamp_keygen_hive", {"timezone": "GMT-1"}, "are of another partition"),
        ("timestamp_keygen_string", {"timezone": "Asia/Tokyo"}, "are of another partition"),
        ("timestamp_keygen_string", {"input_dateformat": "yyyy-MM-dd"}, "is no time as"),
    ],
)
def test_times_go_where_the_rows_of_the_table_are(
    golden: Golden, tmp_path: Path, case: str, settings: dict[str, str | None], error: str
) -> None:
    """Otherwise rows were written beside the old ones."""
    table = golden("9", case).table
    given = put_source(own_rows(table, read_rows(table)), tmp_path)
    with_times(table, **settings)
    before = sorted(table.rglob("*"))
    with pytest.raises((ConfigError, FormatError), match=error):
        overwrite(table, given)
    assert sorted(table.rglob("*")) == before


@pytest.mark.parametrize(
    ("case", "settings", "options"),
    [
        ("timestamp_keygen_hive", {"timezone": None}, {}),
        ("timestamp_keygen_epochmillis", {"timezone": None}, {}),
        ("timestamp_keygen_epochmillis", {"timezone": None}, {TIMES + "output.timezone": "GMT"}),
        ("timestamp_keygen_string", {"timezone": None}, {}),
        (
            "timestamp_keygen_string",
            {"timezone": None, "output_timezone": "UTC", "input_dateformat": "yyyy-MM-dd'T'HH:mm:ss'+0000'"},
            {},
        ),
    ],
)
def test_times_without_a_zone_are_as_given_as_their_text_or_utc(
    golden: Golden, tmp_path: Path, case: str, settings: dict[str, str | None], options: dict[str, str]
) -> None:
    table = golden("9", case).table
    before = read_rows(table)
    given = put_source(own_rows(table, before), tmp_path)
    overwrite(with_times(table, **settings), given, options)
    assert places(read_rows(table)) == places(before)


def test_rows_show_the_zone_of_the_writers_jvm(golden: Golden, tmp_path: Path) -> None:
    """Of a table whose paths are ten hours behind the times: no row may go beside the old ones."""
    table = golden("9", "timestamp_keygen_hive").table
    given = put_source(own_rows(table, read_rows(table)), tmp_path)
    put_event_times(table, lambda times: [value + 36_000_000 for value in times])
    with pytest.raises(ConfigError, match="are of another partition") as refused:
        overwrite(with_times(table, timezone=None), given)
    assert TIMES + "output.timezone" in str(refused.value)


def test_a_row_that_stayed_in_another_partition_does_not_show_a_zone(golden: Golden, tmp_path: Path) -> None:
    """As with a global index that does not move rows."""
    table = golden("9", "timestamp_keygen_hive").table
    given = put_source(own_rows(table, read_rows(table)), tmp_path)
    put_event_times(table, lambda times: [1_720_000_000_000, *times[1:]])
    assert overwrite(with_times(table, timezone="UTC"), given).replaced_file_groups


def put_event_times(table: Path, change: Callable[[list[int]], list[int]]) -> None:
    """Changes the times of the rows of one base file."""
    context = open_context(table)
    view = context.view(context.active.load())
    path = table / view.latest_base_files(view.partitions()[0])[0].path
    file = pq.ParquetFile(path)
    rows, metadata = file.read(), file.schema_arrow.metadata
    at = rows.schema.get_field_index("event_time")
    moved = pa.array(change(rows.column("event_time").to_pylist()), pa.int64())
    pq.write_table(rows.set_column(at, rows.schema.field(at), moved).replace_schema_metadata(metadata), path)


def of_buckets(count: int) -> dict[str, str]:
    return {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(count)}


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()])
def test_a_column_with_a_secondary_index_is_not_made_wider(golden: Golden, tmp_path: Path, kind: pa.DataType) -> None:
    """As by Hudi (HoodieTable.validateSecondaryIndexSchemaEvolution), which says so before it writes; by a name in any
    case, in the source and in the index's definition.
    """
    table = golden("9", "mdt_all_cow").table
    indexing = RunRequest(
        str(table),
        owner="the tests",
        service="indexing",
        schedule=True,
        options={"hoodie.metadata.index.secondary.column": "qty", "hoodie.metadata.index.secondary.enable": "true"},
    )
    assert HudiTable.open(str(table)).run(indexing, LocalEngine(1)).exit_code == 0
    rows = own_rows(table, read_rows(table))
    definitions = table / ".hoodie" / ".index_defs" / "index.json"
    definitions.write_text(definitions.read_text().replace('["qty"]', '["Qty"]'))
    at = rows.schema.get_field_index("qty")
    given = put_source(rows.set_column(at, "QTY", rows.column("qty").cast(kind)), tmp_path)
    before = sorted(table.rglob("*"))
    with pytest.raises(ConfigError, match=f"'qty' is {kind} in the source and int32 in the table, and the index sec"):
        overwrite(table, given, whole_table=True)
    assert sorted(table.rglob("*")) == before
