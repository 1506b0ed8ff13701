"""File names of the timeline in layout 2, table versions 8 and 9 (InstantFileNameGeneratorV2, InstantGeneratorV2).

    T.<action>.requested    T.<action>.inflight    T_C.<action>

T is the requested time, C the completion time. The inflight file of a commit is `T.inflight`. Compaction, logcompaction
and clustering complete as `commit`, `deltacommit` and `replacecommit`; a savepoint has no requested file. A completed
name without a completion time is left from before an upgrade: its completion time is the file's modification time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from hudi_core.errors import TimelineError
from hudi_core.timeline import naming_v1
from hudi_core.timeline.instant import Instant, State, completed_action
from hudi_core.timeline.naming_v1 import COMPLETED, ENDINGS, Shown, checked, highest_states, is_time

_ACTION = re.compile(r"^[a-z]{1,40}\Z", re.ASCII)

CompletionOf = Callable[[str], str | None]
"""The completion time of a completed file that does not name it, by file name."""


def shown_by(name: str, completion_of: CompletionOf) -> Shown | None:
    """The state that a file name shows, None for a foreign name. Unchecked as naming_v1.shown_by."""
    times, _, ending = name.partition(".")
    known = ENDINGS.get(ending)
    if known is not None and known[1] != COMPLETED:
        return times, known[0], known[1], None, False
    time, separator, completion = times.partition("_")
    if separator:
        named = known is not None or (_ACTION.match(ending) is not None and ending != "requested")
        return (time, ending, COMPLETED, completion, False) if named and is_time(completion) else None
    shown = naming_v1.shown_by(name)
    if shown is None or shown[2] != COMPLETED:
        return shown
    return shown[0], shown[1], COMPLETED, completion_of(name), True


def parse(name: str, completion_of: CompletionOf) -> Instant | None:
    """The instant that a file name shows, or None for a name that is not a timeline file's. Unknown actions parse."""
    return checked(shown_by(name, completion_of))


def file_name(requested_time: str, action: str, state: State, completion_time: str | None = None) -> str:
    """The name of the file of `state` for the pending `action`. Raises TimelineError for malformed parts."""
    if state is not State.COMPLETED:
        return naming_v1.file_name(requested_time, action, state)
    name = f"{requested_time}_{completion_time}.{completed_action(action)}"
    if parse(name, lambda _: None) is None:
        raise TimelineError(
            f"{requested_time!r}, {completion_time!r} and {action!r} make no name of a completed instant",
            remedy=(
                "in timeline layout 2 a completed instant has a requested and a completion time, each a run of digits"
            ),
        )
    return name


def instants(names: Iterable[str], completion_of: CompletionOf) -> list[Instant]:
    """The instants in a listing of names; of several completed files of one, which a race leaves, the first counts."""
    return highest_states(shown_by(name, completion_of) for name in names)
