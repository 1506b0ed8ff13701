"""The instants of the metadata timeline: how they are made, and what they mean (HoodieTableMetadataUtil,
HoodieBackedTableMetadataWriter); and up to when an index is known to hold every change of the table.

Most are instants of the data table. In version 6 the metadata table's services append a suffix to the instant that they
follow, and partitions are initialized under suffixes from 010 on; from version 8 on services draw separate instants,
and partitions are initialized under instants that begin with SOLO_COMMIT.

In version 6 an index that is built beside writers is initialized under an early instant, before every timeline. Every
release takes such a slice for committed (containsOrBeforeTimelineStarts): all writers append to it, and there is no
pending deltacommit that one of them could take for a failed one. Readers ignore the index until the properties list it.
When it was initialized says its partition metadata (write.restore_reach.initialized_at).

The metadata table completes an instant before the data table does: a log block counts when its instant is completed on
the data timeline too, or is one that only the metadata table has (getValidInstantTimestamps of 0.15 and 1.x).

What Hudi's writers left out of indexes shows on the timeline alone (docs/decisions/0018). How far back that has to be
looked at says a property, `airflow_hudi.index.whole_until.<index>`: an instant, up to which all commits are in the
index, and the modification time of the index's folder, which is another one when it was dropped and built again.
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
"""HoodieTableMetadata.SOLO_COMMIT_TIMESTAMP: of a metadata table that was made before the data table's first commit."""
_FIRST_INITIALIZATION: Final = 10
"""HoodieTableMetadataUtil.PARTITION_INITIALIZATION_TIME_SUFFIX."""
_LENGTH: Final = 3
_EARLY: Final = (f"{SOLO_COMMIT}0", f"{SOLO_COMMIT}00")
"""Metadata tables start at SOLO_COMMIT and 010 in version 6, and at SOLO_COMMIT and 000 from version 8 on."""


class OperationSuffix(str, Enum):
    """What the metadata table's own services append to an instant (HoodieTableMetadataUtil.OperationSuffix)."""

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
    """Whether it is no time, but of a partition that was initialized (SOLO_COMMIT)."""
    return instant.startswith(SOLO_COMMIT)


def is_metadata_suffix(instant: str) -> bool:
    """Whether only the metadata table has this deltacommit, by its name."""
    return is_initialization(instant) or _suffix(instant) in _SERVICES


def is_initialization(instant: str) -> bool:
    """Whether a partition was initialized under an instant, by its name; or it is a metadata_only_instant."""
    return is_solo(instant) or _initializes(_suffix(instant))


def initialized_by_downgrade(initialization: str, compaction: str) -> bool:
    """Whether an index of version 6 began after a compaction of the metadata table whose instant is later. A downgrade
    compacts at an instant of its own, drops indexes that version 6 does not know in this form, and the writer begins
    them again under the latest instant of the data table and a suffix. In version 6 itself compactions have one, too.
    """
    return _initializes(_suffix(initialization)) and compaction == data_instant(compaction)


def initial_instant(data: Timeline, metadata_timeline: Timeline, features: TableVersion) -> str:
    """A free instant for a partition that is initialized now (generateUniqueCommitInstantTime)."""
    last = data.last_completed()
    start = SOLO_COMMIT if last is None or not features.metadata_suffixes else last.requested_time
    numbers = count(_FIRST_INITIALIZATION if features.metadata_suffixes else 0)
    taken = metadata_timeline.requested_times
    return next(time for time in (f"{start}{number:03d}" for number in numbers) if time not in taken)


def metadata_only_instant(instant: str, features: TableVersion) -> str:
    """A new instant as one of a deltacommit that only the metadata table has, and that counts (is_metadata_suffix)."""
    return f"{instant}{_FIRST_INITIALIZATION:03d}" if features.metadata_suffixes else instant


def latest_compaction(metadata_timeline: Timeline) -> Instant | None:
    """The metadata table's newest completed compaction: its only commits that are no deltacommits."""
    return metadata_timeline.completed().of_actions(Action.COMMIT).last()


def unfinished_initializations(metadata_timeline: Timeline, features: TableVersion) -> list[Instant]:
    """The pending deltacommits of dead writers: one that initializes a partition holds the table lock."""
    return [
        item
        for item in metadata_timeline.pending().of_actions(Action.DELTA_COMMIT)
        if is_solo(item.requested_time) or (features.metadata_suffixes and _initializes(_suffix(item.requested_time)))
    ]


def is_of_indexing(instant: str, data: Timeline) -> bool:
    """Whether a deltacommit belongs to an indexing action that is pending on the data table's timeline."""
    pending = data.pending().of_actions(Action.INDEXING)
    return instant in pending.requested_times or (bool(len(pending)) and _suffix(instant) == OperationSuffix.INDEXER)


def may_be_of_indexer(instant: str) -> bool:
    """Whether real Hudi's indexer of version 6 names a deltacommit so: by its suffix, or as an initialization."""
    suffix = _suffix(instant)
    return suffix == OperationSuffix.INDEXER or _initializes(suffix)


def early_instant(epoch: int) -> str:
    """The base instant of what the claim `epoch` builds in version 6: another one than that of the claim before."""
    return _EARLY[epoch % len(_EARLY)]


def is_early(base_instant: str) -> bool:
    """Whether a base instant is of an index that was built beside writers in version 6."""
    return base_instant in _EARLY


def initialization_time(last: str | None) -> str:
    """When an index was initialized that holds the table up to `last`, as Hudi's indexer of version 6 names it."""
    return SOLO_COMMIT if last is None else OperationSuffix.INDEXER.of(last)


_SERVICES: Final = frozenset(item.value for item in OperationSuffix)


def _suffix(instant: str) -> str:
    """What is behind a data instant; empty where that is no suffix."""
    suffix = instant[DIGITS:]
    return suffix if len(suffix) == _LENGTH and suffix.isdecimal() else ""


def _initializes(suffix: str) -> bool:
    return bool(suffix) and int(suffix) >= _FIRST_INITIALIZATION


def valid_instants(
    data: Timeline, metadata: Timeline, rolled_back: Callable[[Instant], list[str]], *, suffixes: bool = True
) -> frozenset[str]:
    """The instants whose blocks count, of the data table's and the metadata table's timelines. `suffixes`: instants of
    the metadata table alone have a suffix (TableVersion.metadata_suffixes); else all completed deltacommits that are
    not pending on the data timeline count. Instants that were rolled back count as well: only rollback commands take
    their blocks out. Archiving waits until the metadata table has compacted an instant.
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
    # Real Hudi reads only the rollbacks that are newer than the earliest valid instant; an older one names instants
    # whose blocks are gone.
    earliest = min(valid, default=SOLO_COMMIT)
    for instant in data.completed().of_actions(Action.ROLLBACK, Action.RESTORE):
        if instant.requested_time > earliest:
            valid.update(rolled_back(instant))
    return frozenset(valid)


def rolled_back_by(timeline: ActiveTimeline, instant: Instant) -> list[str]:
    """What a completed rollback or restore of the data table rolled back; raises CorruptFileError where it does not
    say. A rollback's completed file is empty after a crash; then its plan names it (getRollbackedCommits).
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
    """The properties which say so of what `data` shows as completed; by index the files of its folder."""
    found: dict[str, str] = {}
    for name, files in folders.items():
        instant, made = completed_up_to(data), _made(files)
        if instant is not None and made is not None:
            found[f"{PREFIX}{name}"] = f"{instant}:{made}"
    return found


def marked_until(config: TableConfig, name: str, files: Iterable[FileInfo]) -> str | None:
    """The instant up to which index `name` is known to be whole, if any. `files` are those of its folder."""
    instant, _, made = config.raw.get(f"{PREFIX}{name}", "").partition(":")
    return instant if instant.isdigit() and made == str(_made(files)) else None


def completed_up_to(data: Timeline, moment: str | None = None) -> str | None:
    """The last commit with which all requested up to it had completed at `moment` (None: now), if any."""
    commits = data.commits()
    under_way = {item.requested_time for item in commits if moment is not None and item.completed_at > moment}
    pending = data.pending().of_actions(*COMMIT_ACTIONS, Action.CLUSTERING).requested_times
    first = min(under_way.union(pending), default=None)
    return max((item.requested_time for item in commits if first is None or item.requested_time < first), default=None)


def reaches_back(data: Timeline, instant: str) -> bool:
    """Whether every commit after `instant` is on the active timeline (savepoints apart), and no restore came since."""
    saved = data.savepoints()
    restores = data.of_actions(Action.RESTORE).after(instant)
    older = (item.requested_time <= instant for item in data.commits() if item.requested_time not in saved)
    return not len(restores) and next(older, False)


def _made(files: Iterable[FileInfo]) -> int | None:
    """When an index's folder was made, in whole seconds: the time of a file that is written then, and only then."""
    return next((int(info.modified) for info in files if info.name.startswith(PARTITION_METADATA)), None)
