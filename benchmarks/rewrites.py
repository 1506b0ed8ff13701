"""Our clusterings and overwrites against real Hudi's, on copies of its tables: `python -m benchmarks.rewrites`.

Stores benchmarks/results/rewrites.json. Of each work (benchmarks/rewrite_process.py) and version of Hudi: whole
processes, ours on Spark and in one process (`--engine local`), with wall seconds, CPU seconds with every child counted
and peak memory; planning to commit in a warm session; and Hudi's figures by ours. Medians; both leave the same rows.
`plan, 100000 file groups` is the planning alone of a clustering of them all. Each case is stored as it ends, with the
commit.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.compaction import Answer, code, contents, figures
from benchmarks.measure import Cost, machine, run_whole_process
from benchmarks.rewrite_process import CODEC, WORKS, source_of
from benchmarks.service_tables import single_slices
from benchmarks.table_copies import cache, on_a_copy
from benchmarks.tables import COLUMNS, METADATA, NAME, OPTIONS, hudi_session

RESULTS = Path(__file__).parent / "results" / "rewrites.json"
VERSIONS: Final = ("0.15.0", "1.2.0")
ROWS: Final = 2_000_000
FILES: Final = 24
"""Of each of two partitions."""
PLAN: Final = "plan, 100000 file groups"
GROUPS, GROUP_PARTITIONS = 100_000, 1_000
_MANY: Final = {"hoodie.clustering.plan.strategy.max.num.groups": "1000000"}


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
def _with_source(table: Path, copy: Path) -> Iterator[None]:
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
                with _with_source(table, copy):
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


def compare_plans(runs: int) -> dict[str, Any]:
    """Wall seconds to plan a clustering of many file groups, Hudi's in a warm session; whole process of ours."""
    folder = cache() / f"plan-{GROUPS}-{GROUP_PARTITIONS}"
    if not folder.is_dir():
        single_slices(GROUPS, GROUP_PARTITIONS, folder)
    walls: dict[str, list[float]] = {"hudi": [], "ours": []}
    groups: dict[str, int] = {}
    given = [word for pair in _MANY.items() for word in ("--option", "=".join(pair))]
    for _ in range(runs):
        for engine, found in walls.items():

            def work(copy: Path, engine: str = engine) -> Cost:
                if engine == "ours":
                    program = str(Path(sys.executable).parent / "hudictl")
                    return run_whole_process([program, "schedule", "clustering", str(copy), *given, "--json"])[0]
                _, output = run_whole_process([sys.executable, "-m", "benchmarks.rewrites", "--plan", str(copy)])
                return Cost(json.loads(output.strip().splitlines()[-1])["wall"], 0.0, 0.0)

            cost, groups[engine] = on_a_copy(folder, work, _planned_groups)
            found.append(cost.wall)
    if len({*groups.values()}) != 1:
        raise RuntimeError(f"the plans have other groups: {groups}")
    hudi, ours = (round(statistics.median(walls[engine]), 2) for engine in ("hudi", "ours"))
    return {
        "file_groups": GROUPS,
        "groups": groups["ours"],
        "runs": runs,
        "wall": {"hudi": hudi, "ours": ours},
        "wall_ratio": round(hudi / ours, 2),
    }


def _planned_groups(table: Path) -> int:
    from hudi_core.timeline.actions.container import decode_datum

    (path,) = table.glob(".hoodie/*.replacecommit.requested")
    return len(decode_datum(path.read_bytes(), path=path.name)["clusteringPlan"]["inputGroups"])


def plan_by_hudi(table: Path) -> float:
    """Wall seconds until Hudi's plan is on the timeline."""
    session = hudi_session(2, VERSIONS[0])
    session.sql(f"CREATE TABLE {NAME} USING hudi LOCATION '{table}'")
    session.sql("SELECT 1").collect()
    listed = ",".join(f"{key}={value}" for key, value in {**_MANY, "hoodie.metadata.enable": "false"}.items())
    started = time.perf_counter()
    session.sql(f"CALL run_clustering(table => '{NAME}', op => 'schedule', options => '{listed}')").collect()
    wall = time.perf_counter() - started
    session.stop()
    return wall


def main() -> None:
    """Measures the chosen cases and stores each as it ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", default=";".join([*WORKS, PLAN]), help="separated by semicolons")
    parser.add_argument("--hudi", default=",".join(VERSIONS))
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--make", help=argparse.SUPPRESS)
    parser.add_argument("--plan", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.make or chosen.plan:
        if chosen.make:
            make(chosen.make, chosen.rows)
        else:
            print(json.dumps({"wall": plan_by_hudi(chosen.plan)}))
        return
    kept = json.loads(chosen.output.read_text())["cases"] if chosen.output.is_file() else {}
    for work in chosen.works.split(";"):
        for version in chosen.hudi.split(",") if work != PLAN else VERSIONS[:1]:
            found = compare_plans(chosen.runs) if work == PLAN else compare(work, version, chosen.runs, chosen.rows)
            kept[f"{work}, {version}"] = {"machine": machine(), "commit": code(), **found}
            chosen.output.write_text(json.dumps({"cases": kept}, indent=2) + "\n")
            print(json.dumps({f"{work}, {version}": found}), flush=True)


if __name__ == "__main__":
    main()
