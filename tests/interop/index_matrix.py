"""Which operations of real Hudi leave something out of an index: one table with every partition type, one operation on
a copy of it, then our comparison of the metadata table with the data.

    python -m tests.interop.index_matrix HUDI TABLE_VERSION TABLE_TYPE OUTPUT.json [OPERATION ...]

The tables are made once; a session of real Hudi serves all operations.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import HudiError
from tests.interop.changes import write_parquet
from tests.interop.fully_indexed_table import BY_RECORD_INDEX, EXPRESSION, SECONDARY, FullyIndexedTable
from tests.interop.judged import KEEP_ONE, MOR
from tests.interop.real_hudi import RealHudi, RealHudiError

Rows = pa.Table
Operation = Callable[["Subject"], None]
FEWER = " without secondary and expression indexes"
"""Behind the name of an operation that Hudi refuses, done again on a table without them."""
_AT_ONCE = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.log.compaction.blocks.threshold": "1"}


@dataclass(frozen=True)
class Subject:
    """A copy of the table, and the operations of real Hudi on it."""

    table: FullyIndexedTable

    @property
    def base(self) -> str:
        return str(self.table.base)

    def write(self, operation: str, rows: Rows, options: Mapping[str, str] | None = None) -> None:
        """One write with every index enabled."""
        self.table.steps += 1
        parquet = write_parquet(rows, self.table.base.parent, f"{self.table.base.name}-rows{self.table.steps}")
        chosen = {**self.table.options, **(options or {})}
        self.table.hudi.ask("write", base=self.base, operation=operation, parquet=parquet, options=chosen)

    def fresh(self, count: int = 6, *, low: bool = False) -> Rows:
        """Rows of new keys, whose values lie beyond those of the table."""
        some = self.table.rows.sort_by("id").slice(0, count)
        salt = f"n{self.table.steps}-"
        sign = -1.0 if low else 1.0
        return self._changed(
            some, {"id": pc.binary_join_element_wise(salt, some["id"], ""), **self._beyond(some, sign)}
        )

    def changed(self, count: int = 6, *, by: float = 1.0) -> Rows:
        """Later versions of existing rows, with other values of each indexed column."""
        some = self.table.rows.sort_by("id").slice(3 * self.table.steps % 20, count)
        return self._changed(some, self._beyond(some, by))

    def _beyond(self, some: Rows, by: float) -> dict[str, Any]:
        step = self.table.steps + 1
        return {
            "ts": pc.add(some["ts"], pa.scalar(100_000_000 * step, pa.int64())),
            "name": pc.binary_join_element_wise(f"z{step}-" if by > 0 else f"A{step}-", some["name"], ""),
            "amount": pc.add(some["amount"], pa.scalar(by * 100_000.0 * step)),
        }

    def _changed(self, rows: Rows, columns: Mapping[str, Any]) -> Rows:
        for name, values in columns.items():
            at = rows.column_names.index(name)
            rows = rows.set_column(
                at,
                rows.schema.field(name),
                pa.chunked_array([pc.cast(values, rows.schema.field(name).type).combine_chunks()]),
            )
        return rows

    def service(self, name: str, instant: str | None = None, options: Mapping[str, str] | None = None) -> str | None:
        """A table service by the write client."""
        chosen = {**self.table.options, **_AT_ONCE, **(options or {})}
        found = self.table.hudi.ask("service", base=self.base, name=name, instant=instant, options=chosen)
        return None if found is None else str(found)

    def compact(self, instant: str) -> None:
        self.table.hudi.ask("compact", base=self.base, instant=instant, options=self.table.options)

    def planned_compaction(self) -> str:
        """Of slices with log files, which an upsert makes first."""
        self.write("upsert", self.changed(), BY_RECORD_INDEX)
        instant = self.service("schedule_compaction")
        assert instant is not None
        return instant

    def sql(self, statement: str) -> None:
        """A statement over the table's name, `t`."""
        name = "t_" + re.sub(r"\W", "_", self.table.base.name)
        ask = self.table.hudi.ask
        ask("sql", statement=f"DROP TABLE IF EXISTS {name}")
        ask("sql", statement=f"CREATE TABLE {name} USING hudi LOCATION '{self.base}'")
        session = {key: value for key, value in self.table.options.items() if key.startswith("hoodie.")}
        for key, value in session.items():
            ask("sql", statement=f"SET {key}={value}")
        try:
            ask("sql", statement=statement.replace("TABLE_T", name))
        finally:
            for key in session:
                ask("sql", statement=f"RESET {key}")

    def findings(self) -> list[str]:
        return self.table.found()


def _last_write(subject: Subject) -> str:
    return [item for item in subject.table.instants() if item.action in ("commit", "deltacommit")][-1].requested_time


def _cluster(subject: Subject, options: Mapping[str, str] | None = None) -> None:
    instant = subject.service(
        "schedule_clustering", options={"hoodie.clustering.inline.max.commits": "1", **(options or {})}
    )
    assert instant is not None
    subject.service("cluster", instant, options)


def _log_compact(subject: Subject) -> None:
    for _ in range(2):
        subject.write("upsert", subject.changed(), BY_RECORD_INDEX)
    instant = subject.service("schedule_log_compaction")
    assert instant is not None
    subject.service("log_compact", instant)


def _behind_compaction(operation: str, **options: str) -> Operation:
    def run(subject: Subject) -> None:
        subject.planned_compaction()
        rows = subject.changed() if operation in ("upsert", "delete") else subject.fresh()
        subject.write(operation, rows, {**BY_RECORD_INDEX, **options})

    return run


def _compaction_overtaken(subject: Subject) -> None:
    instant = subject.planned_compaction()
    subject.write("upsert", subject.changed(), BY_RECORD_INDEX)
    subject.compact(instant)


def _compaction_overtaken_then_write(subject: Subject) -> None:
    _compaction_overtaken(subject)
    subject.write("upsert", subject.changed(), BY_RECORD_INDEX)


def _behind(schedule: str, options: Mapping[str, str] | None = None) -> Operation:
    """An upsert while a plan of another service is pending."""

    def run(subject: Subject) -> None:
        subject.write("upsert", subject.changed(), BY_RECORD_INDEX)
        subject.write("upsert", subject.changed(), BY_RECORD_INDEX)
        assert subject.service(schedule, options=options) is not None
        rows = subject.fresh() if "clustering" in schedule else subject.changed()
        subject.write("insert" if "clustering" in schedule else "upsert", rows, BY_RECORD_INDEX)

    return run


def _restore(subject: Subject) -> None:
    instant = _last_write(subject)
    subject.service("savepoint", instant)
    subject.write("upsert", subject.changed(), BY_RECORD_INDEX)
    subject.write("insert", subject.fresh())
    subject.service("restore", instant)


def _rollback(subject: Subject) -> None:
    subject.write("upsert", pa.concat_tables([subject.changed(), subject.fresh()]), BY_RECORD_INDEX)
    subject.service("rollback", _last_write(subject))


def _rollback_of_bulk(subject: Subject) -> None:
    subject.write("bulk_insert", subject.fresh())
    subject.service("rollback", _last_write(subject))


def _compaction_rolled_back(subject: Subject) -> None:
    instant = subject.planned_compaction()
    subject.write("upsert", subject.changed(), BY_RECORD_INDEX)
    subject.compact(instant)
    subject.service("rollback", _last_write(subject))


def _moved(subject: Subject) -> None:
    """Keys that change their partition."""
    rows = subject.changed(4)
    other = pc.if_else(pc.equal(rows["dt"], "2024-01-01"), "2024-01-02", "2024-01-01")
    rows = subject._changed(rows, {"dt": other})
    subject.write("upsert", rows, {**BY_RECORD_INDEX, "hoodie.record.index.update.partition.path": "true"})


def _merge_into(subject: Subject) -> None:
    """Of some columns: a partial update on merge on read. Hudi compares no column with itself in the condition."""
    subject.sql(
        "MERGE INTO TABLE_T AS target USING (SELECT concat('', id) AS id, 'zz merged' AS name, 777777.5D AS amount, "
        "ts + 500000000 AS ts, note, dt FROM TABLE_T WHERE id IN ('key-0003', 'key-0004', 'key-0020')) AS source "
        "ON target.id = source.id WHEN MATCHED THEN UPDATE SET target.name = source.name, "
        "target.amount = source.amount, target.ts = source.ts"
    )


def _merge_into_new(subject: Subject) -> None:
    subject.sql(
        "MERGE INTO TABLE_T AS target USING (SELECT concat('m-', id) AS id, 'zz merged' AS name, 777777.5D AS amount, "
        "ts + 500000000 AS ts, dt, note FROM TABLE_T WHERE id IN ('key-0003', 'key-0004', 'key-0020')) AS source "
        "ON target.id = source.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def _clean(subject: Subject) -> None:
    subject.write("upsert", subject.changed(), BY_RECORD_INDEX)
    subject.write("insert_overwrite", subject.fresh())
    subject.service("clean", options=KEEP_ONE)


OPERATIONS: dict[str, Operation] = {
    "insert": lambda it: it.write("insert", it.fresh()),
    "upsert": lambda it: it.write("upsert", pa.concat_tables([it.changed(), it.fresh()]), BY_RECORD_INDEX),
    "upsert by bloom": lambda it: it.write(
        "upsert", pa.concat_tables([it.changed(), it.fresh()]), {"hoodie.index.type": "BLOOM"}
    ),
    "upsert moves keys": _moved,
    "bulk_insert": lambda it: it.write("bulk_insert", it.fresh()),
    "bulk_insert by records": lambda it: it.write(
        "bulk_insert", it.fresh(), {"hoodie.datasource.write.row.writer.enable": "false"}
    ),
    "insert_overwrite": lambda it: it.write("insert_overwrite", it.fresh()),
    "insert_overwrite_table": lambda it: it.write("insert_overwrite_table", it.fresh()),
    "insert_overwrite by rows": lambda it: it.write(
        "bulk_insert", it.fresh(), {"hoodie.bulkinsert.overwrite.operation.type": "insert_overwrite"}
    ),
    "delete": lambda it: it.write("delete", it.changed(), BY_RECORD_INDEX),
    "delete_partition": lambda it: it.write(
        "delete_partition", it.fresh(), {"hoodie.datasource.write.partitions.to.delete": "2024-01-01"}
    ),
    "merge_into": _merge_into,
    "merge_into with inserts": _merge_into_new,
    "update": lambda it: it.sql("UPDATE TABLE_T SET name = 'zz set', amount = 888888.5D WHERE id <= 'key-0006'"),
    "delete from": lambda it: it.sql("DELETE FROM TABLE_T WHERE id <= 'key-0006'"),
    "insert into": lambda it: it.sql(
        "INSERT INTO TABLE_T SELECT concat('i-', id) AS id, ts + 500000000 AS ts, 'zz into' AS name, "
        "999999.5D AS amount, note, dt FROM TABLE_T WHERE id <= 'key-0006'"
    ),
    "clustering": _cluster,
    "clustering by records": lambda it: _cluster(it, {"hoodie.datasource.write.row.writer.enable": "false"}),
    "insert behind a clustering": _behind("schedule_clustering", {"hoodie.clustering.inline.max.commits": "1"}),
    "rollback": _rollback,
    "rollback of bulk_insert": _rollback_of_bulk,
    "restore": _restore,
    "clean": _clean,
}
ON_READ: dict[str, Operation] = {
    "compaction": lambda it: it.compact(it.planned_compaction()),
    "log_compaction": _log_compact,
    "upsert behind a log compaction": _behind("schedule_log_compaction"),
    "upsert behind a compaction": _behind_compaction("upsert"),
    "insert behind a compaction": _behind_compaction("insert"),
    "bulk_insert behind a compaction": _behind_compaction("bulk_insert"),
    "delete behind a compaction": _behind_compaction("delete"),
    "compaction overtaken by an upsert": _compaction_overtaken,
    "upsert after an overtaken compaction": _compaction_overtaken_then_write,
    "rollback of an overtaken compaction": _compaction_rolled_back,
}


def operations(kind: str) -> dict[str, Operation]:
    """Those of a table type."""
    return {**OPERATIONS, **ON_READ} if kind == MOR else OPERATIONS


@dataclass(frozen=True)
class Cell:
    """What an operation left behind: differences by our validation; `refused` is Hudi's error."""

    operation: str
    differences: tuple[str, ...] = ()
    refused: str = ""
    seconds: float = 0.0


def run(hudi: RealHudi, folder: Path, version: str, kind: str, names: list[str]) -> Iterator[Cell]:
    """Every operation on a copy of one table."""
    original = FullyIndexedTable.without_metadata(hudi, folder / "original", kind, version)
    original.begin()
    yield Cell("nothing", tuple(original.found()))
    fewer: FullyIndexedTable | None = None
    for name, operation in operations(kind).items():
        if names and name not in names:
            continue
        cell = _cell(original.copy(folder / _file_name(name)), name, operation)
        yield cell
        if cell.refused:
            if fewer is None:
                fewer = original.copy(folder / "fewer")
                for index in sorted({SECONDARY, EXPRESSION} & fewer.config.metadata_partitions):
                    fewer.drop(index)
            yield _cell(fewer.copy(folder / f"{_file_name(name)}_fewer"), f"{name}{FEWER}", operation)


def _file_name(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _cell(table: FullyIndexedTable, name: str, operation: Operation) -> Cell:
    began = time.monotonic()
    try:
        operation(Subject(table))
        found = tuple(table.found())
    except (RealHudiError, HudiError, AssertionError) as error:
        return Cell(name, refused=(str(error) or repr(error))[:2000], seconds=time.monotonic() - began)
    return Cell(name, found, seconds=time.monotonic() - began)


def main(version: str, table_version: str, kind: str, output: str, *names: str) -> None:
    """Writes the cells as JSON, one by one."""
    hudi = RealHudi(version)
    cells: list[dict[str, Any]] = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for cell in run(hudi, Path(folder), table_version, kind, list(names)):
                cells.append(vars(cell))
                Path(output).write_text(json.dumps(cells, indent=1))
                print(cell.operation, len(cell.differences), cell.refused[:200], f"{cell.seconds:.0f} s", flush=True)
    finally:
        hudi.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
