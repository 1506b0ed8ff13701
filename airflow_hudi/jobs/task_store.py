"""What a task keeps between its tries, in Airflow's task state store. What is resumed: operators/service.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _Kept(Generic[T]):
    """A value under a key of the store: None, or what `read` makes of no text, where there is none."""

    def __init__(self, key: str, read: Callable[[str | None], T], write: Callable[[Any], str] = str) -> None:
        self.key = key
        self._read = read
        self._write = write

    def __get__(self, task: TaskStore, owner: type[TaskStore]) -> T:
        text = None if task.store is None else task.store.get(self.key)
        return self._read(None if text is None else str(text))

    def __set__(self, task: TaskStore, value: Any) -> None:
        if task.store is not None:
            task.store.set(self.key, self._write(value))


def _text(text: str | None) -> str | None:
    return text


def _done(text: str | None) -> dict[str, Any] | None:
    done = None if text is None else json.loads(text)
    return done if isinstance(done, dict) else None


def _results(text: str | None) -> list[dict[str, Any]]:
    results = [] if text is None else json.loads(text)
    return results if isinstance(results, list) else []


class TaskStore:
    """Keeps nothing without a store."""

    instant = _Kept("hudi_instant", _text)
    """The instant that a try of this task started and did not see completed."""
    after = _Kept("hudi_after", _text)
    """The mark that was made before a try of this task planned an instant: one planned since may be its work
    (conditions.instant.mark_before_planning). Of a task of many tables: when its first try began, in milliseconds.
    """
    unless_completed = _Kept("hudi_unless_completed", _text)
    """The write that had not completed when a try of this task was first to roll it back."""
    results = _Kept("hudi_results", _results, json.dumps)
    """What tries of this task have completed of the runs of many, of which one failed."""
    done = _Kept("hudi_done", _done, json.dumps)
    """Members of the XCom of the last success: cleared and run again, the task is not skipped without more to do."""
    errors = _Kept("hudi_errors", lambda text: int(text or 0))
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
