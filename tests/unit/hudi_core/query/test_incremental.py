"""Incremental queries at their edges: cleaned files, archived commits, incomplete ones, overwrites. Rows of whole
ranges: tests/golden.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.errors import ConfigError, StorageNotFoundError
from hudi_core.query.incremental import as_of_completion
from hudi_core.query.read_plan import read_split
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.compaction import CompactionPlan, encode_compaction_plan
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant
from hudi_core.timeline.naming import timeline_of
from tests.support.changed_tables import open_context, plan_during_the_fourth_commit
from tests.support.golden_archives import archive
from tests.support.golden_compactions import compact
from tests.support.golden_data import SCHEMA_ON_READ, GoldenCase, unpack
from tests.support.rows import assert_same_rows, rows_of
from tests.support.splits import slice_of
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
OVERWRITES = [
    "insert_overwrite_partition_cow",
    "insert_overwrite_partition_mor",
    "insert_overwrite_table",
    "delete_partition_cow",
]
FULL_SCAN = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
REPORT = "airflow_hudi.incremental.report_replaced"


def read(table: HudiTable, **requested: Any) -> pa.Table:
    result = table.read("incremental", **{"begin": "000", **requested})
    return pa.Table.from_batches(result.batches, result.schema)


def open_with(base: Path, options: Mapping[str, str] | None = None) -> HudiTable:
    return HudiTable.open(str(base), options=options)


def by_commit(table: pa.Table) -> Counter[str]:
    return Counter(table["_hoodie_commit_time"].to_pylist())


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("case", ["cow_basic", "mor_compacted", "clustered_cow"])
def test_from_the_start_to_now_is_the_snapshot(golden: Golden, version: str, case: str) -> None:
    table = open_with(golden(version, case).table)
    snapshot = table.read()
    expected = pa.Table.from_batches(snapshot.batches, snapshot.schema)
    assert_same_rows(read(table), expected, ignore=())


@pytest.mark.parametrize("version", VERSIONS)
def test_begin_is_exclusive_and_end_inclusive(golden: Golden, version: str) -> None:
    table = open_with(golden(version, "cow_basic").table)
    first, second, *_ = table.timeline().commits()
    assert set(by_commit(read(table, begin="000", end=first.completed_at))) == {first.requested_time}
    assert set(by_commit(read(table, begin=first.completed_at, end=second.completed_at))) == {second.requested_time}
    assert read(table, begin=first.completed_at, end=first.completed_at).num_rows == 0
    last = max(table.timeline().commits(), key=lambda item: item.completed_at)
    empty = read(table, begin=last.completed_at)
    assert (empty.num_rows, empty.schema.names) == (0, table.plan().schema.names)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pending_compaction_that_is_older_than_the_range_hides_no_file_group(golden: Golden, version: str) -> None:
    """File groups that came between it and the range are committed, though neither their commit nor an older one is in
    the range.
    """
    base = golden(version, "mor_basic").table
    active = open_context(base).active
    first = active.load().commits().instants[0]
    begin = first.completion_time or first.requested_time
    expected = read(open_with(base), begin=begin)
    assert expected.num_rows
    plan = encode_compaction_plan(CompactionPlan(()))
    active.create_requested(str(int(first.requested_time) - 1), Action.COMPACTION, plan)
    assert len(active.load().pending_compactions().instants) == 1
    assert_same_rows(read(open_with(base), begin=begin), expected, ignore=())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_that_was_planned_while_a_commit_ran_hides_none_of_its_rows(golden: Golden, version: str) -> None:
    base = golden(version, "mor_compaction_requested").table
    _, _, third, fourth, _ = open_with(base).timeline().commits().instants
    ranges = [{"begin": third.completed_at, "end": fourth.completed_at}, {"end": fourth.completed_at}, {}]

    def answers() -> list[pa.Table]:
        return [read(open_with(base), metadata="off", **of_range) for of_range in ranges]

    expected = answers()
    assert all(answer.num_rows for answer in expected)
    plan_during_the_fourth_commit(base)
    for answer, rows in zip(answers(), expected, strict=True):
        assert_same_rows(answer, rows, ignore=())
    compact(base)
    for answer, rows in zip(answers(), expected, strict=True):
        assert_same_rows(answer, rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_range_that_ends_before_it_begins(golden: Golden, version: str) -> None:
    with pytest.raises(ConfigError, match="before it begins"):
        read(open_with(golden(version, "cow_basic").table), begin="2", end="1")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_that_was_cleaned(golden: Golden, version: str) -> None:
    """Version 6: an error that names the file. From 8 on Hudi scans the latest snapshot, which lacks rows that were
    written again.
    """
    base = golden(version, "cow_basic").table
    table = open_with(base)
    first = table.timeline().commits().first()
    assert first is not None
    whole = read(table, end=first.completed_at)
    (written,) = slice_of(table.plan(as_of=first.requested_time).splits[0]).files
    victim = written.path
    (base / victim).unlink()
    with pytest.raises(StorageNotFoundError, match="cleaned") as caught:
        read(open_with(base, {FULL_SCAN: "false"}), end=first.completed_at, metadata="off")
    assert (caught.value.path, FULL_SCAN in (caught.value.remedy or "")) == (victim, True)
    scanned = read(open_with(base, {FULL_SCAN: "true"}), end=first.completed_at, metadata="off")
    assert 0 < scanned.num_rows < whole.num_rows
    assert set(by_commit(scanned)) == {first.requested_time}
    if version == "6":
        with pytest.raises(StorageNotFoundError):
            read(table, end=first.completed_at, metadata="off")
    else:
        assert_same_rows(read(table, end=first.completed_at, metadata="off"), scanned, ignore=())


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("case", ["archived_timeline_cow", "archived_timeline_mor"])
def test_archived_commits_are_not_passed_over(golden: Golden, version: str, case: str) -> None:
    """Hudi 0.15 would leave them out without a word. Of the files that they wrote only those are needed that nothing
    wrote again.
    """
    base = golden(version, case).table
    snapshot = open_with(base).read()
    expected = pa.Table.from_batches(snapshot.batches, snapshot.schema)
    active = {commit.requested_time for commit in open_with(base).timeline().commits()}
    for options in ({}, {FULL_SCAN: "true"}, {FULL_SCAN: "false"}):
        found = read(open_with(base, options))
        assert_same_rows(found, expected, ignore=())
        assert set(by_commit(found)) - active


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("case", tiered(["cdc_cow", "cdc_mor"], ["cdc_mor"]))
def test_every_range_has_the_rows_that_it_had_before_its_commits_were_archived(
    golden: Golden, version: str, case: str
) -> None:
    """Real Hudi scans the latest snapshot instead, which lacks the rows that later commits wrote again."""
    base = golden(version, case).table
    ends = sorted(commit.completed_at for commit in open_with(base).timeline().commits())
    ranges = list(itertools.combinations(["000", *ends], 2))
    before = {(begin, end): read(open_with(base), begin=begin, end=end) for begin, end in ranges}
    assert len([action for _, action in archive(base) if action in COMMIT_ACTIONS]) >= 2
    for begin, end in ranges:
        assert_same_rows(read(open_with(base), begin=begin, end=end), before[begin, end], ignore=())


@pytest.mark.parametrize(
    ("version", "folder", "name"),
    [("6", "", "{}.clean"), ("8", "timeline", "{0}_{0}.clean"), ("9", "timeline", "{0}_{0}.clean")],
)
def test_a_clean_that_is_older_than_the_archived_commits_hides_none(
    golden: Golden, version: str, folder: str, name: str
) -> None:
    """Cleans are archived apart from writes, and later."""
    base = golden(version, "archived_timeline_cow").table
    before = by_commit(read(open_with(base), begin="20000101000000000"))
    (base / ".hoodie" / name.format("20000101000000000")).write_bytes(b"")
    assert by_commit(read(open_with(base), begin="20000110000000000")) == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_range_of_archived_commits_alone(golden: Golden, version: str) -> None:
    """Their files are cleaned: an error, or what the latest snapshot still has of them."""
    base = golden(version, "archived_timeline_cow").table
    whole, active = open_with(base).timeline(archived=True), open_with(base).timeline()
    archived = [commit for commit in whole.commits() if active.find(commit.requested_time, commit.action) is None]
    begin, end = archived[0].completed_at, archived[2].completed_at
    with pytest.raises(StorageNotFoundError, match="cleaned since"):
        read(open_with(base, {FULL_SCAN: "false"}), begin=begin, end=end)
    scanned = by_commit(read(open_with(base, {FULL_SCAN: "true"}), begin=begin, end=end))
    assert set(scanned) <= {commit.requested_time for commit in archived[1:3]}


def test_a_commit_that_is_not_complete_before_others_that_are(golden: Golden) -> None:
    base = golden("6", "cow_basic").table
    commits = list(open_with(base).timeline().commits())
    (base / ".hoodie" / f"{commits[1].requested_time}.commit").unlink()
    with pytest.raises(ConfigError, match=f"{commits[1].requested_time} is not complete"):
        read(open_with(base), metadata="off")
    policy = "hoodie.read.timeline.holes.resolution.policy"
    blocked = read(open_with(base, {policy: "BLOCK"}), metadata="off")
    assert set(by_commit(blocked)) == {commits[0].requested_time}
    with pytest.raises(ConfigError, match=policy):
        open_with(base, {policy: "USE_TRANSITION_TIME"})


@pytest.mark.parametrize("version", ["8", "9"])
def test_completion_times_need_no_such_rule(golden: Golden, version: str) -> None:
    """In layout 2 a commit that completes later is found by its completion time, so nothing is passed over."""
    base = golden(version, "cow_basic").table
    commits = list(open_with(base).timeline().commits())
    (base / ".hoodie" / "timeline" / f"{commits[1].requested_time}_{commits[1].completion_time}.commit").unlink()
    assert set(by_commit(read(open_with(base), metadata="off"))) == {commits[0].requested_time}


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize(
    "case",
    [
        "insert_overwrite_partition_cow",
        "insert_overwrite_partition_mor",
        "insert_overwrite_table",
        "delete_partition_cow",
    ],
)
def test_replaced_rows_are_reported_on_request(golden: Golden, version: str, case: str) -> None:
    base = golden(version, case).table
    replaces = [commit for commit in open_with(base).timeline().commits() if commit.action == "replacecommit"]
    (replace,) = replaces
    earlier = open_with(base).timeline().commits().before(replace.requested_time).last()
    assert earlier is not None
    table = open_with(base, {REPORT: "true"})
    reported = read(table, begin=earlier.completed_at, end=replace.completed_at)
    assert reported.schema.names == [*open_with(base).plan().schema.names, "_hoodie_is_deleted"]
    deleted = reported.filter(reported["_hoodie_is_deleted"])
    written = reported.filter(pc.invert(reported["_hoodie_is_deleted"])).drop_columns(["_hoodie_is_deleted"])
    assert_same_rows(written, read(open_with(base), begin=earlier.completed_at, end=replace.completed_at), ignore=())
    assert set(by_commit(deleted)) == {replace.requested_time}
    before = open_with(base).read(as_of=earlier.requested_time)
    rows = pa.Table.from_batches(before.batches, before.schema)
    partitions = set(deleted["_hoodie_partition_path"].to_pylist())
    gone = rows.filter(pc.is_in(rows["_hoodie_partition_path"], pa.array(sorted(partitions))))
    assert sorted(deleted["_hoodie_record_key"].to_pylist()) == sorted(gone["_hoodie_record_key"].to_pylist())
    some = read(table, begin=earlier.completed_at, end=replace.completed_at, columns=["id"], where="id = 'k00000'")
    assert some.schema.names == ["id", "_hoodie_is_deleted"]
    assert set(some["id"].to_pylist()) <= {"k00000"}


def test_clusterings_replace_no_rows(golden: Golden) -> None:
    for version in VERSIONS:
        table = open_with(golden(version, "clustered_cow").table, {REPORT: "true"})
        reported = read(table)
        assert reported.num_rows > 0
        assert not any(reported["_hoodie_is_deleted"].to_pylist())


@pytest.mark.parametrize("version", ["8", "9"])
def test_services_may_be_skipped(golden: Golden, version: str) -> None:
    """What a clustering rewrote is then read from where it was first written, if anything still is."""
    base = golden(version, "clustered_cow").table
    (clustering,) = [commit for commit in open_with(base).timeline().commits() if commit.action == "replacecommit"]
    option = "hoodie.datasource.read.incr.skip_cluster"
    assert open_with(base).plan("incremental", begin="000").files_read > 0
    skipped = open_with(base, {option: "true"}).plan("incremental", begin="000", end=clustering.completed_at)
    assert all(slice_of(split).base_instant != clustering.requested_time for split in skipped.splits)
    assert (
        read(open_with(base, {option: "true"}), end=clustering.completed_at).num_rows
        == read(open_with(base), end=clustering.completed_at).num_rows
    )


@pytest.mark.parametrize(
    ("case", "option"), [("mor_compaction_requested", "skip_compact"), ("clustered_mor", "skip_cluster")]
)
def test_services_are_not_skipped_where_log_files_are_named_after_them(golden: Golden, case: str, option: str) -> None:
    """The log files of the commits behind them would be passed over. Hudi 0.15 has no such options."""
    base = golden("6", case).table
    if option == "skip_compact":
        compact(base)
    (service,) = [commit for commit in open_with(base).timeline().commits() if commit.action != "deltacommit"]
    every = read(open_with(base))
    assert any(instant > service.requested_time for instant in by_commit(every))
    assert_same_rows(read(open_with(base, {f"hoodie.datasource.read.incr.{option}": "true"})), every, ignore=())


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schema_of_the_range_s_end_on_request(golden: Golden, version: str) -> None:
    base = golden(version, "schema_evolution_cow").table
    first = open_with(base).timeline().commits().first()
    assert first is not None
    latest = open_with(base).plan("incremental", begin="000", end=first.completed_at).schema.names
    then = open_with(base, {"hoodie.datasource.read.schema.use.end.instanttime": "true"}).plan(
        "incremental", begin="000", end=first.completed_at
    )
    assert len(then.schema.names) < len(latest) == len(open_with(base).plan().schema.names)


def test_rows_without_meta_columns_have_no_commit(golden: Golden) -> None:
    for version in VERSIONS:
        with pytest.raises(ConfigError, match="_hoodie_ columns"):
            read(open_with(golden(version, "no_meta_fields_cow").table))


def test_what_completed_after_the_range_was_pending_then() -> None:
    """001 was requested first and completed last. Forgotten, it would be older than the timeline, and so an archived,
    committed instant.
    """
    names = [
        "001.deltacommit.inflight",
        "001_009.deltacommit",
        "002.deltacommit.inflight",
        "002_003.deltacommit",
        "004.compaction.requested",
    ]
    then = as_of_completion(timeline_of(names, 2), "005")
    assert [(item.requested_time, item.state.value, item.completion_time) for item in then] == [
        ("001", "inflight", None),
        ("002", "completed", "003"),
        ("004", "requested", None),
    ]
    assert then.commits().requested_times == {"002"}


def of_commit(table: pa.Table, commit: Instant) -> pa.Table:
    return table.filter(pc.equal(table["_hoodie_commit_time"], commit.requested_time))


@pytest.mark.parametrize(("version", "late"), [("8", 0), ("9", 2)])
def test_a_late_row_that_lost_is_shown_where_slices_are_of_the_range_alone(
    golden: Golden, version: str, late: int
) -> None:
    """As the table's own Hudi does; that 1.2.0 shows just these rows is tested in
    tests/torture/test_random_tables.py.
    """
    table = open_with(golden(version, "merge_mode_event_time").table)
    commits = list(table.timeline().commits())
    before, after = commits[1], commits[2]
    shown = read(table, begin=before.completed_at, end=after.completed_at)
    result = table.read(as_of=after.requested_time)
    kept = of_commit(pa.Table.from_batches(result.batches, result.schema), after)
    assert set(by_commit(shown)) == {after.requested_time}
    assert shown.num_rows == kept.num_rows + late
    keys = pa.array(kept["_hoodie_record_key"].to_pylist())
    assert_same_rows(shown.filter(pc.is_in(shown["_hoodie_record_key"], keys)), kept, ignore=())


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_parts_of_rows_are_completed_by_what_lies_below_them(golden: Golden, version: str) -> None:
    """Hudi 1.2.0 fails on these ranges (ClassCastException); 1.0.2's answer of version 8 is one of
    tests/golden/test_reads.py.
    """
    table = open_with(golden(version, "partial_update_merge_into").table)
    commits = list(table.timeline().commits())
    assert len(commits) > 3
    for before, after in itertools.pairwise(commits):
        result = table.read(as_of=after.requested_time)
        kept = of_commit(pa.Table.from_batches(result.batches, result.schema), after)
        assert kept.num_rows > 0
        assert_same_rows(read(table, begin=before.completed_at, end=after.completed_at), kept, ignore=())


def test_only_file_groups_with_parts_of_rows_are_read_whole(golden: Golden) -> None:
    """The last but one commit wrote whole rows, the last one parts of rows of one file group."""
    table = open_with(golden("9", "partial_update_merge_into").table)
    first, *_, begin, whole, parts = table.timeline().commits()
    assert bases(table, first.completed_at, begin.completed_at) == [True, True, True]
    assert bases(table, begin.completed_at, whole.completed_at) == [False, False, False]
    assert bases(table, begin.completed_at, parts.completed_at) == [True, False, False]


def bases(table: HudiTable, begin: str, end: str) -> list[bool]:
    """Which slices of the plan have a base file."""
    return [slice_of(split).base_file is not None for split in table.plan("incremental", begin=begin, end=end).splits]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_log_file_that_was_cut_is_read_as_a_snapshot_reads_it(golden: Golden, version: str) -> None:
    """Its size is what is there, not what the commit records: its last block is corrupt, and passed over."""
    table = open_with(golden(version, "log_truncated").table)
    snapshot = table.read(metadata="off")
    assert_same_rows(read(table, metadata="off"), pa.Table.from_batches(snapshot.batches, snapshot.schema), ignore=())


def test_columns_that_were_renamed_after_the_range(tmp_path: Path) -> None:
    """Schema-on-read: the query's schema is the table's, and its files have older ones, also where the range ends
    before the change.
    """
    base = unpack(SCHEMA_ON_READ, tmp_path)
    table = open_with(base)
    snapshot = table.read()
    expected = pa.Table.from_batches(snapshot.batches, snapshot.schema)
    inserted, updated, *_ = table.timeline().commits()
    assert_same_rows(read(table, end=updated.completed_at), expected, ignore=())
    then = open_with(base, {"hoodie.datasource.read.schema.use.end.instanttime": "true"})
    old = read(then, end=inserted.completed_at)
    assert sorted(old["name"].to_pylist()) == [f"n{number}" for number in range(10)]
    assert old["qty"].null_count == 0


@pytest.mark.parametrize(("version", "late"), [("8", 0), ("9", 20)])
def test_base_rows_of_other_commits_are_merged_with_in_version_8_alone(golden: Golden, version: str, late: int) -> None:
    """Hudi 1.2.0 filters base rows by commit before it merges, where a base file lies in the range (or all are read, as
    here): a late row that lost against a row that the base file's commit only copied is shown. Found by seed 12 of
    tests/torture/test_random_tables.py.
    """
    table = open_with(golden(version, "merge_mode_event_time").table)
    before, after, *_ = table.timeline().commits()
    incremental = table.plan("incremental", begin=before.completed_at, end=after.completed_at)
    snapshot = table.plan(as_of=after.requested_time)
    assert all(slice_of(split).base_file for split in snapshot.splits)
    merged = pa.Table.from_batches(
        (batch for split in snapshot.splits for batch in read_split(incremental.common, split)), incremental.schema
    )
    kept = of_commit(pa.Table.from_batches(snapshot.batches(), snapshot.schema), after)
    assert merged.num_rows == kept.num_rows + late
    assert (rows_of(kept, kept.column_names) - rows_of(merged, kept.column_names)).total() == 0
