"""Options of cleaning (HoodieCleanConfig; names of Hudi 0.15 are aliases) and archival (HoodieArchivalConfig)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from hudi_core.config.keys import (
    MAX_INT,
    ConfigKey,
    flag,
    keys_in,
    names,
    number,
    one_of,
    read_fields,
    regular_expression,
)
from hudi_core.config.services import compaction_config as compaction
from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass

KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"

_NO_CAP = 2**63 - 1

CLEAN_POLICY = ConfigKey(
    "hoodie.clean.policy",
    None,
    one_of(KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS, KEEP_LATEST_BY_HOURS),
    aliases=("hoodie.cleaner.policy",),
)
CLEAN_COMMITS_RETAINED = number("hoodie.clean.commits.retained", 10, aliases=("hoodie.cleaner.commits.retained",))
CLEAN_HOURS_RETAINED = number(
    "hoodie.clean.hours.retained", 24, within=(1, 24 * 366 * 1000), aliases=("hoodie.cleaner.hours.retained",)
)
CLEAN_VERSIONS_RETAINED = number(
    "hoodie.clean.fileversions.retained", 3, aliases=("hoodie.cleaner.fileversions.retained",)
)
CLEAN_TRIGGER = ConfigKey("hoodie.clean.trigger.strategy", "NUM_COMMITS", one_of("NUM_COMMITS"))
CLEAN_TRIGGER_COMMITS = number(
    "hoodie.clean.trigger.max.commits", 1, within=(0, MAX_INT), aliases=("hoodie.clean.max.commits",)
)
CLEAN_INCREMENTAL = flag("hoodie.clean.incremental.enabled", default=True, aliases=("hoodie.cleaner.incremental.mode",))
CLEAN_PARALLELISM = number("hoodie.clean.parallelism", 200, within=(1, 10**6), aliases=("hoodie.cleaner.parallelism",))
CLEAN_MULTIPLE = flag("hoodie.clean.multiple.enabled", aliases=("hoodie.clean.allow.multiple",))
CLEAN_MAX_COMMITS = number("hoodie.clean.max.commits.to.clean", _NO_CAP, within=(1, _NO_CAP))
CLEAN_PARTITION_REGEX = ConfigKey(
    "hoodie.clean.partition.filter.regex",
    None,
    lambda value: regular_expression(value) or None,
    aliases=("hoodie.cleaner.partition.filter.regex",),
)
CLEAN_PARTITIONS = names(
    "hoodie.clean.partition.filter.selected", aliases=("hoodie.cleaner.partition.filter.selected",)
)

CLEAN_KEYS = keys_in(globals())

_RETENTIONS: tuple[tuple[ConfigKey[int], str], ...] = (
    (CLEAN_COMMITS_RETAINED, KEEP_LATEST_COMMITS),
    (CLEAN_HOURS_RETAINED, KEEP_LATEST_BY_HOURS),
    (CLEAN_VERSIONS_RETAINED, KEEP_LATEST_FILE_VERSIONS),
)


@dataclass(frozen=True, slots=True)
class CleanConfig:
    """How a clean is planned and run. `max_commits` None means no cap."""

    policy: str
    commits_retained: int = CLEAN_COMMITS_RETAINED.field()
    hours_retained: int = CLEAN_HOURS_RETAINED.field()
    versions_retained: int = CLEAN_VERSIONS_RETAINED.field()
    trigger_commits: int = CLEAN_TRIGGER_COMMITS.field()
    incremental: bool = CLEAN_INCREMENTAL.field()
    parallelism: int = CLEAN_PARALLELISM.field()
    multiple: bool = CLEAN_MULTIPLE.field()
    max_commits: int | None = CLEAN_MAX_COMMITS.field()
    partition_regex: str | None = CLEAN_PARTITION_REGEX.field()
    partitions: tuple[str, ...] = CLEAN_PARTITIONS.field()

    @staticmethod
    def of(options: Mapping[str, str]) -> CleanConfig:
        """Reads the options. Raises ConfigError for bad ones, and for a partition filter with incremental cleaning."""
        CLEAN_TRIGGER.read(options)
        cap = CLEAN_MAX_COMMITS.read(options)
        config = read_fields(CleanConfig, options, policy=_policy(options), max_commits=None if cap == _NO_CAP else cap)
        if config.incremental and config.has_partition_filter:
            raise ConfigError(
                "a partition filter cannot be used with incremental cleaning: skipped partitions would never "
                "be cleaned again",
                remedy=f"set {CLEAN_INCREMENTAL.name}=false, or omit the filter",
            )
        return config

    @property
    def has_partition_filter(self) -> bool:
        return bool(self.partitions) or self.partition_regex is not None

    @property
    def retention(self) -> ConfigKey[int]:
        return next(key for key, policy in _RETENTIONS if policy == self.policy)

    @property
    def retained(self) -> int:
        """The value of `retention`: commits, hours or file versions."""
        amounts = {KEEP_LATEST_COMMITS: self.commits_retained, KEEP_LATEST_BY_HOURS: self.hours_retained}
        return amounts.get(self.policy, self.versions_retained)

    def takes(self, partition: str) -> bool:
        """Whether a partition passes the filter. Without a filter, every partition passes."""
        if self.partitions:
            return partition in self.partitions
        return self.partition_regex is None or re.fullmatch(self.partition_regex, partition) is not None


def _policy(options: Mapping[str, str]) -> str:
    """Returns the policy, or else that of the one retention that is set (HoodieCleanConfig.CLEANER_POLICY)."""
    chosen = CLEAN_POLICY.read(options)
    if chosen is not None:
        return chosen
    implied = [policy for key, policy in _RETENTIONS if key.is_set(options)]
    return implied[0] if len(implied) == 1 else KEEP_LATEST_COMMITS


REFUSE_ORPHANS = "refuse"
LEAVE_ORPHANS = "leave"
IGNORE_ORPHANS = "ignore"

KEEP_MAX = number("hoodie.keep.max.commits", 30)
KEEP_MIN = number("hoodie.keep.min.commits", 20)
ARCHIVE_BATCH = number("hoodie.commits.archival.batch", 10, within=(1, 10_000))
ARCHIVE_ON_CLEAN = flag("hoodie.archive.block.on.latest.clean.ectr")
ARCHIVE_BEYOND_SAVEPOINT = flag("hoodie.archive.beyond.savepoint")
HISTORY_BATCH = number("hoodie.timeline.compaction.batch.size", 10, within=(2, 10_000))
HISTORY_FILE_BYTES = number("hoodie.timeline.compaction.target.file.max.bytes", 1000 << 20, within=(1 << 10, 1 << 40))
HISTORY_MANIFESTS = number("hoodie.timeline.manifest.retained.versions", 3, within=(1, 10_000))
ORPHANS = ConfigKey(
    "airflow_hudi.archive.orphans", REFUSE_ORPHANS, one_of(REFUSE_ORPHANS, LEAVE_ORPHANS, IGNORE_ORPHANS)
)

ARCHIVE_KEYS = keys_in(globals(), but=CLEAN_KEYS)


@dataclass(frozen=True, slots=True)
class ArchiveConfig:
    """What is archived and how. `delta_commits` is None when the compaction's trigger counts none."""

    keep_min: int = KEEP_MIN.field()
    keep_max: int = KEEP_MAX.field()
    beyond_savepoint: bool = ARCHIVE_BEYOND_SAVEPOINT.field()
    block_on_clean: bool = ARCHIVE_ON_CLEAN.field()
    delta_commits: int | None = compaction.COMPACTION_DELTA_COMMITS.field()
    orphans: str = ORPHANS.field()
    batch: int = ARCHIVE_BATCH.field()
    history_batch: int = HISTORY_BATCH.field()
    history_file_bytes: int = HISTORY_FILE_BYTES.field()
    manifests_retained: int = HISTORY_MANIFESTS.field()

    @staticmethod
    def of(options: Mapping[str, str]) -> ArchiveConfig:
        """Reads the options. Raises ConfigError for bad ones, and when no commit would ever be archived."""
        config = read_fields(ArchiveConfig, options)
        if config.keep_min >= config.keep_max:
            message = f"{KEEP_MIN.name} is {config.keep_min} and {KEEP_MAX.name} is {config.keep_max}"
            raise ConfigError(message, remedy="keep more commits at most than at least")
        counts = compaction.COMPACTION_TRIGGER.read(options) in ("NUM_COMMITS", "NUM_AND_TIME")
        return config if counts else replace(config, delta_commits=None)
