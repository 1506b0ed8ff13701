"""The active timeline in storage. One listing loads it, exclusive creates move an instant on, and it says when an
instant completed. actions/content.py reads files that are still being written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import (
    ConflictError,
    CorruptFileError,
    StorageConflictError,
    StorageExistsError,
    StorageNotFoundError,
    TimelineError,
)
from hudi_core.storage.base import Storage
from hudi_core.storage.one_look import look_again
from hudi_core.storage.overlapped import look_ahead
from hudi_core.timeline.actions.commit import CommitMetadata, decode_commit
from hudi_core.timeline.actions.compaction import CompactionPlan, decode_compaction_plan
from hudi_core.timeline.actions.content import decode_any, read_stable
from hudi_core.timeline.instant import COMMIT_ACTIONS, PLANNED_ACTIONS, STATES, Action, Instant, State, completed_action
from hudi_core.timeline.instant_time import of_epoch_seconds
from hudi_core.timeline.naming import legacy_name, naming_for
from hudi_core.timeline.timeline import Timeline


class ActiveTimeline:
    """The timeline of the table whose base path is `base` below the storage's root (`""`, or `.hoodie/metadata`). Times
    are requested times. `action` is always that of the pending files (`compaction`, never `commit`, for a compaction).
    A state's file is created exclusively, and only after its predecessor's: of any number of racing callers, exactly
    one moves the instant on.
    """

    def __init__(self, storage: Storage, config: TableConfig, base: str = "", zone: str = "LOCAL") -> None:
        """`zone` is the timeline's (config.table_config). It is for completion times taken from modification times."""
        self._storage = storage
        self._zone = zone
        self.layout = config.layout_version
        """The layout of the timeline, 1 or 2."""
        self._naming = naming_for(config.layout_version)
        self.folder = f"{base}/{config.timeline_folder}" if base else config.timeline_folder
        """The timeline's folder, relative to the storage's root."""

    def load(self) -> Timeline:
        names = self._storage.list_names(self.folder)
        return Timeline.in_order(self._naming.instants(names, self._modified, self._zone))

    def look_again(self) -> None:
        """Makes the next listing read the timeline as it is then (storage.one_look)."""
        look_again(self._storage)

    def look_ahead(self) -> None:
        """Lists the folder for what comes next, beside another request (storage.overlapped)."""
        look_ahead(self._storage, self.load)

    def names(self) -> list[str]:
        """Returns the sorted names of the files in the timeline's folder, foreign ones included, from one listing."""
        return sorted(self._storage.list_names(self.folder))

    def modified(self) -> dict[str, float]:
        """Returns when each file of the folder was modified, by path, in epoch seconds, from one listing."""
        return {info.path: info.modified for info in self._storage.list_files(self.folder)}

    def completion_times(self, timeline: Timeline) -> dict[Instant, str]:
        """Returns when the completed instants completed. In layout 1, that is the file's modification time
        (HoodieInstant.getStateTransitionTime). An instant that was archived since is missing.
        """
        completed = timeline.completed()
        if not self._naming.completes_by_name:
            return {item: item.completion_time for item in completed if item.completion_time is not None}
        modified = self.modified()
        return {
            instant: of_epoch_seconds(modified[path], self._zone)
            for instant in completed
            if (path := self.path_of(instant)) in modified
        }

    def file_name(self, requested_time: str, action: str, state: State, completion_time: str | None = None) -> str:
        """Returns the name of a state's file. Raises TimelineError for parts that make no name."""
        return self._naming.file_name(requested_time, action, state, completion_time)

    def path(self, requested_time: str, action: str, state: State, completion_time: str | None = None) -> str:
        """Returns the path of a state's file, relative to the storage's root."""
        return f"{self.folder}/{self.file_name(requested_time, action, state, completion_time)}"

    def path_of(self, instant: Instant) -> str:
        if instant.is_legacy:
            return f"{self.folder}/{legacy_name(instant.requested_time, instant.action, instant.state)}"
        return self.path(instant.requested_time, instant.action, instant.state, instant.completion_time)

    def read_details(self, instant: Instant) -> bytes:
        """Returns the content of the file that shows the instant's state. Raises StorageNotFoundError."""
        return self._content(self.path_of(instant), instant.action, instant.state)

    def read_commit(self, instant: Instant, *, stats: bool = True) -> CommitMetadata:
        """Returns the metadata of a completed commit, deltacommit or replacecommit. decode_commit says what `stats`
        does. The empty file that a crash may leave is empty metadata, as in Hudi. Raises TimelineError for any other
        instant, and CorruptFileError for an empty file of a replacecommit: a query would read the file groups that the
        instant replaced beside the new ones.
        """
        path = self.path_of(instant)
        if not instant.is_completed or instant.action not in COMMIT_ACTIONS:
            raise TimelineError(f"{instant.action} {instant.requested_time} is not a completed commit", path=path)
        data = self.read_details(instant)
        if not data and instant.action == Action.REPLACE_COMMIT:
            raise CorruptFileError(
                "the completed file is empty, so that it is not known which file groups it replaced", path=path
            )
        return decode_commit(data, path=path, stats=stats)

    def read_requested(self, requested_time: str, action: str) -> bytes:
        return self.read_pending(requested_time, action, State.REQUESTED)

    def read_pending(self, requested_time: str, action: str, state: State) -> bytes:
        """Returns the content of an instant's requested or inflight file. Raises StorageNotFoundError."""
        return self._content(self.path(requested_time, action, state), action, state)

    def read_plan(self, requested_time: str, action: str = Action.COMPACTION) -> CompactionPlan:
        """Returns the checked plan of a compaction or log compaction. Raises StorageNotFoundError, FormatError."""
        if action not in (Action.COMPACTION, Action.LOG_COMPACTION):
            raise TimelineError(f"{action} {requested_time} has no compaction plan")
        path = self.path(requested_time, action, State.REQUESTED)
        return decode_compaction_plan(self.read_requested(requested_time, action), path=path, layout=self.layout)

    def read_plans(self, timeline: Timeline) -> dict[str, CompactionPlan]:
        """Returns the plans of all pending compactions of `timeline`, by requested time."""
        return {
            instant.requested_time: self.read_plan(instant.requested_time) for instant in timeline.pending_compactions()
        }

    def read_any(self, requested_time: str, action: str, state: State) -> dict[str, Any]:
        """Returns what read_of does, by time, action and state. The state is not the completed one of layout 2."""
        path = self.path(requested_time, action, state)
        return decode_any(self._content(path, action, state), path=path)

    def read_of(self, instant: Instant) -> dict[str, Any]:
        """Returns the file of the instant's state as a dictionary, `{}` if it is empty. Raises StorageNotFoundError."""
        return decode_any(self.read_details(instant), path=self.path_of(instant))

    def read_all_completed(self, instant: Instant) -> list[dict[str, Any]]:
        """Returns each completed file of an instant, as read_of does. A race may have left several in layout 2."""
        paths = self.completed_paths(instant.requested_time, instant.action)
        return [decode_any(self._content(path, instant.action, State.COMPLETED), path=path) for path in paths]

    def create_requested(self, requested_time: str, action: str, data: bytes = b"") -> Instant:
        """Creates the requested file. Raises StorageExistsError for an instant in any state, TimelineError for a
        savepoint.
        """
        if action == Action.SAVEPOINT:
            raise TimelineError("a savepoint has no requested state")
        names, inflight = self.names(), self.path(requested_time, action, State.INFLIGHT)
        self._refuse_completed(names, requested_time, action)
        if inflight.rpartition("/")[2] in names:
            raise StorageExistsError("the instant is further on already", path=inflight)
        self._storage.create_exclusive(self.path(requested_time, action, State.REQUESTED), data)
        return Instant(requested_time, action, State.REQUESTED, None, action)

    def to_inflight(self, requested_time: str, action: str, data: bytes = b"") -> bool:
        """Moves a requested instant to inflight. Returns False when it was inflight already: the caller resumes it or
        rolls it back. Raises TimelineError when it was never requested, StorageExistsError when it is completed.
        """
        names = self.names()
        if action != Action.SAVEPOINT:
            self._require(names, requested_time, action, State.REQUESTED, "was never requested")
        self._refuse_completed(names, requested_time, action)
        try:
            self._storage.create_exclusive(self.path(requested_time, action, State.INFLIGHT), data)
        except StorageExistsError:
            return False
        return True

    def empty_inflight(self, requested_time: str, action: str) -> None:
        """Empties an inflight file, under the table lock. Raises ConflictError when another process has removed it."""
        path = self.path(requested_time, action, State.INFLIGHT)
        try:
            if not self._storage.supports_conditional_write:
                if self._storage.read(path):
                    self._storage.write(path, b"")
                return
            content, version = self._storage.read_versioned(path)
            if content:
                self._storage.write_if(path, b"", version=version)
        except (StorageNotFoundError, StorageConflictError) as error:
            raise ConflictError(
                f"another process has rolled {action} {requested_time} back meanwhile", path=path, remedy="run it again"
            ) from error

    def complete(self, requested_time: str, action: str, data: bytes, completion_time: str | None = None) -> Instant:
        """Completes an inflight instant by one exclusive create; what it wrote is visible from then on. In layout 2,
        names have the completion time, so that the create alone does not decide which process completes the instant:
        call it under the table lock with a time that was decided once (transaction.commit). Layout 1 ignores the time.
        Raises StorageExistsError when the instant is completed already, TimelineError when it is not inflight or `data`
        is empty (an empty completed file reads as a commit that wrote nothing).
        """
        path = self.path(requested_time, action, State.COMPLETED, completion_time)
        if not data:
            raise TimelineError("a completed instant must have content", path=path)
        if not self._naming.completes_by_name and completion_time is not None and completion_time <= requested_time:
            message = f"{action} {requested_time} cannot complete at {completion_time}, before it began"
            raise TimelineError(message, path=path, remedy="check the clocks")
        names = self.names()
        self._require(names, requested_time, action, State.INFLIGHT, "is not inflight")
        if not self._naming.completes_by_name:
            self._refuse_completed(names, requested_time, action)
        self._storage.create_exclusive(path, data)
        inflight = self.file_name(requested_time, action, State.INFLIGHT)
        return self._naming.instants([path.rsplit("/", 1)[-1], inflight])[0]

    def completed_paths(self, requested_time: str, action: str) -> list[str]:
        """Returns the instant's completed files, earliest first. A race without a lock leaves several in layout 2."""
        return self._completed_paths(self.names(), requested_time, action)

    def _completed_paths(self, names: Iterable[str], requested_time: str, action: str) -> list[str]:
        if self._naming.completes_by_name:
            completed = self.file_name(requested_time, action, State.COMPLETED)
            return [f"{self.folder}/{completed}"] if completed in names else []
        return [
            f"{self.folder}/{name}"
            for name in names
            if name.startswith(requested_time)
            for instant in self._naming.instants([name])
            if instant.is_completed
            and instant.requested_time == requested_time
            and completed_action(instant.action) == completed_action(action)
        ]

    def remove(self, requested_time: str, action: str, state: State) -> bool:
        """Deletes one state's file; False when it is missing. Raises TimelineError when a later state's file exists."""
        names = self.names()
        later = self._completed_paths(names, requested_time, action)
        if state is State.COMPLETED:
            return sum(self._storage.delete(path) for path in later) > 0
        if state is State.REQUESTED and self.file_name(requested_time, action, State.INFLIGHT) in names:
            later.append(self.path(requested_time, action, State.INFLIGHT))
        if later:
            message = f"{action} {requested_time} is further on: its {state.value} file cannot go first"
            raise TimelineError(message, path=later[0])
        return self._storage.delete(self.path(requested_time, action, state))

    def drop(self, requested_time: str, action: str) -> None:
        """Removes a pending instant from the timeline. Raises TimelineError for a completed one."""
        for state in (State.INFLIGHT, State.REQUESTED):
            self.remove(requested_time, action, state)

    def delete_instant(self, requested_time: str, action: str) -> bool:
        """Deletes the whole instant: completed file, then inflight, then requested. Returns False when it did not
        exist. A crash anywhere leaves the instant in an earlier state than before, never in a later one. What it wrote
        is invisible from the first delete on, and the remaining files show that it must still be rolled back
        (BaseRollbackActionExecutor.deleteInflightAndRequestedInstant).
        """
        return sum(self.remove(requested_time, action, state) for state in reversed(STATES)) > 0

    def roll_back_to_requested(self, requested_time: str, action: str) -> bool:
        """Moves a planned instant (compaction, log compaction, clustering) back to requested. Returns False when it is
        requested already. Raises TimelineError when it is completed, or when its plan is missing: its inflight file is
        then its only record (HoodieActiveTimeline.revertInstantFromInflightToRequested).
        """
        self._require(self.names(), requested_time, action, State.REQUESTED, "has lost its plan")
        return self.remove(requested_time, action, State.INFLIGHT)

    def forget(self, instants: Iterable[Instant]) -> int:
        """Deletes the files of archived instants and returns how many. It is only for completed instants in the
        history. All pending files are deleted first, while the completed ones still show the state; then the completed
        ones, oldest first, so that a reader never sees a timeline with a hole
        (HoodieTimelineArchiver.deleteArchivedInstants, HUDI-7207). Raises TimelineError for a pending instant, before
        anything is deleted.
        """

        def key_of(instant: Instant) -> tuple[str, str]:
            return instant.requested_time, completed_action(instant.action)

        archived = set(map(key_of, instants))
        shown = [(name, instant) for name in self.names() for instant in self._naming.instants([name])]
        shown = [(name, instant) for name, instant in shown if key_of(instant) in archived]
        completed = {key_of(instant) for _, instant in shown if instant.is_completed}
        for name, instant in shown:
            if key_of(instant) not in completed:
                message = f"{instant.action} {instant.requested_time} is not completed: it cannot be archived"
                raise TimelineError(message, path=f"{self.folder}/{name}")
        ordered = sorted(shown, key=lambda item: (item[1].is_completed, item[1].requested_time, item[1].state.rank))
        return sum(self._storage.delete(f"{self.folder}/{name}") for name, _ in ordered)

    def _content(self, path: str, action: str, state: State) -> bytes:
        """Returns the bytes of a state's file. A plan or a completed file is read when its writer has finished it."""
        is_final = state is State.COMPLETED or (state is State.REQUESTED and action in PLANNED_ACTIONS)
        return read_stable(self._storage, path) if is_final else self._storage.read(path)

    def _modified(self, name: str) -> float | None:
        try:
            return self._storage.stat(f"{self.folder}/{name}").modified
        except StorageNotFoundError:
            return None  # archived since the listing

    def _require(self, names: Iterable[str], requested_time: str, action: str, state: State, otherwise: str) -> None:
        if self.file_name(requested_time, action, state) not in names:
            message = f"{action} {requested_time} {otherwise}"
            remedy = "list the instants with `hudictl timeline TABLE`"
            raise TimelineError(message, path=self.path(requested_time, action, state), remedy=remedy)

    def _refuse_completed(self, names: Iterable[str], requested_time: str, action: str) -> None:
        for path in self._completed_paths(names, requested_time, action):
            raise StorageExistsError("the instant is further on already", path=path)
