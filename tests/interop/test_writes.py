"""Real Hudi judges our writes of rows. It writes the same rows into a copy of the table, reads both, goes on with ours,
and rolls back what we left; we roll back what it left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.model.names import IS_DELETED
from hudi_core.services.write import append
from hudi_core.timeline.instant import Action
from tests.interop.changes import after_upsert, upsert_rows, user_columns
from tests.interop.fully_indexed_golden_table import WITH_INDEXES, Served
from tests.interop.golden_judge import ENDS, LOSES_SAVEPOINT, NO_META, NOT_READ, Golden, Judge, golden_tables, is_mor
from tests.interop.judged import COW, EVERY_JUDGE, JUDGES, Judged
from tests.interop.real_hudi import RealHudi
from tests.interop.test_conflicts import Table, differences
from tests.interop.twice_written import (
    OPERATIONS,
    TAGGING,
    Twice,
    content_of,
    fails_with,
    given_rows,
    newest_commit,
    stats_of,
)
from tests.support.fault_storage import MUTATIONS, FaultPlan, InjectedCrash, Operation
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import own_rows, put_source
from tests.support.rows import assert_same_rows
from tests.support.service_calls import dead_process
from tests.support.table_invariants import assert_metadata_true, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.support.writes import changed, marked, own_columns, write

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

TABLES = [(version, name) for version, name, info in golden_tables() if not is_mor(info)]
NOT_JUDGED = {"int_key", "no_ordering_field"}
"""Tables whose keys and order given_rows does not make."""
FAILS = {("8", "no_meta_fields_mor")}
"""1.0.2 fails to read the table, before and behind a write."""
ON_READ = [
    (version, name)
    for version, name, info in golden_tables()
    if is_mor(info) and (version, name) not in NOT_READ | FAILS and name not in NOT_JUDGED
]
CASES = [(*table, operation) for table in (*TABLES, *ON_READ) for operation in OPERATIONS]
CORE = [
    ("6", "hive_style", "insert"),
    ("9", "merge_mode_event_time_cow", "upsert"),
    ("9", "cow_basic", "delete"),
]
REFUSED = [("mor_hfile_log", operation) for operation in TAGGING]
NOT_MERGED = {
    *((version, "types_3level_lists_cow", how) for version in JUDGES for how in ("upsert", "insert", "delete")),
    *((version, "types_cow", how) for version in ("6", "8") for how in ("upsert", "insert")),
    *((version, "types_3level_lists_mor", how) for version in JUDGES for how in ("upsert", "insert")),
    *((version, "complex_keygen_nonpart_mor", "bulk_insert") for version in JUDGES),
}
"""Real Hudi fails to merge into base files that it wrote with all types, and to write by its row writer."""
MISREAD = {("6", "types_timestamp_millis"), ("8", "types_timestamp_millis")}
"""0.15.0 and 1.0.2 take the milliseconds of base files for microseconds where they merge them."""
STAMPS_AGAIN = ("global_index_partition_change", "upsert")
"""With `update.partition.path` real Hudi writes a stored row again where a given one is older."""
LOGGED = ("mor_log_only", "bulk_insert")
SECOND_GROUP = [("bucket_index_cow", "bulk_insert"), LOGGED]
"""Real Hudi begins a second file group of a bucket (apache/hudi#10894), and fails at its next write into that. Rows of
LOGGED go to the log of ours.
"""


def twice_written(golden: Golden, request: pytest.FixtureRequest, version: str, name: str) -> Twice:
    return Twice(Judge.of(golden, request, version, name))


@pytest.mark.parametrize(("version", "name", "operation"), tiered(CASES, CORE))
def test_real_hudi_reads_what_it_would_have_written(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str, operation: str
) -> None:
    """Where it fails to write, or misreads what it wrote, a model says what we must have written."""
    twice = twice_written(golden, request, version, name)
    rows, before, model = given_rows(twice.case, twice.ours, operation), twice.judge.theirs, twice.model()
    if (name, operation) in REFUSED:
        with pytest.raises(UnsupportedError, match=r"block\.format=hfile"):
            twice.we_write(operation, rows)
        return
    error = fails_with(lambda: twice.they_write(operation, rows))
    twice.we_write(operation, rows)
    if model is not None:
        if operation in TAGGING:
            getattr(model, operation)(rows)
        else:
            model.insert(rows, takes_marked=operation == "bulk_insert")
        read, due = own_columns(read_rows(twice.ours)), [row for rows in model.rows.values() for row in rows]
        assert_same_rows(read, pa.Table.from_pylist(due, read.schema))
    assert (error is not None) == ((version, name, operation) in NOT_MERGED), error
    if error is None and (version, name) not in MISREAD and (name, operation) != LOGGED:
        twice.check(operation, before, times=(name, operation) != STAMPS_AGAIN)
    assert_metadata_true(twice.ours)
    assert_same_rows(twice.judge.snapshot(twice.ours, metadata=True), read_rows(twice.ours))


@pytest.mark.conformance
@pytest.mark.parametrize("version", JUDGES)
def test_many_blocks_of_rows_and_deletes_in_one_log_file(
    golden: Golden, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Of rows that change, that are deleted, and that leave for another partition."""
    monkeypatch.setattr(append, "BLOCK_BYTES", 1)
    monkeypatch.setattr("hudi_core.config.rows_config.WriteConfig.piece_bytes", 1)
    twice = twice_written(golden, request, version, "payload_default")
    rows = own_rows(twice.ours, read_rows(twice.ours)).sort_by("id")
    later = changed(rows.slice(0, 12), ts=lambda ts: ts + 10**6)
    moved = changed(later.slice(0, 6), dt="2031-01-01")
    given = put_source(pa.concat_tables([moved, later.slice(6)]), twice.ours.parent, name="rows")
    write(twice.ours, "upsert", given, {"hoodie.index.type": "GLOBAL_SIMPLE"})
    write(twice.ours, "delete", put_source(rows.slice(12, 6), twice.ours.parent, name="gone"))
    ours = read_rows(twice.ours)
    assert moved.num_rows == pc.sum(pc.equal(ours["dt"], "2031-01-01")).as_py()
    for metadata in (True, False):
        assert_same_rows(twice.judge.snapshot(twice.ours, metadata=metadata), ours)


@pytest.mark.parametrize("version", tiered(JUDGES, ["9"]))
def test_a_bulk_insert_of_rows_that_are_marked_as_deleted(
    golden: Golden, request: pytest.FixtureRequest, version: str
) -> None:
    """By default (the row writer) real Hudi adds such rows as rows: readers see them with the mark. So do we."""
    twice = twice_written(golden, request, version, "payload_default_cow")
    before = twice.judge.theirs
    rows = given_rows(twice.case, twice.ours, "bulk_insert")
    assert pc.sum(rows[IS_DELETED]).as_py() == 6
    twice.write("bulk_insert", rows)
    twice.check("bulk_insert", before)


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("name", "operation"),
    [("bucket_index_cow", "insert"), ("bucket_index_cow", "bulk_insert"), ("bucket_index_mor", "insert")],
)
@pytest.mark.parametrize("version", JUDGES)
def test_marked_rows_that_are_inserted_into_buckets(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str, operation: str
) -> None:
    """Of keys that the table has, and of new ones: they delete where they go to log files."""
    twice = twice_written(golden, request, version, name)
    before = twice.judge.theirs
    own = own_rows(twice.ours, read_rows(twice.ours)).sort_by("id").slice(0, 8)
    rows = marked(own, [number % 2 == 0 for number in range(8)])
    new = changed(rows.slice(0, 4), id=lambda key: f"new {key}")
    twice.write(operation, pa.concat_tables([changed(rows, ts=lambda ts: ts + 10**6), new]))
    twice.check(operation, before)


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("version", "name"),
    [table for table in TABLES if not table[1].startswith(("types_", "empty_", NO_META))],
)
def test_real_hudi_goes_on_behind_our_writes(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str
) -> None:
    """It upserts, deletes, clusters and cleans, and validates its metadata table."""
    twice = twice_written(golden, request, version, name)
    judge, before = twice.judge, twice.judge.theirs
    rows = given_rows(twice.case, twice.ours, "insert")
    is_empty = before.num_rows == 0
    twice.write("upsert", rows)
    own = own_rows(twice.ours, read_rows(twice.ours)).sort_by(twice.case.info["record_key_fields"][-1])
    twice.write("delete", own.slice(0, 3))
    if not is_empty and (name, "bulk_insert") not in SECOND_GROUP:
        twice.write("bulk_insert", own.slice(0, 2))
    if not is_empty:
        twice.write("insert", own.slice(2, 1))
    judge.ours, judge.theirs = read_rows(judge.base), judge.snapshot(judge.untouched, metadata=True)
    judge.check(meta=False)
    cleans = (version, name) not in LOSES_SAVEPOINT
    assert judge.goes_on(cleans=cleans) == ENDS.get((version, name))


@pytest.mark.conformance
@pytest.mark.parametrize(("version", "name"), [table for table in WITH_INDEXES if table in TABLES])
def test_every_index_leads_to_the_rows_that_we_wrote(
    golden: Golden, request: pytest.FixtureRequest, tmp_path: Path, version: str, name: str
) -> None:
    """Real Hudi answers by the indexes what a scan answers, finds by them the rows that it changes, deletes, and
    cleans.
    """
    hudi: RealHudi = request.getfixturevalue(EVERY_JUDGE[version])
    table = Served.of(hudi, golden(version, name))
    rows = upsert_rows(table.rows.sort_by("id").slice(7), 9, "ours")
    write(table.base, "upsert", put_source(rows, tmp_path, files=2, name="upsert"))
    table.rows = after_upsert(table.rows, rows)
    gone = table.rows.sort_by("id").slice(20, 6)
    write(table.base, "delete", put_source(gone.select(["id", "dt"]), tmp_path, name="delete"))
    table.rows = table.rows.filter(pc.invert(pc.is_in(table.rows["id"], gone["id"].combine_chunks())))
    for operation in ("insert", "bulk_insert"):
        new = upsert_rows(table.rows.sort_by("id").slice(30), 4, operation).slice(4)
        write(table.base, operation, put_source(new, tmp_path, name=operation))
        table.rows = pa.concat_tables([table.rows, new.select(table.rows.column_names)])
    table.judge()
    table.go_on()


# What the timeline says.

OF_ONE_RELEASE = {
    "6": ("prevBaseFile",),
    "8": ("minEventTime", "maxEventTime"),
    "6-by-1.2.0": ("prevBaseFile", "totalValidLogBlocks", "totalLogBlocksSize", "totalLogBlocksScanTimeMs"),
}
"""0.15.0 does not know the name of the file that was replaced, which we record. 1.0.2 alone records the ordering values
of an upsert as event times, and 1.2.0 in version 6 alone counts valid log blocks, and names the absence of a file.
"""


def schema_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in a commit, the columns in the order of their names."""
    schema = json.loads(content["extraMetadata"]["schema"])
    return {**schema, "fields": sorted(schema["fields"], key=lambda column: column["name"])}


def without_absent_deletes(case: GoldenCase, rows: pa.Table, stored: pa.Table, operation: str) -> pa.Table:
    """Real Hudi alone counts as deleted what is not there, and what an insert leaves out."""
    key = case.info["record_key_fields"][-1]
    there = pc.is_in(rows[key], value_set=stored[key].combine_chunks())
    if operation == "delete":
        return rows.filter(there)
    if IS_DELETED not in rows.column_names:
        return rows
    stays = pc.invert(pc.fill_null(rows[IS_DELETED], False))
    return rows.filter(pc.or_(there, stays) if operation == "upsert" else stays)


@pytest.mark.parametrize("operation", tiered(OPERATIONS, TAGGING))
@pytest.mark.parametrize(
    ("version", "name"),
    tiered(
        [
            *(
                (version, name)
                for version in JUDGES
                for name in ("cow_basic", "payload_default_cow", "bucket_index_cow")
            ),
            ("6-by-1.2.0", "cow_basic"),
            ("8-by-1.2.0", "cow_basic"),
        ],
        [("9", "cow_basic")],
    ),
)
def test_the_commit_says_what_real_hudi_says(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str, operation: str
) -> None:
    """Of each file: the file it replaces, and how many rows were written, inserted, updated and deleted."""
    if (name, operation) in SECOND_GROUP:
        return
    twice = twice_written(golden, request, version, name)
    stored = read_rows(twice.ours)
    twice.write(
        operation,
        without_absent_deletes(twice.case, given_rows(twice.case, twice.ours, operation), stored, operation),
    )
    known = {file.partition("_")[0] for file in twice.judge.theirs["_hoodie_file_name"].to_pylist()}
    ours, theirs = (content_of(table, newest_commit(table)) for table in (twice.ours, twice.theirs))
    for member in ("operationType", "compacted", "partitionToReplaceFileIds"):
        assert ours.get(member) == theirs.get(member)
    # Real Hudi's inserts, and in 0.15.0 upserts, record the columns in the order of the source.
    assert schema_of(ours) == schema_of(theirs)
    said, due = (stats_of(content, known.__contains__) for content in (ours, theirs))
    for stat in (stat for content in (said, due) for stats in content.values() for stat in stats):
        for member in OF_ONE_RELEASE.get(version, ()):
            stat.pop(member, None)
    assert said == due


@pytest.mark.parametrize("operation", tiered(OPERATIONS, ["upsert"]))
@pytest.mark.parametrize("version", tiered(JUDGES, ["9"]))
def test_the_inflight_file_says_what_real_hudi_says(
    golden: Golden, request: pytest.FixtureRequest, version: str, operation: str
) -> None:
    """Which file groups get how many rows, by partition. An insert of ours also names the file groups that it fills."""
    twice = twice_written(golden, request, version, "cow_basic")
    twice.write(operation, given_rows(twice.case, twice.ours, operation))
    ours, theirs = (content_of(table, newest_commit(table), "inflight") for table in (twice.ours, twice.theirs))
    said = stats_of(ours, bool)
    if operation == "insert":
        said = {name: [stat for stat in stats if stat["fileId"] == "new"] for name, stats in said.items()}
    assert said == stats_of(theirs, bool)
    # The file of a bulk_insert of real Hudi does not say what it is.
    assert ours.get("operationType") == (theirs.get("operationType") or "BULK_INSERT")


# Failed writes.


def is_inflight(change: Operation) -> bool:
    return re.fullmatch(r"\.hoodie/(timeline/)?\d{17}(\.commit)?\.inflight", change.path) is not None


def is_data(change: Operation) -> bool:
    return change.path.endswith(".parquet") and change.kind == "output.close"


def is_in_metadata(change: Operation) -> bool:
    return (
        re.fullmatch(r"\.hoodie/metadata/\.hoodie/(timeline/)?\d{17}(_\d{17})?\.deltacommit", change.path) is not None
    )


DIED: dict[str, Callable[[Operation], bool]] = {
    "inflight": is_inflight,
    "written": is_data,
    "in the metadata table": is_in_metadata,
}


@pytest.mark.parametrize("operation", tiered(OPERATIONS, ["upsert"]))
@pytest.mark.parametrize("died", tiered(list(DIED), ["written"]))
@pytest.mark.parametrize("version", tiered(JUDGES, ["9"]))
def test_real_hudi_rolls_back_a_write_of_ours_that_died(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, died: str, operation: str
) -> None:
    """Its next upsert does; nothing of ours stays, and the same token writes then."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    indexes = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.record.index.enable": "true"}
    table = Judged.create(hudi, tmp_path / "table", COW, version, indexes)
    table.upsert()
    rows = table.rows.sort_by("id").slice(3, 8)
    if operation.endswith("insert"):
        rows = rows.set_column(0, "id", pc.binary_join_element_wise("new", rows["id"], "-"))
    given = put_source(rows, tmp_path)
    plan = FaultPlan(when=DIED[died], timing="after", counts=MUTATIONS)
    with pytest.raises(InjectedCrash):
        write(table.base, operation, given, plan=plan, owner=dead_process(), token="a")
    ((_, instant),) = pending_instants(table.base)
    for metadata in (True, False):
        assert_same_rows(user_columns(hudi.snapshot(table.base, metadata=metadata)), table.rows)
    table.upsert()
    table.check()
    assert len(table.times(Action.ROLLBACK)) == 1
    assert pending_instants(table.base) == set()
    assert list(table.base.glob(f"*/*_{instant}*")) == []
    assert_metadata_true(table.base)
    assert not write(table.base, operation, given, token="a").repeated
    if operation == "delete":
        table.rows = table.rows.filter(pc.invert(pc.is_in(table.rows["id"], rows["id"].combine_chunks())))
    elif operation.endswith("insert"):
        table.rows = pa.concat_tables([table.rows, rows])
    else:
        table.rows = after_upsert(table.rows, rows)
    table.check()
    table.goes_on()


@pytest.mark.parametrize("operation", tiered(OPERATIONS, ["upsert"]))
@pytest.mark.parametrize("version", tiered(JUDGES, ["9"]))
def test_other_writers_see_which_file_groups_our_write_changes(
    golden: Golden, request: pytest.FixtureRequest, tmp_path: Path, version: str, operation: str
) -> None:
    """A writer of Hudi reads them from the inflight file."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    case = golden(version, "cow_basic")
    given = put_source(given_rows(case, case.table, operation), tmp_path)
    with pytest.raises(InjectedCrash):
        write(case.table, operation, given, plan=FaultPlan(when=is_inflight, timing="after"), owner=dead_process())
    wrong, compared = differences(hudi, Table(case))
    assert wrong == []
    assert compared > 10


@pytest.mark.conformance
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "name", ["failed_inflight_cow", "failed_inflight_cow_direct_markers", "failed_after_metadata_cow"]
)
@pytest.mark.parametrize("version", JUDGES)
def test_we_roll_back_a_write_of_real_hudi_that_died(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str, operation: str
) -> None:
    """As real Hudi does before the same write."""
    twice = twice_written(golden, request, version, name)
    before = twice.judge.theirs
    twice.write(operation, given_rows(twice.case, twice.ours, operation))
    twice.check(operation, before)
    assert pending_instants(twice.ours) == set()
    rollbacks = [len(list(table.glob("**/*.rollback"))) for table in (twice.ours, twice.theirs)]
    assert rollbacks[0] == rollbacks[1]
    assert rollbacks[0] > 0
    assert twice.judge.goes_on() is None


@pytest.mark.conformance
@pytest.mark.parametrize("version", JUDGES)
def test_real_hudi_archives_our_writes(request: pytest.FixtureRequest, tmp_path: Path, version: str) -> None:
    """It reads all three files of each instant that it archives; ours hold more than its own."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = Judged.create(hudi, tmp_path / "table", COW, version)
    for number, operation in enumerate([*OPERATIONS, "upsert", "delete", "upsert"]):
        rows = table.next_rows(3)
        if operation.endswith("insert"):
            rows = rows.slice(3)
        write(table.base, operation, put_source(rows, tmp_path, name=f"source-{number}"))
        table.rows = after_upsert(table.rows, rows)
        if operation == "delete":
            table.rows = table.rows.filter(pc.invert(pc.is_in(table.rows["id"], rows["id"].combine_chunks())))
    table.check()
    before = table.times(Action.COMMIT)
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
    soon = {"hoodie.metadata.compact.max.delta.commits": "1"}
    table.upsert(options=soon)
    table.clean(keep)
    hudi.ask("service", base=str(table.base), name="archive", options={**table.options, **keep, **soon})
    assert len(table.times(Action.COMMIT)) < len(before)
    table.check()
    table.goes_on()
