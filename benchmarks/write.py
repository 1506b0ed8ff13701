"""Our writes against real Hudi's, on copies of its tables: `python -m benchmarks.write`. Stores
benchmarks/results/write.json.

Of each write into a million rows, table type and version of Hudi: whole processes, ours on Spark and in one process
(`--engine local`), with wall seconds, CPU seconds with every child counted and peak memory; the write in a warm
session; and Hudi's figures by ours. Both leave the same rows. Each case is stored as it ends, with the commit.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from benchmarks.compaction import Answer, code, figures
from benchmarks.measure import Cost, import_engine, machine, run_whole_process, store
from benchmarks.rewrite_process import timed
from benchmarks.table_copies import cache, on_a_copy
from benchmarks.tables import COLUMNS, METADATA, OPTIONS, hudi_session
from hudi_core.table import HudiTable

RESULTS: Final = Path(__file__).parent / "results" / "write.json"
VERSIONS: Final = ("0.15.0", "1.2.0")
ROWS: Final = 1_000_000
TYPES: Final = ("COPY_ON_WRITE", "MERGE_ON_READ")
INDEXES: Final[dict[str, dict[str, str]]] = {
    "SIMPLE": {},
    "BLOOM": {"hoodie.index.type": "BLOOM"},
    "RECORD_INDEX": {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"},
    "BUCKET": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}
"""What writers of both sides are given."""


@dataclass(frozen=True)
class Write:
    """A write of the rows of a million whose `id` satisfies `condition`. `salt` makes newer values than the table's."""

    operation: str
    condition: str
    salt: int = 5


WRITES: Final = {
    "bulk_insert of a million rows": Write("bulk_insert", "true"),
    "upsert of 100,000 rows at random": Write("upsert", "pmod(hash(id), 10) = 0"),
    "upsert of the 10,000 newest rows": Write("upsert", f"id >= {ROWS - 10_000}"),
    "upsert of 100 rows": Write("upsert", "pmod(hash(id), 10000) = 0"),
    "delete of 100 rows": Write("delete", "pmod(hash(id), 10000) = 1"),
}


@dataclass(frozen=True)
class Table:
    """A table of a million rows of one version of Hudi, type and index."""

    version: str
    kind: str
    index: str

    @property
    def folder(self) -> Path:
        # The files of a table tell nothing of an index that is in footers.
        index = "" if self.index in ("SIMPLE", "BLOOM") else f"-{self.index.lower()}"
        return cache() / f"write-{self.version}-{self.kind.lower()}{index}"

    def made(self) -> Path:
        """The table, made on first use, with the rows of each write in a folder beside it."""
        if not self.folder.is_dir():
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            # Its JVM would count among what is measured next.
            run_whole_process([sys.executable, "-m", "benchmarks.write", "--make", str(self)])
        return self.folder

    def __str__(self) -> str:
        return f"{self.kind}, {self.version}, {self.index}"

    @staticmethod
    def parse(text: str) -> Table:
        """The table of the text of another."""
        kind, version, index = text.split(", ")
        return Table(version, kind, index)


def source_of(version: str, write: str) -> Path:
    return cache() / f"write-{version}-rows" / f"{list(WRITES).index(write)}"


def hudi_options(table: Table, operation: str) -> dict[str, str]:
    """What a user gives to Hudi's writer."""
    chosen = {"hoodie.datasource.write.table.type": table.kind, "hoodie.datasource.write.operation": operation}
    return {**OPTIONS, **METADATA, **chosen, **INDEXES[table.index]}


def make(table: Table) -> None:
    """Makes the table of Table.made, in a process of its own."""
    folder = table.folder
    fresh = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(fresh, ignore_errors=True)
    session = hudi_session(2, table.version)
    frame = session.range(0, ROWS, 1, 2)
    rows = frame.selectExpr(*(column.format(salt=1) for column in COLUMNS))
    rows.write.format("hudi").options(**hudi_options(table, "bulk_insert")).mode("overwrite").save(str(fresh))
    for name, write in WRITES.items():
        source = source_of(table.version, name)
        columns = [column.format(salt=write.salt) for column in COLUMNS]
        frame.where(write.condition).selectExpr(*columns).coalesce(1).write.mode("overwrite").parquet(str(source))
        for extra in source.glob("[._]*"):
            extra.unlink()
    session.stop()
    fresh.rename(folder)


def is_new(write: Write) -> bool:
    """Whether the write makes a table."""
    return write.operation == "bulk_insert"


def emptied(table: Path) -> None:
    """Leaves the properties of a table alone, without those of its metadata table, so that a write makes it anew."""
    properties = (table / ".hoodie" / "hoodie.properties").read_text().splitlines()
    schema = HudiTable.open(str(table)).schema()
    shutil.rmtree(table)
    (table / ".hoodie").mkdir(parents=True)
    kept = [line for line in properties if not line.startswith(("hoodie.table.metadata.partitions", "#"))]
    kept.append("hoodie.table.create.schema=" + json.dumps(schema).replace(":", "\\:"))
    (table / ".hoodie" / "hoodie.properties").write_text("\n".join(kept) + "\n")


def contents(table: Path) -> dict[str, Any]:
    """Row count and sums over the snapshot query, on which the engines must agree; MiB of all files."""
    import pyarrow.compute as pc

    rows, total, check = 0, 0, 0
    for batch in HudiTable.open(str(table)).read(columns=["ts", "a"]).batches:
        rows += batch.num_rows
        total += pc.sum(batch["ts"]).as_py() or 0
        check = (check + (pc.sum(pc.bit_wise_and(batch["a"], 0xFFFFFFFF)).as_py() or 0)) % 2**64
    sizes = sum(path.stat().st_size for path in table.glob("*/*") if path.parent.name != ".hoodie")
    return {"rows": rows, "ts": total, "a": check, "new_base_mib": round(sizes / 2**20, 1)}


def whole(write: Write, source: Path, index: str, copy: Path, engine: Sequence[str]) -> Answer:
    """Our whole process: the shell verb as a user calls it."""
    program = str(Path(sys.executable).parent / "hudictl")
    words = ["write", str(copy), "--operation", write.operation, "--source", str(source)]
    options = [word for name, value in INDEXES[index].items() for word in ("--option", f"{name}={value}")]
    cost, output = run_whole_process([program, *words, *options, *engine, "--json"])
    return cost, json.loads(output)


def warm(engine: str, write: str, copy: Path, table: Table) -> Answer:
    """An engine in a session that is warm when its clock starts; the cost is the whole process's."""
    command = [sys.executable, "-m", "benchmarks.write", "--process", engine, write, str(copy), str(table)]
    cost, output = run_whole_process(command)
    return cost, json.loads(output.strip().splitlines()[-1])


def ours(write: str, copy: Path, table: Table) -> dict[str, float]:
    """The write by our engine in a warm Spark session."""
    from hudi_core.verbs.write import WriteRequest
    from hudi_spark.engine import SparkEngine
    from hudi_spark.session import open_session
    from hudi_submit.zip import publish_zip

    session = open_session("local[2]", publish_zip(), conf={})
    import_engine()
    session.range(0, 2, 1, 2).mapInArrow(_same, "id long").collect()
    source = str(source_of(table.version, write))
    request = WriteRequest(str(copy), operation=WRITES[write].operation, source=source, owner="benchmark")
    opened = HudiTable.open(str(copy), options=INDEXES[table.index])
    cost = timed(lambda: opened.run(request, SparkEngine(session)))
    session.stop()
    return cost


def hudi(write: str, copy: Path, table: Table) -> dict[str, float]:
    """The write by real Hudi in a warm Spark session."""
    session = hudi_session(2, table.version)
    session.sql("SELECT 1").collect()
    frame = session.read.parquet(str(source_of(table.version, write)))
    options = hudi_options(table, WRITES[write].operation)
    mode = "overwrite" if is_new(WRITES[write]) else "append"
    cost = timed(lambda: frame.write.format("hudi").options(**options).mode(mode).save(str(copy)))
    session.stop()
    return cost


def compare(name: str, table: Table, runs: int) -> dict[str, Any]:
    """All figures of one write; the engines take turns. Raises RuntimeError where they leave other rows."""
    made, write = table.made(), WRITES[name]
    source = source_of(table.version, name)
    costs: dict[str, list[Cost]] = {"hudi": [], "spark": [], "local": []}
    warms: dict[str, list[dict[str, float]]] = {"hudi": [], "spark": []}
    seen: dict[str, dict[str, Any]] = {}
    works: dict[str, Callable[[Path], Answer]] = {
        "hudi": lambda copy: warm("hudi", name, copy, table),
        "spark": lambda copy: whole(write, source, table.index, copy, ["--engine", "spark", "--master", "local[2]"]),
        "local": lambda copy: whole(write, source, table.index, copy, ["--engine", "local"]),
        "spark, warm": lambda copy: warm("ours", name, copy, table),
    }
    for _ in range(runs):
        for engine, does in works.items():

            def on_copy(copy: Path, does: Callable[[Path], Answer] = does) -> Answer:
                if is_new(write):
                    emptied(copy)
                return does(copy)

            (cost, answer), seen[engine] = on_a_copy(made, on_copy, contents)
            if engine in costs:
                costs[engine].append(cost)
            if "warm" in answer:
                warms[engine.removesuffix(", warm")].append(answer["warm"])
    if len({tuple(found[key] for key in ("rows", "ts", "a")) for found in seen.values()}) != 1:
        raise RuntimeError(f"{name}, {table}: the engines do not hold the same rows: {seen}")
    mib = {engine: found["new_base_mib"] for engine, found in seen.items()}
    return {"rows": ROWS, "runs": runs, **figures(costs, warms, mib)}


def _same(batches: Any) -> Any:
    yield from batches


def main() -> None:
    """Measures the chosen cases and stores each as it ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writes", default=";".join(WRITES), help="separated by semicolons")
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--hudi", default=",".join(VERSIONS))
    parser.add_argument("--indexes", default="SIMPLE", help=f"some of {', '.join(INDEXES)}")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--make", help=argparse.SUPPRESS)
    parser.add_argument("--process", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.make:
        make(Table.parse(chosen.make))
        return
    if chosen.process:
        engine, name, copy, table = chosen.process
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        print(json.dumps({"warm": (ours if engine == "ours" else hudi)(name, Path(copy), Table.parse(table))}))
        return
    kept = json.loads(chosen.output.read_text())["cases"] if chosen.output.is_file() else {}
    given = (chosen.writes.split(";"), *(item.split(",") for item in (chosen.types, chosen.hudi, chosen.indexes)))
    for name, kind, version, index in product(*given):
        case = Table(version, kind, index)
        found = compare(name, case, chosen.runs)
        kept[f"{name}, {case}"] = {"machine": machine(), "commit": code(), **found}
        store(chosen.output, {"cases": kept})
        print(json.dumps({f"{name}, {case}": found}), flush=True)


if __name__ == "__main__":
    main()
