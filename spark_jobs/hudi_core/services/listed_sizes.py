"""Whether a size in the metadata table fits the file: `validate` and `doctor` judge it alike."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_core.model.names import LogFileName, parse_data_file
from hudi_core.storage.base import FileInfo


def is_wrong_size(listed: int, info: FileInfo, written: Mapping[str, int] | None) -> bool:
    """Whether a listed size that is not the file's hides anything that was committed, or promises what is not there.
    Sizes are bytes.

    A log file of version 6 (`written` is not None, by path as archive.listing.written_log_bytes gives it) may be longer
    than listed: with what a write that is pending or was rolled back appended. Hudi lists a log file that it rolled
    back by its markers with 1 byte, a stub (MarkerBasedRollbackStrategy). Only what completed commits and rollbacks of
    the timeline wrote has to be in the listed size.
    """
    if written is None or listed > info.size or not isinstance(parse_data_file(info.name), LogFileName):
        return True
    return listed < min(info.size, written.get(info.path, 0))
