"""File groups and file slices: which files hold the rows of one group at one point of the timeline."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_core.model.ids import FileGroupId
from hudi_core.model.names import parse_log_file
from hudi_core.model.partition import join


@dataclass(frozen=True, slots=True, order=True)
class DataFile:
    """A base or log file: partition path, plain name, size in bytes."""

    partition: str
    name: str
    size: int

    @property
    def path(self) -> str:
        """Relative to the table's base path."""
        return join(self.partition, self.name)


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A base file, if there is one, and the log files on top of it in scan order (HoodieLogFile's comparator).

    `cdc_files` are change-data logs: they belong to the slice when it is cleaned, and hold no rows of it.
    """

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
    def files(self) -> tuple[DataFile, ...]:
        """All files: base, logs, change-data logs."""
        return (() if self.base_file is None else (self.base_file,)) + self.log_files + self.cdc_files

    @property
    def size(self) -> int:
        """Bytes of the base file and the log files."""
        return (0 if self.base_file is None else self.base_file.size) + sum(log.size for log in self.log_files)

    def merged_with(self, newer: FileSlice) -> FileSlice:
        """This slice with the logs of the next one, which has no base file yet (mergeCompactionPendingFileSlices).

        In layout 2 the logs' instants of the two may be interleaved, so the logs are put in scan order again.
        """
        logs, cdc_files = (
            _in_scan_order(self.log_files + newer.log_files),
            _in_scan_order(self.cdc_files + newer.cdc_files),
        )
        return FileSlice(self.file_group, self.base_instant, self.base_file, logs, cdc_files)


def _in_scan_order(logs: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
    return tuple(sorted(logs, key=lambda log: parse_log_file(log.name).scan_order))


@dataclass(frozen=True, slots=True)
class FileGroup:
    """All slices of one file group, newest first.

    `slices` are visible to readers. `uncommitted` are files of instants that are not completed, by the instant in their
    names.
    """

    id: FileGroupId
    slices: tuple[FileSlice, ...]
    uncommitted: tuple[FileSlice, ...] = ()

    def latest_slice(self) -> FileSlice | None:
        """The newest visible slice."""
        return self.slices[0] if self.slices else None

    def latest_slice_up_to(self, instant: str) -> FileSlice | None:
        """The newest visible slice whose base instant is at or before `instant`."""
        return next((item for item in self.slices if item.base_instant <= instant), None)

    def latest_slice_before(self, instant: str) -> FileSlice | None:
        """The newest visible slice whose base instant is before `instant`."""
        return next((item for item in self.slices if item.base_instant < instant), None)
