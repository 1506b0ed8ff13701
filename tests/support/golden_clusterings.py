"""Golden tables with a planned clustering, and plans of clusterings on any table: what a run leaves, for comparing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Engine
from hudi_core.request.results import InstantResult
from hudi_core.services.clustering.job import clustering_action
from hudi_core.services.clustering.planner import ClusteringService
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.replacecommit import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    encode_clustering_plan,
)
from hudi_core.timeline.instant import Action
from hudi_core.timeline.pending_plans import is_clustering
from hudi_core.transaction.owner import Owner
from hudi_core.view.file_group import FileSlice
from tests.support.golden_compactions import FOLDERS, context_of
from tests.support.golden_data import golden_cases, golden_root
from tests.support.metadata_records import Table, comparable

SORT_COLUMNS = "hoodie.clustering.plan.strategy.sort.columns"
LAYOUT = "hoodie.layout.optimize.strategy"


def planned_cases() -> list[tuple[str, str]]:
    """(folder, case) of the golden tables with a pending clustering that real Hudi executed."""
    found = []
    for folder in FOLDERS:
        for name in golden_cases(folder):
            expected = golden_root() / folder / f"{name}.expected"
            pending = json.loads((expected / "case.json").read_text()).get("pending", ())
            if any(" clustering " in entry or " replacecommit " in entry for entry in pending):
                found.append((folder, name))
    return found


def planned(table: Path) -> str:
    """The instant of the one pending clustering."""
    active = context_of(table).active
    pending = active.load().pending().of_actions(Action.CLUSTERING, Action.REPLACE_COMMIT)
    (found,) = (item for item in pending if is_clustering(active, item))
    return found.requested_time


def slice_of(item: FileSlice) -> ClusteringSlice:
    """A file slice as a plan names it."""
    return ClusteringSlice(
        item.file_group.partition,
        item.file_group.file_id,
        None if item.base_file is None else item.base_file.name,
        tuple(file.name for file in item.log_files),
    )


def plan_of_all(table: Path, params: Mapping[str, str], outputs: int = 1, *, preserves: bool = True) -> str | None:
    """Requests a clustering of every file slice that no pending plan holds, a group for each partition; None where
    there is none.
    """
    context = context_of(table)
    view = context.view(context.active.load())
    held = {*view.pending.compacting, *view.pending.log_compacting}
    groups = []
    for partition in view.partitions():
        slices = tuple(
            slice_of(item) for item in view.latest_slices(partition) if item.data_files and item.file_group not in held
        )
        if slices:
            groups.append(ClusteringGroup(slices, outputs))
    if not groups:
        return None
    plan = ClusteringPlan(tuple(groups), strategy_params=params, preserves_metadata=preserves)
    instant = context.new_instant(context.active.load())
    action = clustering_action(context.active.layout)
    context.active.create_requested(instant, action, encode_clustering_plan(plan, lambda path: f"{table}/{path}"))
    return instant


def cluster(
    table: Path, instant: str | None = None, options: Mapping[str, str] | None = None, engine: Engine | None = None
) -> InstantResult:
    """Runs the table's clustering."""
    return ClusteringService().run(
        context_of(table, options), instant or planned(table), engine or LocalEngine(2), Owner.current("test"), None
    )


def commit_of(table: Path, instant: str) -> CommitMetadata:
    """The clustering's commit."""
    active = context_of(table).active
    found = active.load().get(instant, Action.REPLACE_COMMIT)
    return active.read_commit(found)


def new_files(table: Path, instant: str) -> list[Path]:
    """The base files that a clustering wrote."""
    return sorted(path for path in table.rglob(f"*_{instant}.parquet"))


def replaced(table: Path, instant: str) -> dict[str, set[str]]:
    """The file groups that a clustering replaced, by partition."""
    return {name: set(ids) for name, ids in (commit_of(table, instant).replaced_file_ids or {}).items()}


def metadata_counts(table: Path) -> dict[str, int]:
    """How many records the metadata table has of each kind; file names differ from one run to the next."""
    if "files" not in HudiTable.open(str(table)).config.metadata_partitions:
        return {}
    return Counter({kind: len(records) for kind, records in comparable(Table(table).records()).items()})
