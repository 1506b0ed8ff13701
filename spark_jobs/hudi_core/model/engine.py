"""The port over which a plan's units are spread: threads of this process, or Spark executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

Json = dict[str, Any]
"""A JSON object: what crosses the engine in both directions."""


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """Which attempt of which unit is running; the source of the write token, so two attempts never share a file name."""

    partition_id: int
    stage_id: int
    attempt_id: int


UnitTask = Callable[[Json, TaskAttempt], Json]
"""A module-level function: takes a unit and its attempt, writes files, returns its result. It raises HudiError only."""


class Engine(Protocol):
    """Runs one task over many units; exactly once per unit as far as the caller sees.

    An implementation may run a unit several times (retries, speculation) but returns the result of exactly one attempt per unit, in
    the order of `units`. Files that other attempts left are the caller's to remove: it knows the winners.
    """

    name: str

    def run(self, task: UnitTask, units: Sequence[Json], *, run_epoch: int, progress: Callable[[int, int], None] | None = None) -> list[Json]:
        """Runs `task` on each unit. `run_epoch` becomes the stage id of every attempt. Raises the task's HudiError, or ExecutionError."""
        ...


@runtime_checkable
class RemoteEngine(Protocol):
    """An engine whose units run in environments of their own, which can be asked what they have."""

    def setups(self) -> tuple[Json, ...]:
        """The different set-ups of the executors that happened to be asked: module name to version, None where it cannot be imported.

        Raises ConfigError when they lack even what it takes to be asked, ExecutionError when they cannot be reached.
        """
        ...
