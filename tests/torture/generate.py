"""Draws a program by its seed: the table's shape, then the steps."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from tests.torture.our_commands import VERBS
from tests.torture.program import Command, Evolution, Fault, Program, Service, Step, TableShape, Write

WRITERS: Final[Mapping[str, tuple[str, ...]]] = {
    "6": ("0.15.0", "0.15.0", "1.2.0"),
    "8": ("1.0.2", "1.0.2", "1.2.0"),
    "9": ("1.2.0",),
}
"""The versions of real Hudi that write a table version, the native one more often."""
PAYLOAD: Final = "org.apache.hudi.common.model."
SWITCHES: Final[Mapping[str, tuple[str, ...]]] = {
    "column_stats": ("hoodie.metadata.index.column.stats.enable",),
    "bloom_filters": ("hoodie.metadata.index.bloom.filter.enable",),
    "record_index": ("hoodie.metadata.record.index.enable", "hoodie.metadata.global.record.level.index.enable"),
    "partition_stats": ("hoodie.metadata.index.partition.stats.enable",),
}
SECONDARY: Final = {
    "hoodie.index.name": "by_name",
    "hoodie.metadata.index.secondary.column": "name",
}
EXPRESSION: Final = {
    "hoodie.index.name": "by_hour",
    "hoodie.metadata.index.expression.column": "ts",
    "hoodie.metadata.index.expression.options": "expr=from_unixtime,format=yyyyMMddHH",
}
SMALL: Final = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}
BY_COMMITS: Final = {"hoodie.clean.commits.retained": "2", "hoodie.cleaner.commits.retained": "2"}
BY_VERSIONS: Final = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
BY_VERSIONS_OF_HUDI: Final = {
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.fileversions.retained": "1",
}
ONE_DELTA: Final = {"hoodie.compact.inline.max.delta.commits": "1"}
TWO_DELTAS: Final = {"hoodie.compact.inline.max.delta.commits": "2"}

_CLUSTERING: Final = "hoodie.clustering.plan.strategy"
CLUSTERED: Final = (
    {},
    {f"{_CLUSTERING}.sort.columns": "name,ts"},
    {f"{_CLUSTERING}.sort.columns": "ts,amount", "hoodie.layout.optimize.strategy": "z-order"},
    {f"{_CLUSTERING}.sort.columns": "id", f"{_CLUSTERING}.max.num.groups": "1", "airflow_hudi.verify": "full"},
)

WRITES: Final = {
    "insert": 2.0,
    "upsert": 8.0,
    "delete": 2.0,
    "bulk_insert": 1.0,
    "insert_overwrite": 0.8,
    "insert_overwrite_table": 0.3,
    "delete_partition": 0.6,
}
SERVICES: Final = {
    "schedule_compaction": 3.0,
    "compact": 0.7,
    "schedule_clustering": 0.6,
    "cluster": 0.8,
    "schedule_log_compaction": 0.3,
    "log_compact": 0.3,
    "clean": 0.5,
    "archive": 0.4,
    "rollback": 0.3,
    "savepoint": 0.3,
    "restore": 0.3,
}
OF_PARTITIONS: Final = ("insert_overwrite", "insert_overwrite_table", "delete_partition")
OURS: Final = {False: 0.35, True: 0.6}
"""How often a write is ours: of rows, and of whole partitions."""
ON_LOGS: Final = frozenset({"schedule_compaction", "compact", "schedule_log_compaction", "log_compact"})
COMMANDS: Final = {
    "run compaction": 4.0,
    "run compaction --schedule": 1.5,
    "schedule compaction": 1.5,
    "run clustering": 1.0,
    "run clustering --schedule": 1.5,
    "schedule clustering": 0.5,
    "run log_compaction": 0.4,
    "run clean": 2.0,
    "schedule clean": 0.5,
    "run archive": 1.5,
    "run indexing": 1.2,
    "schedule indexing": 0.3,
    "rollback": 1.0,
    "run rollback": 0.6,
    "rollback newest": 1.0,
    "restore": 0.8,
    "savepoint create": 0.8,
    "savepoint delete": 0.5,
    "unschedule": 0.6,
    "takeover": 0.4,
    "metadata create": 1.0,
    "metadata update": 1.0,
    "metadata drop": 0.6,
    "metadata perf": 0.1,
    "doctor": 0.4,
}
assert COMMANDS.keys() == VERBS.keys()
STEPS: Final = 24
ON_ITS_OWN: Final = {
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    **{f"hoodie.{name}.shuffle.parallelism": "1" for name in ("insert", "upsert", "delete", "bulkinsert")},
}
"""Options of a write in one task that runs no service."""


def ordering(version: str, event_time: bool) -> dict[str, str]:
    """Options of a table whose newest row of a key is that of the latest event, or of the latest commit."""
    if version == "6":
        chosen = "DefaultHoodieRecordPayload" if event_time else "OverwriteWithLatestAvroPayload"
        return {"hoodie.datasource.write.payload.class": PAYLOAD + chosen}
    return {"hoodie.write.record.merge.mode": f"{'EVENT' if event_time else 'COMMIT'}_TIME_ORDERING"}


def switched(indexes: Collection[str]) -> dict[str, str]:
    """Options of a writer that keeps these partitions of the metadata table and no others."""
    chosen = {"hoodie.metadata.enable": "true" if indexes else "false"}
    for index, names in SWITCHES.items():
        chosen |= dict.fromkeys(names, "true" if index in indexes else "false")
    return chosen


def program(version: str, seed: int, steps: int = STEPS) -> Program:
    """The program of a seed: the same in every run."""
    return Maker(version, seed).program(steps)


class Maker:
    """Draws one program: the first of `shares` of its steps are writes, up to the second services of real Hudi, the
    rest commands of ours.
    """

    shares = (0.5, 0.66)
    ours: Mapping[bool, float] = OURS
    writes: Mapping[str, float] = WRITES
    services: Mapping[str, float] = SERVICES
    commands: Mapping[str, float] = COMMANDS
    cleans: tuple[Mapping[str, str], ...] = (BY_COMMITS, BY_VERSIONS)
    cleans_of_hudi: tuple[Mapping[str, str], ...] = (BY_COMMITS, BY_VERSIONS_OF_HUDI)
    archived: Mapping[str, str] = SMALL

    def __init__(self, version: str, seed: int) -> None:
        self.version, self.seed = version, seed
        self.dice = random.Random(f"torture-{version}-{seed}")
        self.writer = self.dice.choice(WRITERS[version])
        self.keys = 0
        self.number = 0
        self.table = self._table()

    def program(self, steps: int) -> Program:
        first = Write("insert", self._next(), self._fresh(30))
        return Program(self.version, self.writer, self.seed, self.table, (first, *(self._step() for _ in range(steps))))

    # The table.

    def _table(self) -> TableShape:
        dice = self.dice
        on_read = dice.random() < 0.65
        event_time = dice.random() < 0.5
        partitions = dice.choice([0, 2, 3, 3])
        indexes = self._indexes()
        generator = "SimpleKeyGenerator" if partitions else "NonpartitionedKeyGenerator"
        options = {
            "hoodie.table.name": "torture",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if on_read else "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part" if partitions else "",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
            "hoodie.datasource.write.hive_style_partitioning": dice.choice(["true", "false"]),
            **ON_ITS_OWN,
            # 1.2.0 fails on several partitions of a metadata table without its timeline server.
            "hoodie.embed.timeline.server": "false" if self.writer == "0.15.0" else "true",
            **ordering(self.version, event_time),
            **self._metadata(indexes),
            "hoodie.index.type": dice.choice(["SIMPLE", "SIMPLE", "BLOOM", "GLOBAL_SIMPLE", *self._by_record(indexes)]),
            **dice.choice([{}, {"hoodie.parquet.small.file.limit": "0"}]),
            **dice.choice(
                [{}, {"hoodie.copyonwrite.insert.auto.split": "false", "hoodie.copyonwrite.insert.split.size": "8"}]
            ),
        }
        if self.writer != "0.15.0":
            options |= {"hoodie.write.table.version": self.version, "hoodie.write.auto.upgrade": "false"}
        return TableShape(on_read, event_time, partitions, dice.random() < 0.3, indexes, options)

    def _indexes(self) -> tuple[str, ...]:
        if self.dice.random() < 0.15:
            return ()
        chosen = [name for name in ("column_stats", "bloom_filters", "record_index") if self.dice.random() < 0.5]
        if "column_stats" in chosen and self.version != "6" and self.dice.random() < 0.6:
            chosen.append("partition_stats")
        return ("files", *chosen)

    def _metadata(self, indexes: tuple[str, ...]) -> dict[str, str]:
        return switched(indexes) | {
            "hoodie.metadata.record.index.min.filegroup.count": "2",
            "hoodie.metadata.compact.max.delta.commits": self.dice.choice(["3", "10"]),
        }

    def _by_record(self, indexes: tuple[str, ...]) -> list[str]:
        return ["RECORD_INDEX", "RECORD_INDEX"] if "record_index" in indexes else []

    # The steps.

    def _step(self) -> Step:
        drawn = self.dice.random()
        if drawn < self.shares[0]:
            return self._write()
        return self._service() if drawn < self.shares[1] else self._command()

    def _write(self) -> Write:
        partitioned = self.table.partitions > 0
        operation = self._drawn(
            {key: value for key, value in self.writes.items() if partitioned or "partition" not in key}
        )
        number, fails = self._next(), self.dice.random() < 0.08
        if self.dice.random() < self.ours[operation in OF_PARTITIONS]:
            return self._ours(operation, number)
        if operation in ("insert", "bulk_insert"):
            return Write(
                operation, number, self._fresh(self.dice.randrange(3, 12)), fails=fails and operation == "insert"
            )
        if operation == "delete_partition":
            return Write(operation, number, self._some(1, 1))
        if operation == "delete":
            return Write(operation, number, self._some(2, 8), fails=fails)
        if operation.startswith("insert_overwrite"):
            return Write(operation, number, self._some(3, 12), fails=fails)
        inline = self.table.on_read and not fails and self.dice.random() < 0.12
        options = {"hoodie.compact.inline": "true", **ONE_DELTA} if inline else {}
        return replace(self._upsert(number), fails=fails, options=options)

    def _upsert(self, number: int) -> Write:
        keys = self._some(4, 16)
        fresh = self._fresh(self.dice.randrange(0, 4))
        late = tuple(key for key in keys if self.table.event_time and self.dice.random() < 0.25)
        dropped = tuple(key for key in keys if self.table.soft_deletes and self.dice.random() < 0.15)
        evolution: Evolution = self.dice.choices(("", "add_column", "widen"), (8, 1, 0.5))[0]
        return Write("upsert", number, keys + fresh, late, dropped, evolution)

    def _ours(self, operation: str, number: int) -> Write:
        fault, at = self._fault()
        if operation == "upsert":
            return replace(self._upsert(number), ours=True, fault=fault, fault_at=at)
        if operation in ("insert", "bulk_insert"):
            keys = self._fresh(self.dice.randrange(3, 12))
        else:
            keys = self._some(1, 1) if operation == "delete_partition" else self._some(2, 12)
        return Write(operation, number, keys, ours=True, fault=fault, fault_at=at)

    def _fault(self) -> tuple[Fault, int]:
        fault: Fault = self.dice.choices(("", "kill", "error"), (6, 3, 1))[0]
        return fault, int(self.dice.expovariate(1 / 12)) if fault else 0

    def _service(self) -> Service:
        on_read = self.table.on_read
        name = self._drawn({key: value for key, value in self.services.items() if on_read or key not in ON_LOGS})
        options: dict[str, str] = {}
        if name == "clean":
            options = dict(self.dice.choice(self.cleans_of_hudi))
        if name == "archive":
            options = {**self.archived, **self.cleans[0]}
        if name == "schedule_clustering":
            options = {"hoodie.clustering.plan.strategy.small.file.limit": "104857600"}
        return Service(name, self.dice.randrange(4), options)

    def _command(self) -> Command:
        on_read = self.table.on_read
        verb = self._drawn({key: value for key, value in self.commands.items() if on_read or "compaction" not in key})
        switches = {name: value for name, value in self.table.options.items() if name.startswith("hoodie.metadata.")}
        options = switches
        arguments: tuple[str, ...] = ()
        if "clean" in verb:
            options = {**switches, **self.dice.choice(self.cleans)}
        if verb in ("run compaction --schedule", "schedule compaction"):
            options = switches | self.dice.choice([ONE_DELTA, TWO_DELTAS])
        if verb == "run compaction" and self.dice.random() < 0.5:
            arguments = ("--all-pending",)
        if verb == "run archive":
            options = {**switches, **self.archived}
        if "indexing" in verb:
            options = self._index_to_build()
        if verb == "metadata create" and self.table.indexes:
            arguments = tuple(word for name in self.table.indexes for word in ("--partition", name))
        if verb == "metadata drop" and self.dice.random() < 0.7:
            arguments = ("--partition", self.dice.choice([*self.table.indexes[1:], "column_stats"]))
        if "clustering" in verb:
            options = switches | self.dice.choice(CLUSTERED)
        fault, at = self._fault()
        # What comes after half a restore is not defined: its user has to run it again.
        again = bool(fault) and (self.dice.random() < 0.6 or verb == "restore")
        return Command(verb, self.dice.randrange(4), arguments, options, fault, at, again)

    def _index_to_build(self) -> dict[str, str]:
        """Of an index that the writers keep, since they drop others."""
        built = [name for name in self.table.indexes if name in SWITCHES]
        if self.version != "6" and "record_index" in built and self.dice.random() < 0.4:
            return dict(self.dice.choice([SECONDARY, EXPRESSION]))
        if not built:
            return {"hoodie.metadata.index.column.stats.enable": "true"}
        return dict.fromkeys(SWITCHES[self.dice.choice(built)], "true")

    def _drawn(self, weights: Mapping[str, float]) -> str:
        return self.dice.choices(list(weights), list(weights.values()))[0]

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _fresh(self, count: int) -> tuple[int, ...]:
        self.keys += count
        return tuple(range(self.keys - count, self.keys))

    def _some(self, least: int, most: int) -> tuple[int, ...]:
        return tuple(sorted(self.dice.sample(range(self.keys), min(self.keys, self.dice.randint(least, most)))))
