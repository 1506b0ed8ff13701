"""Reads a table's timeline repeatedly, with one listing each time."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone

from hudi_core.config.table_config import PROPERTIES, TableConfig, timeline_zone
from hudi_core.errors import StorageNotFoundError, masked, shortened, without_controls
from hudi_core.frozen import dataclass
from hudi_core.model.names import HUDI_HEARTBEATS, ClaimFolder, epochs_of, is_released
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.instant_time import of_epoch_seconds
from hudi_core.timeline.naming import legacy_name, timeline_of
from hudi_core.timeline.pending_plans import is_clustering
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Look:
    """A table as one listing shows it. `modified` has the modification time of each timeline file, in layout 1."""

    timeline: Timeline
    at: datetime
    zone: str
    modified: Mapping[str, float | None]
    reader: TimelineReader

    @property
    def uri(self) -> str:
        return self.reader.storage.uri

    def completed_at(self, instant: Instant) -> str:
        """Returns the completion time: in layout 1 the file's modification time (Hudi's getStateTransitionTime)."""
        if instant.completion_time is not None:
            return instant.completion_time
        seconds = self.modified.get(legacy_name(instant.requested_time, instant.action, instant.state))
        if seconds is None:
            return instant.completed_at
        modified = of_epoch_seconds(seconds, self.zone)
        # A storage with times in whole seconds may show that a write completed before it began.
        same_second = modified[:14] == instant.requested_time[:14]
        return max(modified, instant.requested_time) if same_second else modified

    def read_commit(self, instant: Instant) -> CommitMetadata | None:
        """Reads a completed commit; None if its file is gone meanwhile. Raises StorageError, CorruptFileError."""
        try:
            return self.reader.active().read_commit(instant)
        except StorageNotFoundError:
            return None


class TimelineReader:
    """Reads the timeline of one table for a task or a trigger. It reads the table's properties again when their file
    changed: else the instants of an upgraded table would stay hidden from a sensor that waits since before the upgrade.
    While the listing does not change, look returns the same timeline object. `action` is the action to look for; for
    `clustering` the timeline has layout 2's action names (named_by_plans).
    """

    def __init__(self, storage: Storage, action: str = "") -> None:
        self.storage = storage
        self._action = action
        self._clusterings: dict[str, bool] = {}
        self._config: TableConfig | None = None
        self._properties: FileInfo | None = None
        self._files: Mapping[str, float | None] = {}
        self._timeline: Timeline | None = None

    @property
    def config(self) -> TableConfig:
        """The table's properties. Raises ConfigError if there is no table, UnsupportedVersionError, StorageError."""
        if self._config is None:
            self._config = TableConfig.load(self.storage)
        return self._config

    def load(self) -> Timeline:
        return self.look().timeline

    def look(self) -> Look:
        """Returns the table as it is now, by one listing without a cache. Raises the same errors as `config`."""
        at, files = datetime.now(timezone.utc), self._list()
        zone = timeline_zone(self.config, {})
        if self._timeline is None or files != self._files:
            self._timeline, self._files = self._timeline_of(files, zone), files
        return Look(self._timeline, at, zone, self._files, self)

    def active(self) -> ActiveTimeline:
        return ActiveTimeline(self.storage, self.config)

    def at_work(self, instant: str) -> str | None:
        """Returns who runs an instant and since when, by the last claim if it is not released, else by a heartbeat of
        Hudi. Returns None if there is neither.
        """
        folder = ClaimFolder(instant)
        files = {info.name: info for info in self.storage.list_files(folder.path)}
        if (epochs := epochs_of(files)) and not is_released(files):
            claim = files[folder.claim(epochs[-1]).rpartition("/")[2]]
            return f"run by {self._owner(claim)} since {_utc(claim.modified)}"
        beats = [info for info in self.storage.list_files(HUDI_HEARTBEATS) if info.path == folder.hudi_heartbeat]
        return f"run by a writer of Hudi, whose last heartbeat is of {_utc(beats[0].modified)}" if beats else None

    def _owner(self, claim: FileInfo) -> str:
        try:
            owner = json.loads(self.storage.read(claim.path))["owner"]
            text = f"{owner['text']} (process {owner['pid']} on {owner['host']})"
        except (StorageNotFoundError, ValueError, KeyError, TypeError):
            text = f"the owner that {claim.path} does not name"
        return shortened(without_controls(masked(text)))

    def named_by_plans(self, timeline: Timeline) -> Timeline:
        """Returns the timeline with the action names of layout 2. Layout 1 has the same name for clusterings and
        overwrites, so this reads each plan once. Raises FormatError, StorageError.
        """
        if self.config.layout_version != 1:
            return timeline
        return Timeline.in_order(map(self._named_by_plan, timeline))

    def _named_by_plan(self, instant: Instant) -> Instant:
        """Returns the instant, as a clustering if it has the plan of one. Raises FormatError for a damaged plan."""
        if instant.action != Action.REPLACE_COMMIT:
            return instant
        time = instant.requested_time
        if time not in self._clusterings:
            self._clusterings[time] = is_clustering(self.active(), instant, whole=True)
        if not self._clusterings[time]:
            return instant
        action = instant.action if instant.is_completed else Action.CLUSTERING
        return replace(instant, action=action, planned_action=Action.CLUSTERING)

    def _list(self) -> dict[str, float | None]:
        """Returns the names of the timeline's files. In layout 1 names do not tell everything, so each name has its
        modification time.
        """
        config = self.config
        if config.layout_version != 1:
            return dict.fromkeys(self.storage.list_names(config.timeline_folder))
        listing = self.storage.list_files(config.timeline_folder)
        properties = next((info for info in listing if info.path == PROPERTIES), None)
        if self._properties is not None and properties != self._properties:
            self._config = self._timeline = self._properties = None
            return self._list()
        self._properties = properties
        return {info.name: info.modified for info in listing}

    def _timeline_of(self, files: Mapping[str, float | None], zone: str) -> Timeline:
        config = self.config
        timeline = timeline_of(files, config.layout_version, zone=zone)
        if any(instant.is_legacy for instant in timeline):
            # An upgrade left completed files whose names have no completion time: their modification time replaces it.
            modified = {info.name: info.modified for info in self.storage.list_files(config.timeline_folder)}
            return timeline_of(modified, config.layout_version, modified, zone)
        return self.named_by_plans(timeline) if self._action == Action.CLUSTERING else timeline


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
