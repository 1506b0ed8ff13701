"""What the services tell the metadata table: cleaned files, rolled-back and restored instants. Table versions 6, 8 and 9, every kind."""

from __future__ import annotations

import logging
from functools import cached_property

from hudi_core.config.table_config import TableConfig
from hudi_core.metadata_table.changes import FileChanges
from hudi_core.metadata_table.clean_records import COLUMN_STATS, Indexed, clean_records
from hudi_core.metadata_table.delta_writer import DeltaWriter
from hudi_core.metadata_table.drop import drop_metadata_table, drop_partitions
from hudi_core.metadata_table.file_group import FILES_PARTITION, latest_slices
from hudi_core.metadata_table.index_definitions import load_index_definitions
from hudi_core.metadata_table.opened import OpenedMetadataTable
from hudi_core.metadata_table.own import OwnTimeline
from hudi_core.metadata_table.restore import MetadataRestore
from hudi_core.metadata_table.restore_reach import reach_of
from hudi_core.metadata_table.rollback import MetadataRollback
from hudi_core.metadata_table.rollback_deletion import DeletingRollback
from hudi_core.metadata_table.traces import Traces
from hudi_core.model.ids import WriteToken
from hudi_core.model.meta_fields import META_FIELDS
from hudi_core.storage.base import Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.timeline.query import Timeline
from hudi_core.timeline.table_schema import schema_of
from hudi_core.transaction.instants import InstantClock

log = logging.getLogger(__name__)


class MetadataPublisher:
    """Keeps the metadata table true while a service changes the data table.

    Every method that writes is called under the table lock, before the action completes on the data timeline, and may be repeated after a
    crash with the same arguments: what is done already is not done again. The action stands on the data timeline as pending meanwhile, and an
    instant that is rolled back leaves it only afterwards: of what is not pending there, readers count what the metadata table completed. Ask
    the `check_` methods before anything is written to the data table.

    Memory: the records of one action as encoded cells: some 300 bytes per deleted file, and 600 for each deletion of statistics or filters
    (clean_records.MAX_DELETIONS).
    """

    def __init__(self, storage: Storage, config: TableConfig, token: WriteToken, clock: InstantClock | None = None) -> None:
        """`config` lists a metadata table (`files` is among its metadata partitions). `token` makes the names of log files this attempt's own.

        `clock` draws the metadata table's own instants and completion times; the default is in the zone of the table's properties.
        """
        self._storage = storage
        self._config = config
        self._token = token
        self._clock = clock
        self._own = OwnTimeline(storage, config, clock)

    def check(self) -> None:
        """Raises where the metadata table cannot be kept true: MetadataUnavailableError when there is none that could be read,
        StorageNotFoundError for a listed partition without file groups, UnsupportedError for one of an unknown kind.
        """
        timeline = OpenedMetadataTable(self._storage, self._config, Timeline()).timeline
        indexed = self._indexed()
        for name in sorted(self._config.metadata_partitions):
            indexed.kind(name)
            latest_slices(self._storage, timeline, name, layout=self._own.features.layout)

    def publish_deletes(self, instant: str, changes: FileChanges) -> None:
        """Writes and completes deltacommit `instant` of a clean: the files in `changes.deleted` are gone.

        That are all files of the clean's plan, whether or not they were still there (`deletePathPatterns` of its metadata).
        """
        records = clean_records(instant, changes, self._config.metadata_partitions, self._indexed())
        DeltaWriter(self._storage, self._own, self._token).write(instant, records)

    def check_roll_back(self, failed: str) -> None:
        """Raises TimelineError when the metadata table was compacted since `failed` reached it: only a rebuild helps then."""
        self._rollback.check(failed)

    def roll_back(self, failed: str, rollback: str, changes: FileChanges | None = None) -> None:
        """Takes instant `failed` out of every kind, as part of the data table's rollback `rollback`.

        `changes.written` are, in version 6, the log files in the rollback's metadata: those of its command blocks, and those of the failed
        commit; `changes.deleted` what it deleted. Later versions need neither. Raises as check_roll_back, before anything is written.
        """
        self._rollback.run(failed, rollback, changes)

    def traces(self, instant: str) -> Traces:
        """What the metadata table holds of an instant: true while there is something that a rollback must take out."""
        return self._rollback.traces(instant)

    def prepare_restore(self, target: str) -> TableConfig:
        """Drops what cannot go back to `target`, a completed instant of the data table, before a restore touches any file of it.

        The whole metadata table where it was compacted or begun since, as real Hudi does; else the indexes that were built since or are being
        built. Returns the properties as they are then; without `files` in them there is nothing to restore.
        """
        reach = reach_of(self._storage, self._config, self._own, target)
        if reach.reason is not None:
            log.warning("the metadata table is dropped, Hudi's next write builds it anew: it cannot go back to %s, as %s", target, reach.reason)
            return drop_metadata_table(self._storage)
        if reach.late:
            log.warning("indexes are dropped that cannot go back to %s: %s", target, ", ".join(sorted(reach.late)))
        return drop_partitions(self._storage, self._config, reach.late)

    def restore(self, target: str, restore: str) -> TableConfig:
        """Brings the metadata table back to what it was after `target`, as part of the data table's pending restore `restore`.

        Called when the data table's files are as the restore leaves them. What cannot go back is dropped as in prepare_restore. Returns the
        table's properties as they are then.
        """
        config = self.prepare_restore(target)
        if FILES_PARTITION in config.metadata_partitions:
            MetadataRestore(self._storage, config, self._own, self._token).run(target, restore, self._indexed())
        return config

    def latest_compaction(self) -> str | None:
        """The requested time of the metadata table's newest completed compaction: data instants may be archived before it. None: none yet."""
        found = self._own.active.load().completed().of_actions(Action.COMMIT).last()
        return None if found is None else found.requested_time

    def drop(self) -> None:
        """Deletes the metadata table, the properties first: readers list the storage from then on, Hudi's next write builds it anew."""
        drop_metadata_table(self._storage)

    @cached_property
    def _rollback(self) -> MetadataRollback | DeletingRollback:
        if self._own.features.rollback_deletes_logs:
            return DeletingRollback(self._storage, self._config, self._clock)
        return MetadataRollback(self._storage, self._config, self._token)

    def _indexed(self) -> Indexed:
        definitions = load_index_definitions(self._storage, self._config)
        columns: list[str] = []
        if COLUMN_STATS in self._config.metadata_partitions and COLUMN_STATS not in definitions:
            active = ActiveTimeline(self._storage, self._config)
            created = self._config.raw.get("hoodie.table.create.schema")
            schema = schema_of(active.load(), active.read_details, create_schema=created, path_of=active.path_of)
            columns = [*META_FIELDS, *(field["name"] for field in schema["fields"])]
        return Indexed(definitions, list(dict.fromkeys(columns)))
