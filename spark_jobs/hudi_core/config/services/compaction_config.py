"""Options of planning compactions, under Hudi's own names (HoodieCompactionConfig)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from hudi_core.config.keys import (
    MAX_INT,
    ConfigKey,
    flag,
    keys_in,
    name_list,
    number,
    one_of,
    read_fields,
    regular_expression,
)
from hudi_core.frozen import dataclass

_MAX: Final = 2**53


class Trigger(Enum):
    """What makes a compaction due (CompactionTriggerStrategy)."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_OR_TIME = "NUM_OR_TIME"
    NUM_AND_TIME = "NUM_AND_TIME"


class Strategy(Enum):
    """Which file groups with log files a plan takes; the values are Hudi's class names."""

    LOG_FILE_SIZE = "LogFileSizeBasedCompactionStrategy"
    LOG_FILE_NUM = "LogFileNumBasedCompactionStrategy"
    BOUNDED_IO = "BoundedIOCompactionStrategy"
    DAY_BASED = "DayBasedCompactionStrategy"
    BOUNDED_PARTITION_AWARE = "BoundedPartitionAwareCompactionStrategy"
    UNBOUNDED_PARTITION_AWARE = "UnBoundedPartitionAwareCompactionStrategy"
    UNBOUNDED = "UnBoundedCompactionStrategy"
    PARTITION_REGEX = "PartitionRegexBasedCompactionStrategy"


def _strategies(value: str) -> tuple[Strategy, ...]:
    """Reads one class name, or several that work one after the other (CompositeCompactionStrategy)."""
    known = {strategy.value: strategy for strategy in Strategy}
    found = []
    for name in name_list(value):
        strategy = known.get(name.rpartition(".")[2])
        if strategy is None:
            raise ValueError(f"{name} is not one of {', '.join(known)}")
        found.append(strategy)
    if not found:
        raise ValueError("no strategy is named")
    return tuple(found)


COMPACTION_TRIGGER = ConfigKey(
    "hoodie.compact.inline.trigger.strategy", Trigger.NUM_COMMITS.value, one_of(*(trigger.value for trigger in Trigger))
)
COMPACTION_DELTA_COMMITS = number("hoodie.compact.inline.max.delta.commits", 5)
COMPACTION_DELTA_SECONDS = number("hoodie.compact.inline.max.delta.seconds", 3600, within=(0, MAX_INT))
COMPACTION_STRATEGY: ConfigKey[tuple[Strategy, ...]] = ConfigKey(
    "hoodie.compaction.strategy", (Strategy.LOG_FILE_SIZE,), _strategies
)
TARGET_IO_MB = number("hoodie.compaction.target.io", 500 * 1024, within=(1, _MAX))
LOG_SIZE_THRESHOLD = number("hoodie.compaction.logfile.size.threshold", 0, within=(0, _MAX))
LOG_NUM_THRESHOLD = number("hoodie.compaction.logfile.num.threshold", 0, within=(0, MAX_INT))
TARGET_PARTITIONS = number("hoodie.compaction.daybased.target.partitions", 10, within=(0, 10**6))
PARTITION_REGEX = ConfigKey("hoodie.compaction.partition.path.regex", ".*", regular_expression)
MAX_FILE_BYTES = number("hoodie.parquet.max.file.size", 120 * 1024 * 1024, within=(1, _MAX))
LOG_COMPACTION = flag("hoodie.log.compaction.enable")
LOG_COMPACTION_BLOCKS = number("hoodie.log.compaction.blocks.threshold", 5)

COMPACTION_KEYS = keys_in(globals())


@dataclass(frozen=True, slots=True)
class CompactionConfig:
    trigger: Trigger
    delta_commits: int = COMPACTION_DELTA_COMMITS.field()
    delta_seconds: int = COMPACTION_DELTA_SECONDS.field()
    strategies: tuple[Strategy, ...] = COMPACTION_STRATEGY.field()
    target_io_mb: int = TARGET_IO_MB.field()
    log_size_threshold: int = LOG_SIZE_THRESHOLD.field()
    log_num_threshold: int = LOG_NUM_THRESHOLD.field()
    target_partitions: int = TARGET_PARTITIONS.field()
    partition_regex: str = PARTITION_REGEX.field()
    max_file_bytes: int = MAX_FILE_BYTES.field()

    @staticmethod
    def of(options: Mapping[str, str]) -> CompactionConfig:
        return read_fields(CompactionConfig, options, trigger=Trigger(COMPACTION_TRIGGER.read(options)))
