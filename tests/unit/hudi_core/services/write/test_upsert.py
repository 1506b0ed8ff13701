"""The next base file of a file group: which rows it has, what is counted, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.table_config import update_properties
from hudi_core.errors import UnsupportedError
from hudi_core.model.names import IS_DELETED, RECORD_KEY
from hudi_core.services.write.upsert import GroupRows
from hudi_core.storage.local import LocalStorage
from tests.support.changed_tables import choose_payload, data_files, open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, WRITERS_OPTIONS, put_source, within
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.support.writes import (
    APART,
    Model,
    Row,
    SeenEngine,
    base_files,
    changed,
    commit_of,
    like,
    marked,
    own_columns,
    random_rows,
    write,
)

Golden = Callable[[str, str], GoldenCase]
DEFAULT_PAYLOAD = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"


def event_time_table(golden: Golden, version: str) -> Path:
    """A copy-on-write table whose rows are compared by `ts`."""
    table = golden(version, "payload_default_cow").table
    if version == "6":
        choose_payload(table, DEFAULT_PAYLOAD)
    return table


def counts_of(table: Path, instant: str | None) -> Counter[str]:
    """The rows of a commit's stats."""
    found: Counter[str] = Counter()
    for stat in commit_of(table, instant).write_stats():
        found["written"] += stat.num_writes
        found["inserted"] += stat.num_inserts
        found["updated"] += stat.num_update_writes
        found["deleted"] += stat.num_deletes
    return found


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_what_became_of_the_rows_is_counted(golden: Golden, tmp_path: Path, version: str) -> None:
    """Of a file group, and of the write: rows that came, older ones, and those that are marked as deleted."""
    table = event_time_table(golden, version)
    model = Model.of(table, event_time=True)
    rows = within(read_rows(table), "2024-01-01")
    day = own_columns(rows)
    newer, older = changed(day.slice(0, 4), ts=lambda ts: ts + 1, qty=1), changed(day.slice(4, 3), ts=1, qty=2)
    gone, kept = (changed(day.slice(at, 1), **{IS_DELETED: True, "ts": ts}) for at, ts in ((7, 9999999), (8, 0)))
    new = like(day, {"id": "new"}, {"id": "absent", IS_DELETED: True})
    source = pa.concat_tables([newer, older, gone, kept, new])
    before = len(rows)
    assert model.upsert(source) == {"updated": 4, "lost": 4, "deleted": 1, "inserted": 1, "nothing": 1}
    engine = SeenEngine()
    result = write(table, "upsert", put_source(source, tmp_path, files=2), engine=engine)
    (of_group,) = (item.counts for item in engine.results[-1] if item.counts is not None)
    assert of_group == GroupRows(before, 11, updated=4, deleted=1, kept=4, inserted=1, absent=1)
    assert (result.inserted, result.updated, result.deleted, result.records) == (1, 4, 1, before)
    assert counts_of(table, result.instant) == {"written": before, "inserted": 1, "updated": 4, "deleted": 1}
    model.check(table)
    assert_metadata_true(table)


@pytest.mark.parametrize(
    ("version", "case", "event_time"),
    [
        ("6", "cow_basic", False),
        ("8", "cow_basic", True),
        ("9", "cow_basic", True),
        ("8", "merge_mode_commit_time_cow", False),
        ("9", "merge_mode_commit_time_cow", False),
    ],
)
def test_a_lower_ordering_value_counts_where_the_table_compares_it(
    golden: Golden, tmp_path: Path, version: str, case: str, event_time: bool
) -> None:
    """Not by OverwriteWithLatestAvroPayload, nor in a table that is ordered by commits. Of equal ones the new wins."""
    table = golden(version, case).table
    model, rows = Model.of(table, event_time=event_time), own_columns(read_rows(table))
    equal, older = changed(rows.slice(0, 3), qty=1), changed(rows.slice(3, 5), ts=lambda ts: ts - 1, qty=2)
    source = pa.concat_tables([equal, older])
    assert model.upsert(source) == ({"updated": 3, "lost": 5} if event_time else {"updated": 8})
    assert write(table, "upsert", put_source(source, tmp_path)).updated == (3 if event_time else 8)
    model.check(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_a_delete_counts_whatever_the_ordering_value_is(golden: Golden, tmp_path: Path, version: str) -> None:
    """Its source has the keys and partitions alone, or other columns that do not matter."""
    table = event_time_table(golden, version)
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    bare = rows.slice(0, 5).select(["dt", "id"])
    others = rows.slice(5, 5).select(["id", "dt"]).append_column("ts", pa.array(["old"] * 5))
    for number, source in enumerate((bare, others, bare)):
        count = model.delete(source)
        assert count == (5 if number < 2 else 0)
        result = write(table, "delete", put_source(source, tmp_path, name=str(number)))
        assert (result.deleted, result.inserted, result.updated) == (count, 0, 0)
        assert result.instant is not None
        model.check(table)
    assert_metadata_true(table)


def test_deletes_of_absent_keys_change_nothing(golden: Golden, tmp_path: Path) -> None:
    """As in Hudi, there is a commit without files."""
    table = golden("9", "cow_basic").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    files = data_files(table)
    source = like(rows, {"id": "nobody"}, {"id": "no one", "dt": "2031-01-01"})
    result = write(table, "delete", put_source(source, tmp_path))
    assert (result.instant is None, result.files_written, result.partitions) == (False, 0, 0)
    assert list(commit_of(table, result.instant).write_stats()) == []
    assert data_files(table) == files
    model.check(table)
    assert_metadata_true(table)


def test_all_rows_of_a_file_group_may_go_and_come_back(golden: Golden, tmp_path: Path) -> None:
    """Its base file has no rows then."""
    table = golden("9", "mdt_disabled").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    model.delete(rows)
    given = put_source(rows, tmp_path)
    assert write(table, "delete", given).deleted == rows.num_rows
    model.check(table)
    assert [pq.read_metadata(path).num_rows for path in base_files(table)] == [0, 0, 0]
    model.upsert(rows.slice(3))
    assert write(table, "upsert", put_source(rows.slice(3), tmp_path, name="again")).inserted == rows.num_rows - 3
    model.check(table)


@pytest.mark.parametrize(
    ("version", "operation", "options"),
    tiered(
        [
            pytest.param(version, operation, options, id=f"{version}-{operation}-{name}")
            for version in ("6", "8", "9")
            for operation in ("bulk_insert", "insert", "upsert")
            for name, options in (("fills", {}), ("apart", APART))
        ],
        ["6-upsert-fills", "9-upsert-apart", "9-insert-fills", "6-bulk_insert-apart"],
    ),
)
def test_rows_that_are_marked_as_deleted(
    golden: Golden, tmp_path: Path, version: str, operation: str, options: dict[str, str]
) -> None:
    """An upsert takes them for deletes, an insert leaves them out, a bulk_insert takes them for rows. The column is new
    to this table.
    """
    table = golden(version, "cow_basic").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    new = like(rows, *({"id": f"new {number}"} for number in range(6)))
    source = marked(pa.concat_tables([rows.slice(0, 9), new]), [number % 3 == 0 for number in range(15)])
    for there in model.rows.values():
        there[0] = {**there[0], IS_DELETED: None}
    given = put_source(source, tmp_path, files=2)
    if operation == "upsert":
        counts = model.upsert(source)
        result = write(table, operation, given, options)
        assert (result.inserted, result.updated, result.deleted) == (4, 6, 3)
        assert counts == {"inserted": 4, "updated": 6, "deleted": 3, "nothing": 2}
    else:
        is_bulk = operation == "bulk_insert"
        inserted = write(table, operation, given, options).inserted
        assert inserted == model.insert(source, takes_marked=is_bulk) == (15 if is_bulk else 10)
    model.check(table)
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_marked_rows_that_are_inserted_into_logs_delete(
    golden: Golden, tmp_path: Path, version: str, operation: str
) -> None:
    """Also those of a file group of which all rows are marked."""
    table = golden(version, "bucket_index_mor").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    for there in model.rows.values():
        there[0] = {**there[0], IS_DELETED: None}
    for number, deleted in enumerate(([True] * 12, [at % 3 == 0 for at in range(12)])):
        source = marked(changed(rows.slice(12 * number, 12), ts=lambda ts: ts + 1), deleted)
        model.upsert(source)
        write(table, operation, put_source(source, tmp_path, name=str(number)), BUCKETS)
        model.check(table)
        assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_marked_rows_that_are_bulk_inserted_into_base_files_of_buckets_are_rows(
    golden: Golden, tmp_path: Path, version: str
) -> None:
    table = golden(version, "bucket_index_cow").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    for there in model.rows.values():
        there[0] = {**there[0], IS_DELETED: None}
    source = marked(rows.slice(0, 6), [True, False] * 3)
    model.insert(source, takes_marked=True)
    write(table, "bulk_insert", put_source(source, tmp_path), BUCKETS)
    model.check(table)


def test_a_partition_of_rows_that_are_marked_as_deleted_is_not_made(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = own_columns(read_rows(table))
    source = marked(like(rows, {"dt": "2031-01-01", "id": "a"}, {"dt": "2031-01-01", "id": "b"}), [True, True])
    for operation in ("upsert", "insert"):
        result = write(table, operation, put_source(source, tmp_path, name=operation))
        assert (result.files_written, result.records) == (0, 0)
    assert read_rows(table).num_rows == rows.num_rows
    assert list(table.glob("2031-01-01/*.parquet")) == []


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_rows_that_stay_keep_their_commit_times(golden: Golden, tmp_path: Path, version: str) -> None:
    """The others have ours, and sequence numbers of their own."""
    table = golden(version, "cow_basic").table
    before = {row[RECORD_KEY]: row for row in read_rows(table).to_pylist()}
    rows = own_columns(read_rows(table))
    source = pa.concat_tables([changed(rows.slice(0, 7), qty=1), like(rows, {"id": "new 1"}, {"id": "new 2"})])
    result = write(table, "upsert", put_source(source, tmp_path, files=2))
    after = read_rows(table).to_pylist()
    ours = [row for row in after if row["_hoodie_commit_time"] == result.instant]
    assert {row[RECORD_KEY] for row in ours} == set(source.column("id").to_pylist())
    numbers = [row["_hoodie_commit_seqno"] for row in ours]
    assert len(set(numbers)) == 9
    assert all(number.startswith(f"{result.instant}_") for number in numbers)
    meta = ("_hoodie_commit_time", "_hoodie_commit_seqno")
    for row in after:
        if row not in ours:
            assert [row[name] for name in meta] == [before[row[RECORD_KEY]][name] for name in meta]
        (path,) = table.glob(f"{row['_hoodie_partition_path']}/{row['_hoodie_file_name']}")
        assert path.is_file()


@pytest.mark.parametrize(
    ("version", "case", "operation"),
    tiered(
        [
            (version, case, operation)
            for version in ("6", "8", "9")
            for case in ("cow_basic", "mor_basic")
            for operation in ("insert", "upsert")
        ],
        [("6", "cow_basic", "upsert"), ("9", "cow_basic", "insert"), ("9", "mor_basic", "upsert")],
    ),
)
def test_columns_come_and_get_wider(golden: Golden, tmp_path: Path, version: str, case: str, operation: str) -> None:
    """Rows that stay have nulls in the new columns, and their values as the wider type."""
    table = golden(version, case).table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    new = like(rows, {"id": "new 1"}, {"id": "new 2", "dt": "2031-01-01"})
    given = changed(pa.concat_tables([rows.slice(0, 9), new]), ts=lambda ts: ts + 1)
    at = given.schema.get_field_index("qty")
    given = given.set_column(at, "qty", pa.array([1 << 40] * 11)).append_column("more", pa.array(["m"] * 11))
    getattr(model, operation)(given)
    write(table, operation, put_source(given, tmp_path, files=2))
    model.check(table)
    assert read_rows(table).schema.field("qty").type == pa.int64()
    again = changed(given.slice(9), ts=lambda ts: ts + 1, more="again")
    model.upsert(again)
    write(table, "upsert", put_source(again, tmp_path, name="again"))
    model.check(table)
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize("case", ["no_meta_fields_cow", "no_meta_fields_mor"])
def test_virtual_keys(golden: Golden, tmp_path: Path, version: str, case: str) -> None:
    """The columns of a table without meta columns have its keys."""
    table = golden(version, case).table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    newer = changed(rows.slice(0, 9), ts=lambda ts: ts + 1, qty=1)
    source = pa.concat_tables([newer, like(rows, {"id": "new 1"}, {"id": "new 2", "dt": "2031-01-01"})])
    counts = model.upsert(source)
    result = write(table, "upsert", put_source(source, tmp_path, files=2))
    assert (result.inserted, result.updated) == (counts["inserted"], counts["updated"]) == (2, 9)
    model.check(table)
    gone = source.slice(5)
    model.delete(gone)
    write(table, "delete", put_source(gone, tmp_path, name="gone"))
    model.check(table)
    more = like(rows, {"id": "more", "dt": "2031-01-01"})
    model.insert(more)
    write(table, "insert", put_source(more, tmp_path, name="more"))
    model.check(table)
    assert all(RECORD_KEY in pq.read_schema(base).names for base in base_files(table)), "Hudi writes the columns, too"
    keys = {key for base in base_files(table) for key in pq.ParquetFile(base).read([RECORD_KEY])[0].to_pylist()}
    assert not any(keys)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_partition_columns_that_base_files_lack(golden: Golden, tmp_path: Path, version: str) -> None:
    """The source has them; they are in the paths alone."""
    table = golden(version, "drop_partition_columns").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    newer = changed(rows.slice(0, 9), ts=lambda ts: ts + 1, qty=1)
    source = pa.concat_tables([newer, like(rows, {"id": "new 1"}, {"id": "new 2", "dt": "2031-01-01"})])
    counts = model.upsert(source)
    result = write(table, "upsert", put_source(source, tmp_path, files=2))
    assert (result.inserted, result.updated) == (counts["inserted"], counts["updated"]) == (2, 9)
    model.check(table)
    for number, gone in enumerate((source.slice(7), rows.slice(20, 2).select(["id", "dt"]))):
        assert model.delete(gone) == write(table, "delete", put_source(gone, tmp_path, name=f"gone {number}")).deleted
        model.check(table)
    assert all("dt" not in pq.read_schema(base).names for base in base_files(table))


def of_key(row: Row) -> tuple[str, str]:
    """The place of a row of a table with the keys `id` and `sub`."""
    parts = ((name, row[name]) for name in ("id", "sub"))
    key = ",".join(f"{name}:{'__null__' if value is None else value or '__empty__'}" for name, value in parts)
    return row["dt"] or "__HIVE_DEFAULT_PARTITION__", key


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_keys_of_several_columns(golden: Golden, tmp_path: Path, version: str) -> None:
    """Among them null, empty, and with colons."""
    table = golden(version, "complex_keygen").table
    model, rows = Model.of(table, event_time=version != "6", place=of_key), own_columns(read_rows(table))
    newer = changed(rows, ts=lambda ts: ts + 1, qty=1)
    assert model.upsert(newer)["updated"] == rows.num_rows
    assert write(table, "upsert", put_source(newer, tmp_path)).updated == rows.num_rows
    model.check(table)
    gone = rows.slice(0, 30).select(["dt", "sub", "id"])
    assert model.delete(gone) == write(table, "delete", put_source(gone, tmp_path, name="gone")).deleted == 30
    model.check(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
@pytest.mark.parametrize("case", ["custom_keygen", "timestamp_keygen_epochmillis", "multilevel_encoded"])
def test_partition_paths_that_are_made_of_columns(golden: Golden, tmp_path: Path, version: str, case: str) -> None:
    """The keys of rows with the same columns are found in their partitions."""
    table = golden(version, case).table
    options = WRITERS_OPTIONS.get(case, {})
    rows = pa.concat_tables([own_columns(pq.read_table(path, partitioning=None)) for path in base_files(table)])
    count = rows.num_rows
    result = write(table, "upsert", put_source(rows, tmp_path), options)
    assert (result.updated, result.inserted) == (count, 0)
    assert read_rows(table).num_rows == count
    assert write(table, "delete", put_source(rows.slice(0, 7), tmp_path, name="gone"), options).deleted == 7
    assert read_rows(table).num_rows == count - 7
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_values_of_all_types_come_as_they_were(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "types_cow").table
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    swapped = rows.drop_columns(["id", "dt"]).take(pa.array([*range(1, rows.num_rows), 0]))
    for name in ("id", "dt"):
        swapped = swapped.append_column(name, rows.column(name))
    source = changed(swapped.select(rows.schema.names), ts=lambda ts: (ts or 0) + 10**9).slice(0, 40)
    assert model.upsert(source)["updated"] == 40
    write(table, "upsert", put_source(source, tmp_path))
    model.check(table)


PARTIAL = "org.apache.hudi.common.model.PartialUpdateAvroPayload"


@pytest.mark.parametrize(
    ("version", "case"),
    tiered(
        [(version, case) for version in ("6", "8", "9") for case in ("cow_basic", "mor_basic")],
        [("6", "cow_basic"), ("9", "mor_basic")],
    ),
)
def test_rows_may_be_merged_field_by_field(golden: Golden, tmp_path: Path, version: str, case: str) -> None:
    """Nulls leave the values that are there. Two rows with one key are refused: neither of them would stay."""
    table = golden(version, case).table
    if version == "9":
        update_properties(LocalStorage(table), {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"})
    else:
        choose_payload(table, PARTIAL)
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    newer = changed(rows.slice(0, 9), ts=lambda ts: ts + 1, qty=lambda qty: (qty or 0) + 1, name=None)
    model.upsert(changed(rows.slice(0, 9), ts=lambda ts: ts + 1, qty=lambda qty: (qty or 0) + 1))
    write(table, "upsert", put_source(newer, tmp_path))
    model.check(table)
    before = data_files(table)
    with pytest.raises(UnsupportedError, match="rows of partition '2024-01-01' have the key of another row"):
        write(table, "upsert", put_source(pa.concat_tables([newer, newer]), tmp_path, name="twice"))
    assert data_files(table) == before
    assert list(open_context(table).active.load().pending()) == []
    model.delete(newer)
    given = pa.concat_tables([newer, newer]).select(["dt", "id"])
    write(table, "delete", put_source(given, tmp_path, name="gone"))
    model.check(table)
    assert_metadata_true(table)


RANDOM = [
    ("6", "cow_basic", {}, {"event_time": False}),
    ("6", "bucket_index_cow", BUCKETS, {"event_time": False}),
    ("6", "payload_default", {}, {"event_time": True}),
    ("8", "payload_default_cow", {}, {"event_time": True}),
    ("8", "payload_default", {}, {"event_time": True, "keeps_deletes": True}),
    ("8", "bucket_index_mor", BUCKETS, {"event_time": True}),
    ("9", "payload_default_cow", {}, {"event_time": True}),
    ("9", "merge_mode_commit_time_cow", {}, {"event_time": False, "order": None}),
    ("9", "merge_mode_commit_time", {}, {"event_time": False, "order": None}),
    ("9", "bucket_index_cow", BUCKETS, {"event_time": True}),
    ("9", "bucket_index_mor", BUCKETS, {"event_time": True}),
    ("9", "mor_basic", {}, {"event_time": True, "keeps_deletes": True}),
]
MORE = [{}, APART, {"hoodie.parquet.max.file.size": "30000"}, {"hoodie.parquet.small.file.limit": "40000"}]


@pytest.mark.parametrize(
    ("version", "case", "options", "rules", "seed"),
    tiered(
        [pytest.param(*given, seed, id=f"{given[0]}-{given[1]}-{seed}") for given in RANDOM for seed in range(6)],
        ["6-bucket_index_cow-0", "8-payload_default-1", "9-payload_default_cow-2"],
    ),
)
def test_random_writes_leave_what_a_model_has(
    golden: Golden, tmp_path: Path, version: str, case: str, options: dict[str, str], rules: dict[str, Any], seed: int
) -> None:
    """No key comes twice, and no row is lost. A row that was deleted in a log file comes back by a greater ordering
    value than that of the base file alone, as in Hudi.
    """
    table = golden(version, case).table
    model, rows = Model.of(table, **rules), own_columns(read_rows(table))
    days = [*sorted({day for day, _ in model.rows}), "2031-01-01"]
    is_mor = open_context(table).config.is_merge_on_read
    later = 0
    for step in range(4):
        source = random_rows(rows, 100 * seed + step, (1, 5, 30)[(seed + step) % 3], partitions=days)
        source = changed(source, ts=lambda ts, later=later: ts + later)
        operation = "delete" if (seed + step) % 4 == 2 else "upsert"
        counts = model.upsert(source) if operation == "upsert" else {"deleted": model.delete(source)}
        given = put_source(source, tmp_path, files=1 + (seed + step) % 3, name=str(step))
        result = write(table, operation, given, {**options, **MORE[(seed + step) % 4]})
        if not is_mor:
            found = (result.inserted, result.updated, result.deleted)
            assert found == tuple(counts.get(name, 0) for name in ("inserted", "updated", "deleted"))
        elif operation == "delete":
            later = 100_000
        model.check(table)
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["8"]))
@pytest.mark.parametrize("payload", ["OverwriteNonDefaultsWithLatest", "PartialUpdate"])
def test_a_write_asks_the_payload_class_about_a_late_deletion(
    golden: Golden, tmp_path: Path, version: str, payload: str
) -> None:
    """On version 8, too, where a deletion in a log file needs the greater ordering value."""
    table = golden(version, "cow_basic").table
    choose_payload(table, f"org.apache.hudi.common.model.{payload}AvroPayload")
    rows = own_columns(read_rows(table))
    late = marked(changed(rows.slice(0, 1), ts=0), [True])
    assert write(table, "upsert", put_source(late, tmp_path)).deleted == 1
    assert read_rows(table).num_rows == rows.num_rows - 1
