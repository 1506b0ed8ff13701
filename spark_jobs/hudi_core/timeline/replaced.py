"""Which file groups completed replacecommits have replaced: overwritten, deleted with their partition, or clustered."""

from __future__ import annotations

from collections.abc import Callable

from hudi_core.errors import StorageNotFoundError
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline


def replaced_file_groups(timeline: Timeline, read: Callable[[Instant], CommitMetadata]) -> dict[FileGroupId, Instant]:
    """Each replaced file group and the first replacecommit that names it, by requested time (resetFileGroupsReplaced).

    Hudi 1.x keeps the last one, where two writers replaced a group: reads as of a time between the two would see the
    rows twice. A replacecommit that was archived between the listing and the read is passed over, as in Hudi: its files
    were deleted before.
    """
    replaced: dict[FileGroupId, Instant] = {}
    for instant in timeline.completed().of_actions(Action.REPLACE_COMMIT):
        try:
            metadata = read(instant)
        except StorageNotFoundError:
            continue
        for group in metadata.replaced_file_groups():
            replaced.setdefault(group, instant)
    return replaced
