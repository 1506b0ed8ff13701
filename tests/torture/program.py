"""A program of the random test: a table and the steps that are done to it, as values that travel as JSON.

A step names no instant and no file. What it is done to is chosen when its turn comes, by `pick`, so that a program
still runs when steps are left out of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

Evolution = Literal["", "add_column", "widen"]
Fault = Literal["", "kill", "error"]


@dataclass(frozen=True)
class Write:
    """Real Hudi writes rows of `keys`: each is a number, from which the row's key and partition follow. With `ours`
    hudictl does, with a fault as of Command, and then again.

    `number` is what the values of the rows are made of. The rows of `late` keys have an ordering value below the one
    that the table has of the key, those of `dropped` are marked deleted; both need a table that has such. With `fails`
    the writer dies before it commits.
    """

    operation: str
    number: int
    keys: tuple[int, ...]
    late: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    evolution: Evolution = ""
    fails: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    ours: bool = False
    fault: Fault = ""
    fault_at: int = 0

    @property
    def name(self) -> str:
        """What is counted of it."""
        return f"{'hudictl' if self.ours else 'hudi'} {self.operation}{' fails' if self.fails else ''}"


@dataclass(frozen=True)
class Service:
    """Real Hudi runs a service, at the instant that `pick` chooses where the service needs one (0 is the newest)."""

    service: str
    pick: int = 0
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What is counted of it."""
        return f"hudi {self.service}"


@dataclass(frozen=True)
class Command:
    """We run hudictl: `verb` is a name of our_commands.VERBS, `pick` chooses its instant.

    With a `fault` the process is killed before its change number `fault_at` of the storage, or that change fails; with
    `again` the same command follows without a fault.
    """

    verb: str
    pick: int = 0
    arguments: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    fault: Fault = ""
    fault_at: int = 0
    again: bool = False

    @property
    def name(self) -> str:
        """What is counted of it."""
        return f"hudictl {self.verb}"


Step: TypeAlias = Write | Service | Command
_STEPS: Final[Mapping[str, Callable[..., Step]]] = {"write": Write, "service": Service, "command": Command}


@dataclass(frozen=True)
class TableShape:
    """What the table is. `options` are those of each writer; `indexes` are the metadata table's partitions of it."""

    on_read: bool
    event_time: bool
    partitions: int
    soft_deletes: bool
    indexes: tuple[str, ...]
    options: Mapping[str, str]


@dataclass(frozen=True)
class Program:
    """`version` is the table's, `writer` that of real Hudi. The first step creates the table. A `thorough` one is also
    read as change data, by each index, and by real Hudi at earlier times.
    """

    version: str
    writer: str
    seed: int
    table: TableShape
    steps: tuple[Step, ...]
    thorough: bool = False

    def only(self, kept: Sequence[Step]) -> Program:
        """The program with these steps after the first."""
        return replace(self, steps=(self.steps[0], *kept))

    def without_ours(self) -> Program:
        """What real Hudi does in it, and our writes by it."""
        kept = [step for step in self.steps[1:] if not isinstance(step, Command)]
        return self.only([replace(step, ours=False) if isinstance(step, Write) else step for step in kept])

    def to_json(self) -> str:
        """The text that `from_json` reads."""
        names = {kind: name for name, kind in _STEPS.items()}
        steps = [{"step": names[type(step)], **asdict(step)} for step in self.steps]
        return json.dumps({**asdict(self), "steps": steps}, indent=1)


def from_json(text: str) -> Program:
    """The program that `Program.to_json` wrote. Raises KeyError and TypeError for another text."""
    value = json.loads(text)
    steps = tuple(_step(item) for item in value["steps"])
    table = TableShape(**{**value["table"], "indexes": tuple(value["table"]["indexes"])})
    thorough = value.get("thorough", False)
    return Program(value["version"], value["writer"], value["seed"], table, steps, thorough)


def _step(value: Mapping[str, Any]) -> Step:
    given: dict[str, Any] = {
        name: tuple(item) if isinstance(item, list) else item for name, item in value.items() if name != "step"
    }
    return _STEPS[value["step"]](**given)
