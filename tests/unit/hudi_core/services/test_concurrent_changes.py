"""Which pending plans and which commits of others keep a write from completing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hudi_core.errors import ConflictError
from hudi_core.filegroup.write.buckets import place_of_bucket
from hudi_core.model.names import FileGroupId
from hudi_core.services.concurrent_changes import Groups, check_no_plans, check_not_changed
from hudi_core.services.concurrent_changes import Seen as SeenByQuery
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.verb import rollback
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.pending_plans import PLANS_OF_FILE_GROUPS, planned_file_groups
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, put_source
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.support.writes import changed, like, own_columns, write

Golden = Callable[[str, str], GoldenCase]
VERSIONS = tiered(["6", "8", "9"], ["6", "9"])
OURS = "29990101000000000"
"""The instant of the write that is checked."""
ELSEWHERE = FileGroupId("2031-01-01", "0b5ad9f1-6a3c-4f3c-9d0e-3c1b5b6c7d80-0")


@dataclass(frozen=True)
class Seen:
    """A table, and one of its commits that a write did not know."""

    context: TableContext
    commit: Instant
    metadata: CommitMetadata

    @staticmethod
    def last(table: Path, is_it: Callable[[Instant, CommitMetadata], bool] = lambda item, metadata: True) -> Seen:
        context = open_context(table)
        for item in reversed(context.active.load().commits().instants):
            metadata = context.active.read_commit(item)
            if is_it(item, metadata):
                return Seen(context, item, metadata)
        raise AssertionError("no such commit")

    @property
    def written(self) -> FileGroupId:
        """A file group that the commit wrote."""
        return next(FileGroupId(stat.partition_path, stat.file_id) for stat in self.metadata.write_stats())

    def check(self, groups: Groups) -> None:
        """What a write of these groups checks when it completes."""
        now = self.context.active.load()
        known = now.commits().requested_times - {self.commit.requested_time}
        check_not_changed(self.context, now, OURS, groups, known)


def merged(*groups: FileGroupId) -> Groups:
    return Groups(frozenset(groups))


def appended(*groups: FileGroupId, instant: str = "000") -> Groups:
    return Groups(appended=dict.fromkeys(groups, instant))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", ["cow_basic", "mor_basic"])
def test_hudi_19763_a_commit_to_a_merged_file_group_is_a_conflict(golden: Golden, version: str, case: str) -> None:
    """Our base file lacks its rows, and hides them."""
    seen = Seen.last(golden(version, case).table)
    group = seen.written
    with pytest.raises(ConflictError, match=f"{seen.commit.requested_time} has changed file group {group.file_id}"):
        seen.check(merged(ELSEWHERE, group))
    seen.check(merged(ELSEWHERE))
    check_not_changed(
        seen.context,
        seen.context.active.load(),
        OURS,
        merged(group),
        seen.context.active.load().commits().requested_times,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_log_files_come_beside_log_files(golden: Golden, version: str) -> None:
    seen = Seen.last(golden(version, "mor_basic").table)
    stats = [*seen.metadata.write_stats()]
    based = {stat.file_id for stat in stats if stat.log_version is None}
    logs = [FileGroupId(stat.partition_path, stat.file_id) for stat in stats if stat.file_id not in based]
    assert logs
    seen.check(appended(*logs))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("case", "moves"), [("mor_basic", False), ("cow_basic", False), ("mor_compacted", True)])
def test_rows_that_came_from_the_table_are_of_the_commits_that_were_seen(
    golden: Golden, version: str, case: str, moves: bool
) -> None:
    """A later commit to their file groups counts, though the write knows its files; one that moves rows does not."""
    table = golden(version, case).table
    seen = Seen.last(table, lambda _, metadata: metadata.compacted is moves)
    now = seen.context.active.load()
    known = now.commits().requested_times
    of_all = SeenByQuery.of(now)
    before = replace(of_all, commits=known - {seen.commit.requested_time})
    for groups in (merged(seen.written), appended(seen.written)):
        check_not_changed(seen.context, now, OURS, groups, known, of_all)
        if moves:
            check_not_changed(seen.context, now, OURS, groups, known, before)
        else:
            with pytest.raises(ConflictError, match=f"{seen.commit.requested_time} has changed file group"):
                check_not_changed(seen.context, now, OURS, groups, known, before)
    check_not_changed(seen.context, now, OURS, merged(ELSEWHERE), known, before)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", ["clustered_mor", "insert_overwrite_partition_mor", "delete_partition_mor"])
def test_rows_of_a_replaced_file_group_would_be_lost(golden: Golden, version: str, case: str) -> None:
    seen = Seen.last(golden(version, case).table, lambda item, _: item.action == Action.REPLACE_COMMIT)
    (group, *_) = seen.metadata.replaced_file_groups()
    for groups in (merged(group), appended(group), Groups(hashed=frozenset({group.partition}))):
        with pytest.raises(ConflictError, match="has changed file group"):
            seen.check(groups)
    seen.check(replace(appended(ELSEWHERE), hashed=frozenset({ELSEWHERE.partition})))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_hides_log_files_of_layout_1(golden: Golden, version: str) -> None:
    """They are named after the slice that it has merged."""
    seen = Seen.last(golden(version, "mor_compacted").table, lambda _, metadata: metadata.compacted)
    group = seen.written
    if version == "6":
        with pytest.raises(ConflictError, match="has changed file group"):
            seen.check(appended(group))
    else:
        seen.check(appended(group))
    with pytest.raises(ConflictError, match="has changed file group"):
        seen.check(merged(group))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_filled_file_group_hides_log_files_of_layout_1(golden: Golden, tmp_path: Path, version: str) -> None:
    """Another write has put new rows beside those of a small file group, in a new base file."""
    table = golden(version, "mor_basic").table
    rows = like(own_columns(read_rows(table)), {"id": "a", "dt": "2031-01-01"}, {"id": "b", "dt": "2031-01-01"})
    write(table, "insert", put_source(rows.slice(0, 1), tmp_path, name="first"))
    write(table, "insert", put_source(rows.slice(1), tmp_path, name="second"))
    seen = Seen.last(table)
    (stat,) = seen.metadata.write_stats()
    assert (stat.log_version, stat.num_inserts, stat.num_writes) == (None, 1, 2)
    if version == "6":
        with pytest.raises(ConflictError, match="has changed file group"):
            seen.check(appended(seen.written))
    else:
        seen.check(appended(seen.written))


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_7838_another_writer_may_have_made_the_bucket(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "bucket_index_cow").table
    rows = like(own_columns(read_rows(table)), {"dt": "2031-01-01"})
    write(table, "upsert", put_source(rows, tmp_path), BUCKETS)
    seen = Seen.last(table)
    group = seen.written
    ours = f"{group.file_id[:8]}-64c6-4d82-bc70-3d88ba276ea1-0"

    def made(partition: str) -> Groups:
        return Groups(new_buckets=frozenset({place_of_bucket(FileGroupId(partition, ours), by_hash=False)}))

    with pytest.raises(ConflictError, match=f"has changed file group {group.file_id}"):
        seen.check(made("2031-01-01"))
    seen.check(made("2031-01-02"))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_rows_of_a_commit_that_is_rolled_back_would_come_back(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "cow_basic").table
    rows = changed(own_columns(read_rows(table)).slice(0, 3), qty=1)
    result = write(table, "upsert", put_source(rows, tmp_path))
    context = open_context(table)
    known = context.active.load().commits().requested_times
    check_not_changed(context, context.active.load(), OURS, merged(ELSEWHERE), known)
    rollback(context, str(result.instant), an_owner())
    with pytest.raises(ConflictError, match=f"commit {result.instant} was rolled back since {OURS} began"):
        check_not_changed(context, context.active.load(), OURS, merged(ELSEWHERE), known)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("case", "beside"),
    [
        ("clustering_requested_cow", False),
        ("clustering_requested_mor", False),
        ("mor_compaction_requested", True),
        ("compaction_inflight", True),
        ("log_compaction_requested", True),
    ],
)
def test_pending_plans_on_the_file_groups_are_conflicts(golden: Golden, version: str, case: str, beside: bool) -> None:
    """Log files may come beside compactions."""
    context = open_context(golden(version, case).table)
    timeline = context.active.load()
    (item,) = timeline.pending().of_actions(*PLANS_OF_FILE_GROUPS)
    (group, *_) = sorted(planned_file_groups(context.active, item) or ())
    with pytest.raises(ConflictError, match=f"{item.requested_time} is pending on file groups of partition"):
        check_no_plans(context, timeline, merged(group, ELSEWHERE))
    check_no_plans(context, timeline, merged(ELSEWHERE))
    check_no_plans(context, timeline, appended(ELSEWHERE))
    any_bucket = Groups(hashed=frozenset({group.partition}))
    if beside:
        check_no_plans(context, timeline, replace(any_bucket, appended={group: item.requested_time}))
        return
    for groups in (appended(group), any_bucket):
        with pytest.raises(ConflictError, match="is pending on file groups"):
            check_no_plans(context, timeline, groups)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_that_was_planned_since_would_miss_log_files_of_layout_1(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "mor_compaction_requested").table)
    timeline = context.active.load()
    (item,) = timeline.pending_compactions()
    operation, *_ = context.active.read_plan(item.requested_time).operations
    groups = appended(operation.file_group, instant=operation.base_instant)
    if version == "6":
        with pytest.raises(ConflictError, match=f"compaction {item.requested_time} was planned on file group"):
            check_no_plans(context, timeline, groups)
    else:
        check_no_plans(context, timeline, groups)


def test_all_groups_are_those_of_both_kinds() -> None:
    other = FileGroupId("p", "f")
    assert Groups(frozenset({other}), {ELSEWHERE: "1"}).all == {other, ELSEWHERE}
    assert Groups().all == frozenset()
