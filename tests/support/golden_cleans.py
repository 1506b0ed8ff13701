"""Golden tables as they were before a clean: to be planned again, or run again, and compared with what real Hudi
planned and did.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.model.names import parse_data_file
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.context import TableContext
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.one_look import OneLookStorage
from hudi_core.timeline.actions.clean import CleanPlan, decode_clean_plan
from hudi_core.timeline.actions.commit import encode_commit, encode_commit_avro
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State
from hudi_core.transaction.owner import Owner
from tests.support.golden_data import GoldenCase, golden_cases

FOLDERS = ("6", "6-by-1.2.0", "8", "8-by-1.2.0", "9")
SKEW = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
"""Completion times without the wait for other machines' clocks."""


def cases(part: str) -> list[tuple[str, str]]:
    """(folder, case) of the golden tables whose name contains `part`."""
    return [(folder, name) for folder in FOLDERS for name in golden_cases(folder) if part in name]


def context_of(table: Path, options: Mapping[str, str] | None = None, storage: Storage | None = None) -> TableContext:
    """The table as a service sees it."""
    store = OneLookStorage(LocalStorage(table) if storage is None else storage)
    config = TableConfig.load(store)
    return TableContext(str(table), store, config, ActiveTimeline(store, config), {**SKEW, **(options or {})}, {})


def run_clean(
    table: Path, instant: str, *, owner: Owner | None = None, storage: Storage | None = None, threads: int = 2
) -> str:
    """Runs a clean of the table; its state afterwards."""
    context = context_of(table, storage=storage)
    return CleanService().run(context, instant, LocalEngine(threads), owner or Owner.current("test"), None).state


def data_files(table: Path) -> list[str]:
    """The data files and partition metadata of a table, without Hadoop's side files."""
    found = (path.relative_to(table) for path in table.rglob("*") if path.is_file() and path.suffix != ".crc")
    return sorted(path.as_posix() for path in found if path.parts[0] != ".hoodie")


def without_metadata_table(table: Path) -> Path:
    """The table as one that never had a metadata table."""
    properties = table / ".hoodie" / "hoodie.properties"
    lines = [
        line for line in properties.read_text().splitlines() if not line.startswith("hoodie.table.metadata.partitions")
    ]
    properties.write_text("\n".join(lines) + "\n")
    (table / ".hoodie" / ".hoodie.properties.crc").unlink(missing_ok=True)
    shutil.rmtree(table / ".hoodie" / "metadata", ignore_errors=True)
    return table


@dataclass(frozen=True)
class Before:
    """A table as it was right before real Hudi planned the clean at `instant`, and that plan."""

    table: Path
    instant: str
    plan: CleanPlan


def cleans(table: Path) -> list[Instant]:
    """The cleans on a table's timeline, in any state."""
    return list(context_of(table).active.load().of_actions(Action.CLEAN))


def before_clean(case: GoldenCase, instant: str) -> Before:
    """Rolls back the clean and everything after it: later instants go, the files that it and later cleans deleted come
    back, empty.

    Only names count when a clean is planned. The metadata table goes, since it cannot be rolled back.
    """
    table = without_metadata_table(case.table)
    context = context_of(table)
    active, timeline = context.active, context.active.load()
    _put_back_archived(context)
    plans = [
        _plan(active, context.storage, item)
        for item in timeline.of_actions(Action.CLEAN)
        if item.requested_time >= instant
    ]
    for path in (table / active.folder).iterdir():
        time = path.name.split(".")[0].split("_")[0]
        if path.is_file() and time.isdigit() and time >= instant:
            path.unlink()
    for plan in plans:
        for partition, names in plan.files.items():
            folder = table / partition
            folder.mkdir(exist_ok=True, parents=True)
            (folder / ".hoodie_partition_metadata").touch()
            for name in names:
                (folder / name).touch()
    return Before(table, instant, plans[0])


def _put_back_archived(context: TableContext) -> None:
    """Commits that were archived since then were on the timeline when the clean was planned."""
    history, active = context.history(), context.active
    encode = encode_commit if active.layout == 1 else encode_commit_avro
    for instant in history.instants():
        metadata = history.commit(instant.requested_time) if instant.action in COMMIT_ACTIONS else None
        if metadata is not None:
            context.storage.write(active.path_of(instant), encode(metadata))


def _plan(active: ActiveTimeline, storage: Storage, item: Instant) -> CleanPlan:
    path = active.path(item.requested_time, Action.CLEAN, State.REQUESTED)
    return decode_clean_plan(storage.read(path), path=path)


def slices_of(table: Path) -> Iterator[str]:
    """The names of all data files of a table."""
    return (path.name for path in table.rglob("*") if path.is_file() and parse_data_file(path.name) is not None)
