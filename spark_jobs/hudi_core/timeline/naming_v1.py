"""File names of the timeline in layout 1, table version 6 (HoodieInstant.getFileName of 0.15).

    T.<action>.requested    T.<action>.inflight    T.<action>

with two exceptions: the inflight file of a commit is `T.inflight`, and compaction and logcompaction complete as `T.commit` and
`T.deltacommit`. A savepoint has no requested file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hudi_core.errors import TimelineError
from hudi_core.timeline.instant import KNOWN_ACTIONS, Action, Instant, State, completed_action

FOLDER = ".hoodie"
"""Where the files lie, relative to the base path of the table that they belong to."""

_NAME = re.compile(r"^(?P<time>\d{1,40})\.(?P<action>[a-z]{1,40})(?:\.(?P<state>requested|inflight))?\Z", re.ASCII)


def parse(name: str) -> Instant | None:
    """The instant that a file name shows, or None for a name that is not a timeline file's. Unknown actions parse."""
    match = _NAME.match(name)
    if match is None or match["action"] == "requested":
        return None
    if match["state"] is None and match["action"] == "inflight":
        return Instant(match["time"], Action.COMMIT, State.INFLIGHT)
    if match["action"] == "inflight":
        return None
    state = State.COMPLETED if match["state"] is None else State(match["state"])
    return Instant(match["time"], match["action"], state)


def file_name(requested_time: str, action: str, state: State) -> str:
    """The name of the file that shows `state`; `action` is the pending action (`compaction`). Raises TimelineError for malformed parts."""
    if state is State.COMPLETED:
        name = f"{requested_time}.{completed_action(action)}"
    elif state is State.INFLIGHT and action == Action.COMMIT:
        name = f"{requested_time}.inflight"
    else:
        name = f"{requested_time}.{action}.{state.value}"
    if _NAME.match(name) is None:
        raise TimelineError(f"{requested_time!r} and {action!r} make no timeline file name", remedy="an instant is a run of digits")
    return name


def instants(names: Iterable[str]) -> list[Instant]:
    """The instants that a listing of names shows: per instant time and action class the highest state only (TimelineLayout's filter).

    A bare `T.<unknown>` is an action's completion only when the same action's pending file is there; else it is a foreign file.
    """
    shown = [instant for instant in map(parse, names) if instant is not None]
    pending = {(instant.requested_time, instant.action) for instant in shown if not instant.is_completed}
    highest: dict[tuple[str, str], Instant] = {}
    planned: dict[tuple[str, str], str] = {}
    for instant in shown:
        if instant.is_completed and instant.action not in KNOWN_ACTIONS and (instant.requested_time, instant.action) not in pending:
            continue
        key = (instant.requested_time, completed_action(instant.action))
        if not instant.is_completed:
            planned[key] = instant.action
        other = highest.get(key)
        if other is None or instant.state.rank > other.state.rank:
            highest[key] = instant
    return [
        Instant(instant.requested_time, instant.action, instant.state, instant.completion_time, planned.get(key)) for key, instant in highest.items()
    ]
