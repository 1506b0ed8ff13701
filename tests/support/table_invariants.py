"""What must hold of a table around a compaction, whatever died in between: checked with the engine's own readers over
bare storage.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from hudi_core.config.table_config import TableConfig
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.read.file_group import ROOT, blocks_of
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import StorageListing
from hudi_health.table import validate_metadata
from tests.support.rows import assert_same_rows

Pending = set[tuple[str, str]]


def read_rows(table: Path, metadata: str = "auto") -> pa.Table:
    """The snapshot of a table."""
    result = HudiTable.open(str(table)).read(metadata=metadata)  # type: ignore[arg-type]
    return pa.Table.from_batches(list(result.batches), result.schema)


def assert_readable(table: Path, rows: pa.Table) -> None:
    """A reader sees these rows now, with and without the metadata table."""
    assert_same_rows(read_rows(table, "off"), rows)
    if has_metadata_table(table):
        assert_same_rows(read_rows(table, "on"), rows)


def has_metadata_table(table: Path) -> bool:
    return "files" in TableConfig.load(LocalStorage(table)).metadata_partitions


def assert_metadata_true(table: Path) -> None:
    """Holds when a service is over: `metadata validate` finds nothing, and checked every file. A table without a
    metadata table passes.
    """
    if not has_metadata_table(table):
        return
    report = validate_metadata(HudiTable.open(str(table), options={"airflow_hudi.read.zone": "UTC"}))
    assert report.is_clean, (report.counts, report.differences[:5])
    assert not any(item.partition_type == "files" for item in report.not_checked), report.not_checked


def pending_instants(table: Path) -> Pending:
    """(timeline folder, instant) of everything pending on the data and the metadata timeline."""
    storage = LocalStorage(table)
    config = TableConfig.load(storage)
    found: Pending = set()
    for base in ("", ROOT) if has_metadata_table(table) else ("",):
        active = ActiveTimeline(storage, config, base)
        found |= {(active.folder, instant.requested_time) for instant in active.load().pending()}
    return found


def assert_compacted(table: Path, instant: str, rows: pa.Table, pending: Pending) -> None:
    """The compaction is done as if no process had ever died: same rows, one base file per file group, exact metadata,
    nothing left over.

    `pending` are the instants that were pending before and may still be.
    """
    storage = LocalStorage(table)
    config = TableConfig.load(storage)
    active = ActiveTimeline(storage, config)
    timeline = active.load()
    done = timeline.find(instant, Action.COMPACTION)
    assert done is not None
    assert done.is_completed
    assert pending_instants(table) <= pending - {(active.folder, instant)}
    assert_readable(table, rows)
    _assert_files(storage, active, done)
    assert leftovers(table, instant) == []
    if has_metadata_table(table):
        _assert_metadata(storage, config, timeline, instant)
        assert_metadata_true(table)


def _assert_files(storage: LocalStorage, active: ActiveTimeline, done: Instant) -> None:
    plan = active.read_plan(done.requested_time)
    stats = {stat.path: stat for stat in active.read_commit(done).write_stats()}
    listing = StorageListing(storage)
    found = {}
    for partition in listing.partitions():
        for info in listing.files(partition):
            name = parse_data_file(info.name)
            if isinstance(name, BaseFileName) and name.instant == done.requested_time:
                found[info.path] = info.size
    assert found == {path: stat.file_size_in_bytes for path, stat in stats.items()}
    groups = sorted((stat.partition_path, stat.file_id) for stat in stats.values())
    assert groups == sorted((operation.partition, operation.file_id) for operation in plan.operations)


def _assert_metadata(storage: LocalStorage, config: TableConfig, timeline: Timeline, instant: str) -> None:
    by_storage = StorageListing(storage)
    by_metadata = MetadataTable(storage, config, timeline)
    assert by_metadata.partitions() == by_storage.partitions()
    for partition in by_storage.partitions():
        stored = {
            info.path: info.size for info in by_storage.files(partition) if parse_data_file(info.name) is not None
        }
        assert {info.path: info.size for info in by_metadata.files(partition)} == stored
    metadata_timeline = MetadataTimeline(storage, config)
    own = metadata_timeline.active.load()
    (place,) = metadata_timeline.latest_slices(own, FILES_PARTITION)
    assert len(blocks_of(storage, place.logs, instant).live) == 1
    assert own.contains(instant)


def leftovers(table: Path, instant: str) -> list[str]:
    """Files that a finished run must not leave: markers, claims, heartbeats, locks, temporary files.

    The guard of a lock's removal may stay when its process died in that very moment: it is named after a token that
    never comes back.
    """
    found = []
    for path in table.rglob("*"):
        name = path.relative_to(table).as_posix()
        ours = name.startswith(
            (
                f".hoodie/.temp/{instant}",
                ".hoodie/.airflow_hudi/claims",
                ".hoodie/.airflow_hudi/metadata",
                f".hoodie/.heartbeat/{instant}",
                ".hoodie/lock",
            )
        )
        if path.is_file() and (ours or name.endswith(".tmp")):
            found.append(name)
    return sorted(found)
