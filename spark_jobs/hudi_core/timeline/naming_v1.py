"""File names of the timeline in layout 1, table version 6 (HoodieInstant.getFileName of 0.15).

    T.<action>.requested    T.<action>.inflight    T.<action>

with two exceptions: the inflight file of a commit is `T.inflight`, and compaction and logcompaction complete as
`T.commit` and `T.deltacommit`. A savepoint has no requested file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from hudi_core.errors import TimelineError
from hudi_core.timeline.instant import KNOWN_ACTIONS, STATES, Action, Instant, State, completed_action

_NAME = re.compile(r"^(?P<time>\d{1,40})\.(?P<action>[a-z]{1,40})(?:\.(?P<state>requested|inflight))?\Z", re.ASCII)
MAX_DIGITS: Final = 40
"""Of a requested or completion time."""


Shown = tuple[str, str, int, str | None, bool]
"""The state in one file name: requested time, action, rank of the state, completion time, whether it is a legacy name.

It is a plain tuple because a timeline has three files for each instant: an Instant for every file tripled the time of
loading.
"""

_CLASSES: Final = {action: completed_action(action) for action in KNOWN_ACTIONS}
COMPLETED: Final = State.COMPLETED.rank
ENDINGS: Final = {
    "inflight": (Action.COMMIT, State.INFLIGHT.rank),
    **{
        f"{action}.{state.value}": (action, state.rank)
        for action in KNOWN_ACTIONS
        for state in (State.REQUESTED, State.INFLIGHT)
    },
    **{action: (action, COMPLETED) for action in KNOWN_ACTIONS},
}
"""The rest of a file name after the instant time and its dot, for the actions that Hudi writes.

Most names of a timeline are found by this look-up.
"""


def shown_by(name: str) -> Shown | None:
    """The state that a file name shows, or None for a name that is not a timeline file's; unknown actions parse.

    The requested time is not checked (is_time): highest_states checks it once for each instant instead of for every
    file.
    """
    time, _, ending = name.partition(".")
    known = ENDINGS.get(ending)
    if known is not None:
        return time, known[0], known[1], None, False
    match = _NAME.match(name)
    if match is None or match["action"] in ("requested", "inflight"):
        return None
    return (
        match["time"],
        match["action"],
        COMPLETED if match["state"] is None else State(match["state"]).rank,
        None,
        False,
    )


def is_time(text: str) -> bool:
    """Whether `text` can be an instant time: a run of ASCII digits."""
    return text.isdigit() and text.isascii() and len(text) <= MAX_DIGITS


def checked(shown: Shown | None) -> Instant | None:
    """The instant in the state that a file shows; None when there is none or its requested time is no time."""
    return instant_of(shown) if shown is not None and is_time(shown[0]) else None


def instant_of(shown: Shown, planned_action: str | None = None) -> Instant:
    """The instant in the state that a file shows."""
    time, action, rank, completion, is_legacy = shown
    return Instant(time, action, STATES[rank], completion, planned_action, is_legacy)


def parse(name: str) -> Instant | None:
    """The instant that a file name shows, or None for a name that is not a timeline file's. Unknown actions parse."""
    return checked(shown_by(name))


def file_name(requested_time: str, action: str, state: State) -> str:
    """The name of the file of `state`; `action` is the pending one. Raises TimelineError for malformed parts."""
    if state is State.COMPLETED:
        name = f"{requested_time}.{completed_action(action)}"
    elif state is State.INFLIGHT and action == Action.COMMIT:
        name = f"{requested_time}.inflight"
    else:
        name = f"{requested_time}.{action}.{state.value}"
    if _NAME.match(name) is None:
        raise TimelineError(
            f"{requested_time!r} and {action!r} make no timeline file name", remedy="an instant is a run of digits"
        )
    return name


def instants(names: Iterable[str]) -> list[Instant]:
    """The instants in a listing of names: the highest state of each time and action class (TimelineLayout)."""
    return highest_states(map(shown_by, names))


def highest_states(files: Iterable[Shown | None]) -> list[Instant]:
    """The highest state of each instant time and action class, in timeline order.

    Of several completed states the earliest completion counts. None is a file that does not belong to the timeline. A
    completed instant of an unknown action counts only when a pending file of the same action exists; otherwise its file
    is a foreign one too.
    """
    completed: dict[tuple[str, str], Shown] = {}
    highest: dict[tuple[str, str], Shown] = {}
    for shown in files:
        if shown is None:
            continue
        time, action, rank, completion, _ = shown
        key = (time, _CLASSES.get(action, action))
        if rank == COMPLETED:
            other = completed.get(key)
            if other is None or (other[3] or "") > (completion or ""):
                completed[key] = shown
        else:
            other = highest.get(key)
            if other is None or rank > other[2]:
                highest[key] = shown
    planned = {key: shown[1] for key, shown in highest.items()}
    highest |= {
        key: shown for key, shown in completed.items() if shown[1] in KNOWN_ACTIONS or planned.get(key) == shown[1]
    }
    return [instant_of(highest[key], planned.get(key)) for key in sorted(highest) if is_time(key[0])]
