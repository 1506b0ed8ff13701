"""Makes and reads file names of a timeline's two layouts (HoodieInstant.getFileName of 0.15; InstantFileNameGeneratorV2
of 1.x). model/names.py has the names of data files.

    layout 1, table version 6           T.<action>.requested    T.<action>.inflight    T.<action>
    layout 2, table versions 8 and 9    T.<action>.requested    T.<action>.inflight    T_C.<action>

T is the requested time, C the completion time. The inflight file of a commit is `T.inflight`. Compaction, logcompaction
and clustering (an action of layout 2 only) complete as `commit`, `deltacommit` and `replacecommit`. A savepoint has no
requested file. In layout 2, a completed name without a completion time is left from before an upgrade: its instant
completed when the file was modified (InstantGeneratorV2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from hudi_core.errors import TimelineError, UnsupportedVersionError
from hudi_core.timeline.instant import KNOWN_ACTIONS, STATES, Action, Instant, State, completed_action
from hudi_core.timeline.instant_time import of_epoch_seconds
from hudi_core.timeline.timeline import Timeline

_MAX_DIGITS: Final = 40
_NAME_1 = re.compile(r"^(?P<time>\d{1,40})\.(?P<action>[a-z]{1,40})(?:\.(?P<state>requested|inflight))?\Z", re.ASCII)
_ACTION = re.compile(r"^(?!(?:requested|inflight)\Z)[a-z]{1,40}\Z", re.ASCII)
_LAYOUTS: Final = (1, 2)

_Shown = tuple[str, str, int, str | None, bool]
"""What one file name shows: requested time, action, rank of the state, completion time, whether it is a legacy name. It
is a plain tuple because a timeline has three files for each instant: an Instant for every file tripled the time of
loading.
"""
_CLASSES: Final = {action: completed_action(action) for action in KNOWN_ACTIONS}
_COMPLETED: Final = State.COMPLETED.rank
_ENDINGS: Final = {
    "inflight": (Action.COMMIT, State.INFLIGHT.rank),
    **{f"{action}.{state.value}": (action, state.rank) for action in KNOWN_ACTIONS for state in STATES[:_COMPLETED]},
    **{action: (action, _COMPLETED) for action in KNOWN_ACTIONS},
}
"""The rest of a file name after the instant time and its dot. This look-up finds most names of a timeline."""


@dataclass(frozen=True, slots=True)
class Naming:
    layout_version: int

    @property
    def completes_by_name(self) -> bool:
        """Whether the exclusive create of the completed file decides which process completed the instant."""
        return self.layout_version == 1

    def instants(
        self, names: Iterable[str], modified: Callable[[str], float | None] = lambda _: None, zone: str = "LOCAL"
    ) -> list[Instant]:
        """Returns the instants that a listing of the folder's names shows, in their highest states only, in timeline
        order (Hudi's TimelineLayout). `modified`, in epoch seconds, and `zone` (instant_time.zone_of) give the
        completion time of a file that an upgrade did not rename. Instants of layout 1 have no completion time.
        """
        if self.layout_version == 1:
            return _highest_states(map(_shown_in_1, names))

        def completion_of(name: str) -> str | None:
            seconds = modified(name)
            return None if seconds is None else of_epoch_seconds(seconds, zone)

        return _highest_states(_shown_in_2(name, completion_of) for name in names)

    def file_name(self, requested_time: str, action: str, state: State, completion_time: str | None = None) -> str:
        """Returns the name of a state's file. `action` is the pending one. Raises TimelineError for malformed parts."""
        if self.layout_version == 1 or state is not State.COMPLETED:
            return legacy_name(requested_time, action, state)
        completed = completed_action(action)
        if not (is_time(requested_time) and is_time(completion_time or "") and _ACTION.match(completed)):
            raise TimelineError(
                f"{requested_time!r}, {completion_time!r} and {action!r} make no name of a completed instant",
                remedy="in timeline layout 2 a completed instant has a requested and a completion time, each a run of"
                " digits",
            )
        return f"{requested_time}_{completion_time}.{completed}"


def naming_for(layout_version: int) -> Naming:
    """Returns the rules of a layout. Raises UnsupportedVersionError for a layout that does not exist."""
    if layout_version not in _LAYOUTS:
        message = f"timeline layout {layout_version} is not supported"
        remedy = f"layouts {' and '.join(map(str, _LAYOUTS))} are"
        raise UnsupportedVersionError(message, path=".hoodie/hoodie.properties", remedy=remedy)
    return Naming(layout_version)


def timeline_of(
    names: Iterable[str], layout_version: int = 1, modified: Mapping[str, float] | None = None, zone: str = "LOCAL"
) -> Timeline:
    """Returns the timeline that names in its folder show; see Naming.instants."""
    return Timeline.in_order(naming_for(layout_version).instants(names, (modified or {}).get, zone))


def legacy_name(requested_time: str, action: str, state: State) -> str:
    """Returns the name of a state's file in layout 1. Raises TimelineError for malformed parts."""
    if state is State.COMPLETED:
        name = f"{requested_time}.{completed_action(action)}"
    elif state is State.INFLIGHT and action == Action.COMMIT:
        name = f"{requested_time}.inflight"
    else:
        name = f"{requested_time}.{action}.{state.value}"
    if _NAME_1.match(name) is None:
        raise TimelineError(
            f"{requested_time!r} and {action!r} make no timeline file name", remedy="an instant is a run of digits"
        )
    return name


def is_time(text: str) -> bool:
    """Whether `text` can be an instant time: a run of ASCII digits."""
    return text.isdigit() and text.isascii() and len(text) <= _MAX_DIGITS


def _shown_in_1(name: str) -> _Shown | None:
    """Returns what a layout 1 name shows, of any action; None if foreign. _highest_states checks the time."""
    time, _, ending = name.partition(".")
    known = _ENDINGS.get(ending)
    if known is not None:
        return time, known[0], known[1], None, False
    match = _NAME_1.match(name)
    if match is None or match["action"] in ("requested", "inflight"):
        return None
    rank = _COMPLETED if match["state"] is None else State(match["state"]).rank
    return match["time"], match["action"], rank, None, False


def _shown_in_2(name: str, completion_of: Callable[[str], str | None]) -> _Shown | None:
    times, _, ending = name.partition(".")
    known = _ENDINGS.get(ending)
    if known is not None and known[1] != _COMPLETED:
        return times, known[0], known[1], None, False
    time, separator, completion = times.partition("_")
    if separator:
        named = known is not None or _ACTION.match(ending) is not None
        return (time, ending, _COMPLETED, completion, False) if named and is_time(completion) else None
    shown = _shown_in_1(name)
    if shown is None or shown[2] != _COMPLETED:
        return shown
    return shown[0], shown[1], _COMPLETED, completion_of(name), True


def _highest_states(files: Iterable[_Shown | None]) -> list[Instant]:
    """Returns the highest state of each instant time and action class, in timeline order. Of several completed states,
    as a race leaves them, the earliest completion counts. None among `files` is a file that does not belong to the
    timeline. A completed instant of an unknown action counts only when a pending file of the same action exists;
    otherwise its file is foreign as well.
    """
    completed: dict[tuple[str, str], _Shown] = {}
    highest: dict[tuple[str, str], _Shown] = {}
    for shown in files:
        if shown is None:
            continue
        time, action, rank, completion, _ = shown
        key = (time, _CLASSES.get(action, action))
        if rank == _COMPLETED:
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
    instants = []
    for key in sorted(highest):
        time, action, rank, completion, is_legacy = highest[key]
        if is_time(time):
            instants.append(Instant(time, action, STATES[rank], completion, planned.get(key), is_legacy))
    return instants
