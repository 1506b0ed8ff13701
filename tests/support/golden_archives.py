"""Golden tables to archive, and what must hold of them before, during and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from hudi_core.config.services.retention_config import ArchiveConfig
from hudi_core.history.archiving import archive_writer, rounds
from hudi_core.services.archive.job import ArchiveService
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Instant
from hudi_core.transaction.owner import Owner
from tests.support.golden_cleans import context_of

CASES = [(folder, name) for folder in ("6", "8", "9") for name in ("archived_timeline_cow", "archived_timeline_mor")]
TIGHT = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.timeline.compaction.batch.size": "2",
    "hoodie.commits.archival.batch": "2",
}
Key = tuple[str, str]


def archive(
    table: Path, options: Mapping[str, str] = TIGHT, *, owner: Owner | None = None, storage: Storage | None = None
) -> list[Key]:
    """Archives the table; requested time and action of what went."""
    context = context_of(table, options, storage)
    return [
        (result.instant, result.action)
        for result in ArchiveService().run_now(context, owner or Owner.current("test"), None).instants
    ]


def archive_these(table: Path, instants: Iterable[Instant]) -> None:
    """Moves completed instants to the archive, whether or not an archival would."""
    context = context_of(table)
    config, folder = ArchiveConfig.of(TIGHT), context.config.history_folder
    writer = archive_writer(context.storage, context.config.features, folder, config, lambda: None)
    for taken in rounds(context.storage, context.active, context.zone, list(instants)):
        writer.write(taken)
        context.active.forget(item.instant for item in taken)
    writer.finish()


def key(instant: Instant) -> Key:
    return instant.requested_time, instant.action


def active_of(table: Path) -> list[Key]:
    """The completed instants of the active timeline."""
    return [key(item) for item in context_of(table).active.load().completed()]


def history_of(table: Path) -> list[Key]:
    """The instants of the archive."""
    return [key(item) for item in context_of(table).history().instants()]
