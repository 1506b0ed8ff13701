"""Estimates the bytes of a row in a base file, by base files of the table: the source may be compressed in another way,
or not at all.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from hudi_core.config.rows_config import RECORD_SIZE_THRESHOLD, SMALL_FILE_BYTES
from hudi_core.errors import FormatError, StorageNotFoundError
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.timeline import Timeline

_COMMITS: Final = 5
"""How many commits are read, newest first (HoodieWriteConfig.RECORD_SIZE_ESTIMATOR_MAX_COMMITS)."""
_LEAST_FILE: Final = 8 << 20
"""Bytes from which a file of a commit counts. In a smaller one the filter of its keys is too large a part."""
_FILES: Final = 16
"""How many base files have their footers read where the commits do not show the size of a row."""
_LEAST_COLUMNS: Final = 1 << 20
"""Bytes of columns that are enough. In fewer the headers and dictionaries are too large a part."""


def bytes_per_row(context: TableContext, timeline: Timeline) -> float | None:
    """Returns the bytes of a row in a base file, by the newest commit that wrote enough of them, or else by the footers
    of some latest base files. None where these are too small, too. Works like AverageRecordSizeUtils of Hudi 0.15 and
    AverageRecordSizeEstimator of 1.x, but overwrites count, and small files do not. Raises StorageError.
    """
    newest = islice(reversed(timeline.commits().instants), _COMMITS)
    sizes = (_of_commit(context, item) for item in newest)
    return next(filter(None, sizes), None) or _of_files(context, timeline)


def _of_commit(context: TableContext, item: Instant) -> float | None:
    try:
        metadata = context.active.read_commit(item)
    except (FormatError, StorageNotFoundError):
        return None
    if metadata.operation_type == Operation.CLUSTER:
        return None  # sorted rows are smaller
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
