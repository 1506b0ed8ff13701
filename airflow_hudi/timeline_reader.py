"""Reads a table's timeline over and over, at the price of one listing each time."""

from __future__ import annotations

import json
import time
from dataclasses import replace

from hudi_core.config.table_config import PROPERTIES, TableConfig
from hudi_core.errors import StorageNotFoundError, masked, shortened, without_controls
from hudi_core.model.claim_names import HUDI_HEARTBEATS, ClaimFolder, epochs_of, is_released
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.layout import timeline_of
from hudi_core.timeline.pending_plans import is_clustering
from hudi_core.timeline.timeline import Timeline


class TimelineReader:
    """One table, as a task or a trigger looks at it.

    The table's properties are read once, and again only when a listing shows that their file changed: an upgraded table
    would otherwise hide its instants from a sensor that has been waiting since before.

    `action` is what is looked for. Of `clustering` the timeline is as layout 2 has it: layout 1 names clusterings and
    overwrites alike, and the plan of each is read, once.
    """

    def __init__(self, storage: Storage, action: str = "") -> None:
        self.storage = storage
        self._action = action
        self._clusterings: dict[str, bool] = {}
        self._config: TableConfig | None = None
        self._properties: FileInfo | None = None

    @property
    def config(self) -> TableConfig:
        """The table's properties.

        Raises ConfigError when this is no Hudi table, UnsupportedVersionError, StorageError.
        """
        if self._config is None:
            self._config = TableConfig.load(self.storage)
        return self._config

    def load(self) -> Timeline:
        """The timeline as it is now: one listing, past every cache. Raises as `config` does."""
        config = self.config
        listing = self._list(config)
        properties = next((info for info in listing if info.path == PROPERTIES), None)
        if self._properties is not None and properties != self._properties:
            self._config = None
            config = self.config
            listing = self._list(config)
        self._properties = properties
        files = {info.name: info.modified for info in listing}
        timeline = timeline_of(files, config.layout_version, files)
        if self._action != Action.CLUSTERING or config.layout_version != 1:
            return timeline
        return Timeline.in_order(map(self._named_by_plan, timeline))

    def active(self) -> ActiveTimeline:
        """The timeline's files, to read an instant's details from."""
        return ActiveTimeline(self.storage, self.config)

    def at_work(self, instant: str) -> str | None:
        """Who runs an instant and since when, by the storage's clock, for messages: by the last claim that was not
        released, else by a heartbeat of Hudi. None without both.
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

    def _named_by_plan(self, instant: Instant) -> Instant:
        """The instant; a replacecommit whose plan is a clustering as one. Raises FormatError for a damaged plan."""
        if instant.action != Action.REPLACE_COMMIT:
            return instant
        time = instant.requested_time
        if time not in self._clusterings:
            self._clusterings[time] = is_clustering(self.active(), instant)
        if not self._clusterings[time]:
            return instant
        action = instant.action if instant.is_completed else Action.CLUSTERING
        return replace(instant, action=action, planned_action=Action.CLUSTERING)

    def _list(self, config: TableConfig) -> list[FileInfo]:
        return self.storage.list_files(config.timeline_folder)


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
