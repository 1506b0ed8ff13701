"""The archive of a table to write to, by the layout of its timeline."""

from __future__ import annotations

from hudi_core.config.archive_config import ArchiveConfig
from hudi_core.history.archiving import ArchiveWriter
from hudi_core.history.log_archive_writer import LogArchiveWriter
from hudi_core.history.lsm_writer import LsmWriter
from hudi_core.history.snapshots import Guard
from hudi_core.services.context import TableContext


def archive_writer(context: TableContext, config: ArchiveConfig, guard: Guard) -> ArchiveWriter:
    """The writer of the table's archive; nothing is read or written before its first call.

    `guard` raises when the table lock is no longer ours.
    """
    storage, folder = context.storage, context.config.history_folder
    if context.config.features.completion_time_in_name:
        return LsmWriter(
            storage,
            folder,
            guard,
            batch=config.history_batch,
            file_bytes=config.history_file_bytes,
            retained=config.manifests_retained,
        )
    return LogArchiveWriter(storage, folder, config.batch)
