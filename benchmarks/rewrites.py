"""Our clusterings and overwrites against real Hudi's, on copies of its tables: `python -m benchmarks.rewrites`.

Stores benchmarks/results/rewrites.json. Of each work (benchmarks/rewrite_process.py) and version of Hudi: whole
processes, ours on Spark and in one process (`--engine local`), with wall seconds, CPU seconds with every child counted
and peak memory; planning to commit in a warm session; and Hudi's figures by ours. Medians; both leave the same rows.
Each case is stored as it ends, with the commit.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.compaction import Answer, code, contents, figures
from benchmarks.measure import Cost, machine, run_whole_process, store
from benchmarks.rewrite_process import CODEC, WORKS, source_of
from benchmarks.table_copies import cache, on_a_copy
from benchmarks.tables import COLUMNS, METADATA, OPTIONS, hudi_session

RESULTS = Path(__file__).parent / "results" / "rewrites.json"
VERSIONS: Final = ("0.15.0", "1.2.0")
ROWS: Final = 2_000_000
FILES: Final = 24
"""Of each of two partitions."""


def table_of(version: str, rows: int) -> Path:
    """A copy-on-write table of small files, with the rows to overwrite it beside it; made on first use."""
    folder = cache() / f"rewrites-{version}-{rows}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Its JVM would count among what is measured next.
        run_whole_process([sys.executable, "-m", "benchmarks.rewrites", "--make", version, "--rows", str(rows)])
    return folder


def make(version: str, rows: int) -> None:
    """See table_of."""
    folder = cache() / f"rewrites-{version}-{rows}"
    fresh = folder.with_name(folder.name + ".tmp")
    for left in (fresh, source_of(folder)):
        shutil.rmtree(left, ignore_errors=True)
    session = hudi_session(2, version)
    options = {
        **OPTIONS,
        **METADATA,
        **CODEC,
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.bulkinsert.sort.mode": "NONE",
        "hoodie.bulkinsert.shuffle.parallelism": str(FILES),
    }
    frame = session.range(0, rows, 1, FILES)
    first, second = ([column.format(salt=salt) for column in COLUMNS] for salt in (1, 5))
    frame.selectExpr(*first).write.format("hudi").options(**options).mode("overwrite").save(str(fresh))
    frame.selectExpr(*second).coalesce(4).write.parquet(str(source_of(folder)))
    session.stop()
    for extra in source_of(folder).glob("[._]*"):
        extra.unlink()
    fresh.rename(folder)


@contextmanager
def with_source(table: Path, copy: Path) -> Iterator[None]:
    """The rows that overwrite a table, beside a copy of it."""
    link = source_of(copy)
    link.symlink_to(source_of(table))
    try:
        yield
    finally:
        link.unlink()


def whole(work: str, table: Path, engine: Sequence[str]) -> Answer:
    """Our whole process: the shell verb as a user calls it."""
    order = WORKS[work]
    if order is None:
        words = ["insert-overwrite", str(table), "--source", str(source_of(table))]
        options = CODEC
    else:
        words = ["run", "clustering", str(table), "--schedule"]
        options = order.options()
    given = [word for pair in options.items() for word in ("--option", "=".join(pair))]
    program = str(Path(sys.executable).parent / "hudictl")
    cost, output = run_whole_process([program, *words, *engine, *given, "--json"])
    return cost, json.loads(output)


def warm(engine: str, work: str, table: Path, version: str) -> Answer:
    """An engine in a session that is warm when its clock starts; the cost is the whole process's."""
    command = [sys.executable, "-m", "benchmarks.rewrite_process", engine, work, str(table), version]
    cost, output = run_whole_process(command)
    return cost, json.loads(output.strip().splitlines()[-1])


def compare(work: str, version: str, runs: int, rows: int) -> dict[str, Any]:
    """All figures of one work; the engines take turns. Raises RuntimeError where they leave other rows."""
    table = table_of(version, rows)
    costs: dict[str, list[Cost]] = {"hudi": [], "spark": [], "local": []}
    warms: dict[str, list[dict[str, float]]] = {"hudi": [], "spark": []}
    seen: dict[str, dict[str, Any]] = {}
    works: dict[str, Callable[[Path], Answer]] = {
        "hudi": lambda copy: warm("hudi", work, copy, version),
        "spark": lambda copy: whole(work, copy, ["--engine", "spark", "--master", "local[2]"]),
        "local": lambda copy: whole(work, copy, ["--engine", "local"]),
        "spark, warm": lambda copy: warm("ours", work, copy, version),
    }
    for _ in range(runs):
        for name, does in works.items():

            def on_copy(copy: Path, does: Callable[[Path], Answer] = does) -> Answer:
                with with_source(table, copy):
                    return does(copy)

            (cost, answer), seen[name] = on_a_copy(table, on_copy, contents)
            if name in costs:
                costs[name].append(cost)
            if "warm" in answer:
                warms[name.removesuffix(", warm")].append(answer["warm"])
    if len({tuple(found[key] for key in ("rows", "ts", "a", "codec")) for found in seen.values()}) != 1:
        raise RuntimeError(f"{work}, {version}: the engines do not hold the same rows: {seen}")
    mib = {name: found["new_base_mib"] for name, found in seen.items()}
    return {"rows": rows, "runs": runs, **figures(costs, warms, mib)}


def main() -> None:
    """Measures the chosen cases and stores each as it ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", default=";".join(WORKS), help="separated by semicolons")
    parser.add_argument("--hudi", default=",".join(VERSIONS))
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--make", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.make:
        make(chosen.make, chosen.rows)
        return
    kept = json.loads(chosen.output.read_text())["cases"] if chosen.output.is_file() else {}
    for work in chosen.works.split(";"):
        for version in chosen.hudi.split(","):
            found = compare(work, version, chosen.runs, chosen.rows)
            kept[f"{work}, {version}"] = {"machine": machine(), "commit": code(), **found}
            store(chosen.output, {"cases": kept})
            print(json.dumps({f"{work}, {version}": found}), flush=True)


if __name__ == "__main__":
    main()
