"""Sixty commits on one table, for each table version, table type and family of indexes: real Hudi and we write in
turns, by every index that finds the table's keys, and both run services in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tests.torture.every_service import WRITERS
from tests.torture.generate import (
    COMMANDS,
    EXPRESSION,
    ON_ITS_OWN,
    SECONDARY,
    SERVICES,
    WRITES,
    Maker,
    ordering,
)
from tests.torture.known_defects import ROW_WRITER
from tests.torture.program import Command, Fault, Program, Service, Step, TableShape, Write

COMMITS: Final = 60
REFUSED: Final = 8
"""So many more writes are tried: real Hudi refuses some beside a pending plan or a secondary index."""
INDEX_TYPE: Final = "hoodie.index.type"
SECONDARY_AT, EXPRESSION_FROM, EXPRESSION_TO = 20, 30, 45
"""Steps at which indexes are built and dropped. Behind the expression index real Hudi's cleans are not done."""
KEPT: Final = {"hoodie.clean.commits.retained": "8", "hoodie.cleaner.commits.retained": "8"}
LEFT_OUT: Final = (
    "restore",
    "indexing",
    "metadata create",
    "metadata drop",
    "metadata perf",
    "unschedule",
    "takeover",
    "doctor",
)
"""Commands that are at their own places here, and some that torture alone has."""


@dataclass(frozen=True)
class Family:
    """The index types by which keys of a table are found, and partitions of the metadata table and options for them."""

    types: tuple[str, ...]
    partitions: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


BY_FILES: Final = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM")
FAMILIES: Final = {
    "files": Family(BY_FILES, ("bloom_filters",)),
    "record": Family(("RECORD_INDEX",), ("record_index",)),
    "any": Family((*BY_FILES, "RECORD_INDEX"), ("bloom_filters", "record_index")),
    "partitioned": Family(
        ("RECORD_LEVEL_INDEX",),
        options={
            "hoodie.metadata.record.level.index.enable": "true",
            "hoodie.metadata.record.level.index.min.filegroup.count": "2",
        },
    ),
    "bucket": Family(
        ("BUCKET",),
        options={"hoodie.bucket.index.num.buckets": "2", "hoodie.bucket.index.hash.field": "id"},
    ),
    "changes": Family(("SIMPLE",), options={"hoodie.table.cdc.enabled": "true"}),
}
"""`changes` is a table with change logs."""
# Writers by files do not tell the record index of keys that log files deleted (docs/reference/hudi-notes.md).
EVERYWHERE: Final = ("cow-any", "mor-files", "mor-record")
PROGRAMS: Final = {
    "6": (*EVERYWHERE, "mor-bucket", "cow-changes"),
    "8": (*EVERYWHERE, "cow-bucket", "mor-changes"),
    "9": (*EVERYWHERE, "mor-bucket", "cow-changes", "mor-partitioned"),
}
NAMES: Final = [f"{version}-{name}" for version, names in PROGRAMS.items() for name in names]


def mixed_workload(name: str) -> Program:
    """The program of this name: the same in every run."""
    version, kind, family = name.split("-")
    return _Mixed(version, kind == "mor", family, NAMES.index(name)).program(COMMITS + REFUSED)


class _Mixed(Maker):
    shares = (0.72, 0.84)
    ours: Mapping[bool, float] = {False: 0.5, True: 0.6}
    cleans = cleans_of_hudi = (KEPT,)
    archived: Mapping[str, str] = {"hoodie.keep.min.commits": "12", "hoodie.keep.max.commits": "16"}
    services: Mapping[str, float] = {name: weight for name, weight in SERVICES.items() if name != "restore"}
    commands: Mapping[str, float] = {
        verb: weight for verb, weight in COMMANDS.items() if not any(words in verb for words in LEFT_OUT)
    }

    def __init__(self, version: str, on_read: bool, family: str, seed: int) -> None:
        self.on_read, self.family = on_read, FAMILIES[family]
        super().__init__(version, seed)
        self.writer = WRITERS[version]
        if family == "changes":
            self.ours = {False: 0.3, True: 0.6}
        if family == "bucket":
            # A clustering leaves buckets alone, and Hudi's bulk_insert begins a second file group of each.
            self.services = {name: weight for name, weight in self.services.items() if "cluster" not in name}
            self.commands = {verb: weight for verb, weight in self.commands.items() if "cluster" not in verb}
            self.writes = {name: weight for name, weight in WRITES.items() if name != "bulk_insert"}

    def program(self, steps: int) -> Program:
        """As many writes as `steps`, with services in between."""
        made: list[Step] = [self._by_index(Write("insert", self._next(), self._fresh(40)))]
        while sum(isinstance(step, Write) and not step.fails for step in made) < steps:
            step = self._step()
            made.append(self._by_index(step) if isinstance(step, Write) else step)
            if "schedule_clustering" in step.name or "schedule clustering" in step.name:
                # Until it has run, writes to its file groups are refused.
                run: Step = Service("cluster") if self.dice.random() < 0.5 else Command("run clustering")
                made += [self._by_index(self._write()), run]
        for at, command in sorted(self._indexings().items()):
            made.insert(at, command)
        # Behind a restore our queries use no index of rows any more, so that it comes late.
        late = len(made) * 4 // 5
        by_hudi = self.seed % 2 == 0
        made.insert(late, Service("savepoint") if by_hudi else Command("savepoint create"))
        made.insert(late + 5, Service("restore") if by_hudi else Command("restore", pick=2))
        return Program(self.version, self.writer, self.seed, self.table, tuple(made), thorough=True)

    def _indexings(self) -> dict[int, Command]:
        if self.version == "6" or "record_index" not in self.family.partitions:
            return {}
        return {
            SECONDARY_AT: Command("rollback"),  # an indexing waits for a writer that died
            SECONDARY_AT + 1: Command("run indexing", options=SECONDARY),
            EXPRESSION_FROM: Command("rollback"),
            EXPRESSION_FROM + 1: Command("run indexing", options=EXPRESSION),
            EXPRESSION_TO: Command("metadata drop", arguments=("--partition", "expr_index_by_hour")),
        }

    def _by_index(self, step: Write) -> Write:
        return replace(step, options={**step.options, INDEX_TYPE: self.dice.choice(self.family.types)})

    def _fault(self) -> tuple[Fault, int]:
        return "", 0

    def _table(self) -> TableShape:
        dice, event_time = self.dice, self.dice.random() < 0.5
        ranges = self.version == "9" or (self.version == "8" and not self.on_read)
        indexes = ("files", "column_stats", *(("partition_stats",) if ranges else ()), *self.family.partitions)
        pinned = {"hoodie.write.table.version": self.version, "hoodie.write.auto.upgrade": "false"}
        options = {
            "hoodie.table.name": "mixed",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.on_read else "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": dice.choice(["true", "false"]),
            **ON_ITS_OWN,
            "hoodie.embed.timeline.server": "false" if self.version == "6" else "true",
            **ordering(self.version, event_time),
            **self._metadata(indexes),
            INDEX_TYPE: self.family.types[0],
            ROW_WRITER: "false",
            **({} if self.version == "6" else pinned),
            **self.family.options,
        }
        return TableShape(self.on_read, event_time, 3, dice.random() < 0.5, indexes, options)
