"""File groups and file slices: which files hold the rows of one group at one point of the timeline."""

from __future__ import annotations

from dataclasses import replace

from hudi_core.errors import FormatError
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId, parse_base_file, parse_log_file
from hudi_core.model.partition import check_file_name, check_partition, join

_SOURCE = "file slice of a unit"


@dataclass(frozen=True, slots=True, order=True)
class DataFile:
    """A base or log file: partition path, plain name, size in bytes."""

    partition: str
    name: str
    size: int

    @property
    def path(self) -> str:
        return join(self.partition, self.name)


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A base file, if any, and log files in scan order. `cdc_files` are change-data logs without rows."""

    file_group: FileGroupId
    base_instant: str
    base_file: DataFile | None = None
    log_files: tuple[DataFile, ...] = ()
    cdc_files: tuple[DataFile, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no file holds rows of the slice: a compaction was requested and nothing was written since."""
        return self.base_file is None and not self.log_files

    @property
    def data_files(self) -> tuple[DataFile, ...]:
        return self.log_files if self.base_file is None else (self.base_file, *self.log_files)

    @property
    def files(self) -> tuple[DataFile, ...]:
        return self.data_files + self.cdc_files

    @property
    def size(self) -> int:
        return sum(file.size for file in self.data_files)

    def merged_with(self, newer: FileSlice) -> FileSlice:
        """Returns the slice with the logs of the next, which has no base file (mergeCompactionPendingFileSlices)."""
        logs = _in_scan_order(self.log_files + newer.log_files)
        return replace(self, log_files=logs, cdc_files=_in_scan_order(self.cdc_files + newer.cdc_files))


def slice_of_base(base: DataFile) -> FileSlice:
    name = parse_base_file(base.name)
    return FileSlice(FileGroupId(base.partition, name.file_id), name.instant, base)


def _in_scan_order(logs: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
    return tuple(sorted(logs, key=lambda log: parse_log_file(log.name).scan_order))


@dataclass(frozen=True, slots=True)
class FileGroup:
    """All slices of one file group, newest first; `uncommitted` are files of other instants, by instant."""

    id: FileGroupId
    slices: tuple[FileSlice, ...]
    uncommitted: tuple[FileSlice, ...] = ()

    def latest_slice(self) -> FileSlice | None:
        return self.slices[0] if self.slices else None

    def latest_slice_up_to(self, instant: str) -> FileSlice | None:
        return next((file_slice for file_slice in self.slices if file_slice.base_instant <= instant), None)

    def latest_slice_before(self, instant: str) -> FileSlice | None:
        return next((file_slice for file_slice in self.slices if file_slice.base_instant < instant), None)

    def is_cut_off(self, file_slice: FileSlice) -> bool:
        """Whether logs lie above an older slice without a base file between, as in a compaction of layout 1."""
        if file_slice.base_file is not None or not file_slice.log_files:
            return False
        return any(older.data_files for older in self.slices if older.base_instant < file_slice.base_instant)


def check_slice(file_slice: FileSlice) -> FileSlice:
    """Returns a slice of a unit or split. Raises FormatError for names that leave the table or partition."""
    group = file_slice.file_group
    check_partition(group.partition, source=_SOURCE)
    check_file_name(group.file_id, source=_SOURCE)
    for file in file_slice.files:
        check_file_name(file.name, source=_SOURCE)
        if file.partition != group.partition:
            raise FormatError(f"{file.path!r} is not in the partition {group.partition!r}", path=_SOURCE)
    return file_slice
