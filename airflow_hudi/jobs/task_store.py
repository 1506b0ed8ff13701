"""What a task keeps between its tries, in Airflow's task state store. What is resumed: operators/service.py."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Kept(Generic[T]):
    """A text, or JSON of another `kind`, under a key of the store; `nothing` without one."""

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
    """Keeps nothing without a store."""

    instant: _Kept[str | None] = _Kept("hudi_instant", str, None)
    """The instant that a try of this task started and did not see completed."""
    after: _Kept[str | None] = _Kept("hudi_after", str, None)
    """The mark that was made before a try of this task planned an instant: one planned since may be its work
    (conditions.condition.mark_before_planning). Of a task of many tables: when its first try began, in milliseconds.
    """
    unless_completed: _Kept[str | None] = _Kept("hudi_unless_completed", str, None)
    """The write that had not completed when a try of this task was first to roll it back."""
    results: _Kept[Sequence[dict[str, Any]]] = _Kept("hudi_results", list, ())
    """What tries of this task have completed of the runs of many, of which one failed."""
    done: _Kept[dict[str, Any] | None] = _Kept("hudi_done", dict, None)
    """Members of the XCom of the last success: cleared and run again, the task is not skipped without more to do."""
    errors = _Kept("hudi_errors", int, 0)
    """How many looks of a sensor failed, one after the other."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def keep_errors(self, count: int) -> None:
        if count:
            self.errors = count
        elif self.errors:
            self.store.delete("hudi_errors")

    def finish(self, done: Mapping[str, Any]) -> None:
        """The work is done: clearing the task means "do it again", or where there is no more to do, report this."""
        self.forget()
        self.done = dict(done)

    def forget(self) -> None:
        """There is no work of an earlier try to resume."""
        if self.store is not None:
            for key in ("hudi_instant", "hudi_after", "hudi_unless_completed", "hudi_results"):
                self.store.delete(key)
