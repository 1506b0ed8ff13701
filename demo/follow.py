"""Follows one DAG run over the REST API and prints the output of its tasks."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from demo.rest import NotReadyError
from demo.stack import DemoError, Stack

_FINAL = {"success", "failed", "upstream_failed", "skipped", "removed"}
# Of Spark's own output only warnings and lines of our code are printed.
_RECORDED = re.compile(r"compaction|hudi|instant", re.IGNORECASE)
_NOISE = re.compile(
    r"spark-submit cmd|org\.apache|DagBag|DAG bundles|attempt=\d+\.log|^::|^HUDI_RESULT|^\d\d/\d\d/\d\d ", re.IGNORECASE
)


class Follower:
    """One run of one DAG. Every wait ends after `timeout` seconds with a DemoError that holds the task's log."""

    def __init__(self, stack: Stack, dag_id: str, run_id: str, timeout: float, say: Callable[[str], None]) -> None:
        self._stack = stack
        self._dag_id = dag_id
        self._run_id = run_id
        self._timeout = timeout
        self._say = say
        self._states: dict[str, str] = {}
        self._printed: dict[tuple[str, int], int] = {}

    def trigger(self) -> None:
        """Unpauses the DAG as soon as it is parsed, and starts the run."""
        deadline = time.monotonic() + self._timeout
        while True:
            self._stack.check_alive()
            try:
                self._stack.api.trigger(self._dag_id, self._run_id)
            except NotReadyError as error:
                if time.monotonic() > deadline:
                    raise DemoError(f"the DAG {self._dag_id} could not be triggered: {error}") from error
                time.sleep(1)
            else:
                self._say(f"Triggered the DAG {self._dag_id}")
                return

    def wait_for_task(self, task_id: str, requested: set[str]) -> None:
        """Returns when the task is in one of the states."""
        self._wait(
            lambda: self._look().get(task_id) in requested, f"{task_id} to be {' or '.join(sorted(requested))}", task_id
        )

    def wait_for_run(self) -> None:
        """Returns when the run succeeded."""
        self._wait(self._succeeded, "the DAG run to succeed", None)

    def result(self, task_id: str) -> Any:
        """What the task returned. Raises DemoError when it returned nothing."""
        try:
            return self._stack.api.xcom(self._dag_id, self._run_id, task_id)
        except NotReadyError as error:
            raise DemoError(f"task {task_id} left no XCom: {error}") from error

    def _succeeded(self) -> bool:
        states = self._look()
        return bool(states) and all(state == "success" for state in states.values())

    def _look(self) -> dict[str, str]:
        """The states of the run's tasks; prints changes and new log lines."""
        tasks = self._stack.api.tasks(self._dag_id, self._run_id)
        for task_id, task in tasks.items():
            state = str(task["state"])
            if state != self._states.get(task_id) and state != "None":
                self._states[task_id] = state
                self._say(f"task {task_id}: {state}")
            if task_id == "compact" and state in {"running", *_FINAL}:
                self._print_log(task_id, int(task["try_number"]))
        return {task_id: str(task["state"]) for task_id, task in tasks.items()}

    def _print_log(self, task_id: str, try_number: int) -> None:
        lines = self._log(task_id, try_number)
        key = (task_id, try_number)
        for line in lines[self._printed.get(key, 0) :]:
            if _RECORDED.search(line) and not _NOISE.search(line):
                print(f"    | {line.strip()[:200]}", flush=True)
        self._printed[key] = max(len(lines), self._printed.get(key, 0))

    def _log(self, task_id: str, try_number: int) -> list[str]:
        try:
            return self._stack.api.log_lines(self._dag_id, self._run_id, task_id, try_number)
        except NotReadyError:
            return []

    def _wait(self, done: Callable[[], bool], what: str, task_id: str | None) -> None:
        deadline = time.monotonic() + self._timeout
        while True:
            self._stack.check_alive()
            try:
                if done():
                    return
            except NotReadyError as error:
                if time.monotonic() > deadline:
                    raise DemoError(f"waited {self._timeout:.0f} s for {what}: {error}") from error
            failed = [name for name, state in self._states.items() if state in _FINAL - {"success"}]
            over = task_id is not None and self._states.get(task_id) in _FINAL
            if failed or over or time.monotonic() > deadline:
                raise DemoError(f"waited for {what}, but the tasks are {self._states}{self._logs()}")
            time.sleep(1)

    def _logs(self) -> str:
        """The ends of the tasks' logs."""
        text = ""
        for task_id, try_number in self._printed:
            text += f"\n--- log of {task_id}, try {try_number}\n" + "\n".join(self._log(task_id, try_number)[-60:])
        return text
