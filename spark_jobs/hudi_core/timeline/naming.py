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
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Final

from hudi_core.errors import TimelineError, UnsupportedVersionError
from hudi_core.frozen import dataclass
from hudi_core.timeline.instant import KNOWN_ACTIONS, STATES, Action, Instant, State, completed_action
from hudi_core.timeline.instant_time import of_epoch_seconds
from hudi_core.timeline.timeline import Timeline

_MAX_DIGITS: Final = 40
_NAME_1 = re.compile(r"^(?P<time>\d{1,40})\.(?P<action>[a-z]{1,40})(?:\.(?P<state>requested|inflight))?\Z", re.ASCII)
_ACTION = re.compile(r"^(?!(?:requested|inflight)\Z)[a-z]{1,40}\Z", re.ASCII)
_LAYOUTS: Final = (1, 2)

_Completion = tuple[str, str | None, bool]
"""A completed file: its action, its completion time, and whether its name is a legacy one."""
_NO_PLAN: Final = (None, None)
_CLASSES: Final = {action: completed_action(action) for action in KNOWN_ACTIONS}
_ENDINGS: Final = {
    "inflight": (Action.COMMIT, State.INFLIGHT),
    **{f"{action}.{state.value}": (action, state) for action in KNOWN_ACTIONS for state in STATES[:-1]},
    **{action: (action, State.COMPLETED) for action in KNOWN_ACTIONS},
}
"""What the rest of a file name, after the instant time and its dot, says. Nearly all names of a timeline are here."""
_ENDING = re.compile(
    r"^(?!(?:requested|inflight)\b)(?P<action>[a-z]{1,40})(?:\.(?P<state>requested|inflight))?\Z", re.ASCII
)


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
        completion time of a file that an upgrade did not rename. Instants of layout 1 have no completion time. Names
        are handled by their endings, of which there are few: an object for each file tripled the time.
        """

        def completion_of(name: str) -> str | None:
            seconds = modified(name)
            return None if seconds is None else of_epoch_seconds(seconds, zone)

        times_of: defaultdict[str, list[str]] = defaultdict(list)
        for name in names:
            times, _, ending = name.partition(".")
            times_of[ending].append(times)
        shown = [(ending, said) for ending in sorted(times_of) if (said := _said_by(ending)) is not None]
        pending: defaultdict[str, dict[str, tuple[str, State]]] = defaultdict(dict)
        completed: defaultdict[str, dict[str, _Completion]] = defaultdict(dict)
        # A later state replaces an earlier one.
        for ending, (action, state) in sorted(shown, key=lambda item: item[1][1].rank):
            action_class = _CLASSES.get(action, action)
            if state is not State.COMPLETED:
                pending[action_class].update(dict.fromkeys(times_of[ending], (action, state)))
            elif self.layout_version == 1:
                completed[action_class].update(dict.fromkeys(times_of[ending], (action, None, False)))
            else:
                _add_completed_in_2(completed[action_class], action, times_of[ending], completion_of)
        return _highest_states(pending, completed)

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


def _said_by(ending: str) -> tuple[str, State] | None:
    """Returns the action and the state in the ending of a name, of any action; None if foreign."""
    known = _ENDINGS.get(ending)
    if known is not None:
        return known
    match = _ENDING.match(ending)
    return None if match is None else (match[1], State(match[2] or State.COMPLETED))


def _add_completed_in_2(
    completed: dict[str, _Completion], action: str, times: list[str], completion_of: Callable[[str], str | None]
) -> None:
    """Adds the completed files of an action in layout 2. Of several completed states, as a race leaves them, the
    earliest completion counts.
    """
    for text in times:
        time, separator, completion = text.partition("_")
        if separator and is_time(completion):
            found: _Completion = (action, completion, False)
        elif not separator and is_time(text):
            found = (action, completion_of(f"{text}.{action}"), True)
        else:
            continue
        other = completed.get(time)
        if other is None or (other[1] or "") > (found[1] or ""):
            completed[time] = found


def _highest_states(
    pending: Mapping[str, Mapping[str, tuple[str, State]]], completed: Mapping[str, Mapping[str, _Completion]]
) -> list[Instant]:
    """Returns the highest state of each instant time and action class, in timeline order, from the pending and
    completed files of each class by time. A completed instant of an unknown action counts only when a pending file
    exists; otherwise its file does not belong to the timeline.
    """
    instants = []
    for action_class in sorted({*pending, *completed}):
        plans, ends = pending.get(action_class, {}), completed.get(action_class, {})
        is_known = action_class in KNOWN_ACTIONS
        instants += [
            Instant(time, action, State.COMPLETED, completion, plans.get(time, _NO_PLAN)[0], is_legacy)
            for time, (action, completion, is_legacy) in ends.items()
            if (is_known or time in plans) and is_time(time)
        ]
        instants += [
            Instant(time, action, state, None, action)
            for time, (action, state) in plans.items()
            if time not in ends and is_time(time)
        ]
    instants.sort(key=attrgetter("requested_time"))  # the order of the classes remains
    return instants
