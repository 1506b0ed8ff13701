"""The steps that are ours: each is a command line of hudictl, made for the table as it is when its turn comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hudi_core.config.table_config import TableConfig
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Instant
from hudi_core.verbs.write import OPERATIONS
from tests.torture.model import Model, folders
from tests.torture.program import Command, Write

OPTIONS: Final = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.cleaner.policy.failed.writes": "EAGER",
    "airflow_hudi.indexing.catchup_minutes": "1",
    "spark.sql.session.timeZone": "UTC",
}
"""On one clock we need not wait for another's; no writer is running when we are. Without a zone we refuse an expression
index of local times.
"""


@dataclass(frozen=True)
class Situation:
    """The table when a step's turn comes."""

    base: Path
    timeline: tuple[Instant, ...]
    model: Model

    @staticmethod
    def of(base: Path, model: Model) -> Situation:
        """Now."""
        return Situation(base, tuple(HudiTable.open(str(base)).timeline()), model)

    def writes(self) -> list[str]:
        """The instants of writes that are on the active timeline."""
        active = {item.requested_time for item in self.timeline if item.is_completed}
        return [instant for instant in self.model.instants() if instant in active]

    def last_write(self) -> list[str]:
        """The newest write, unless it is the only one: without a commit a table has no schema to read by."""
        return self.writes()[-1:] if len(self.model.effects) > 1 else []

    def pending(self, *actions: str) -> list[str]:
        """Pending instants, of these actions or of all."""
        return [
            item.requested_time
            for item in self.timeline
            if not item.is_completed and (not actions or item.action in actions)
        ]

    def savepoints(self) -> list[str]:
        """The savepointed commits."""
        return [item.requested_time for item in self.timeline if item.action == "savepoint" and item.is_completed]

    def has_metadata_table(self) -> bool:
        """Whether the table's properties list one."""
        return "files" in TableConfig.load(LocalStorage(self.base)).metadata_partitions


Words = Callable[[Situation, Command], list[str] | None]
"""The words of a command line but TABLE, at `TABLE`; None where the table has nothing for the command."""
TABLE: Final = "TABLE"
PLANS: Final = ("compaction", "logcompaction", "clustering", "replacecommit", "clean", "indexing")


def _fixed(*words: str) -> Words:
    return lambda _, step: [*words, *step.arguments]


def _at(choices: Callable[[Situation], list[str]], *words: str, flag: bool = True) -> Words:
    def make(now: Situation, step: Command) -> list[str] | None:
        found = choices(now)
        if not found:
            return None
        instant = found[-1 - step.pick % len(found)]
        return [*words, *(["--instant", instant] if flag else [instant])]

    return make


def _of_metadata(*words: str) -> Words:
    return lambda now, step: [*words, *step.arguments] if now.has_metadata_table() else None


VERBS: Final[Mapping[str, Words]] = {
    "run compaction": _fixed("run", "compaction", TABLE, "--engine", "local"),
    "run compaction --schedule": _fixed("run", "compaction", TABLE, "--schedule", "--engine", "local"),
    "schedule compaction": _fixed("schedule", "compaction", TABLE),
    "run clustering": _fixed("run", "clustering", TABLE, "--engine", "local"),
    "run clustering --schedule": _fixed("run", "clustering", TABLE, "--schedule", "--engine", "local"),
    "schedule clustering": _fixed("schedule", "clustering", TABLE),
    "run log_compaction": _fixed("run", "log_compaction", TABLE, "--engine", "local"),
    "run clean": _fixed("run", "clean", TABLE, "--schedule", "--engine", "local"),
    "schedule clean": _fixed("schedule", "clean", TABLE),
    "run archive": _fixed("run", "archive", TABLE),
    "run indexing": _fixed("run", "indexing", TABLE, "--schedule", "--engine", "local"),
    "schedule indexing": _fixed("schedule", "indexing", TABLE),
    "rollback": _fixed("rollback", TABLE),
    "run rollback": _fixed("run", "rollback", TABLE),
    "rollback newest": _at(Situation.last_write, "rollback", TABLE),
    "restore": _at(Situation.writes, "restore", TABLE),
    "savepoint create": _at(Situation.writes, "savepoint", "create", TABLE),
    "savepoint delete": _at(Situation.savepoints, "savepoint", "delete", TABLE),
    "unschedule": _at(lambda now: now.pending(*PLANS), "unschedule", TABLE, flag=False),
    "takeover": _at(Situation.pending, "takeover", TABLE, flag=False),
    "metadata create": _fixed("metadata", "create", TABLE, "--engine", "local"),
    "metadata update": _of_metadata("metadata", "update", TABLE, "--engine", "local"),
    "metadata drop": _of_metadata("metadata", "drop", TABLE),
    "metadata perf": _of_metadata("metadata", "perf", TABLE),
    "doctor": _fixed("doctor", TABLE),
}
REMOVES_WRITES: Final = ("rollback newest", "restore")


def command_line(now: Situation, step: Command) -> list[str] | None:
    """The arguments of hudictl; None where there is nothing to do the command to."""
    words = VERBS[step.verb](now, step)
    if words is None:
        return None
    options = {**OPTIONS, **step.options}
    takes = step.verb != "metadata perf"
    given = [word for name, value in options.items() for word in ("--option", f"{name}={value}")] if takes else []
    return [str(now.base) if word == TABLE else word for word in words] + given


OF_WRITERS: Final = (
    "hoodie.metadata.",
    "hoodie.datasource.write.payload.class",
    "hoodie.parquet.small.file.limit",
    "hoodie.index.type",
    "hoodie.bucket.",
)
"""Options of real Hudi's writers, or what they begin with, that our writes get, too."""


def write_line(now: Situation, step: Write, source: Path) -> list[str]:
    """The arguments of hudictl for a write of ours, with the rows in `source`; the same words name the same work."""
    chosen = {**now.model.table.options, **step.options}
    switches = {name: value for name, value in chosen.items() if name.startswith(OF_WRITERS)}
    given = [word for name, value in {**OPTIONS, **switches}.items() for word in ("--option", f"{name}={value}")]
    given += ["--token", f"write {step.number}", "--engine", "local"]
    if step.operation == "delete_partition":
        named = (word for name in folders(step.keys, now.model.table) for word in ("--partition", name))
        return ["delete-partition", str(now.base), *named, *given]
    if step.operation in OPERATIONS:
        return ["write", str(now.base), "--operation", step.operation, "--source", str(source), *given]
    whole = ["--whole-table"] if step.operation == "insert_overwrite_table" else []
    return ["insert-overwrite", str(now.base), "--source", str(source), *whole, *given]


def removable(line: list[str], step: Command, now: Situation) -> tuple[str, ...]:
    """The writes of the model that the command rolls back when it succeeds."""
    if step.verb not in REMOVES_WRITES:
        return ()
    target = line[line.index("--instant") + 1]
    writes = now.model.instants()
    place = writes.index(target)
    return tuple(writes[place:] if step.verb == "rollback newest" else writes[place + 1 :])
