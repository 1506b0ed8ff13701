"""Pending operations as real Hudi puts them on a timeline, over file groups of the test's choice."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from hudi_core.codec.avro.container import read_container, write_container
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit, encode_commit_avro
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_core.timeline.actions.rollback import encode_rollback_plan
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from tests.support.golden_timelines import load_timelines

_BASE_INSTANT = "20260101000000000"
_REAL_PLAN = ".hoodie/20261120222304872.replacecommit.requested"


def compaction_plan(*groups: FileGroupId) -> bytes:
    """A plan that compacts the first slice of each group."""
    base = f"_0-0-0_{_BASE_INSTANT}.parquet"
    return encode_compaction_plan(
        CompactionPlan(
            tuple(
                CompactionOperation(group.partition, group.file_id, _BASE_INSTANT, f"{group.file_id}{base}", ())
                for group in groups
            )
        )
    )


def clustering_plan(*groups: FileGroupId) -> bytes:
    """Real Hudi's plan, its slices replaced; without a group the requested file of an overwrite."""
    schema, (raw,) = read_container(load_timelines("clustering_requested_mor", "6").read(_REAL_PLAN), path=_REAL_PLAN)
    raw = copy.deepcopy(raw)
    if not groups:
        return write_container(schema, [dict.fromkeys(raw)])
    (template, *_) = raw["clusteringPlan"]["inputGroups"]
    slices = [
        {
            **template["slices"][0],
            "partitionPath": group.partition,
            "fileId": group.file_id,
            "dataFilePath": f"/t/{group.partition}/{group.file_id}_0-0-0_{_BASE_INSTANT}.parquet",
            "deltaFilePaths": [],
        }
        for group in groups
    ]
    raw["clusteringPlan"]["inputGroups"] = [{**template, "slices": slices}]
    return write_container(schema, [raw])


def commit(layout: int, kind: str, *groups: FileGroupId, replaced: tuple[FileGroupId, ...] = ()) -> bytes:
    """Commit metadata that wrote into `groups` and replaced others."""
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for group in groups:
        stat = WriteStat(
            group.file_id,
            f"{group.partition}/{group.file_id}_0-0-0_1.parquet",
            group.partition,
            "null",
            1,
            0,
            0,
            1,
            1,
            1,
        )
        stats[group.partition] = (*stats.get(group.partition, ()), stat)
    gone: dict[str, tuple[str, ...]] = {}
    for group in replaced:
        gone[group.partition] = (*gone.get(group.partition, ()), group.file_id)
    metadata = CommitMetadata(stats, kind == "COMPACT", kind, {"schema": "{}"}, gone if replaced else None)
    return encode_commit(metadata) if layout == 1 else encode_commit_avro(metadata)


class Operations:
    """Puts operations of others on a timeline."""

    def __init__(self, active: ActiveTimeline) -> None:
        self.active = active

    def write(
        self,
        time: str,
        *groups: FileGroupId,
        completed: str | None = None,
        started: bool = True,
        action: str = Action.DELTA_COMMIT,
    ) -> None:
        """A write: requested, inflight with its profile, or completed at a time."""
        self.active.create_requested(time, action)
        content = commit(self.active.layout, "UPSERT", *groups)
        if started or completed:
            self.active.to_inflight(time, action, content)
        if completed:
            self.active.complete(time, action, content, completed)

    def compact(self, time: str, *groups: FileGroupId, completed: str | None = None, started: bool = True) -> None:
        self._planned(
            time,
            Action.COMPACTION,
            compaction_plan(*groups),
            commit(self.active.layout, "COMPACT", *groups),
            completed,
            started=started,
        )

    def cluster(self, time: str, *groups: FileGroupId, completed: str | None = None, started: bool = True) -> None:
        action = Action.REPLACE_COMMIT if self.active.layout == 1 else Action.CLUSTERING
        content = commit(self.active.layout, "CLUSTER", FileGroupId("p", f"new-{time}"), replaced=groups)
        self._planned(time, action, clustering_plan(*groups), content, completed, started=started)

    def overwrite(self, time: str, *groups: FileGroupId, completed: str | None = None) -> None:
        """An overwrite that creates a group of its own and replaces `groups`; inflight it says what it writes."""
        new = FileGroupId("p", f"new-{time}")
        self.active.create_requested(time, Action.REPLACE_COMMIT, clustering_plan())
        self.active.to_inflight(time, Action.REPLACE_COMMIT, commit(self.active.layout, "INSERT_OVERWRITE", *groups))
        if completed:
            content = commit(self.active.layout, "INSERT_OVERWRITE", new, replaced=groups)
            self.active.complete(time, Action.REPLACE_COMMIT, content, completed)

    def roll_back(self, time: str, target: str, *, started: bool = True) -> None:
        self.active.create_requested(time, Action.ROLLBACK, encode_rollback_plan(target, Action.DELTA_COMMIT, []))
        if started:
            self.active.to_inflight(time, Action.ROLLBACK)

    def _planned(
        self, time: str, action: str, plan: bytes, content: bytes, completed: str | None, *, started: bool
    ) -> None:
        self.active.create_requested(time, action, plan)
        if started or completed:
            self.active.to_inflight(time, action)
        if completed:
            self.active.complete(time, action, content, completed)


def describe(value: Any) -> str:
    """The instants that conflict."""
    return ",".join(other.instant for other, _ in value)


def cut_plan(active: ActiveTimeline, table: Path) -> list[str]:
    """Makes a plan of each operation of the pending compaction's plan, in layout 1; their instants, of which the first
    is that of the plan.
    """
    (pending,) = active.load().pending_compactions()
    first = pending.requested_time
    plan = active.read_plan(first)
    instants = [str(int(first) + number) for number in range(len(plan.operations))]
    (table / ".hoodie" / f"{first}.compaction.requested").unlink()
    for instant, operation in zip(instants, plan.operations, strict=True):
        content = encode_compaction_plan(replace(plan, operations=(operation,)))
        active.create_requested(instant, Action.COMPACTION, content)
    return instants
