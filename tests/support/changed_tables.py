"""Compares a table that we changed with the one that real Hudi made of the same golden table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_core.config.table_config import TableConfig, update_properties
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import LogFileName, parse_base_file, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.one_look import OneLookStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from tests.support.golden_cleans import without_metadata_table
from tests.support.metadata_records import Table
from tests.support.metadata_records import comparable as comparable_records
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import has_metadata_table, read_rows

QUICK_CLOCK = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
"""One process on one clock: nothing to wait for."""


def open_context(table: Path, options: dict[str, str] | None = None, storage: Any = None) -> TableContext:
    """The context of a table on disk, under `storage` (a FaultStorage over it) when given."""
    held = OneLookStorage(storage or LocalStorage(table))
    config = TableConfig.load(held)
    return TableContext(str(table), held, config, ActiveTimeline(held, config), {**QUICK_CLOCK, **(options or {})})


def choose_payload(table: Path, name: str) -> None:
    """Makes the table one of this payload class."""
    context = open_context(table)
    properties = {"hoodie.compaction.payload.class": name}
    if context.config.features.merge_modes:
        properties |= {
            "hoodie.record.merge.mode": "CUSTOM",
            "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        }
    update_properties(context.storage, properties)


def an_owner() -> Owner:
    return Owner.current("a tester")


def pending_write(table: Path) -> str:
    """The newest pending instant."""
    return [instant.requested_time for instant in open_context(table).active.load().pending()][-1]


def data_files(table: Path) -> dict[str, int]:
    """All files outside of `.hoodie`, with sizes; the write token of a log file of 105 bytes, a command block alone, is
    excluded.
    """
    found = {}
    for path in table.rglob("*"):
        name = path.relative_to(table).as_posix()
        if path.is_file() and not name.startswith(".hoodie/") and not name.endswith(".crc"):
            found[_without_token(name, path.stat().st_size)] = path.stat().st_size
    return found


def _without_token(path: str, size: int) -> str:
    folder, _, name = path.rpartition("/")
    parsed = parse_data_file(name)
    if size != 105 or not isinstance(parsed, LogFileName):
        return path
    return f"{folder}/{LogFileName(parsed.file_id, parsed.instant, parsed.version, None)}"


@dataclass(frozen=True)
class Shown:
    """An instant without its times, except for those that both tables had before."""

    time: str
    action: str
    state: str


def shown(table: Path, known: Iterable[str], base: str = "") -> list[Shown]:
    """The instants of a timeline; times that are not `known` are numbered in order, suffixes of three digits kept."""
    storage = LocalStorage(table)
    active = ActiveTimeline(storage, TableConfig.load(storage), base)
    kept = set(known)
    fresh: dict[str, str] = {}
    result = []
    for instant in active.load():
        time = instant.requested_time
        if time not in kept and time[:17] not in kept:
            stem = fresh.setdefault(time[:17], f"new{len(fresh)}")
            time = stem + time[17:]
        result.append(Shown(time, instant.action, instant.state.value))
    return result


def file_names(table: Path, known: Iterable[str], base: str = "") -> list[str]:
    """The names of a timeline's files, all times that are not `known` replaced."""
    storage = LocalStorage(table)
    active = ActiveTimeline(storage, TableConfig.load(storage), base)
    kept = set(known)
    names = [name for name in active.names() if not name.endswith(".crc") and name[:1].isdigit()]
    return sorted(re.sub(r"\d{17}", lambda match: match[0] if match[0] in kept else "T", name) for name in names)


def known_times(table: Path) -> set[str]:
    storage = LocalStorage(table)
    active = ActiveTimeline(storage, TableConfig.load(storage))
    return {time for instant in active.load() for time in (instant.requested_time, instant.completed_at)}


def decoded(table: Path, action: str) -> list[dict[str, Any]]:
    """The completed files of an action, decoded, without times and with paths cut to partition and name."""
    storage = LocalStorage(table)
    active = ActiveTimeline(storage, TableConfig.load(storage))
    return [comparable(active.read_of(instant)) for instant in active.load().completed().of_actions(action)]


def planned(table: Path, action: str) -> list[dict[str, Any]]:
    storage = LocalStorage(table)
    active = ActiveTimeline(storage, TableConfig.load(storage))
    return [
        comparable(active.read_any(instant.requested_time, action, State.REQUESTED))
        for instant in active.load().of_actions(action)
    ]


_TIMES = frozenset({"startRollbackTime", "timeTakenInMillis", "startRestoreTime", "savepointedAt"})


def comparable(value: Any, name: str = "") -> Any:
    """A decoded plan or metadata file without what two right writers do not share: times, roots of paths, order, sizes
    of logs with failed blocks, the write tokens of command blocks.
    """
    if name in ("logFilesFromFailedCommit", "logBlocksToBeDeleted"):
        return len(value or {})  # Hudi 0.15 writes a folder for a log file that it does not know, and 1 for a size
    if name == "rollbackLogFiles":
        return {_without_token(_cut(key), size): size for key, size in sorted((value or {}).items())}
    if isinstance(value, dict):
        return {_cut(key): comparable(item, key) for key, item in sorted(value.items()) if key not in _TIMES}
    if isinstance(value, list):
        return sorted((comparable(item) for item in value), key=repr)
    return _cut(value) if isinstance(value, str) else value


def _cut(text: str) -> str:
    return "/".join(text.split("/")[-2:])


def listed(table: Path) -> dict[str, int]:
    """The files that the metadata table lists, with sizes."""
    storage = LocalStorage(table)
    config = TableConfig.load(storage)
    listing = MetadataTable(storage, config, ActiveTimeline(storage, config).load())
    return {
        _without_token(info.path, info.size): info.size for name in listing.partitions() for info in listing.files(name)
    }


def index_records(table: Path) -> dict[str, dict[str, Any]]:
    """Every live record of every partition type but `files`, by type and key."""
    return {kind: items for kind, items in comparable_records(Table(table).live()).items() if kind != "files"}


def assert_rows(ours: Path, expected: pa.Table) -> None:
    assert_same_rows(read_rows(ours, "off"), expected)
    if has_metadata_table(ours):
        assert_same_rows(read_rows(ours, "on"), expected)


def leftovers(table: Path, *instants: str) -> list[str]:
    """What a service must not leave: markers, claims, heartbeats, locks."""
    found = []
    for path in table.rglob("*"):
        name = path.relative_to(table).as_posix()
        ours = name.startswith((".hoodie/.airflow_hudi/claims/", ".hoodie/lock", ".hoodie/.heartbeat/"))
        if path.is_file() and (ours or any(name.startswith(f".hoodie/.temp/{instant}/") for instant in instants)):
            found.append(name)
    return sorted(found)


def new_instants(table: Path, known: Iterable[str], action: str = Action.ROLLBACK) -> list[str]:
    storage = LocalStorage(table)
    active = ActiveTimeline(storage, TableConfig.load(storage))
    return [
        instant.requested_time
        for instant in active.load().of_actions(action)
        if instant.requested_time not in set(known)
    ]


METADATA = ROOT


def begin_like_a_bucket(table: Path) -> tuple[str, str]:
    """Gives the first of several file groups of a partition an id that begins as those of a bucket index do; without
    the metadata table. The partition and that id.
    """
    without_metadata_table(table)
    bases = sorted(table.glob("*/*.parquet"))
    partition, file_id = bases[0].parent.name, parse_base_file(bases[0].name).file_id
    renamed = f"00005777{file_id[8:]}"
    for path in (table / partition).glob(f"*{file_id}*"):
        path.rename(path.with_name(path.name.replace(file_id, renamed)))
    return partition, renamed


def plan_during_the_fourth_commit(base: Path) -> None:
    """Renames the compaction as if it had been planned just after the fourth commit was requested: as a writer under
    optimistic concurrency may find it. In layout 1 the log files of the fourth commit have its name, too.
    """
    timeline = open_context(base).active.load()
    [planned] = timeline.pending_compactions().requested_times
    later = str(int(timeline.commits().instants[3].requested_time) + 1)
    for path in [path for path in base.rglob("*") if path.is_file()]:
        if ".hoodie" in path.parts:
            path.write_bytes(path.read_bytes().replace(planned.encode(), later.encode()))
        path.rename(path.with_name(path.name.replace(planned, later)))


def complete_at(table: Path, requested: str, completion: str) -> None:
    """Gives a completed instant another completion time."""
    folder = table / ".hoodie" / "timeline"
    (completed,) = folder.glob(f"{requested}_*")
    completed.rename(folder / f"{requested}_{completion}.{completed.name.split('.')[1]}")
