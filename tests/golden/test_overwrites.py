"""Overwrites of every golden table by its own rows, and deletes of its partitions: rows, keys, paths, commit, timeline
and metadata table. Bytes of pending files against those of real Hudi.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import ConflictError, FormatError, HudiError
from hudi_core.services.write.work import WriteResult
from hudi_core.timeline.actions.replacecommit import encode_inflight_overwrite, encode_requested_overwrite
from hudi_core.timeline.instant import Action, State
from tests.support.changed_tables import open_context
from tests.support.golden_compactions import FOLDERS
from tests.support.golden_data import GoldenCase, golden_cases
from tests.support.overwrites import (
    BUCKETS,
    WRITERS_OPTIONS,
    commit_of,
    delete,
    in_buckets,
    overwrite,
    own_rows,
    places,
    put_source,
    within,
)
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, assert_readable, leftovers, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
ALL = [(folder, case) for folder in FOLDERS for case in golden_cases(folder)]
QUICK = {
    ("6", "custom_keygen"),
    ("6", "multilevel_encoded_hive"),
    ("6", "timestamp_keygen_string"),
    ("8", "complex_keygen"),
    ("8", "drop_partition_columns"),
    ("9", "complex_keygen_nonpart_mor"),
    ("9", "mdt_all_mor"),
    ("9", "timestamp_keygen_epochmillis"),
}
EVERY = tiered(ALL, QUICK)
NO_META = "no_meta_fields"
"""See test_without_meta_columns."""
NOT_WRITTEN = (
    "bucket_index_consistent",
    "cow_orc",
    "orc",
    "hfile",
    "lance",
    "bootstrap",
    "schema_on_read",
)
"""Cases that take no rows here: buckets by consistent hashing, base files of other formats."""


def done_or_refused(case: str, act: Callable[[], WriteResult]) -> WriteResult | None:
    """What came of it; None where the case has a plan in the way, or takes no rows here."""
    refusal: HudiError
    try:
        return act()
    except (ConflictError, FormatError) as error:
        refusal = error
    expected = "is pending on file groups" in refusal.message or case.startswith(NOT_WRITTEN)
    assert expected, refusal
    return None


@pytest.mark.parametrize(("folder", "case"), EVERY)
def test_a_table_is_overwritten_by_its_own_rows(golden: Golden, tmp_path: Path, folder: str, case: str) -> None:
    """Each row gets the record key and the partition path that real Hudi gave it."""
    table = golden(folder, case).table
    before = read_rows(table)
    if not before.num_rows or case.startswith(NO_META):
        return
    options = WRITERS_OPTIONS.get(case, {})
    given = put_source(own_rows(table, before), tmp_path, files=2)
    result = done_or_refused(case, lambda: overwrite(table, given, options, token="a day", whole_table=True))
    if result is None:
        assert_readable(table, before)
        return
    after = read_rows(table)
    assert places(after) == places(before)
    own = [name for name in before.schema.names if not name.startswith("_hoodie_")]
    assert_same_rows(after.select(own), before.select(own), ignore=())
    assert_readable(table, after)
    assert_metadata_true(table)
    assert leftovers(table, str(result.instant)) == []
    assert set(after.column("_hoodie_commit_time").to_pylist()) == {result.instant}
    assert len(set(after.column("_hoodie_commit_seqno").to_pylist())) == after.num_rows == result.records
    again = overwrite(table, given, options, token="a day", whole_table=True)
    assert (again.instant, again.repeated, again.records) == (result.instant, True, result.records)
    assert_readable(table, after)


@pytest.mark.parametrize("combine", tiered(["false", "true"], ["true"]))
@pytest.mark.parametrize("folder", tiered(["6", "8", "9"], ["8"]))
def test_each_row_stays_in_the_bucket_that_hudi_put_it_into(
    golden: Golden, tmp_path: Path, folder: str, combine: str
) -> None:
    """One file for each bucket of a partition, however small files are to be."""
    table = golden(folder, "bucket_index_cow").table
    before = read_rows(table)
    given = put_source(own_rows(table, before), tmp_path, files=3)
    options = {**BUCKETS, "hoodie.combine.before.insert": combine, "hoodie.parquet.max.file.size": "1"}
    result = overwrite(table, given, options, whole_table=True)
    after = read_rows(table)
    assert in_buckets(after) == in_buckets(before)
    assert places(after) == places(before)
    stats = list(commit_of(table, result.instant).write_stats())
    assert len({(stat.partition_path, stat.file_id[:8]) for stat in stats}) == len(stats)
    assert {stat.file_id[-2:] for stat in stats} == {"-0"}


@pytest.mark.parametrize(("folder", "case"), EVERY)
def test_a_partition_is_deleted(golden: Golden, folder: str, case: str) -> None:
    table = golden(folder, case).table
    before = read_rows(table)
    if not before.num_rows or case.startswith(NO_META):
        return
    partition = min(before.column("_hoodie_partition_path").to_pylist())
    result = done_or_refused(case, lambda: delete(table, partition, token="once"))
    if result is None:
        assert_readable(table, before)
        return
    assert_readable(table, within(before, partition, outside=True))
    assert_metadata_true(table)
    assert leftovers(table, str(result.instant)) == []
    assert (result.files_written, result.records, result.partitions) == (0, 0, 1)
    assert result.replaced_file_groups > 0
    assert delete(table, partition, token="once").repeated


@pytest.mark.parametrize(
    ("folder", "case"),
    tiered([("6", "mdt_all_mor"), ("8", "mdt_all_cow"), ("9", "mdt_all_mor")], [("6", "mdt_all_mor")]),
)
def test_only_the_partitions_of_the_rows_are_replaced(golden: Golden, tmp_path: Path, folder: str, case: str) -> None:
    """Half of the rows of one partition, and one row that was in another one and moves to a new partition."""
    table = golden(folder, case).table
    before = read_rows(table)
    name = sorted(set(before.column("_hoodie_partition_path").to_pylist()))[0]
    old = within(before, name)
    (field,) = open_context(table).config.partition_fields
    kept = own_rows(table, old.slice(0, old.num_rows // 2))
    at = kept.schema.get_field_index(field)
    moved = own_rows(table, old.slice(old.num_rows - 1)).set_column(at, kept.schema.field(at), [["2031-05-05"]])
    given = put_source(type(kept).from_batches([*kept.to_batches(), *moved.to_batches()]), tmp_path)
    result = overwrite(table, given)
    after = read_rows(table)
    assert_same_rows(within(after, name, "2031-05-05", outside=True), within(before, name, outside=True), ignore=())
    assert within(after, name).num_rows == old.num_rows // 2
    assert within(after, "2031-05-05").num_rows == 1
    assert result.records == old.num_rows // 2 + 1
    assert result.partitions == 2
    assert_readable(table, after)
    assert_metadata_true(table)
    replaced = commit_of(table, result.instant).replaced_file_ids or {}
    assert replaced["2031-05-05"] == ()
    metadata = (table / "2031-05-05" / ".hoodie_partition_metadata").read_text()
    assert f"commitTime={result.instant}" in metadata
    assert "partitionDepth=1" in metadata


OPERATIONS = {
    "delete_partition_cow": "DELETE_PARTITION",
    "insert_overwrite_table": "INSERT_OVERWRITE_TABLE",
    "insert_overwrite_partition_mor": "INSERT_OVERWRITE",
}


@pytest.mark.parametrize("case", list(OPERATIONS))
@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_pending_files_are_those_of_real_hudi(golden: Golden, folder: str, case: str) -> None:
    """Byte for byte, but for the random marks of Avro containers and the order of partitions."""
    active = open_context(golden(folder, case).table).active
    instant = active.load().of_actions(Action.REPLACE_COMMIT).instants[0].requested_time
    layout, operation = active.layout, OPERATIONS[case]
    requested = active.read_requested(instant, Action.REPLACE_COMMIT)
    ours = encode_requested_overwrite(operation, token=None, layout=layout, names_deletes=folder == "9")
    assert without_marks(ours) == without_marks(requested)
    inflight = active.read_pending(instant, Action.REPLACE_COMMIT, State.INFLIGHT)
    profile = active.read_any(instant, Action.REPLACE_COMMIT, State.INFLIGHT)["partitionToWriteStats"]
    rows = {name: stats[0]["numInserts"] for name, stats in profile.items()}
    mine = encode_inflight_overwrite(operation, rows, layout=layout)
    assert without_marks(mine) == without_marks(inflight)


def without_marks(data: bytes) -> bytes:
    """An Avro container without its random mark, which is its last 16 bytes; other files as they are."""
    return data.replace(data[-16:], b"") if data.startswith(b"Obj\x01") else data


@pytest.mark.parametrize("folder", ["6", "8", "9"])
def test_the_commit_has_the_members_of_real_hudis(golden: Golden, tmp_path: Path, folder: str) -> None:
    found = golden(folder, "insert_overwrite_table")
    active = open_context(found.table).active
    theirs = active.read_of(active.load().completed().of_actions(Action.REPLACE_COMMIT).instants[-1])
    rows = own_rows(found.table, read_rows(found.table))
    result = overwrite(found.table, put_source(rows, tmp_path), whole_table=True)
    ours = active.read_of(active.load().get(str(result.instant), Action.REPLACE_COMMIT))
    assert list(ours) == list(theirs)
    assert (ours["operationType"], ours["compacted"]) == (theirs["operationType"], theirs["compacted"])
    assert {key for key in ours["extraMetadata"] if not key.startswith("airflow_hudi.")} == {"schema"}
    assert json.loads(ours["extraMetadata"]["schema"]) == json.loads(theirs["extraMetadata"]["schema"])
    assert stable(ours) == stable(theirs)


VARYING = ("fileId", "path", "totalWriteBytes", "fileSizeInBytes", "runtimeStats", "numWrites", "numInserts")


def stable(raw: dict[str, Any]) -> list[dict[str, Any]]:
    """Of the write stats, what is the same for every row."""
    stats = [stat for _, found in sorted(raw["partitionToWriteStats"].items()) for stat in found]
    return [{name: value for name, value in stat.items() if name not in VARYING} for stat in stats]


def test_what_is_overwritten() -> None:
    assert len(ALL) > 250
    assert set(ALL) >= QUICK
