"""The values that a task keeps between tries, in Airflow's task state store. operators/service.py resumes by them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Kept(Generic[T]):
    """A value under a key of the store: a text, or JSON of another `kind`. `nothing` if the store has no such value."""

    def __init__(self, key: str, kind: type, nothing: T) -> None:
        self._key, self._kind, self._nothing = key, kind, nothing

    def __get__(self, task: TaskStore, owner: type[TaskStore]) -> T:
        text = None if task.store is None else task.store.get(self._key)
        if text is None:
            return self._nothing
        value: Any = str(text) if self._kind is str else json.loads(str(text))
        fits = isinstance(value, self._kind)
        return value if fits else self._nothing

    def __set__(self, task: TaskStore, value: Any) -> None:
        if task.store is not None:
            task.store.set(self._key, value if self._kind is str else json.dumps(value))


class TaskStore:
    """The kept values of one task. Without a store, nothing is kept."""

    instant: _Kept[str | None] = _Kept("hudi_instant", str, None)
    """The instant that a try of this task started and did not see as completed."""
    after: _Kept[str | None] = _Kept("hudi_after", str, None)
    """The mark that a try of this task made before it planned an instant: a later instant may be the try's work
    (conditions.condition.mark_before_planning). For a task of many tables: the start of its first try, in milliseconds.
    """
    unless_completed: _Kept[str | None] = _Kept("hudi_unless_completed", str, None)
    """The write that had not completed when a try of this task first was to roll it back."""
    results: _Kept[Sequence[dict[str, Any]]] = _Kept("hudi_results", list, ())
    """The results of a task of many runs, as far as its tries have completed them."""
    done: _Kept[dict[str, Any] | None] = _Kept("hudi_done", dict, None)
    """Members of the last success's XCom: with them a cleared task that finds nothing to do is not skipped."""
    errors = _Kept("hudi_errors", int, 0)
    """The number of failed looks of a sensor in a row."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def keep_errors(self, count: int) -> None:
        if count:
            self.errors = count
        elif self.errors:
            self.store.delete("hudi_errors")

    def finish(self, done: Mapping[str, Any]) -> None:
        """Keeps `done`, because the work is done. A cleared task that finds nothing more to do reports it."""
        self.forget()
        self.done = dict(done)

    def forget(self) -> None:
        """Deletes the values of earlier tries, because there is no work to resume."""
        if self.store is not None:
            for key in ("hudi_instant", "hudi_after", "hudi_unless_completed", "hudi_results"):
                self.store.delete(key)
