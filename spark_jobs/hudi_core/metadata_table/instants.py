"""The instants of the metadata timeline: how they are made, and what they mean (HoodieTableMetadataUtil,
HoodieBackedTableMetadataWriter). Also the commit up to which an index is known to hold every change of the table.

Most instants of the metadata timeline are instants of the data table. In version 6 the metadata table's services append
a suffix to the instant that they follow, and partitions are initialized under suffixes from 010 on. From version 8 on
services draw separate instants, and partitions are initialized under instants that begin with SOLO_COMMIT.

In version 6 an index that is built beside writers is initialized under an early instant, before every timeline. Every
release takes such a file slice for committed (containsOrBeforeTimelineStarts): all writers append to the slice, and no
deltacommit is pending that a writer could take for a failed one. Readers ignore the index until the properties list it.
The index's partition metadata says when it was initialized (write.restore_reach.initialized_at).

The metadata table completes an instant before the data table does. So a log block counts when its instant is also
completed on the data timeline, or is only the metadata table's (getValidInstantTimestamps).

Only the timeline shows the commits that Hudi's writers left out of indexes (docs/decisions/0018). The property
`airflow_hudi.index.whole_until.<index>` says how far back one must look. It has the instant up to which all commits are
in the index, and the time of the index's folder, which a new build changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from itertools import count
from typing import Any, Final

from hudi_core.config.table_config import TableConfig
from hudi_core.config.versions import TableVersion
from hudi_core.errors import CorruptFileError
from hudi_core.model.partition import PARTITION_METADATA
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State
from hudi_core.timeline.instant_time import DIGITS
from hudi_core.timeline.timeline import Timeline

SOLO_COMMIT: Final = "00000000000000"
"""The instant of metadata tables older than the first commit of data (HoodieTableMetadata.SOLO_COMMIT_TIMESTAMP)."""
_FIRST_INITIALIZATION: Final = 10
"""HoodieTableMetadataUtil.PARTITION_INITIALIZATION_TIME_SUFFIX."""
_LENGTH: Final = 3
_EARLY: Final = (f"{SOLO_COMMIT}0", f"{SOLO_COMMIT}00")
"""Metadata tables start at SOLO_COMMIT and 010 in version 6, and at SOLO_COMMIT and 000 from version 8 on."""


class OperationSuffix(str, Enum):
    """The suffix that a metadata table's service appends to an instant (HoodieTableMetadataUtil.OperationSuffix)."""

    COMPACTION = "001"
    CLEAN = "002"
    RESTORE = "003"
    INDEXER = "004"
    LOG_COMPACTION = "005"
    ROLLBACK = "006"

    def of(self, instant: str) -> str:
        return f"{instant}{self.value}"


def data_instant(instant: str) -> str:
    return instant[:DIGITS]


def is_solo(instant: str) -> bool:
    """Returns whether an instant is no time: a partition was initialized under it (SOLO_COMMIT)."""
    return instant.startswith(SOLO_COMMIT)


def is_metadata_suffix(instant: str) -> bool:
    """Returns whether only the metadata table has a deltacommit of this name."""
    return is_initialization(instant) or _suffix(instant) in _SERVICES


def is_initialization(instant: str) -> bool:
    """Returns whether, by its name, a partition was initialized under an instant, or it is a metadata_only_instant."""
    return is_solo(instant) or _initializes(_suffix(instant))


def initialized_by_downgrade(initialization: str, compaction: str) -> bool:
    """Returns whether an index of version 6 began after a compaction of the metadata table whose instant is later. A
    downgrade compacts the metadata table at a new instant without a suffix, and drops the indexes whose form version 6
    does not know. The writer then begins these indexes again, under the data table's latest instant and a suffix. In
    version 6 itself, compactions have a suffix, too.
    """
    return _initializes(_suffix(initialization)) and compaction == data_instant(compaction)


def initial_instant(data: Timeline, metadata_timeline: Timeline, features: TableVersion) -> str:
    """Returns a free instant for a partition that is initialized now (generateUniqueCommitInstantTime)."""
    last = data.last_completed()
    start = SOLO_COMMIT if last is None or not features.metadata_suffixes else last.requested_time
    numbers = count(_FIRST_INITIALIZATION if features.metadata_suffixes else 0)
    taken = metadata_timeline.requested_times
    return next(time for time in (f"{start}{number:03d}" for number in numbers) if time not in taken)


def metadata_only_instant(instant: str, features: TableVersion) -> str:
    """Returns a new `instant` as the name of a metadata-only deltacommit that counts (is_metadata_suffix)."""
    return f"{instant}{_FIRST_INITIALIZATION:03d}" if features.metadata_suffixes else instant


def latest_compaction(metadata_timeline: Timeline) -> Instant | None:
    """Returns the metadata table's newest completed compaction; its other commits are deltacommits."""
    return metadata_timeline.completed().of_actions(Action.COMMIT).last()


def unfinished_initializations(metadata_timeline: Timeline, features: TableVersion) -> list[Instant]:
    """Returns the pending initializations' deltacommits. Their writers are dead: a live one holds the table lock."""
    return [
        item
        for item in metadata_timeline.pending().of_actions(Action.DELTA_COMMIT)
        if is_solo(item.requested_time) or (features.metadata_suffixes and _initializes(_suffix(item.requested_time)))
    ]


def is_of_indexing(instant: str, data: Timeline) -> bool:
    """Returns whether a deltacommit belongs to an indexing action that is pending on the data table's timeline."""
    pending = data.pending().of_actions(Action.INDEXING)
    return instant in pending.requested_times or (bool(len(pending)) and _suffix(instant) == OperationSuffix.INDEXER)


def may_be_of_indexer(instant: str) -> bool:
    """Returns whether Hudi's indexer of version 6 may name a deltacommit so: by its suffix, or as an initialization."""
    suffix = _suffix(instant)
    return suffix == OperationSuffix.INDEXER or _initializes(suffix)


def early_instant(epoch: int) -> str:
    """Returns the base instant of the index that claim `epoch` builds in version 6; the previous claim has another."""
    return _EARLY[epoch % len(_EARLY)]


def is_early(base_instant: str) -> bool:
    """Returns whether an index with this base instant was built beside writers in version 6."""
    return base_instant in _EARLY


def initialization_time(last: str | None) -> str:
    """Returns the initialization time of an index up to the instant `last`, as Hudi's indexer of version 6 names it."""
    return SOLO_COMMIT if last is None else OperationSuffix.INDEXER.of(last)


_SERVICES: Final = frozenset(item.value for item in OperationSuffix)


def _suffix(instant: str) -> str:
    """Returns the suffix after a data instant; empty where there is none."""
    suffix = instant[DIGITS:]
    return suffix if len(suffix) == _LENGTH and suffix.isdecimal() else ""


def _initializes(suffix: str) -> bool:
    return bool(suffix) and int(suffix) >= _FIRST_INITIALIZATION


def valid_instants(
    data: Timeline, metadata: Timeline, rolled_back: Callable[[Instant], list[str]], *, suffixes: bool = True
) -> frozenset[str]:
    """Returns the instants whose log blocks count, by the timelines of the data table and the metadata table. With
    `suffixes`, instants that only the metadata table has end with a suffix (TableVersion.metadata_suffixes); else all
    completed deltacommits that are not pending on the data timeline count. Instants that were rolled back count as
    well: only rollback commands exclude their blocks. Archival waits until the metadata table has compacted an instant.
    """
    valid = {instant.requested_time for instant in data.completed()}
    pending = data.pending().requested_times
    for instant in metadata.completed():
        time = instant.requested_time
        is_metadata_service = instant.action == Action.DELTA_COMMIT and (
            is_metadata_suffix(time) if suffixes else time not in pending or is_solo(time)
        )
        if is_metadata_service or instant.action in (Action.ROLLBACK, Action.RESTORE):
            valid.add(time)
    # Real Hudi reads only rollbacks newer than the earliest valid instant; older ones name instants without blocks.
    earliest = min(valid, default=SOLO_COMMIT)
    for instant in data.completed().of_actions(Action.ROLLBACK, Action.RESTORE):
        if instant.requested_time > earliest:
            valid.update(rolled_back(instant))
    return frozenset(valid)


def rolled_back_by(timeline: ActiveTimeline, instant: Instant) -> list[str]:
    """Returns the instants that a completed rollback or restore of the data table rolled back. Raises CorruptFileError
    where its file does not say that. A rollback's completed file may be empty after a crash; then its plan names the
    instant (getRollbackedCommits).
    """
    path = timeline.path_of(instant)
    details = timeline.read_of(instant)
    if instant.action == Action.RESTORE:
        by_instant = details.get("hoodieRestoreMetadata")
        lists = by_instant.values() if isinstance(by_instant, dict) else [None]
        rollbacks = [entry for entries in lists for entry in (entries if isinstance(entries, list) else [None])]
        return [time for rollback in rollbacks for time in _instants(rollback, path)]
    if not details:
        plan = timeline.read_any(instant.requested_time, instant.action, State.REQUESTED).get("instantToRollback")
        return _texts([plan.get("commitTime") if isinstance(plan, dict) else None], path)
    return _instants(details, path)


def _instants(rollback: Any, path: str) -> list[str]:
    return _texts(rollback.get("commitsRollback") if isinstance(rollback, dict) else None, path)


def _texts(values: Any, path: str) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise CorruptFileError("does not say which instants it rolled back", path=path)
    return values


PREFIX: Final = "airflow_hudi.index.whole_until."


def marks(data: Timeline, folders: Mapping[str, Iterable[FileInfo]]) -> dict[str, str]:
    """Returns the properties that say up to which of `data`'s commits indexes are whole; `folders` are their files."""
    found: dict[str, str] = {}
    for name, files in folders.items():
        instant, made = completed_up_to(data), _made(files)
        if instant is not None and made is not None:
            found[f"{PREFIX}{name}"] = f"{instant}:{made}"
    return found


def marked_until(config: TableConfig, name: str, files: Iterable[FileInfo]) -> str | None:
    """Returns the instant up to which the index `name` is known to be whole, if any. `files` are its folder's files."""
    instant, _, made = config.raw.get(f"{PREFIX}{name}", "").partition(":")
    return instant if instant.isdigit() and made == str(_made(files)) else None


def completed_up_to(data: Timeline, moment: str | None = None) -> str | None:
    """Returns the last commit at which all earlier commits were completed at `moment` (None: now); None without one."""
    commits = data.commits()
    under_way = {item.requested_time for item in commits if moment is not None and item.completed_at > moment}
    pending = data.pending().of_actions(*COMMIT_ACTIONS, Action.CLUSTERING).requested_times
    first = min(under_way.union(pending), default=None)
    return max((item.requested_time for item in commits if first is None or item.requested_time < first), default=None)


def reaches_back(data: Timeline, instant: str) -> bool:
    """Returns whether every later commit than `instant` is active (savepoints apart), and no restore came after it."""
    saved = data.savepoints()
    restores = data.of_actions(Action.RESTORE).after(instant)
    older = (item.requested_time <= instant for item in data.commits() if item.requested_time not in saved)
    return not len(restores) and next(older, False)


def _made(files: Iterable[FileInfo]) -> int | None:
    """Returns when an index's folder was made, in whole seconds: the time of the partition metadata, written once."""
    return next((int(info.modified) for info in files if info.name.startswith(PARTITION_METADATA)), None)
