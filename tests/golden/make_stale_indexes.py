"""Makes `data/stale_indexes.tar.xz` with real Apache Hudi: tables with an index that its writer left something out of.

    python -m tests.golden.make_stale_indexes FOLDER, then:
    tar cJf tests/golden/data/stale_indexes.tar.xz -C FOLDER .

Tables, each beside `<table>.snapshot.parquet`, the rows that real Hudi reads without the metadata table:
- `narrow_v8`: 1.0.2, merge on read; an upsert behind a pending compaction, which leaves the ranges of whole partitions
  without the files of the slices that are to be compacted;
- `overtaken_v8`: the same table, after 1.0.2 ran the compaction;
- `behind_v9`: the same steps by 1.2.0, whose ranges hold;
- `bulk_v8`, `bulk_v9`: 1.2.0, copy on write; a secondary index by CREATE INDEX, then a bulk_insert, of which it knows
  nothing, and an upsert, of which it does;
- `clustered_v9`: `bulk_v9`, clustered;
- `nulls_v8`: 1.0.2, copy on write; a secondary index by CREATE INDEX, then an insert of a row without a value, which it
  does not record;
- `again_v6`, `again_v8`, `again_v9`: 0.15.0, and 1.2.0 (1.0.2 cannot read what it wrote there), merge on read; keys
  that are deleted and written again, which a writer that tags by base files takes for updates: the record index does
  not get them back;
- `overtaken_again_v9`: `again_v9`, compacted.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.interop.changes import write_parquet
from tests.interop.judged import COW, MOR, Judged
from tests.interop.real_hudi import RealHudi

STATISTICS = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.column.stats.column.list": "amount,ts",
    "hoodie.index.type": "SIMPLE",
    "hoodie.parquet.small.file.limit": "0",
}
KEYS = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.metadata.record.index.max.filegroup.count": "1",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
    "hoodie.embed.timeline.server": "true",
    "hoodie.parquet.small.file.limit": "0",
}
LARGE = {"hoodie.parquet.small.file.limit": "104857600"}
"""Inserts go to the file groups that are there."""
LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
"""CREATE INDEX asks for one."""


def _later(table: Judged, ids: list[str], amount: float, name: str) -> pa.Table:
    """Later versions of rows."""
    rows = table.rows.filter(pc.is_in(table.rows["id"], value_set=pa.array(ids)))
    table.steps += 1
    count = rows.num_rows
    columns = {
        "ts": pc.add(rows["ts"], pa.scalar(10_000 * table.steps, pa.int64())),
        "name": pa.array([f"{name} {row}" for row in range(count)]),
        "amount": pa.array([amount] * count, pa.float64()),
    }
    for column, values in columns.items():
        rows = rows.set_column(rows.column_names.index(column), column, values)
    return rows


def _fresh(table: Judged, count: int, name: str) -> pa.Table:
    """Rows of new keys."""
    rows = table.rows.slice(0, count)
    for column in ("id", "name"):
        values = pc.binary_join_element_wise(name, rows[column], " ")
        rows = rows.set_column(rows.column_names.index(column), column, values)
    return rows


def _write(table: Judged, operation: str, rows: pa.Table) -> None:
    parquet = write_parquet(rows, table.base.parent, "rows")
    table.hudi.ask("write", base=str(table.base), operation=operation, parquet=parquet, options=table.options)


def _keep(table: Judged, folder: Path, name: str) -> None:
    """A copy of the table as it is, and its rows."""
    shutil.copytree(table.base, folder / name)
    pq.write_table(table.hudi.snapshot(table.base, metadata=False), folder / f"{name}.snapshot.parquet")


def make_behind(hudi: RealHudi, folder: Path, scratch: Path, version: str) -> None:
    """`narrow_v8` and `overtaken_v8`, or `behind_v9`."""
    table = Judged.create(hudi, scratch / f"behind{version}", MOR, version, STATISTICS)
    keys = table.rows["id"].to_pylist()
    _write(table, "upsert", _later(table, keys[:4], 500.0, "first"))
    instant = table.schedule_compaction()
    _write(table, "upsert", _later(table, keys[4:8], 1000.0, "second"))
    _keep(table, folder, "narrow_v8" if version == "8" else "behind_v9")
    if version == "8":
        hudi.ask("compact", base=str(table.base), instant=instant, options=table.options)
        _keep(table, folder, "overtaken_v8")


def make_bulk(hudi: RealHudi, folder: Path, scratch: Path, version: str) -> None:
    """`bulk_v8`, or `bulk_v9` and `clustered_v9`."""
    table = Judged.create(hudi, scratch / f"bulk{version}", COW, version, KEYS)
    hudi.ask("sql", statement=f"CREATE TABLE bulk{version} USING hudi LOCATION '{table.base}'")
    session = {**KEYS, **LOCK, "hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"}
    for key, value in session.items():
        hudi.ask("sql", statement=f"SET {key}={value}")
    hudi.ask("sql", statement=f"CREATE INDEX by_name ON bulk{version} (name)")
    for key in session:
        hudi.ask("sql", statement=f"RESET {key}")
    _write(table, "bulk_insert", _fresh(table, 6, "bulk"))
    _write(table, "upsert", pa.concat_tables([_fresh(table, 2, "told"), _later(table, ["key-0007"], 7.5, "later")]))
    _keep(table, folder, f"bulk_v{version}")
    if version == "9":
        options = {**table.options, "hoodie.clustering.inline.max.commits": "1"}
        instant = hudi.ask("service", base=str(table.base), name="schedule_clustering", options=options)
        hudi.ask("service", base=str(table.base), name="cluster", instant=instant, options=options)
        _keep(table, folder, "clustered_v9")


def make_nulls(hudi: RealHudi, folder: Path, scratch: Path, version: str) -> None:
    """`nulls_v8`."""
    table = Judged.create(hudi, scratch / f"nulls{version}", COW, version, {**KEYS, **LARGE})
    hudi.ask("sql", statement=f"CREATE TABLE nulls{version} USING hudi LOCATION '{table.base}'")
    for key, value in {**KEYS, **LOCK}.items():
        hudi.ask("sql", statement=f"SET {key}={value}")
    hudi.ask("sql", statement=f"CREATE INDEX by_name ON nulls{version} (name)")
    for key in {**KEYS, **LOCK}:
        hudi.ask("sql", statement=f"RESET {key}")
    rows = _fresh(table, 2, "fresh")
    names = pa.array([None, "fresh name"], pa.string())
    _write(table, "insert", rows.set_column(rows.column_names.index("name"), "name", names))
    _keep(table, folder, f"nulls_v{version}")


def make_again(hudi: RealHudi, folder: Path, scratch: Path, version: str) -> None:
    """`again_v6`, `again_v8`, or `again_v9` and `overtaken_again_v9`."""
    table = Judged.create(hudi, scratch / f"again{version}", MOR, version, {**KEYS, "hoodie.index.type": "SIMPLE"})
    keys = table.rows["id"].to_pylist()
    _write(table, "delete", table.rows.slice(0, 4))
    _write(table, "upsert", _later(table, keys[:2], 77.0, "again"))
    _keep(table, folder, f"again_v{version}")
    if version == "9":
        instant = table.schedule_compaction()
        hudi.ask("compact", base=str(table.base), instant=instant, options=table.options)
        _keep(table, folder, "overtaken_again_v9")


def main(output: str) -> None:
    """Makes all tables."""
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder.with_name(f"{folder.name}-scratch")
    for release, makers in {
        "0.15.0": [(make_again, "6")],
        "1.0.2": [(make_behind, "8"), (make_nulls, "8")],
        "1.2.0": [(make_behind, "9"), (make_bulk, "8"), (make_bulk, "9"), (make_again, "8"), (make_again, "9")],
    }.items():
        hudi = RealHudi(release)
        try:
            for make, version in makers:
                make(hudi, folder, scratch, version)
        finally:
            hudi.close()
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main(sys.argv[1])
