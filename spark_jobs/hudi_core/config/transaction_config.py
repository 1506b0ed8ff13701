"""Options of concurrent writing: clocks, conflicts, failed writes. Under Hudi's own names where Hudi has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from hudi_core.config.keys import ConfigKey, flag, keys_in, number, one_of, read_fields
from hudi_core.errors import ConfigError

_PACKAGE = "org.apache.hudi.client.transaction."


class Strategy(Enum):
    """How a commit finds conflicts with concurrent ones, by the simple name of Hudi's class. No class is loaded."""

    SIMPLE = "SimpleConcurrentFileWritesConflictResolutionStrategy"
    """The first to commit wins."""
    PREFER_WRITER = "PreferWriterConflictResolutionStrategy"
    """A service gives way to writers, also to those that have not committed yet."""
    BUCKET = "BucketIndexConcurrentFileWritesConflictResolutionStrategy"
    """As SIMPLE, for file groups that are buckets: two writers that create one bucket give it two file ids."""


def _strategy(value: str) -> Strategy:
    for strategy in Strategy:
        if value in (strategy.value, _PACKAGE + strategy.value):
            return strategy
    raise ValueError(f"none of {', '.join(strategy.value for strategy in Strategy)}")


MAX_SILENCE_MS: Final = 24 * 3600 * 1000
"""The longest that a run may be silent before it counts as dead, whatever its claim says: a day."""
HEARTBEAT_INTERVAL_MS = number(
    "hoodie.client.heartbeat.interval_in_ms",
    60_000,
    "milliseconds between two heartbeats of a run",
    within=(1, MAX_SILENCE_MS),
)
HEARTBEAT_MISSES = number(
    "hoodie.client.heartbeat.tolerable.misses",
    2,
    "heartbeats that may be missed before a run counts as dead; a day at the most, with the interval between them",
    within=(1, 1000),
)
CLOCK_SKEW_MS = number(
    "hoodie.time.generator.max_expected_clock_skew_ms",
    200,
    "milliseconds by which the clocks of the table's writers may differ; a run waits this long under the lock "
    "when it generates an instant time",
    within=(0, 60_000),
)
CONCURRENCY_MODE = ConfigKey(
    "hoodie.write.concurrency.mode",
    None,
    one_of("SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"),
    "concurrency mode of the table's writers",
)
CONFLICT_STRATEGY = ConfigKey(
    "hoodie.write.lock.conflict.resolution.strategy",
    Strategy.SIMPLE,
    _strategy,
    "class name of the rule by which a commit finds conflicts with concurrent ones; only known class names are "
    "accepted, and no class is loaded",
    aliases=("hoodie.write.conflict.resolution.strategy",),
)
FAILED_WRITES_POLICY = ConfigKey(
    "hoodie.cleaner.policy.failed.writes",
    "LAZY",
    one_of("EAGER", "LAZY", "NEVER"),
    "which pending writes count as failed: LAZY those whose heartbeat expired, EAGER all of them (only for a "
    "table without a live writer), NEVER none",
    aliases=("hoodie.clean.failed.writes.policy",),
)
SILENT_MINUTES = number(
    "airflow_hudi.failed_writes.silent_minutes",
    60,
    "minutes without a change after which a write that never had a heartbeat counts as failed; the heartbeat's "
    "own time where LAZY is set by name, and none for pending instants that came with a copy of the table",
    within=(0, 10**6),
)
EARLY_DETECTION = flag(
    "hoodie.write.concurrency.early.conflict.detection.enable",
    "check for markers of other live writers before a file group is rewritten, and stop before the work instead "
    "of after it",
)
BLOCK_ON_REQUESTED = flag(
    "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution",
    "with PreferWriterConflictResolutionStrategy, a clustering yields to a live write that has not recorded yet "
    "what it writes",
)
COMPACTION_YIELDS = flag(
    "airflow_hudi.compaction.yields",
    "a compaction consults the conflict resolution strategy before it commits; off, as in Hudi, where writes "
    "beside a compaction are no conflict",
)
FILE_GROUP_LOCKS = flag(
    "airflow_hudi.lock.file_groups",
    "lock each file group that a service rewrites; our own services then stop on a conflict instead of waiting",
)

TRANSACTION_KEYS = keys_in(globals())
"""The options above, of concurrent writers."""

ROLLBACK_USING_MARKERS = flag(
    "hoodie.rollback.using.markers",
    "find the files of a failed write by its markers, where it has any; otherwise by listing the table",
    default=True,
)
STALLED_MINUTES = number(
    "airflow_hudi.doctor.stuck_minutes",
    60,
    "minutes after which a pending instant that no process works on counts as stuck; one whose owner is provably "
    "dead counts at once",
    within=(0, 10**6),
)


@dataclass(frozen=True, slots=True)
class HeartbeatConfig:
    """The rhythm of a run's heartbeat: milliseconds between two, and how many may be missed."""

    interval_ms: int = HEARTBEAT_INTERVAL_MS.field()
    tolerable_misses: int = HEARTBEAT_MISSES.field()

    @staticmethod
    def of(options: Mapping[str, str]) -> HeartbeatConfig:
        """Reads the heartbeat options; raises ConfigError for a silence of more than MAX_SILENCE_MS."""
        beat = read_fields(HeartbeatConfig, options)
        if beat.interval_ms * beat.tolerable_misses > MAX_SILENCE_MS:
            message = f"{HEARTBEAT_INTERVAL_MS.name} times {HEARTBEAT_MISSES.name} is more than a day"
            raise ConfigError(message, remedy=f"lower one of them: their product may be {MAX_SILENCE_MS}")
        return beat
