"""The instants under which partitions of the metadata table begin
(HoodieBackedTableMetadataWriter.generateUniqueCommitInstantTime; facts 8.7).
"""

from __future__ import annotations

from itertools import count
from typing import Final

from hudi_core.config.versions import TableVersion
from hudi_core.metadata_table.validity import SOLO_COMMIT
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline

FIRST_SUFFIX: Final = 10
"""HoodieTableMetadataUtil.PARTITION_INITIALIZATION_TIME_SUFFIX."""
_INSTANT_LENGTH: Final = 17


def initial_instant(data: Timeline, metadata_timeline: Timeline, features: TableVersion) -> str:
    """A free instant for a partition that begins now. `data` and `own` are the timelines of the data table and of the
    metadata table.

    In version 6 the latest completed instant of the data table with the suffix 010, 011 …, later `00000000000000000`,
    `…001` and on.
    """
    last = data.last_completed()
    start = SOLO_COMMIT if last is None or not features.metadata_suffixes else last.requested_time
    numbers = count(FIRST_SUFFIX if features.metadata_suffixes else 0)
    taken = metadata_timeline.requested_times
    return next(time for time in (f"{start}{number:03d}" for number in numbers) if time not in taken)


def unfinished(metadata_timeline: Timeline, features: TableVersion) -> list[Instant]:
    """The pending deltacommits under which partitions began and that nobody will complete: whoever begins one holds the
    table lock.
    """
    pending = metadata_timeline.pending().of_actions(Action.DELTA_COMMIT)
    return [item for item in pending if _is_initial(item.requested_time, features)]


def _is_initial(time: str, features: TableVersion) -> bool:
    if time.startswith(SOLO_COMMIT):
        return True
    suffix = time[_INSTANT_LENGTH:]
    return features.metadata_suffixes and len(suffix) == 3 and suffix.isdecimal() and int(suffix) >= FIRST_SUFFIX
