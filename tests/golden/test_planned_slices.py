"""Every plan of real Hudi in the golden tables and their metadata tables names the file slices that the table had then;
a plan without one of their files is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import FormatError, StorageNotFoundError
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.planned_slices import PlanCheck, PlannedSlice
from hudi_core.history.archived import CompletionTimes, load_history
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.model.names import FileGroupId
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.pending_plans import read_clustering_plan
from hudi_core.timeline.timeline import Timeline
from tests.support.golden_views import load_table, table_names

PASSED = Counter(
    {
        ("6", "data", "compaction"): 116,
        ("6", "data", "logcompaction"): 6,
        ("6", "data", "replacecommit"): 36,
        ("6", "metadata", "compaction"): 30,
        ("6-by-1.2.0", "data", "compaction"): 24,
        ("6-by-1.2.0", "data", "replacecommit"): 12,
        ("8", "data", "clustering"): 36,
        ("8", "data", "compaction"): 119,
        ("8", "data", "logcompaction"): 6,
        ("8", "metadata", "compaction"): 129,
        ("8-by-1.2.0", "data", "clustering"): 12,
        ("8-by-1.2.0", "data", "compaction"): 30,
        ("9", "data", "clustering"): 36,
        ("9", "data", "compaction"): 134,
        ("9", "data", "logcompaction"): 6,
        ("9", "metadata", "compaction"): 129,
    }
)
"""Slices in plans of real Hudi, by version, table and action."""
INITIAL = "_0-0-0"
"""The token of the log file by which Hudi initializes a file group of the metadata table: a delete block of no keys,
which no commit names.
"""
REFUSED = 2089
"""Slices of those plans without their base file, or without one log file that holds rows."""


def _plans(active: ActiveTimeline, timeline: Timeline, folder: str) -> Iterator[tuple[Instant, list[PlannedSlice]]]:
    """The plans that are still there, with their slices; `folder` is the table's, below the storage's root."""
    for instant in timeline:
        action = instant.pending_action
        try:
            if action in (Action.COMPACTION, Action.LOG_COMPACTION):
                slices = active.read_plan(instant.requested_time, action).operations
            elif action in (Action.CLUSTERING, Action.REPLACE_COMMIT):
                plan = read_clustering_plan(active, instant)
                slices = () if plan is None else plan.slices
            else:
                continue
        except StorageNotFoundError:
            continue
        planned = [
            PlannedSlice(FileGroupId(f"{folder}{item.partition}", item.file_id), item.base_file, tuple(item.log_files))
            for item in slices
        ]
        if planned:
            yield instant, planned


def _listed(storage: Storage, planned: list[PlannedSlice]) -> dict[str, list[FileInfo]]:
    folders = {item.file_group.partition for item in planned}
    return {folder: storage.list_files(folder) for folder in folders}


def _still_there(planned: list[PlannedSlice], listed: dict[str, list[FileInfo]]) -> list[PlannedSlice]:
    """Those whose files were not cleaned since."""
    names = {info.name for files in listed.values() for info in files}
    return [item for item in planned if {*item.log_files, *([item.base_file] if item.base_file else [])} <= names]


def _check_of(storage: Storage, config: TableConfig, active: ActiveTimeline, instant: Instant) -> PlanCheck:
    timeline, history = active.load(), load_history(storage, config)

    def commit_of(requested: str) -> CommitMetadata | None:
        found = next((item for item in timeline.commits() if item.requested_time == requested), None)
        return history.commit(requested) if found is None else active.read_commit(found)

    counts = CommittedInstants.of(timeline)
    if instant.pending_action == Action.LOG_COMPACTION:
        counts = counts.up_to(instant.requested_time, inclusive=False)
    completions = CompletionTimes(timeline, lambda: history)
    return PlanCheck(storage, timeline, active.layout, completions.of, counts, commit_of)


def _metadata_check(storage: Storage, config: TableConfig, active: ActiveTimeline) -> PlanCheck:
    timeline = active.load()
    blocks = MetadataTableSnapshot(storage, config, ActiveTimeline(storage, config).load()).blocks
    completions = {item.requested_time: item.completed_at for item in timeline.commits()}

    def commit_of(requested: str) -> CommitMetadata | None:
        found = next((item for item in timeline.commits() if item.requested_time == requested), None)
        return None if found is None else active.read_commit(found)

    return PlanCheck(storage, timeline, active.layout, completions.get, blocks.instants.__contains__, commit_of)


Case = tuple[str, Instant, PlanCheck, list[PlannedSlice], dict[str, list[FileInfo]]]


def _cases(name: str) -> Iterator[Case]:
    """The plans of a golden table and of its metadata table whose files are still there."""
    storage = load_table(name)
    config = TableConfig.load(storage)
    tables = [(ActiveTimeline(storage, config), "")]
    if FILES_PARTITION in config.metadata_partitions:
        tables.append((ActiveTimeline(storage, TableConfig.load(storage, base=ROOT), ROOT), f"{ROOT}/"))
    for active, folder in tables:
        for instant, planned in _plans(active, active.load(), folder):
            listed = _listed(storage, planned)
            found = _still_there(planned, listed)
            check = _metadata_check(storage, config, active) if folder else _check_of(storage, config, active, instant)
            yield "metadata" if folder else "data", instant, check, found, listed


def _without_a_file(item: PlannedSlice) -> Iterator[PlannedSlice]:
    if item.base_file is not None and item.log_files:
        yield replace(item, base_file=None)
    for log in item.log_files:
        if not log.endswith(INITIAL):
            yield replace(item, log_files=tuple(name for name in item.log_files if name != log))


def test_plans_of_real_hudi_pass_and_none_without_one_of_its_files() -> None:
    passed, refused = Counter[tuple[str, str, str]](), 0
    for name in table_names():
        for table, instant, check, found, listed in _cases(name):
            check.check(found, listed, instant=instant.requested_time, path="plan", remedy="drop it")
            passed[name.split("/")[0], table, instant.pending_action] += len(found)
            for crafted in (crafted for item in found for crafted in _without_a_file(item)):
                with pytest.raises(FormatError, match=crafted.file_group.file_id) as raised:
                    check.check([crafted], listed, instant=instant.requested_time, path="plan", remedy="drop it")
                assert (raised.value.path, raised.value.remedy) == ("plan", "drop it")
                refused += 1
    assert +passed == PASSED
    assert refused == REFUSED
