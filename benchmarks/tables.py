"""Makes the benchmark's tables with real Apache Hudi 0.15.0, once, into the cache.

`python -m benchmarks.tables ROWS UPDATES FOLDER`: a merge-on-read table of ROWS rows in 4 file groups of 2 partitions,
three upserts of UPDATES / 3 rows each into avro logs, the metadata table with `files` only, the default codec (gzip),
and a compaction scheduled over all.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hudi_core.request.java import find_java

ROUNDS = 3
NAME = "bench"
COLUMNS = (
    "concat('key-', lpad(cast(id as string), 12, '0')) id",
    "cast(id % 2 as string) part",
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
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "false",
}


def hudi_session(cores: int) -> Any:
    """A Spark session with the bundle of real Hudi 0.15.0, as its users start it."""
    import os

    from pyspark.sql import SparkSession

    from tests.interop.bundle import bundle_jar

    os.environ["JAVA_HOME"] = find_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    options = {
        "spark.jars": str(bundle_jar("0.15.0")),
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


def make(rows: int, updates: int, folder: Path, cores: int = 2) -> None:
    """Writes the table below `folder`; the folder appears only when it is complete."""
    fresh = folder.with_name(folder.name + ".tmp")
    session = hudi_session(cores)

    def write(salt: int, condition: str, operation: str, mode: str) -> None:
        frame = session.range(0, rows).where(condition).selectExpr(*(column.format(salt=salt) for column in COLUMNS))
        frame.write.format("hudi").options(**OPTIONS).option("hoodie.datasource.write.operation", operation).mode(
            mode
        ).save(str(fresh))

    write(1, "true", "bulk_insert", "overwrite")
    for turn in range(ROUNDS):
        write(10 + turn, f"abs(hash(id, {turn})) % {rows} < {updates // ROUNDS}", "upsert", "append")
    session.sql(f"CREATE TABLE {NAME} USING hudi LOCATION '{fresh}'")
    session.sql(
        f"CALL run_compaction(op => 'schedule', table => '{NAME}', options => "
        "'hoodie.compact.inline.max.delta.commits=1')"
    ).collect()
    session.stop()
    fresh.rename(folder)


if __name__ == "__main__":
    make(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
