"""What a task keeps between its tries, in Airflow's task state store, so that a retry resumes the work it started. What
is resumed, and when: operators/service.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_INSTANT = "hudi_instant"
_AFTER = "hudi_after"
_UNLESS_COMPLETED = "hudi_unless_completed"
_DONE = "hudi_done"
_RESULTS = "hudi_results"
_ERRORS = "hudi_errors"


class TaskStore:
    """The instant that the task started or was to roll back, or how the timeline was before one was planned; what it
    has done of many runs; how many looks of a sensor failed; and what it did when it succeeded last: cleared and run
    again, it is not skipped where there is no more to do.

    Keeps nothing without a store.
    """

    def __init__(self, store: Any) -> None:
        self._store = store

    @property
    def instant(self) -> str | None:
        """The instant that a try of this task started and did not see completed."""
        return self._get(_INSTANT)

    @property
    def after(self) -> str | None:
        """The mark that was made before a try of this task planned an instant: one planned since may be its work
        (conditions.instant.mark_before_planning). Of a task of many tables: when its first try began, in milliseconds.
        """
        return self._get(_AFTER)

    @property
    def unless_completed(self) -> str | None:
        """The write that had not completed when a try of this task was first to roll it back."""
        return self._get(_UNLESS_COMPLETED)

    @property
    def done(self) -> dict[str, Any] | None:
        """The members of the XCom that say what the task did when it succeeded last: it may have been cleared since.
        None when it never did something.
        """
        found = self._get(_DONE)
        done = None if found is None else json.loads(found)
        return done if isinstance(done, dict) else None

    @property
    def results(self) -> list[dict[str, Any]]:
        """What tries of this task have completed of the runs of many, of which one failed."""
        found = self._get(_RESULTS)
        results = [] if found is None else json.loads(found)
        return results if isinstance(results, list) else []

    @property
    def errors(self) -> int:
        """How many looks of a sensor failed, one after the other."""
        return int(self._get(_ERRORS) or 0)

    def keep_errors(self, count: int) -> None:
        """Remembers how many; 0: the last one did not fail."""
        if count:
            self._set(_ERRORS, str(count))
        elif self._get(_ERRORS) is not None:
            self._store.delete(_ERRORS)

    def begin(self, instant: str) -> None:
        """Remembers the instant."""
        self._set(_INSTANT, instant)

    def plan_after(self, mark: str) -> None:
        """Remembers the mark."""
        self._set(_AFTER, mark)

    def begin_unless_completed(self, instant: str) -> None:
        """Remembers a write that had not completed."""
        self._set(_UNLESS_COMPLETED, instant)

    def keep_results(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Remembers what is completed."""
        self._set(_RESULTS, json.dumps([dict(item) for item in results]))

    def finish(self, done: Mapping[str, Any]) -> None:
        """The work is done: clearing the task means "do it again", or where there is no more to do, report this."""
        self.forget()
        self._set(_DONE, json.dumps(dict(done)))

    def forget(self) -> None:
        """There is no work of an earlier try to resume."""
        if self._store is not None:
            for key in (_INSTANT, _AFTER, _UNLESS_COMPLETED, _RESULTS):
                self._store.delete(key)

    def _get(self, key: str) -> str | None:
        found = None if self._store is None else self._store.get(key)
        return None if found is None else str(found)

    def _set(self, key: str, value: str) -> None:
        if self._store is not None:
            self._store.set(key, value)
