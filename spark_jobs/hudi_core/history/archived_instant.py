"""Completed instants with their state files, and their archived records in either layout (MetadataConversionUtils)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hudi_core.codec.avro.container import is_container
from hudi_core.errors import CorruptFileError
from hudi_core.frozen import dataclass
from hudi_core.timeline.actions.commit import decode_commit, encode_commit_avro
from hudi_core.timeline.actions.content import decode_any, member
from hudi_core.timeline.actions.write_stats import LOG_COUNTS, WRITE_COUNTS
from hudi_core.timeline.instant import COMMIT_ACTIONS, REPLACING_ACTIONS, Action, Instant, State

_ROLLING_STAT: Final = "ROLLING_STAT"
"""Archived commits carry this key with an empty value in place of the rolling statistics of very old writers."""
_UNKNOWN: Final = "UNKNOWN"
_COMPACTED: Final = "COMPACT"

_TEXTS: Final = ("fileId", "path", "prevCommit", "partitionPath")
_NUMBERS: Final = tuple(
    name for name, _ in (*WRITE_COUNTS, *LOG_COUNTS) if name not in ("totalLogFilesCompacted", "totalLogSizeCompacted")
)
"""The numbers that the record has of a write stat, besides its texts."""
_MEMBERS: Final = {
    (Action.CLEAN, State.COMPLETED): "hoodieCleanMetadata",
    (Action.ROLLBACK, State.COMPLETED): "hoodieRollbackMetadata",
    (Action.CLEAN, State.REQUESTED): "hoodieCleanerPlan",
    (Action.CLEAN, State.INFLIGHT): "hoodieCleanerPlan",
    (Action.COMPACTION, State.REQUESTED): "hoodieCompactionPlan",
    (Action.LOG_COMPACTION, State.REQUESTED): "hoodieCompactionPlan",
    (Action.REPLACE_COMMIT, State.REQUESTED): "hoodieRequestedReplaceMetadata",
}
"""Which member holds the content of a file that is an Avro container already. Others are not kept."""


InstantKey = tuple[str, str]
"""Requested time and the action under which the instant completed."""


def key_of(instant: Instant) -> InstantKey:
    return instant.requested_time, instant.action


@dataclass(frozen=True, slots=True)
class StateFile:
    """One state of an instant: action, content and path of its file, and its modification time as an instant time."""

    action: str
    state: State
    data: bytes
    path: str
    modified: str


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """A completed instant and its state files in the order of the states; the last is the completed one."""

    instant: Instant
    files: tuple[StateFile, ...]

    @property
    def key(self) -> InstantKey:
        return key_of(self.instant)

    @property
    def size(self) -> int:
        return sum(len(file.data) for file in self.files)

    def content(self, state: State) -> bytes:
        return next((file.data for file in self.files if file.state is state), b"")


def lsm_metadata(item: ArchivedInstant) -> bytes | None:
    """Returns the metadata of a row of layout 2: the completed file, None for an empty one. JSON becomes Avro."""
    data = item.content(State.COMPLETED)
    if data and item.instant.action in COMMIT_ACTIONS and not is_container(data):
        return encode_commit_avro(decode_commit(data, path=item.files[-1].path))
    return data or None


def lsm_plan(item: ArchivedInstant) -> bytes | None:
    """Returns the plan of a row (MetadataConversionUtils.createLSMTimelineInstant); of an overwrite its workload."""
    action = item.instant.pending_action
    requested, inflight = item.content(State.REQUESTED), item.content(State.INFLIGHT)
    if action in (Action.COMPACTION, Action.LOG_COMPACTION):
        return requested or None
    if action == Action.CLEAN:
        return requested or inflight or None
    if action in REPLACING_ACTIONS:
        return inflight or requested or None
    return None


def archived_entry(requested_time: str, file: StateFile) -> dict[str, Any]:
    """Returns the record of a state file in layout 1. As in Hudi, the record of an empty file has only time, action and
    state; but a commit's requested and inflight files count as commits that wrote nothing. Raises CorruptFileError.
    """
    return {
        "commitTime": requested_time,
        "actionType": file.action,
        "actionState": file.state.name,
        "stateTransitionTime": file.modified,
        "version": None,
        **_content(file),
    }


def _content(file: StateFile) -> dict[str, Any]:
    action, state, path = file.action, file.state, file.path
    if not file.data and (action not in (Action.COMMIT, Action.DELTA_COMMIT) or state is State.COMPLETED):
        return {}
    name = _MEMBERS.get((action, state))
    if name is None and action not in COMMIT_ACTIONS:
        return {}
    raw = decode_any(file.data, path=path)
    if name is not None:
        return {name: raw}
    if action in (Action.COMMIT, Action.DELTA_COMMIT):
        return {"hoodieCommitMetadata": _commit(raw, path)}
    if state is State.COMPLETED:
        replaced = member(raw, "partitionToReplaceFileIds", dict, path=path, default={})
        commit = _commit(raw, path, mark_compacted=False)
        return {"hoodieReplaceCommitMetadata": {**commit, "partitionToReplaceFileIds": replaced}}
    return {"HoodieInflightReplaceMetadata": _commit(raw, path)}


def _commit(raw: dict[str, Any], path: str, *, mark_compacted: bool = True) -> dict[str, Any]:
    """Returns the Avro form of a commit's metadata, which has fewer members than the file."""
    operation = member(raw, "operationType", str, path=path, default=_UNKNOWN)
    if mark_compacted and member(raw, "compacted", bool, path=path, default=False):
        operation = _COMPACTED
    extra: Mapping[str, Any] = member(raw, "extraMetadata", dict, path=path, default={})
    partitions: Mapping[str, Any] = member(raw, "partitionToWriteStats", dict, path=path, default={})
    return {
        "partitionToWriteStats": {partition: _stats(stats, path) for partition, stats in partitions.items()},
        # Avro's map has no null values, which a JSON file may have: readers take a missing key for the same.
        "extraMetadata": {**{key: value for key, value in extra.items() if value is not None}, _ROLLING_STAT: ""},
        "version": None,
        "operationType": operation,
    }


def _stats(stats: Any, path: str) -> list[dict[str, Any]]:
    if not isinstance(stats, list) or not all(isinstance(stat, dict) for stat in stats):
        raise CorruptFileError("'partitionToWriteStats' holds something other than lists of objects", path=path)
    return [
        {**{name: stat.get(name) for name in _TEXTS}, **{name: stat.get(name) or 0 for name in _NUMBERS}}
        for stat in stats
    ]
