"""Cleans the metadata table: slices of its file groups that compactions have replaced
(HoodieBackedTableMetadataWriter.cleanIfNecessary).

Not until three instants came after the latest compaction, as readers may have started before it. A clean that was cut
off is finished first, by its own plan: a file that is gone is as good as deleted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from hudi_core.config.services.retention_config import KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS
from hudi_core.errors import FormatError
from hudi_core.metadata_table.instants import OperationSuffix, latest_compaction
from hudi_core.metadata_table.read.file_group import ROOT, file_groups, merged_slices, partition_folders, pending_bases
from hudi_core.metadata_table.timeline import MetadataTimeline, ServiceOutcome
from hudi_core.model.partition import join
from hudi_core.storage.registry import plan_address
from hudi_core.timeline.actions.clean import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    RetainedInstant,
    encode_clean_metadata,
    encode_clean_plan,
)
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.timeline.pending_plans import read_clean_plan
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice

log = logging.getLogger(__name__)

PlanAndPath = tuple[CleanPlan, str]

_VERSIONS: Final = 2
_LEAST_COMMITS: Final = 3
_MORE_THAN_DATA: Final = 1.2
"""HoodieMetadataWriteUtils: a fifth more commits than the data table's clean keeps."""
_INSTANTS_BETWEEN: Final = 3
_THREADS: Final = 16
"""Deletes at a time: on object stores each is a request that waits."""


def clean(metadata_timeline: MetadataTimeline, data_commits_retained: int) -> ServiceOutcome:
    """Finishes what is pending, else cleans; `data_commits_retained` is what the data table's clean keeps
    (`hoodie.clean.commits.retained`).

    The caller holds the table lock. Killed anywhere, it can be run again. Raises FormatError for a pending plan that
    names something else than files of the metadata table, or files that readers need; nothing was deleted then.
    """
    active, storage = metadata_timeline.active, metadata_timeline.storage
    timeline = active.load()
    pending = _pending_plans(active, timeline)
    if pending:
        for plan, path in pending.values():
            _check_unneeded(metadata_timeline, timeline, plan, path)
        return _execute_all(metadata_timeline, pending)
    timeline = timeline.filter(lambda item: item.is_completed or item.action != Action.CLEAN)
    latest = timeline.completed().of_actions(Action.DELTA_COMMIT).last()
    compaction = latest_compaction(timeline)
    if latest is None or compaction is None:
        return ServiceOutcome(reason="the metadata table was never compacted: it has one slice of each file group")
    if len(timeline.completed().after(compaction.requested_time)) < _INSTANTS_BETWEEN:
        return ServiceOutcome(
            reason=f"fewer than {_INSTANTS_BETWEEN} instants came after compaction {compaction.requested_time}: "
            "readers may need them"
        )
    retained = max(_LEAST_COMMITS, int(data_commits_retained * _MORE_THAN_DATA))
    plan = _plan(metadata_timeline, timeline, retained)
    if not plan.files:
        return ServiceOutcome(reason="every slice of the metadata table is to be kept")
    if metadata_timeline.features.metadata_suffixes:
        instant = OperationSuffix.CLEAN.of(latest.requested_time)
    else:
        instant = metadata_timeline.clock.next(timeline)
    if instant in timeline.requested_times:
        return ServiceOutcome(
            reason=f"the metadata table was cleaned at {instant}, and nothing was written to it since"
        )
    content = encode_clean_plan(plan, lambda path: plan_address(storage, f"{ROOT}/{path}"))
    active.create_requested(instant, Action.CLEAN, content)
    return _execute_all(metadata_timeline, _pending_plans(active, active.load()))


def _pending_plans(active: ActiveTimeline, timeline: Timeline) -> dict[str, PlanAndPath]:
    """Oldest first. One that a crash left empty is taken off the timeline, as services/clean/job.py does."""
    plans: dict[str, PlanAndPath] = {}
    for item in timeline.pending().of_actions(Action.CLEAN):
        found = read_clean_plan(active, item.requested_time)
        if found is not None:
            plans[item.requested_time] = found
            continue
        log.warning("the plan of clean %s of the metadata table is empty: it leaves the timeline", item.requested_time)
        active.drop(item.requested_time, Action.CLEAN)
    return plans


def _plan(metadata_timeline: MetadataTimeline, timeline: Timeline, retained: int) -> CleanPlan:
    features, storage, commits = metadata_timeline.features, metadata_timeline.storage, timeline.commits()
    last, by_versions = commits.last(), features.metadata_keeps_versions
    earliest = None if by_versions or len(commits) <= retained else commits.instants[len(commits) - retained]
    compactions = pending_bases(metadata_timeline.active, timeline).items()
    files: dict[str, tuple[str, ...]] = {}
    for partition in partition_folders(storage):
        names: list[str] = []
        listed = storage.list_files(f"{ROOT}/{partition}")
        for group in file_groups(partition, listed, timeline, features.layout, compactions):
            if by_versions:
                old: Sequence[FileSlice] = group.slices[_VERSIONS:]
            else:  # those before the newest one that is older than `earliest`: no reader that starts then reads them
                time = "" if earliest is None else earliest.requested_time
                old = [item for item in group.slices if item.base_instant < time][1:]
            names += [file.name for item in old for file in item.files]
        if names:
            files[partition] = tuple(sorted(names))
    return CleanPlan(
        KEEP_LATEST_FILE_VERSIONS if by_versions else KEEP_LATEST_COMMITS,
        files,
        "" if last is None else last.requested_time,
        None if earliest is None else RetainedInstant(earliest.requested_time, earliest.action),
    )


def _check_unneeded(metadata_timeline: MetadataTimeline, timeline: Timeline, plan: CleanPlan, path: str) -> None:
    """Raises FormatError where a pending clean's plan, perhaps another writer's, names a file that readers merge."""
    for partition, names in plan.files.items():
        folder = f"{ROOT}/{partition}"
        files = metadata_timeline.storage.list_files(folder)
        slices = merged_slices(folder, files, timeline, metadata_timeline.features.layout)
        needed = {info.name for item in slices for info in (*item.logs, *([item.base_file] if item.base_file else []))}
        wrong = sorted(needed.intersection(names))
        if wrong:
            raise FormatError(
                f"the clean's plan names {wrong[0]} in {folder}, which readers of the latest state need",
                path=path,
                remedy="drop the metadata table: hudictl metadata drop TABLE, then hudictl metadata create TABLE",
            )


def _execute_all(metadata_timeline: MetadataTimeline, plans: Mapping[str, PlanAndPath]) -> ServiceOutcome:
    deleted = (_execute(metadata_timeline, instant, *found) for instant, found in plans.items())
    return ServiceOutcome(tuple(plans), sum(deleted))


def _execute(metadata_timeline: MetadataTimeline, instant: str, plan: CleanPlan, path: str) -> int:
    started, storage = time.monotonic(), metadata_timeline.storage
    in_inflight = metadata_timeline.features.clean_plan_in_inflight
    metadata_timeline.active.to_inflight(instant, Action.CLEAN, storage.read(path) if in_inflight else b"")
    paths = [f"{ROOT}/{join(partition, name)}" for partition, names in plan.files.items() for name in names]
    with ThreadPoolExecutor(_THREADS, "metadata-clean") as pool:
        deleted = sum(pool.map(storage.delete, paths))
    metadata = CleanMetadata(
        instant,
        plan.policy,
        {partition: CleanedPartition(names) for partition, names in plan.files.items()},
        "" if plan.earliest is None else plan.earliest.timestamp,
        plan.last_completed,
        int((time.monotonic() - started) * 1000),
    )
    metadata_timeline.complete(instant, Action.CLEAN, encode_clean_metadata(metadata))
    log.info("clean %s of the metadata table deleted %d files", instant, deleted)
    return deleted
