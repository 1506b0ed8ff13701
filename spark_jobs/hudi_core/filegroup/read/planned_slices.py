"""Checks that the file slices that a plan names are those that the table had when the plan was made.

Hudi plans whole slices. BaseHoodieCompactionPlanGenerator takes the latest slice of each file group, in layout 2
without log files that had not completed before the plan's instant. Every strategy takes an operation as it is, or
leaves it out (CompactionStrategy.orderAndFilter). So a plan without the base file, or without a log file, of the slice
was not made for this table: the new base file would hide their rows, or deleted rows would come back.

In layout 1, a lawful plan may lack a log file of the slice when the file's blocks change nothing. Such a file was
appended by a write that was pending at the plan and is not completed, or holds the command of a later rollback of such
a write, or is no log file at all, or was left by a retried task, so that the commit of its blocks does not name it. The
metadata table does not list the last one. In version 6, it does not list the files of failed deltacommits either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from hudi_core.codec.log.blocks import CorruptBlock, LogBlock
from hudi_core.errors import CorruptFileError, FormatError, StorageNotFoundError
from hudi_core.filegroup.read.log_scan import AFTER_ALL, IsCommitted, log_blocks, scan_blocks
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId, parse_base_file, parse_log_file
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile, FileGroup, FileSlice
from hudi_core.view.slicing import CompletionOf, build_file_groups, slicing_for

_READERS: Final = 16

_Blocks = Mapping[str, Sequence[LogBlock | CorruptBlock]]
"""The blocks of a slice's log files, by name, in scan order."""


@dataclass(frozen=True, slots=True)
class PlannedSlice:
    """A file slice as a plan names it, in a folder of the storage. `log_files` has no change-data logs."""

    file_group: FileGroupId
    base_file: str | None
    log_files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """The table that a plan is compared with. `completion_of` is of its active and archived timeline. `counts` says
    whether blocks of an instant are read; `commit_of` returns the commit at a requested time, or None. Both are called
    only for slices that hold more log files than the plan names.
    """

    storage: Storage
    timeline: Timeline
    layout: int
    completion_of: CompletionOf
    counts: IsCommitted
    commit_of: Callable[[str], CommitMetadata | None]

    def check(
        self,
        planned: Iterable[PlannedSlice],
        listed: Mapping[str, Collection[FileInfo]],
        *,
        instant: str,
        path: str,
        remedy: str,
    ) -> None:
        """Compares the slices of the plan at `instant`, in the file `path`, with those of the table at that instant.
        `listed` are the files of each folder, and nothing else is listed. Only the headers of log blocks are read, in
        slices that hold more log files than the plan names. Raises FormatError with `remedy`, naming file group and
        differing files.
        """
        by_folder: dict[str, list[PlannedSlice]] = {}
        for item in planned:
            by_folder.setdefault(item.file_group.partition, []).append(item)
        larger: list[tuple[PlannedSlice, FileSlice]] = []
        for folder, items in sorted(by_folder.items()):
            unknown: set[str] = set()
            groups = self._groups(folder, items, listed.get(folder, ()), instant, unknown)
            for item in items:
                group = groups.get(item.file_group)
                slices = () if group is None else group.slices
                stored = next((older for older in slices if older.base_instant < instant and not older.is_empty), None)
                differs = self._difference(item, stored, unknown)
                if differs:
                    raise _refused(item, differs, instant, path, remedy)
                if stored is not None and any(file.name not in item.log_files for file in stored.log_files):
                    larger.append((item, stored))
        with ThreadPoolExecutor(max_workers=_READERS, thread_name_prefix="plan-check") as pool:
            for start in range(0, len(larger), _READERS):
                some = larger[start : start + _READERS]
                for (item, stored), blocks in zip(
                    some, pool.map(self._blocks_of, *zip(*some, strict=True)), strict=True
                ):
                    names = self._lacking(item, stored, blocks)
                    if names:
                        raise _refused(item, f"it lacks {', '.join(names)}", instant, path, remedy)

    def _groups(
        self, folder: str, items: Collection[PlannedSlice], files: Iterable[FileInfo], instant: str, unknown: set[str]
    ) -> dict[FileGroupId, FileGroup]:
        """Returns the planned file groups of a folder. Each has a slice that starts at `instant`, so that what
        completed later is not in the slice before it. `unknown` gets the instants without a known completion, whose log
        files are placed in the newest slice.
        """

        def completion_of(requested: str) -> str | None:
            completion = self.completion_of(requested)
            if completion is None:
                unknown.add(requested)
            return completion

        ids = {item.file_group.file_id for item in items}
        # The text is enough: a file id has no underscore (FSUtils.getFileId), and the names are parsed further down.
        named = (info for info in files if info.name.removeprefix(".").partition("_")[0] in ids)
        slicing = slicing_for(self.layout, self.timeline, completion_of)
        starts = [(item.file_group, instant) for item in items]
        return {group.id: group for group in build_file_groups(folder, named, slicing, compactions=starts)}

    def _difference(self, planned: PlannedSlice, stored: FileSlice | None, unknown: Collection[str]) -> str:
        if stored is None:
            return "no file slice was committed then"
        base = None if stored.base_file is None else stored.base_file.name
        if planned.base_file != base and not self._is_other_attempt(planned.base_file, base):
            return f"it names {planned.base_file or 'no base file'}, the slice has {base or 'no base file'}"
        there = {file.name for file in stored.log_files}
        others = (name for name in planned.log_files if name not in there)
        foreign = [name for name in others if parse_log_file(name).instant not in unknown]
        return f"it names {', '.join(foreign)}, not in the slice" if foreign else ""

    def _is_other_attempt(self, planned: str | None, stored: str | None) -> bool:
        """Whether both files are of one instant, whose commit names the planned one: a retried task left the other."""
        if planned is None or stored is None:
            return False
        instant = parse_base_file(planned).instant
        return instant == parse_base_file(stored).instant and _names(self.commit_of(instant), planned)

    def _blocks_of(self, planned: PlannedSlice, stored: FileSlice) -> _Blocks:
        return {file.name: self._read(file, named=file.name in planned.log_files) for file in stored.log_files}

    def _read(self, file: DataFile, *, named: bool) -> list[LogBlock | CorruptBlock]:
        try:
            return list(log_blocks(self.storage, [file]))
        except (CorruptFileError, StorageNotFoundError):
            if named:
                raise
            return []  # not a log file, or removed by the rollback of its write since the listing: it holds no rows

    def _lacking(self, planned: PlannedSlice, stored: FileSlice, blocks: _Blocks) -> list[str]:
        """Returns the log files of the slice that the plan lacks and without which the slice holds other rows."""
        of_slice = self._scanned(block for read in blocks.values() for block in read)
        of_plan = self._scanned(block for name in blocks if name in planned.log_files for block in blocks[name])
        names = {file.path: file.name for file in stored.log_files if file.name not in planned.log_files}
        lacking = {
            names[block.path]
            for block in of_slice
            if block.path in names and not self._is_leftover(block, names[block.path])
        }
        rolled_back = {block.instant_time for block in of_plan} - {block.instant_time for block in of_slice}
        lacking |= {
            name
            for name in names.values()
            for block in blocks[name]
            if isinstance(block, LogBlock) and block.target_instant_time in rolled_back
        }
        return sorted(lacking)

    def _scanned(self, blocks: Iterable[LogBlock | CorruptBlock]) -> tuple[LogBlock, ...]:
        return scan_blocks(blocks, self.counts, latest_instant=AFTER_ALL, stop_at_newer=False).blocks

    def _is_leftover(self, block: LogBlock, name: str) -> bool:
        commit = self.commit_of(str(block.instant_time))
        return commit is not None and not _names(commit, name)


def _names(commit: CommitMetadata | None, name: str) -> bool:
    return commit is not None and any(stat.name == name for stat in commit.write_stats())


def _refused(planned: PlannedSlice, differs: str, instant: str, path: str, remedy: str) -> FormatError:
    group = planned.file_group
    return FormatError(
        f"the plan does not name the file slice that file group {group.file_id} in {group.partition!r} had at "
        f"{instant}: {differs}",
        path=path,
        remedy=remedy,
    )
