"""The table as a service uses it, and what every service records of its owner."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from functools import partial

from hudi_core import VERSION
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.config.concurrency_config import CLOCK_SKEW_MS, HeartbeatConfig
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.protocol import Engine
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partition_type import FILES_PARTITION
from hudi_core.metadata_table.write.publish import MetadataPublisher
from hudi_core.metadata_table.write.staged_logs import Workers
from hudi_core.model.names import WriteToken
from hudi_core.query.context import ReadContext
from hudi_core.storage.one_look import look_again
from hudi_core.timeline.pending_plans import without_rolled_back
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim, claim
from hudi_core.transaction.commit import Completer
from hudi_core.transaction.instant_generator import InstantClock
from hudi_core.transaction.locks.base import TableLock
from hudi_core.transaction.locks.registry import table_lock
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.writer_heartbeats import refuse_live_writer

OWNER_KEY = "airflow_hudi.owner"
RUN_KEY = "airflow_hudi.run_id"
VERSION_KEY = "airflow_hudi.version"
"""Keys of the extra metadata that say which engine made an instant. Hudi ignores unknown keys there."""


@dataclass(frozen=True, slots=True)
class TableContext(ReadContext):
    """A table as a service uses it: all that a reader needs, and its lock, claims, clock and metadata table writer."""

    @property
    def has_metadata_table(self) -> bool:
        """Whether readers may list this table by its metadata table. Then every commit must go there first."""
        return FILES_PARTITION in self.config.metadata_partitions

    def reloaded(self) -> TableContext:
        """Returns the table with its current properties: indexes may have been added or removed since it was loaded."""
        return replace(self, config=TableConfig.load(self.storage))

    def rolled_back_among(self, commits: Set[str], now: Timeline) -> str | None:
        """Returns the latest of `commits` that is being rolled back, or is neither in `now` nor archived; else None."""
        there, archived = now.commits().requested_times, self.history()
        gone = commits - without_rolled_back(self.active, now).commits().requested_times
        rolled_back = (time for time in sorted(gone, reverse=True) if time in there or archived.commit(time) is None)
        return next(rolled_back, None)

    def new_instant(self, timeline: Timeline) -> str:
        """Returns an instant later than all of `timeline`, in the table's zone. The caller holds the table lock."""
        return self.clock().next(timeline)

    def clock(self) -> InstantClock:
        """Returns the clock that draws instant and completion times in the timeline's zone, under the table lock."""
        return InstantClock(self.zone, CLOCK_SKEW_MS.read(self.options))

    def completer(self, claim: Claim, owner: Owner) -> Completer:
        """Returns what completes the instant of `claim`. Call its finish_decided right after the claim."""
        return Completer(self.active, claim, partial(self.lock, owner, claim.instant), self.clock())

    def metadata_publisher(self, epoch: int = 0, schema: AvroSchema | None = None) -> MetadataPublisher | None:
        """Returns the metadata table's writer, if any. `epoch` is for names of log files; `schema` is a new one."""
        if not self.has_metadata_table:
            return None
        token = WriteToken(0, epoch, 0)
        return MetadataPublisher(self.storage, self.config, token, self.clock(), self.options, schema)

    def check_recordable(self, *, deletes: bool = False) -> None:
        """Raises as MetadataPublisher.check where the metadata table cannot record the changes of a service."""
        publisher = self.metadata_publisher()
        if publisher is not None:
            publisher.check(deletes=deletes)

    def workers(self, engine: Engine, epoch: int) -> Workers:
        return Workers(engine, epoch, self.uri, self.storage_options)

    def lock(self, owner: Owner, instant: str = "") -> TableLock:
        """Returns the table lock that the options name, not taken yet. `instant` is one that `owner` has claimed."""
        lock = table_lock(
            self.storage, self.config, self.options, owner, storage_options=self.storage_options, instant=instant
        )
        lock.on_taken = partial(look_again, self.storage)
        return lock

    def claim(self, instant: str, owner: Owner) -> Claim:
        """Makes `owner` the owner of `instant`. Raises ConflictError while another owner or its writer may be alive."""
        beat = HeartbeatConfig.of(self.options)
        claimed = claim(
            self.storage,
            instant,
            owner,
            interval_ms=beat.interval_ms,
            tolerable_misses=beat.tolerable_misses,
            refuse=partial(refuse_live_writer, self.storage, instant, beat),
        )
        look_again(self.storage)  # an earlier owner may have gone on until now
        return claimed


def provenance(owner: Owner) -> dict[str, str]:
    """Returns owner, run and release for the extra metadata of a commit, clean or plan. It contains no secret."""
    return {OWNER_KEY: owner.describe(), RUN_KEY: owner.run_id, VERSION_KEY: VERSION}
