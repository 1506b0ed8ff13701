"""Makes the tables of the compaction benchmark with real Apache Hudi, once, into the cache.

`python -m benchmarks.tables CASE FOLDER`, CASE as in benchmarks/compaction_cases.py: a merge-on-read table in 4 file
groups of 2 partitions, three upserts into logs, the metadata table with `files` only, and a compaction scheduled over
all. 0.15.0 makes version 6 and 1.2.0 version 9; what is not named here is as its users get it by default.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.compaction_cases import HALVES, OURS, ROUNDS, Case
from hudi_core.request.java import find_java

NAME = "bench"
PARTITIONS = 2
COLUMNS = (
    "concat('key-', lpad(cast(id as string), 12, '0')) id",
    f"cast(id % {PARTITIONS} as string) part",
    "{salt} + id ts",
    "xxhash64(id, {salt}) a",
    "cast(rand({salt}) as double) b",
    "concat('name-', cast(id % 5000 as string)) c",
    "sha1(cast(id * 7 + {salt} as string)) d",
    "date_add(date'2024-01-01', cast(id % 365 as int)) e",
    "cast(id % 100000 as decimal(12,2)) f",
)
OPTIONS = {
    "hoodie.table.name": NAME,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.compact.inline": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.parquet.max.file.size": "512000000",
    "hoodie.parquet.small.file.limit": "0",
}
METADATA = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
}


def service_options(codec: str) -> dict[str, str]:
    """What a table service needs again as options, since the table's own properties do not hold it."""
    return {**METADATA, "hoodie.parquet.compression.codec": codec}


def call_compaction(session: Any, op: str, options: dict[str, str]) -> list[Any]:
    """Hudi's procedure on the table NAME of the session."""
    listed = ",".join(f"{key}={value}" for key, value in options.items())
    found: list[Any] = session.sql(
        f"CALL run_compaction(op => '{op}', table => '{NAME}', options => '{listed}')"
    ).collect()
    return found


def hudi_session(cores: int, version: str = "0.15.0") -> Any:
    """A Spark session with the bundle of real Hudi, as its users start it."""
    import os

    from pyspark.sql import SparkSession

    from tests.interop.bundle import bundle_jar

    os.environ["JAVA_HOME"] = find_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    options = {
        "spark.jars": str(bundle_jar(version)),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "8g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("real-hudi-peer")
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def make(case: Case, folder: Path) -> None:
    """Writes the table; the folder appears only when it is complete, and is as the cases describe it."""
    fresh = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(fresh, ignore_errors=True)
    session = hudi_session(HALVES, case.hudi)

    def write(salt: int, condition: str, operation: str, mode: str) -> None:
        columns = [column.format(salt=salt) for column in COLUMNS]
        options = {**OPTIONS, **service_options(case.codec), "hoodie.datasource.write.operation": operation}
        frame = session.range(0, case.rows).where(condition).selectExpr(*columns)
        frame.write.format("hudi").options(**options).mode(mode).save(str(fresh))

    def schedule() -> None:
        session.sql(f"CREATE TABLE IF NOT EXISTS {NAME} USING hudi LOCATION '{fresh}'")
        options = {**service_options(case.codec), "hoodie.compact.inline.max.delta.commits": "1"}
        call_compaction(session, "schedule", options)

    write(1, "true", "bulk_insert", "overwrite")
    if case.pattern == OURS:
        write(9, "id % 100 < 2", "upsert", "append")
        schedule()
        program = Path(sys.executable).parent / "hudictl"
        subprocess.run([str(program), "run", "compaction", str(fresh), "--engine", "local"], check=True)
    for turn in range(ROUNDS):
        write(10 + turn, case.written(turn), "delete" if case.pattern == "deleted" else "upsert", "append")
    schedule()
    session.stop()
    check_layout(fresh, case)
    check_metadata(fresh)
    fresh.rename(folder)


def check_layout(table: Path, case: Case) -> None:
    """Raises RuntimeError unless each newest base file holds every other id of one half, in order, at its codec."""
    import numpy as np
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    half = case.rows // HALVES
    due = {(part, start) for part in range(PARTITIONS) for start in range(0, case.rows, half)}
    newest = {(path.parent, path.name.split("_")[0]): path for path in sorted(table.glob("*/*.parquet"), key=_instant)}
    for path in newest.values():
        file = pq.ParquetFile(path)
        codec = file.metadata.row_group(0).column(0).compression
        ids = pc.cast(pc.utf8_slice_codeunits(file.read(["id"])["id"], 4), "int64").to_numpy()
        part, start = int(path.parent.name), int(ids[0]) // half * half
        if codec != case.codec.upper() or not np.array_equal(ids, np.arange(start + part, start + half, PARTITIONS)):
            raise RuntimeError(f"{path}: {codec}, {len(ids)} rows from {ids[:3]} to {ids[-3:]}")
        due.remove((part, start))
    if due:
        raise RuntimeError(f"{table}: no base file of {sorted(due)}")


def _instant(path: Path) -> str:
    return path.name.rsplit("_", 1)[1]


def check_metadata(table: Path) -> None:
    """Raises RuntimeError unless the metadata table holds the partition `files` and no other."""
    found = sorted(path.name for path in (table / ".hoodie" / "metadata").iterdir() if path.name != ".hoodie")
    if found != ["files"]:
        raise RuntimeError(f"{table}: the metadata table has {found}")


if __name__ == "__main__":
    make(Case.parse(sys.argv[1]), Path(sys.argv[2]))
