"""Early conflict detection: before a file group is rewritten, the markers of other live writers are checked.

A conflict that is found here costs no work yet; one that is not found here is found at the commit (conflict). The rules
are those of Hudi's direct markers (MarkerUtils.getCandidateInstants, DirectMarkerBasedDetectionStrategy).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudi_core.errors import ConflictError
from hudi_core.filegroup.write.markers import TEMP_FOLDER, Marker, list_markers
from hudi_core.model.names import FileGroupId, parse_data_file
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline

_NO_WRITERS = (Action.COMPACTION, Action.REPLACE_COMMIT, Action.CLUSTERING)


def marked_groups(markers: Mapping[str, Iterable[Marker]]) -> dict[FileGroupId, str]:
    """The file groups that have markers, each with the earliest instant that has one.

    Names of no data file are ignored.
    """
    found: dict[FileGroupId, str] = {}
    for instant, announced in sorted(markers.items()):
        for marker in announced:
            name = parse_data_file(marker.file_name)
            if name is not None:
                found.setdefault(FileGroupId(marker.partition, name.file_id), instant)
    return found


def rivals(instants: Iterable[str], instant: str, timeline: Timeline, live: Iterable[str]) -> list[str]:
    """The instants whose markers count against `instant`: requested before it, alive, no service that yields."""
    services = timeline.pending().of_actions(*_NO_WRITERS).requested_times
    return sorted(other for other in set(instants) & set(live) if other < instant and other not in services)


def check_markers(
    storage: Storage, timeline: Timeline, instant: str, groups: Iterable[FileGroupId], live: frozenset[str]
) -> None:
    """Raises ConflictError when another live writer has announced a file in one of `groups`.

    `live` are the instants with a fresh heartbeat (heartbeats.live_heartbeats): the markers of dead writers count for
    nothing.
    """
    folders = [folder.rpartition("/")[2] for folder in storage.list_folders(TEMP_FOLDER)]
    marked = marked_groups({other: list_markers(storage, other) for other in rivals(folders, instant, timeline, live)})
    for group in sorted(set(groups) & marked.keys()):
        raise ConflictError(
            f"instant {marked[group]} is writing to file group {group.file_id} of partition {group.partition!r}, which "
            f"{instant} is to change",
            path=f"{TEMP_FOLDER}/{marked[group]}",
            remedy="run it again when that writer is done",
        )
