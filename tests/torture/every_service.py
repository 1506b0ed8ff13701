"""One program per table version and table type: real Hudi and we write, and each service runs once."""

from __future__ import annotations

from typing import Final

from tests.torture.generate import BY_VERSIONS, ON_ITS_OWN, ONE_DELTA, SMALL, SWITCHES, ordering, switched
from tests.torture.program import Command, Program, Service, Step, TableShape, Write

WRITERS: Final = {"6": "0.15.0", "8": "1.0.2", "9": "1.2.0"}
"""The version of real Hudi to which a table version is native."""
INDEXES: Final = ("files", "column_stats", "bloom_filters", "record_index")
ALL_SMALL: Final = {"hoodie.clustering.plan.strategy.small.file.limit": "104857600"}
TWO_BLOCKS: Final = {"hoodie.log.compaction.blocks.threshold": "2", "hoodie.log.compaction.enable": "true"}
SORTED: Final = {"hoodie.clustering.plan.strategy.sort.columns": "name,ts"}


def every_service(version: str, *, on_read: bool) -> Program:
    """The program of a table version and type."""
    return _Steps(version, on_read).program()


class _Steps:
    def __init__(self, version: str, on_read: bool) -> None:
        self.version, self.on_read, self.number = version, on_read, 0
        self.table = TableShape(on_read, True, 3, False, INDEXES, self._options())
        self.kept = {name: value for name, value in self.table.options.items() if name.startswith("hoodie.metadata.")}

    def program(self) -> Program:
        steps = (
            self._write("insert", range(30)),
            self._write("upsert", range(4, 20), late=(4, 5)),
            *(self._compactions() if self.on_read else ()),
            *self._clusterings(),
            *self._overwrites(),
            *self._undone(),
            *self._removals(),
            *self._indexings(),
            *self._ours(),
            *self._what_hudi_does_next(),
        )
        return Program(self.version, WRITERS[self.version], 0, self.table, steps)

    def _ours(self) -> tuple[Step, ...]:
        """Writes of ours between those of real Hudi, each operation once."""
        return (
            self._write("upsert", range(2, 12), late=(3, 6), ours=True),
            self._write("insert", range(50, 55), ours=True),
            self._write("bulk_insert", range(55, 58), ours=True),
            self._write("delete", range(26, 28), ours=True),
        )

    def _compactions(self) -> tuple[Step, ...]:
        """Plans of ours and of real Hudi, each with a write after it."""
        return (
            self._command("schedule compaction", **ONE_DELTA),
            self._write("upsert", range(10, 33)),
            self._command("run compaction"),
            Service("schedule_compaction", options=ONE_DELTA),
            self._write("delete", range(20, 24), ours=True),
            self._command("run compaction"),
            self._write("upsert", range(8, 16), ours=True),
            self._write("upsert", range(12, 22), ours=True),
            Service("schedule_log_compaction", options=TWO_BLOCKS),
            self._command("run log_compaction"),
            self._command("run compaction --schedule", **ONE_DELTA),
        )

    def _clusterings(self) -> tuple[Step, ...]:
        return (
            self._command("schedule clustering", **SORTED),
            self._command("run clustering"),
            self._write("upsert", range(9)),
            Service("schedule_clustering", options=ALL_SMALL),
            self._command("run clustering"),
        )

    def _overwrites(self) -> tuple[Step, ...]:
        return (
            self._write("insert_overwrite", range(6), ours=True),
            self._write("delete_partition", (1,), ours=True),
            self._write("insert", range(33, 45), ours=True),
        )

    def _undone(self) -> tuple[Step, ...]:
        """What is rolled back: a failed write, the newest, and all after a savepoint."""
        return (
            self._write("upsert", range(12), fails=True),
            self._command("rollback"),
            self._write("upsert", range(12), ours=True),
            self._command("rollback newest"),
            self._command("savepoint create"),
            self._write("upsert", range(2, 14), ours=True),
            self._command("restore", pick=1),
            self._command("savepoint delete"),
        )

    def _removals(self) -> tuple[Step, ...]:
        return (
            self._command("schedule clean", **BY_VERSIONS),
            self._command("run clean", **BY_VERSIONS),
            self._command("run archive", **SMALL),
        )

    def _indexings(self) -> tuple[Step, ...]:
        listed = tuple(word for name in INDEXES for word in ("--partition", name))
        return (
            self._command("metadata drop", ("--partition", "column_stats")),
            self._command("run indexing", **dict.fromkeys(SWITCHES["column_stats"], "true")),
            self._command("metadata drop"),
            self._command("metadata create", listed),
            self._write("upsert", range(20)),
            self._command("metadata update"),
            self._command("doctor"),
        )

    def _what_hudi_does_next(self) -> tuple[Step, ...]:
        compactions = (Service("schedule_compaction", options=ONE_DELTA), Service("compact"))
        return (
            self._write("delete", range(10, 14)),
            *(compactions if self.on_read else ()),
            Service("schedule_clustering", options=ALL_SMALL),
            Service("cluster"),
            self._write("upsert", range(30, 50)),
        )

    def _write(
        self,
        operation: str,
        keys: range | tuple[int, ...],
        late: tuple[int, ...] = (),
        *,
        ours: bool = False,
        fails: bool = False,
    ) -> Write:
        self.number += 1
        return Write(operation, self.number, tuple(keys), late, fails=fails, ours=ours)

    def _command(self, verb: str, arguments: tuple[str, ...] = (), pick: int = 0, **options: str) -> Command:
        return Command(verb, pick, arguments, {**self.kept, **options})

    def _options(self) -> dict[str, str]:
        pinned = {"hoodie.write.table.version": self.version, "hoodie.write.auto.upgrade": "false"}
        return {
            "hoodie.table.name": "every_service",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.on_read else "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            **ON_ITS_OWN,
            "hoodie.embed.timeline.server": "false" if self.version == "6" else "true",
            **ordering(self.version, event_time=True),
            "hoodie.index.type": "RECORD_INDEX",
            **switched(INDEXES),
            "hoodie.metadata.record.index.min.filegroup.count": "2",
            "hoodie.metadata.compact.max.delta.commits": "3",
            **({} if self.version == "6" else pinned),
        }
