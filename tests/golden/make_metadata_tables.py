"""Makes `data/metadata_tables.tar.xz` with real Apache Hudi: tables whose metadata tables hold what the golden corpus
does not.

    python -m tests.golden.make_metadata_tables 1.2.0 FOLDER        (and 0.15.0), then: tar cJf
    tests/golden/data/metadata_tables.tar.xz -C FOLDER .

Tables, each beside `<table>.snapshot.parquet`, the rows that real Hudi's snapshot query returns:
- `types_v6`, `types_v8`, `types_v9`: column statistics of every primitive type, in base files and logs, with a delete;
- `keys_v8`, `keys_v9`: no partitions, a secondary index over null, empty, non-ASCII and escaped values, updates and
  deletes. The index comes with a commit of one row that is deleted again: Hudi 1.2.0 leaves the changes of the commit
  that brings an index out of it;
- `incomplete_v9`: the same rows with the index from the first commit on, which therefore lacks the rows of that commit;
- `partitioned_v9`: a record index per data partition, two-level partition paths, a key that is in two partitions.
"""

from __future__ import annotations

import datetime
import decimal
import os
import sys
from pathlib import Path
from typing import Any

from hudi_core.request.java import find_java
from tests.interop.bundle import bundle_jar

UTC = datetime.timezone.utc
TYPES = (
    "id string, flag boolean, tiny tinyint, small smallint, number int, big bigint, single float, twice "
    "double, word string, bytes binary, "
    "money decimal(10,2), wide decimal(30,12), day date, moment timestamp, nested struct<a:int,b:string>, tags "
    "array<string>, nothing string, "
    "p string, ts bigint"
)


def typed_row(number: int, ts: int) -> tuple[Any, ...]:
    """A row of TYPES; every seventh row is null wherever it may be."""
    key, p = f"k{number:03d}", f"p{number % 2}"
    if number % 7 == 3:
        return (key, *[None] * 16, p, ts)
    sign = -1 if number % 3 else 1
    return (
        key,
        number % 4 == 0,
        sign * (number % 100),
        sign * number * 100,
        sign * number * 100_000,
        sign * number * 10_000_000_000,
        sign * number / 4,
        sign * number / 10,
        f"w{number % 10}é",
        bytes([number % 256, 255 - number % 256]),
        decimal.Decimal(sign * number * 101).scaleb(-2),
        decimal.Decimal(sign * number * 1_000_000_007).scaleb(-12),
        datetime.date(1969, 12, 1) + datetime.timedelta(days=number),
        datetime.datetime(1969, 12, 31, 23, tzinfo=UTC) + datetime.timedelta(seconds=number * 97, microseconds=number),
        (number, f"b{number}"),
        [f"t{number}"],
        None,
        p,
        ts,
    )


def spark_session(version: str) -> Any:
    """A Spark session with the bundle of a Hudi version."""
    os.environ["JAVA_HOME"] = find_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.jars", str(bundle_jar(version)))
    options = {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
    }
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


class Tables:
    """Writes tables and what real Hudi reads from them into one folder."""

    def __init__(self, spark: Any, folder: Path, version: str) -> None:
        self._spark = spark
        self._folder = folder
        self._version = version

    def write(self, name: str, rows: list[tuple[Any, ...]], schema: str, operation: str, **options: str) -> None:
        """One commit; keyword arguments are option keys with `__` for `.`."""
        chosen = {
            "hoodie.table.name": name,
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.hive_style_partitioning": "false",
            "hoodie.bulkinsert.shuffle.parallelism": "2",
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.delete.shuffle.parallelism": "2",
            "hoodie.compact.inline": "false",
            "hoodie.metadata.enable": "true",
            "hoodie.embed.timeline.server": "true",
            "hoodie.bloom.index.filter.type": "SIMPLE" if self._version == "0.15.0" else "DYNAMIC_V0",
            "hoodie.index.bloom.num_entries": "1000",
            "hoodie.bloom.index.filter.dynamic.max.entries": "2000",
            **{key.replace("__", "."): value for key, value in options.items()},
        }
        frame = self._spark.createDataFrame(rows, schema).coalesce(1)
        frame.write.format("hudi").options(**chosen).mode("append").save(str(self._folder / name))

    def snapshot(self, name: str) -> None:
        """Keeps what real Hudi reads."""
        frame = self._spark.read.format("hudi").load(str(self._folder / name))
        frame.toPandas()  # a first full read: an error here must not leave a half written answer
        frame.coalesce(1).write.mode("overwrite").parquet(str(self._folder / "answer"))
        (answer,) = (self._folder / "answer").glob("*.parquet")
        answer.replace(self._folder / f"{name}.snapshot.parquet")


def make_types(tables: Tables, number: str, **options: str) -> None:
    """The table `types_v<number>`."""
    name = f"types_v{number}"
    chosen = {
        "hoodie__datasource__write__partitionpath__field": "p",
        "hoodie__metadata__index__column__stats__enable": "true",
        "hoodie__metadata__index__column__stats__file__group__count": "2",
        **options,
    }
    tables.write(name, [typed_row(row, 1) for row in range(60)], TYPES, "insert", **chosen)
    changed = [(f"k{row:03d}", *typed_row(row + 200, 2)[1:17], f"p{row % 2}", 2) for row in range(0, 40, 3)]
    tables.write(name, changed, TYPES, "upsert", **chosen)
    tables.write(name, [typed_row(row, 3) for row in range(5, 50, 9)], TYPES, "delete", **chosen)
    tables.write(name, [typed_row(row, 4) for row in range(60, 80)], TYPES, "upsert", **chosen)
    tables.snapshot(name)


WORDS = [None, "", "a$b", "back\\slash", "both\\$", "日本", "\U0001f600", "$", "\\", "plain", "\0"]
KEYS = "id string, word string, ts bigint"


SECONDARY = {"hoodie__metadata__index__secondary__enable": "true", "hoodie__metadata__index__secondary__column": "word"}


def make_incomplete(tables: Tables, **options: str) -> None:
    """The table `incomplete_v9`."""
    name = "incomplete_v9"
    rows = [(f"k${row}", WORDS[row % len(WORDS)], 1) for row in range(44)]
    chosen = {**NOT_PARTITIONED, **SECONDARY, **options}
    tables.write(name, rows, KEYS, "insert", **chosen)
    tables.write(
        name,
        [(key, WORDS[(row + 1) % len(WORDS)], 2) for row, (key, *_) in enumerate(rows) if row % 4 == 0],
        KEYS,
        "upsert",
        **chosen,
    )
    tables.snapshot(name)


NOT_PARTITIONED = {
    "hoodie__datasource__write__keygenerator__class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie__metadata__record__index__enable": "true",
    "hoodie__metadata__global__record__level__index__enable": "true",
    "hoodie__metadata__record__index__min__filegroup__count": "3",
    "hoodie__metadata__index__bloom__filter__enable": "true",
    "hoodie__index__type": "GLOBAL_RECORD_LEVEL_INDEX",
}


def make_keys(tables: Tables, number: str, **options: str) -> None:
    """The table `keys_v<number>`."""
    name = f"keys_v{number}"
    chosen = {**NOT_PARTITIONED, **options}
    rows = [(f"k${row}", WORDS[row % len(WORDS)], 1) for row in range(44)]
    tables.write(name, rows, KEYS, "insert", **chosen)
    chosen |= SECONDARY
    tables.write(name, [("extra", "plain", 1)], KEYS, "upsert", **chosen)
    tables.write(
        name,
        [(key, WORDS[(row + 1) % len(WORDS)], 2) for row, (key, *_) in enumerate(rows) if row % 4 == 0],
        KEYS,
        "upsert",
        **chosen,
    )
    tables.write(
        name,
        [(key, None, 3) for row, (key, *_) in enumerate([*rows, ("extra",)]) if row % 10 == 3 or row == 44],
        KEYS,
        "delete",
        **chosen,
    )
    tables.snapshot(name)


def make_partitioned(tables: Tables, **options: str) -> None:
    """The table `partitioned_v9`."""
    name = "partitioned_v9"
    schema = "id string, region string, day string, ts bigint"
    chosen = {
        "hoodie__datasource__write__partitionpath__field": "region,day",
        "hoodie__datasource__write__keygenerator__class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        "hoodie__metadata__global__record__level__index__enable": "false",
        "hoodie__metadata__record__level__index__enable": "true",
        "hoodie__metadata__record__level__index__min__filegroup__count": "2",
        "hoodie__index__type": "RECORD_LEVEL_INDEX",
        **options,
    }
    places = [("eu_west", "2024-01-01"), ("eu_west", "2024-01-02"), ("us", "2024-01-01")]
    rows = [(f"k{row % 30}", *places[row % 3 if row < 30 else (row + 1) % 3], 1) for row in range(60)]
    tables.write(name, rows, schema, "insert", **chosen)
    tables.write(name, [(*row[:3], 2) for row in rows[::5]], schema, "upsert", **chosen)
    tables.write(name, [(*row[:3], 3) for row in rows[1::8]], schema, "delete", **chosen)
    tables.snapshot(name)


def main(version: str, folder: str) -> None:
    """Makes the tables that a Hudi version writes."""
    tables = Tables(spark_session(version), Path(folder), version)
    if version == "0.15.0":
        make_types(tables, "6")
        return
    only = sys.argv[3:]
    makers = {
        "partitioned_v9": lambda: make_partitioned(tables),
        "keys_v9": lambda: make_keys(tables, "9"),
        "types_v9": lambda: make_types(tables, "9"),
        "types_v8": lambda: make_types(tables, "8", hoodie__write__table__version="8"),
        "keys_v8": lambda: make_keys(tables, "8", hoodie__write__table__version="8"),
        "incomplete_v9": lambda: make_incomplete(tables),
    }
    for name, make in makers.items():
        if not only or name in only:
            make()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
