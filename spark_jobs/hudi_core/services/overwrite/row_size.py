"""How many bytes a row takes in the base files of a table, by which an overwrite spreads its rows over new files.

The source itself does not show that: it may be compressed in another way, or not at all.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from hudi_core.config.write_config import RECORD_SIZE_THRESHOLD, SMALL_FILE_BYTES
from hudi_core.errors import FormatError, StorageNotFoundError
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.timeline import Timeline

_COMMITS: Final = 5
"""Commits that are read, the newest first (HoodieWriteConfig.RECORD_SIZE_ESTIMATOR_MAX_COMMITS)."""
_LEAST_FILE: Final = 8 << 20
"""Bytes from which a file of a commit counts: of a smaller one the filter of its keys, 430 KB by default, is too large
a part.
"""
_FILES: Final = 16
"""Base files whose footers are read where the commits do not show it."""
_LEAST_COLUMNS: Final = 1 << 20
"""Bytes of their columns that are enough: of fewer the headers and dictionaries are too large a part."""


def bytes_per_row(context: TableContext, timeline: Timeline) -> float | None:
    """Bytes of a row in a base file, by the newest commit that wrote enough of them, else by the footers of some latest
    base files; None where these are too small, too.

    As AverageRecordSizeUtils of Hudi 0.15 and AverageRecordSizeEstimator of 1.x, but that of replacecommits the
    overwrites count, and that no small file does. What cannot be read is passed over, as there. Raises StorageError.
    """
    newest = islice(reversed(timeline.commits().instants), _COMMITS)
    found = (_of_commit(context, item) for item in newest)
    return next(filter(None, found), None) or _of_files(context, timeline)


def _of_commit(context: TableContext, item: Instant) -> float | None:
    try:
        metadata = context.active.read_commit(item)
    except (FormatError, StorageNotFoundError):
        return None
    if metadata.operation_type == Operation.CLUSTER:
        # Sorted rows are smaller.
        return None
    stats = [stat for stat in metadata.write_stats() if isinstance(parse_data_file(stat.name), BaseFileName)]
    written = sum(stat.total_write_bytes for stat in stats)
    if written <= RECORD_SIZE_THRESHOLD.read(context.options) * SMALL_FILE_BYTES.read(context.options):
        return None
    whole = [stat for stat in stats if stat.total_write_bytes >= _LEAST_FILE]
    return sum(stat.total_write_bytes for stat in whole) / max(1, sum(stat.num_writes for stat in whole))


def _of_files(context: TableContext, timeline: Timeline) -> float | None:
    view = context.view(timeline)
    files = (base for partition in view.partitions() for base in view.latest_base_files(partition))
    size = rows = 0
    for base in islice(files, _FILES):
        try:
            with open_base_file(context.storage, base.path) as file:
                footer = file.metadata
        except (FormatError, StorageNotFoundError):
            continue
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        size += sum(group.column(at).total_compressed_size for group in groups for at in range(group.num_columns))
        rows += footer.num_rows
    return size / rows if size >= _LEAST_COLUMNS else None
