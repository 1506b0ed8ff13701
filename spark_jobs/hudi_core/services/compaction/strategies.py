"""Decides when a compaction is due (ScheduleCompactionActionExecutor.needCompact), which file groups its plan takes,
and in which order (the classes of org.apache.hudi.table.action.compact.strategy). Pure.

A strategy chooses partitions first, and then operations in these partitions. Several strategies work one after the
other (CompositeCompactionStrategy). The strategies by day read a partition path as `yyyy/MM/dd`, also with the names of
Hive-style partitions. Hudi's strategies by day rewrite `-` in a path to `/`, and then find no file; here paths stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Final

import numpy as np

from hudi_core.config.services.compaction_config import (
    COMPACTION_DELTA_COMMITS,
    COMPACTION_DELTA_SECONDS,
    COMPACTION_STRATEGY,
    COMPACTION_TRIGGER,
    LOG_NUM_THRESHOLD,
    LOG_SIZE_THRESHOLD,
    PARTITION_REGEX,
    TARGET_PARTITIONS,
    CompactionConfig,
    Strategy,
    Trigger,
)
from hudi_core.errors import ConfigError, TimelineError
from hudi_core.frozen import dataclass
from hudi_core.services.compaction.candidates import Candidates
from hudi_core.services.service import NO_OPTION
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.slice_columns import Numbers

_DAY: Final = re.compile(r"(\d{1,4})/(\d{1,4})/(\d{1,4})")
_FIRST_NAME: Final = re.compile(r"^.*?=")
_NAMES: Final = re.compile(r"/[^/]*?=")
_MONTHS: Final = 12
_LIMITS: Final[Mapping[Strategy, str]] = {
    Strategy.LOG_FILE_SIZE: LOG_SIZE_THRESHOLD.name,
    Strategy.LOG_FILE_NUM: LOG_NUM_THRESHOLD.name,
    Strategy.DAY_BASED: TARGET_PARTITIONS.name,
    Strategy.BOUNDED_PARTITION_AWARE: TARGET_PARTITIONS.name,
    Strategy.UNBOUNDED_PARTITION_AWARE: TARGET_PARTITIONS.name,
    Strategy.PARTITION_REGEX: PARTITION_REGEX.name,
}
"""The option that can make a strategy take nothing."""


@dataclass(frozen=True, slots=True)
class Strategies:
    """The strategies of a configuration. `today` is the day in the writers' zone. With `bounds_days` DAY_BASED takes
    operations by the budget, as in 1.x; otherwise by days.
    """

    config: CompactionConfig
    today: date
    bounds_days: bool = True

    @property
    def options(self) -> str:
        """The names of the options that make the strategies take more or less, for reasons."""
        limits = (_LIMITS[strategy] for strategy in self.config.strategies if strategy in _LIMITS)
        return ", ".join(dict.fromkeys((COMPACTION_STRATEGY.name, *limits)))

    def partitions(self, paths: Sequence[str]) -> list[str]:
        """The partitions that are listed. Raises ConfigError for a path that is no day, where a strategy is by day."""
        taken = list(paths)
        for strategy in self.config.strategies:
            taken = self._partitions(strategy, taken)
        return taken

    def rows(self, candidates: Candidates) -> Numbers:
        """The rows of the plan, in its order. Raises ConfigError as `partitions` does."""
        taken: Numbers = np.arange(len(candidates))
        for strategy in self.config.strategies:
            taken = self._rows(strategy, candidates, taken)
        return taken

    def _partitions(self, strategy: Strategy, paths: list[str]) -> list[str]:
        match strategy:
            case Strategy.PARTITION_REGEX:
                pattern = re.compile(self.config.partition_regex)
                return [path for path in paths if pattern.search(path)]
            case Strategy.DAY_BASED:
                return sorted(paths, key=_ordinal, reverse=True)[: self.config.target_partitions]
            case Strategy.BOUNDED_PARTITION_AWARE:
                return [path for path in sorted(paths, key=_ordinal, reverse=True) if _ordinal(path) >= self._first_day]
            case Strategy.UNBOUNDED_PARTITION_AWARE:
                return [path for path in sorted(paths, key=_ordinal, reverse=True) if _ordinal(path) < self._first_day]
        return paths

    def _rows(self, strategy: Strategy, candidates: Candidates, rows: Numbers) -> Numbers:
        config = self.config
        match strategy:
            case Strategy.LOG_FILE_SIZE:
                return self._within_io(candidates, _largest(candidates.log_bytes, rows, config.log_size_threshold))
            case Strategy.LOG_FILE_NUM:
                return self._within_io(candidates, _largest(candidates.log_counts, rows, config.log_num_threshold))
            case Strategy.BOUNDED_IO:
                return self._within_io(candidates, rows)
            case Strategy.DAY_BASED:
                return self._within_io(candidates, rows) if self.bounds_days else self._latest_days(candidates, rows)
            case Strategy.BOUNDED_PARTITION_AWARE:
                return _largest(_days(candidates, rows), rows, self._first_day)
            case Strategy.UNBOUNDED_PARTITION_AWARE:
                return rows[_days(candidates, rows)[rows] < self._first_day]
        return rows

    @property
    def _first_day(self) -> int:
        """The day that is `target_partitions` days before today."""
        return self.today.toordinal() - self.config.target_partitions

    def _latest_days(self, candidates: Candidates, rows: Numbers) -> Numbers:
        def latest_first(at: int) -> tuple[int, str]:
            return -_ordinal(candidates.partitions[at]), candidates.partitions[at]

        partition_of = candidates.partition_of[rows]
        latest = sorted(np.unique(partition_of).tolist(), key=latest_first)[: self.config.target_partitions]
        return np.concatenate([rows[:0], *(rows[partition_of == at] for at in latest)])

    def _within_io(self, candidates: Candidates, rows: Numbers) -> Numbers:
        """Returns the first rows, up to and with the one that uses up the budget."""
        spent = np.cumsum(candidates.io_mb[rows])
        return rows[: np.searchsorted(spent, self.config.target_io_mb) + 1]


def _largest(values: Numbers, rows: Numbers, least: int) -> Numbers:
    """Returns the rows whose value is not below `least`, the largest first."""
    taken = rows[values[rows] >= least]
    return taken[np.argsort(-values[taken], kind="stable")]


def _days(candidates: Candidates, rows: Numbers) -> Numbers:
    """Returns the day of each candidate's partition, of `rows` alone; the others have none."""
    days = np.zeros(len(candidates.partitions), np.int64)
    for at in np.unique(candidates.partition_of[rows]).tolist():
        days[at] = _ordinal(candidates.partitions[at])
    return days[candidates.partition_of]


def _ordinal(partition: str) -> int:
    """Returns a partition's day as SimpleDateFormat reads it: month or day may be too large, the rest is ignored."""
    matched = _DAY.match(_NAMES.sub("/", _FIRST_NAME.sub("", partition)))
    if matched is not None:
        year, month, day = map(int, matched.groups())
        years, months = divmod(month - 1, _MONTHS)
        if 1 <= year + years <= date.max.year:
            return date(year + years, months + 1, 1).toordinal() + day - 1
    raise ConfigError(
        f"the partition {partition!r} is no day",
        remedy=f"choose another strategy ({COMPACTION_STRATEGY.name}): those by day need paths as yyyy/MM/dd",
    )


def why_not_due(
    timeline: Timeline, instant: str, config: CompactionConfig, *, by_completion: bool, zone: str = "UTC"
) -> str | None:
    """Returns why a compaction at `instant` is not due, and which option would change that; None when it is due.

    With `by_completion`, as in layout 2, those delta commits count that completed after the last compaction was
    requested (CompactionUtils.getCompletedDeltaCommitsSinceLatestCompaction of 1.x). Otherwise those count that were
    requested after it, pending ones included (getDeltaCommitsSinceLatestCompaction of 0.15). With
    NUM_COMMITS_AFTER_LAST_REQUEST it is the latter, from the newest pending compaction on
    (getDeltaCommitsSinceLatestCompactionRequest). Without a compaction, time counts from the first delta commit.
    """
    deltas = timeline.of_actions(Action.DELTA_COMMIT)
    of_requests = config.trigger is Trigger.NUM_COMMITS_AFTER_LAST_REQUEST
    last = timeline.completed().of_actions(Action.COMMIT).last()
    if of_requests:
        last = timeline.pending_compactions().last() or last
    since = last or deltas.first()
    if since is None:
        return f"the table has no delta commit{NO_OPTION}"
    completes = by_completion and not of_requests
    if completes:
        deltas = deltas.completed()
    if last is not None:
        deltas = deltas.filter(lambda item: is_after(item, last, by_completion=completes))
    what = "plan" if of_requests else "compaction"
    after = f"the last {what} ({last.requested_time})" if last else f"the first one ({since.requested_time})"
    seconds = _seconds_between(since.requested_time, instant, zone)
    by_number = len(deltas) >= config.delta_commits
    by_time = seconds is None or seconds >= config.delta_seconds
    number = f"{len(deltas)} delta commits since {after}, but {COMPACTION_DELTA_COMMITS.name} is {config.delta_commits}"
    time = f"{seconds} s since {after}, but {COMPACTION_DELTA_SECONDS.name} is {config.delta_seconds}"
    match config.trigger:
        case Trigger.TIME_ELAPSED:
            lacks = [] if by_time else [time]
        case Trigger.NUM_OR_TIME:
            lacks = [] if by_number or by_time else [number, time]
        case Trigger.NUM_AND_TIME:
            lacks = [*([] if by_number else [number]), *([] if by_time else [time])]
        case _:
            lacks = [] if by_number else [number]
    return f"{'; '.join(lacks)} ({COMPACTION_TRIGGER.name}={config.trigger.value})" if lacks else None


def _seconds_between(since: str, instant: str, zone: str) -> int | None:
    """Returns the seconds from `since` to `instant`; None where `since` is no date, as a bootstrap's."""
    try:
        began = parse_instant(since, zone)
    except TimelineError:
        return None
    return int(parse_instant(instant, zone).timestamp()) - int(began.timestamp())


def last_request(timeline: Timeline) -> Instant | None:
    """Returns the latest compaction that was planned, in any state."""
    return timeline.filter(
        lambda item: item.pending_action == Action.COMPACTION or (item.is_completed and item.action == Action.COMMIT)
    ).last()


def is_after(delta: Instant, last: Instant, *, by_completion: bool) -> bool:
    """Whether a commit came after `last` was requested: by its completion with `by_completion`, else by its request."""
    if by_completion:
        return delta.completed_at > last.requested_time
    return delta.requested_time > last.requested_time
