"""Options of cleaning (HoodieCleanConfig), under the names of Hudi 1.x, with those of 0.15 as aliases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

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
from hudi_core.errors import ConfigError

KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"

_NO_CAP = 2**63 - 1


CLEAN_POLICY = ConfigKey(
    "hoodie.clean.policy",
    None,
    one_of(KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS, KEEP_LATEST_BY_HOURS),
    "what a clean keeps: KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS or KEEP_LATEST_BY_HOURS; when absent, the"
    " policy of the one retention option that is set, otherwise KEEP_LATEST_COMMITS",
    aliases=("hoodie.cleaner.policy",),
)
CLEAN_COMMITS_RETAINED = number(
    "hoodie.clean.commits.retained",
    10,
    "number of commits whose file slices KEEP_LATEST_COMMITS keeps, and the slice before them",
    aliases=("hoodie.cleaner.commits.retained",),
)
CLEAN_HOURS_RETAINED = number(
    "hoodie.clean.hours.retained",
    24,
    "hours for which KEEP_LATEST_BY_HOURS keeps file slices, and the slice before them",
    within=(1, 24 * 366 * 1000),
    aliases=("hoodie.cleaner.hours.retained",),
)
CLEAN_VERSIONS_RETAINED = number(
    "hoodie.clean.fileversions.retained",
    3,
    "number of file slices of each file group that KEEP_LATEST_FILE_VERSIONS keeps",
    aliases=("hoodie.cleaner.fileversions.retained",),
)
CLEAN_TRIGGER = ConfigKey(
    "hoodie.clean.trigger.strategy",
    "NUM_COMMITS",
    one_of("NUM_COMMITS"),
    "what makes a clean due: NUM_COMMITS since the last one",
)
CLEAN_TRIGGER_COMMITS = number(
    "hoodie.clean.trigger.max.commits",
    1,
    "commits since the last clean that make the next one due",
    within=(0, MAX_INT),
    aliases=("hoodie.clean.max.commits",),
)
CLEAN_INCREMENTAL = flag(
    "hoodie.clean.incremental.enabled",
    "scan only the partitions that commits changed since the last clean, where the timeline records them",
    default=True,
    aliases=("hoodie.cleaner.incremental.mode",),
)
CLEAN_PARALLELISM = number(
    "hoodie.clean.parallelism",
    200,
    "largest number of tasks that delete files",
    within=(1, 10**6),
    aliases=("hoodie.cleaner.parallelism",),
)
CLEAN_MULTIPLE = flag(
    "hoodie.clean.multiple.enabled",
    "plan a clean although another one is pending",
    aliases=("hoodie.clean.allow.multiple",),
)
CLEAN_MAX_COMMITS = number(
    "hoodie.clean.max.commits.to.clean",
    _NO_CAP,
    "largest number of commits by which one clean advances; not for file versions",
    within=(1, _NO_CAP),
)
CLEAN_PARTITION_REGEX = ConfigKey(
    "hoodie.clean.partition.filter.regex",
    None,
    lambda value: regular_expression(value) or None,
    "clean only partitions whose whole path matches; needs hoodie.clean.incremental.enabled=false",
    aliases=("hoodie.cleaner.partition.filter.regex",),
)
CLEAN_PARTITIONS = names(
    "hoodie.clean.partition.filter.selected",
    "clean only these partitions; takes precedence over the regular expression, and needs "
    "hoodie.clean.incremental.enabled=false",
    aliases=("hoodie.cleaner.partition.filter.selected",),
)

CLEAN_KEYS = keys_in(globals())

_RETENTIONS: tuple[tuple[ConfigKey[int], str], ...] = (
    (CLEAN_COMMITS_RETAINED, KEEP_LATEST_COMMITS),
    (CLEAN_HOURS_RETAINED, KEEP_LATEST_BY_HOURS),
    (CLEAN_VERSIONS_RETAINED, KEEP_LATEST_FILE_VERSIONS),
)


@dataclass(frozen=True, slots=True)
class CleanConfig:
    """How a clean is planned and run. `max_commits` is None without a cap."""

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
        """Raises ConfigError for values that are not valid, and for a partition filter with incremental cleaning."""
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
        """Whether a partition passes the filter; every one does without a filter."""
        if self.partitions:
            return partition in self.partitions
        return self.partition_regex is None or re.fullmatch(self.partition_regex, partition) is not None


def _policy(options: Mapping[str, str]) -> str:
    """The policy; when it is not set, that of the one retention that is set (HoodieCleanConfig.CLEANER_POLICY)."""
    chosen = CLEAN_POLICY.read(options)
    if chosen is not None:
        return chosen
    implied = [policy for key, policy in _RETENTIONS if key.is_set(options)]
    return implied[0] if len(implied) == 1 else KEEP_LATEST_COMMITS
