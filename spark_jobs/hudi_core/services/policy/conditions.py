"""Whether one of the conditions of a policy makes a service due (request/conditions.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Final

from hudi_core.config.services.clustering_config import SMALL_FILE_LIMIT
from hudi_core.config.services.compaction_config import COMPACTION_DELTA_COMMITS, COMPACTION_TRIGGER, Trigger
from hudi_core.errors import TimelineError
from hudi_core.request.conditions import Conditions
from hudi_core.services.compaction.triggers import is_after, last_request
from hudi_core.services.context import TableContext
from hudi_core.services.planning import was_cut
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.timeline.pending_plans import is_clustering
from hudi_core.timeline.timeline import Timeline

_ALWAYS: Final[Mapping[str, Mapping[str, str]]] = {
    "compaction": {COMPACTION_TRIGGER.name: Trigger.NUM_COMMITS.value, COMPACTION_DELTA_COMMITS.name: "1"}
}
"""Options by which a service that a condition makes due is planned, where the policy does not set them."""


@dataclass(frozen=True, slots=True)
class FileSizes:
    """Of all latest file slices: bytes of base files and of log files, how many base files are small, and their
    bytes.
    """

    base: int = 0
    logs: int = 0
    small_files: int = 0
    small: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a service is due by its conditions; `why` names those that hold, or how far each is from it."""

    due: bool
    why: str


def answer(context: TableContext, service: str, when: Mapping[str, str], now: datetime | None = None) -> Answer | None:
    """By the conditions `when`; None without any: the service's own triggers decide. What an earlier plan had no room
    for is due. Raises ConfigError for a condition that is not valid. One listing of the table where files count.
    """
    conditions = Conditions.of(service, when)
    if conditions == Conditions():
        return None
    timeline = context.active.load()
    last = last_run(context, timeline, service)
    if service in ("compaction", "clustering") and was_cut(context, last):
        return Answer(True, f"the plan {last.requested_time if last else ''} left out what did not fit into its bytes")
    since = commits_since(context, timeline, service, last)
    if not since:
        return Answer(False, f"no commit since {_shown(last)}")
    found = [*_by_commits(context, conditions, since, last, now or datetime.now(timezone.utc))]
    if conditions.needs_files:
        found += _by_files(conditions, service, file_sizes(context, timeline))
    held = [text for holds, text in found if holds]
    return Answer(True, "; ".join(held)) if held else Answer(False, "; ".join(text for _, text in found))


def always_planned(context: TableContext, service: str, when: Mapping[str, str]) -> TableContext:
    """The table with options by which the service is planned where it is due by conditions."""
    if not when:
        return context
    return replace(context, options={**_ALWAYS.get(service, {}), **context.options})


def last_run(context: TableContext, timeline: Timeline, service: str) -> Instant | None:
    """The newest instant of the service on the timeline: a clean that is completed, any compaction or clustering."""
    if service == "compaction":
        return last_request(timeline)
    if service == "clean":
        return timeline.completed().of_actions(Action.CLEAN).last()
    earlier = reversed(timeline.of_actions(Action.CLUSTERING, Action.REPLACE_COMMIT).instants)
    return next((item for item in earlier if is_clustering(context.active, item)), None)


def commits_since(context: TableContext, timeline: Timeline, service: str, last: Instant | None) -> list[Instant]:
    """The completed commits that the service has not seen, oldest first; of a compaction delta commits."""
    commits = timeline.commits()
    if service == "compaction":
        commits = commits.of_actions(Action.DELTA_COMMIT)
    if last is None:
        return [*commits]
    by_completion = context.config.features.completion_time_in_name
    return [item for item in commits if item != last and is_after(item, last, by_completion=by_completion)]


def file_sizes(context: TableContext, timeline: Timeline) -> FileSizes:
    """Of the table as it is at `timeline`."""
    limit = SMALL_FILE_LIMIT.read(context.options)
    view = context.view(timeline)
    base = logs = count = small = 0
    for partition in view.partitions():
        for item in view.latest_merged_slices(partition):
            logs += sum(file.size for file in item.log_files)
            if item.base_file is not None:
                base += item.base_file.size
                if item.base_file.size < limit:
                    count += 1
                    small += item.base_file.size
    return FileSizes(base, logs, count, small)


def _by_commits(
    context: TableContext, conditions: Conditions, since: list[Instant], last: Instant | None, now: datetime
) -> Iterator[tuple[bool, str]]:
    if conditions.commits is not None:
        yield _compared(len(since), conditions.commits, f"commits since {_shown(last)}", str)
    if conditions.age is not None:
        yield _by_age(context, conditions.age, min(item.completed_at for item in since), last, now)


def _by_age(context: TableContext, due: float, completed: str, last: Instant | None, now: datetime) -> tuple[bool, str]:
    """A time that is no date, as that of a bootstrap, is long ago."""
    try:
        moment = parse_instant(completed, context.zone).astimezone(timezone.utc)
    except TimelineError:
        return True, f"the first commit after {_shown(last)} is {completed}, which is no date and counts as long ago"
    age = max(0, int((now - moment).total_seconds()))
    return _compared(age, due, f"since the first commit after {_shown(last)}", _seconds)


def _by_files(conditions: Conditions, service: str, sizes: FileSizes) -> Iterator[tuple[bool, str]]:
    clusters = service == "clustering"
    if conditions.size is not None:
        size, what = (sizes.small, "in small files") if clusters else (sizes.logs, "in log files")
        yield _compared(size, conditions.size, what, _bytes)
    if conditions.log_ratio is not None:
        ratio = sizes.logs / max(1, sizes.base)
        yield _compared(ratio, conditions.log_ratio, "bytes of log files for each of base files", "{:.2f}".format)
    if conditions.small_files is not None:
        yield _compared(sizes.small_files, conditions.small_files, "small files", str)


def _compared(found: float, due: float, what: str, shown: Callable[..., str]) -> tuple[bool, str]:
    return found >= due, f"{shown(found)} {what}, due at {shown(due)}"


def _shown(last: Instant | None) -> str:
    return f"{last.pending_action} {last.requested_time}" if last else "the beginning of the timeline"


def _seconds(value: float) -> str:
    return f"{value:.0f} s"


def _bytes(value: float) -> str:
    return f"{value / (1 << 20):.1f} MiB"
