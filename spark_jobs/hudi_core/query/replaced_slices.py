"""The slices of replaced file groups as a replacecommit found them."""

from __future__ import annotations

from hudi_core.model.ids import FileGroupId
from hudi_core.query.commit_range import CommitRange
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.instant import Instant
from hudi_core.view.file_group import FileSlice
from hudi_core.view.fs_view import FileSystemView


def slice_before_replacement(view: FileSystemView, group: FileGroupId, instant: Instant) -> FileSlice | None:
    """What a replacecommit replaced of a file group; None when its files are missing."""
    found = view.file_group(group)
    slices = [] if found is None else [item for item in found.slices if item.base_instant < instant.requested_time]
    if not slices:
        return None
    if slices[0].base_file is None and len(slices) > 1:
        # A compaction of the group was planned and never ran.
        return slices[1].merged_with(slices[0])
    return slices[0]


def replaced_groups(commits: CommitRange) -> list[tuple[FileGroupId, Instant]]:
    """The file groups whose rows overwrites and dropped partitions of the range replaced; clusterings do not count."""
    return [
        (group, instant)
        for instant, commit in commits.metadata.items()
        if commit.operation_type != Operation.CLUSTER
        for group in commit.replaced_file_groups()
    ]
