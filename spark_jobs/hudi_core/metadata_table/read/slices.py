"""The file groups of one metadata-table partition, each with what a reader merges.

The slices are those of any table of that layout (view.builder). A pending compaction has started a slice without a base
file; it and the one before are read as one (HoodieTableMetadataUtil.getPartitionLatestMergedFileSlices).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hudi_core.storage.base import FileInfo
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.builder import build_file_groups
from hudi_core.view.file_group import DataFile, FileGroup
from hudi_core.view.slicing import slicing_for


@dataclass(frozen=True, slots=True)
class MergedSlice:
    """The newest committed base file of a file group, if there is one, and the log files on top of it in scan order."""

    file_id: str
    base_file: FileInfo | None
    logs: tuple[FileInfo, ...]


def merged_slices(folder: str, files: Iterable[FileInfo], timeline: Timeline, layout: int) -> list[MergedSlice]:
    """The slices of a partition's file groups, sorted by file id: a key's hash gives the position in this list.

    `files` is the listing of the partition's `folder`; `timeline` is the metadata timeline, `layout` its layout. An
    initialised file group has a slice even while it holds no record. Whether a log block counts is not judged here.
    """
    # An instant that the active timeline no longer holds has no completion here: its logs belong to the newest slice,
    # and the scan ignores their blocks, since archived instants are not valid
    # (HoodieTableMetadataUtil.getValidInstantTimestamps).
    completions = {instant.requested_time: instant.completed_at for instant in timeline.commits()}
    groups = build_file_groups(folder, files, slicing_for(layout, timeline, completions.get))
    return [_merged(group) for group in groups]


def _merged(group: FileGroup) -> MergedSlice:
    logs: list[DataFile] = []
    for item in group.slices:
        logs = [*item.log_files, *logs]
        if item.base_file is not None:
            return MergedSlice(group.id.file_id, _info(item.base_file), tuple(map(_info, logs)))
    return MergedSlice(group.id.file_id, None, tuple(map(_info, logs)))


def _info(file: DataFile) -> FileInfo:
    return FileInfo(file.path, file.size, 0.0)
