"""Options of concurrent writing: clocks, conflicts, failed writes. Under Hudi's own names where Hudi has them."""

from __future__ import annotations

from enum import Enum

from hudi_core.config.keys import ConfigKey, boolean, one_of, whole_number

_PACKAGE = "org.apache.hudi.client.transaction."


class Strategy(Enum):
    """How a commit finds conflicts with concurrent ones, by the simple name of Hudi's class.

    The names are compared; no class is loaded.
    """

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


CLOCK_SKEW_MS: ConfigKey[int] = ConfigKey(
    "hoodie.time.generator.max_expected_clock_skew_ms",
    200,
    whole_number(0, 60_000),
    "milliseconds by which the clocks of the table's writers may differ; a run waits this long under the lock "
    "when it generates an instant time",
)
CONCURRENCY_MODE: ConfigKey[str | None] = ConfigKey(
    "hoodie.write.concurrency.mode",
    None,
    one_of("SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"),
    "concurrency mode of the table's writers",
)
CONFLICT_STRATEGY: ConfigKey[Strategy] = ConfigKey(
    "hoodie.write.conflict.resolution.strategy",
    Strategy.SIMPLE,
    _strategy,
    "class name of the rule by which a commit finds conflicts with concurrent ones; only known class names are "
    "accepted, and no class is loaded",
)
FAILED_WRITES_POLICY: ConfigKey[str] = ConfigKey(
    "hoodie.cleaner.policy.failed.writes",
    "LAZY",
    one_of("EAGER", "LAZY", "NEVER"),
    "which pending writes count as failed: LAZY those whose heartbeat expired, EAGER all of them (only for a "
    "table without a live writer), NEVER none",
    aliases=("hoodie.clean.failed.writes.policy",),
)
SILENT_MINUTES: ConfigKey[int] = ConfigKey(
    "airflow_hudi.failed_writes.silent_minutes",
    60,
    whole_number(0, 10**6),
    "minutes without a change after which a write that never had a heartbeat counts as failed; the heartbeat's "
    "own time where LAZY is set by name, and none for pending instants that came with a copy of the table",
)
EARLY_DETECTION: ConfigKey[bool] = ConfigKey(
    "hoodie.write.concurrency.early.conflict.detection.enable",
    False,
    boolean,
    "check for markers of other live writers before a file group is rewritten, and stop before the work instead "
    "of after it",
)
BLOCK_ON_REQUESTED: ConfigKey[bool] = ConfigKey(
    "hoodie.clustering.fail.on.pending.ingestion.during.conflict.resolution",
    False,
    boolean,
    "with PreferWriterConflictResolutionStrategy, a clustering yields to a live write that has not recorded yet "
    "what it writes",
)
COMPACTION_YIELDS: ConfigKey[bool] = ConfigKey(
    "airflow_hudi.compaction.yields",
    False,
    boolean,
    "a compaction consults the conflict resolution strategy before it commits; off, as in Hudi, where writes "
    "beside a compaction are no conflict",
)
FILE_GROUP_LOCKS: ConfigKey[bool] = ConfigKey(
    "airflow_hudi.lock.file_groups",
    False,
    boolean,
    "lock each file group that a service rewrites; our own services then stop on a conflict instead of waiting",
)

TRANSACTION_KEYS: tuple[ConfigKey[object], ...] = (
    CLOCK_SKEW_MS,
    CONCURRENCY_MODE,
    CONFLICT_STRATEGY,
    FAILED_WRITES_POLICY,
    EARLY_DETECTION,
    SILENT_MINUTES,
    BLOCK_ON_REQUESTED,
    COMPACTION_YIELDS,
    FILE_GROUP_LOCKS,
)
"""Every option of this module."""
