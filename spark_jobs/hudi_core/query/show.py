"""Shows people one instant, of the timeline or its archive, with its plan and metadata decoded."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from hudi_core.errors import ConfigError, StorageNotFoundError
from hudi_core.frozen import dataclass
from hudi_core.history.archived import ArchivedTimeline
from hudi_core.query.context import ReadContext
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import KNOWN_ACTIONS, Action, Instant, State, completed_action

log = logging.getLogger(__name__)

_NAMED: Final = 5
"""How many instants a message names at most."""


@dataclass(frozen=True, slots=True)
class ShownInstant:
    """An instant with its decoded files. `plan` is the requested one, `metadata` the completed one; None if empty.
    `savepoint` is the content of the completed savepoint of the same instant; None where there is none.
    """

    instant: Instant
    plan: dict[str, Any] | None
    metadata: dict[str, Any] | None
    savepoint: dict[str, Any] | None = None


def show_instant(context: ReadContext, instant: str, action: str | None = None) -> ShownInstant:
    """Returns the instant requested at `instant`, or the only one that begins with it. Of several actions at one
    instant takes that of `action`; without one, the commit under the savepoint. Actions compete as on the timeline:
    `compaction` also means its completed `commit`. Raises ConfigError for an action that does not exist, for the prefix
    of several instants, and when neither the timeline nor its archive holds such an instant.
    """
    if action is not None and action not in KNOWN_ACTIONS:
        raise ConfigError(f"{action!r} is no action of a timeline", remedy=f"one of {', '.join(sorted(KNOWN_ACTIONS))}")
    active = _ActiveFiles(context.active)
    timeline = context.active.load()
    if instant not in timeline.requested_times:
        instant = _whole_instant(context, timeline.requested_times, instant)
    places: list[tuple[Instant, _ActiveFiles | ArchivedTimeline]] = [
        (item, active) for item in timeline if item.requested_time == instant
    ]
    if all(item.action == Action.SAVEPOINT for item, _ in places):
        # The archival may take a commit and leave its savepoint (hoodie.archive.beyond.savepoint).
        history = context.history()
        places += [(item, history) for item in history.instants(None, instant) if item.requested_time == instant]
    fitting = [
        place for place in places if action is None or completed_action(place[0].action) == completed_action(action)
    ]
    if not fitting:
        there = ", ".join(item.action for item, _ in places)
        message = f"neither the timeline nor its archive holds {action if places else 'an instant'} {instant}"
        remedy = f"there is: {there}" if places else "list the instants with `hudictl timeline --archived`"
        raise ConfigError(message, path=context.active.folder, remedy=remedy)
    chosen, files = min(fitting, key=lambda place: place[0].action == Action.SAVEPOINT)
    savepoint = next((where.content(item) or None for item, where in places if item.action == Action.SAVEPOINT), None)
    return ShownInstant(chosen, files.plan(chosen) or None, files.content(chosen) or None, savepoint)


def _whole_instant(context: ReadContext, active: Iterable[str], prefix: str) -> str:
    """Returns the one active or archived instant that begins with `prefix`; `prefix` itself without one."""
    archived = (item.requested_time for item in context.history().instants())
    fitting = sorted({item for item in (*active, *archived) if prefix and item.startswith(prefix)})
    if len(fitting) > 1 and prefix not in fitting:
        named = ", ".join(fitting[:_NAMED]) + (", …" if len(fitting) > _NAMED else "")
        message = f"{len(fitting)} instants begin with {prefix}: {named}"
        raise ConfigError(message, path=context.active.folder, remedy="give more digits of the instant")
    return fitting[0] if len(fitting) == 1 else prefix


class _ActiveFiles:
    """The content of the active timeline's files, in the form of history.archived.ArchivedTimeline."""

    def __init__(self, active: ActiveTimeline) -> None:
        self._active = active

    def plan(self, instant: Instant) -> dict[str, Any]:
        try:
            return self._active.read_any(instant.requested_time, instant.pending_action, State.REQUESTED)
        except StorageNotFoundError:
            return {}  # a savepoint has no requested file, and archival may be removing it

    def content(self, instant: Instant) -> dict[str, Any]:
        return self._active.read_of(instant) if instant.is_completed else {}
