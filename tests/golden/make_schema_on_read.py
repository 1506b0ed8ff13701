"""Makes the tables of data/schema_on_read.tar.xz with real Hudi: `python -m tests.golden.make_schema_on_read FOLDER
VERSION KIND`.

VERSION is a release of Hudi that tests/interop/bundle.py knows, KIND is mor or cow. FOLDER gets
`<VERSION>-<KIND>/table`, and beside it what real Hudi reads with schema-on-read: snapshot.parquet and
as_of_<instant>.parquet. Hudi 0.15 fails to read its own COW table with this history (NullPointerException in
InternalSchemaUtils), so there is none.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from hudi_core.request.java import find_java
from tests.interop.bundle import bundle_jar
from tests.interop.worker import start_session

COLUMNS = (
    "id string, a int, b string, c int, s struct<x:int,y:string>, l array<struct<p:int,q:int>>, d date, f float, "
    "ts bigint, dt string"
)
CHANGES = (
    "rename column a to a2",
    "alter column c type string",
    "drop column b",
    "add columns (b int)",
    "rename column s.x to x1",
    "rename column l.element.p to p1",
    "alter column d type string",
    "alter column f type double",
)
SETTINGS = {
    "hoodie.schema.on.read.enable": "true",
    "hoodie.metadata.enable": "false",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    "spark.sql.parquet.enableVectorizedReader": "false",
}


def _old(i: int) -> str:
    struct, items = f"named_struct('x', {i}, 'y', 'y{i}')", f"array(named_struct('p', {i}, 'q', {i + 1}))"
    return (
        f"('k{i}', {i}, '{i * 10}', {i * 100}, {struct}, {items}, date'2024-01-0{i + 1}', cast({i}.5 as float), 1, "
        f"'p{i % 2}')"
    )


def _new(i: int) -> str:
    struct, items = f"named_struct('x1', {i * 7}, 'y', 'z{i}')", f"array(named_struct('p1', {i}, 'q', 5))"
    return f"('k{i}', {1000 + i}, 'c{i}', {struct}, {items}, 'd{i}', cast({i}.25 as double), 2, {2000 + i}, 'p{i % 2}')"


def make(folder: Path, version: str, kind: str) -> None:
    """Writes the table and what real Hudi reads of it."""
    os.environ |= {"JAVA_HOME": find_java(), "TZ": "UTC", "PYSPARK_PYTHON": sys.executable}
    spark = start_session(str(bundle_jar(version)), "1", "2g")
    for key, value in SETTINGS.items():
        spark.sql(f"set {key}={value}")
    base = folder / f"{version}-{kind}" / "table"
    ordering = "preCombineField" if version.startswith("0.") else "orderingFields"
    spark.sql(
        f"create table t ({COLUMNS}) using hudi partitioned by (dt) location '{base}' "
        f"tblproperties (type='{kind}', primaryKey='id', {ordering}='ts', 'hoodie.schema.on.read.enable'='true')"
    )
    spark.sql(f"insert into t values {', '.join(map(_old, range(6)))}")
    first = _read(spark, base).agg({"_hoodie_commit_time": "min"}).collect()[0][0]
    for change in CHANGES:
        spark.sql(f"alter table t {change}")
    spark.sql(f"insert into t select * from values {', '.join(map(_new, range(5, 8)))}")
    spark.sql("update t set a2 = 77 where id = 'k1'")
    _store(_read(spark, base), base.parent / "snapshot.parquet")
    _store(_read(spark, base, {"as.of.instant": first}), base.parent / f"as_of_{first}.parquet")
    spark.stop()


def _read(spark: Any, base: Path, options: dict[str, str] | None = None) -> Any:
    return spark.read.format("hudi").options(**SETTINGS, **(options or {})).load(str(base))


def _store(frame: Any, target: Path) -> None:
    scratch = target.with_suffix(".scratch")
    frame.repartition(1).write.parquet(str(scratch))
    (part,) = scratch.glob("*.parquet")
    part.rename(target)
    shutil.rmtree(scratch)


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
