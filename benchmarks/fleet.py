"""The cost of little to do: idle tables, many small tables, and plans on the local engine beside Spark.

`make bench` stores benchmarks/results/fleet.json: CPU seconds of hudictl's start; task seconds of the maintenance DAG
on a table with nothing due; wall and CPU seconds of the DAG `hudi_tables` on many small tables with a planned
compaction and a due clean, whole process with Airflow's own start, beside one spark-submit a table; and one compaction
by each engine, whole process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.compaction import code, contents
from benchmarks.compaction_cases import table_of
from benchmarks.measure import Cost, machine, middle, run_whole_process, store
from benchmarks.table_copies import on_a_copy
from hudi_core.request.java import spark_environment
from hudi_core.verbs.run import RunRequest
from hudi_submit.zip import entry_file, publish_zip
from tests.support.golden_data import open_case

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results" / "fleet.json"
PROGRAMS = Path(sys.executable).parent
SERVICES = "compaction, clean"
_FINE = 0.02
"""Seconds between two samples of a command that takes some tenths of a second."""


def airflow_environment(home: Path, **more: str) -> dict[str, str]:
    """An Airflow with an empty home, our DAG folder, SQLite and a local Spark."""
    spark_conf = home / "spark-conf"
    spark_conf.mkdir(parents=True)
    spark_conf.joinpath("spark-defaults.conf").write_text(
        "spark.ui.enabled false\nspark.driver.bindAddress 127.0.0.1\nspark.driver.host 127.0.0.1\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
    return {
        **clean,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "SPARK_CONF_DIR": str(spark_conf),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "spark_jobs")]),
        **more,
    }


def run_dags(environment: Mapping[str, str], runs: Sequence[Any]) -> tuple[Cost, list[dict[str, Any]]]:
    """The cost of a process that runs DAGs, and their results."""
    command = [sys.executable, "-m", "tests.airflow.run_dag", json.dumps(runs)]
    cost, output = run_whole_process(command, environment=dict(environment))
    lines = [line.removeprefix("RESULT ") for line in output.splitlines() if line.startswith("RESULT ")]
    return cost, [json.loads(line) for line in lines]


def start(table: Path, runs: int) -> dict[str, Any]:
    """hudictl's start: its help, and the timeline of a table."""
    commands = {"help": ["--help"], "timeline": ["timeline", str(table)]}
    return {
        name: middle(
            [
                run_whole_process([str(PROGRAMS / "hudictl"), *arguments], poll_seconds=_FINE)[0]
                for _ in range(2 * runs + 1)
            ]
        ).as_json()
        for name, arguments in commands.items()
    }


def idle(table: Path, scratch: Path) -> dict[str, Any]:
    """The maintenance DAG where nothing is due, by the default engine. The second run is stored, behind the imports:
    the seconds of each of its tasks, of all of them, and of the run with what Airflow does between them.
    """
    connection = json.dumps({"conn_type": "hudi", "host": str(table.parent)})
    environment = airflow_environment(scratch / "idle", AIRFLOW_CONN_HUDI_DEFAULT=connection)
    run = ["hudi_table_maintenance", {"table": table.name}]
    _, results = run_dags(environment, [run, run])
    seconds = results[-1]["seconds"]
    return {
        "machine": machine(),
        "commit": code(),
        "seconds_per_task": {name: round(value, 2) for name, value in seconds.items()},
        "task_seconds_per_dag_run": round(sum(seconds.values()), 2),
        "wall_seconds_per_dag_run": round(results[-1]["run_seconds"], 2),
        "states": results[-1]["tasks"],
    }


def small_tables(count: int, scratch: Path) -> list[Path]:
    """Copies of a table of some hundred rows with a planned compaction, each as due as the other."""
    case = open_case("9", "mor_compaction_requested", scratch / "made")
    tables = [scratch / f"tables-{count}" / f"table_{number:03}" for number in range(count)]
    for table in tables:
        shutil.copytree(case.table, table)
    return tables


def fleet(count: int, scratch: Path) -> dict[str, Any]:
    """One task on many tables: Airflow's start, the look, the work and the results."""
    tables = small_tables(count, scratch)
    connection = json.dumps({"conn_type": "hudi", "host": str(tables[0].parent)})
    environment = airflow_environment(
        scratch / f"home-{count}", AIRFLOW_CONN_HUDI_DEFAULT=connection, AIRFLOW__HUDI__ENGINE="auto"
    )
    conf = {"tables": ",".join(table.name for table in tables), "services": SERVICES, "commits_retained": 1}
    cost, (result,) = run_dags(environment, [["hudi_tables", conf]])
    found = result["xcom"]["run_services"]
    if (result["state"], found["done"], found["failed"]) != ("success", 2 * count, 0):
        raise RuntimeError(f"not every table was compacted and cleaned: {found['done']} runs, {found['failed']} failed")
    shutil.rmtree(tables[0].parent)
    return {"cost": cost.as_json(), "task_seconds": round(result["seconds"]["run_services"], 2), "runs": found["done"]}


def one_spark_start(scratch: Path, runs: int) -> Cost:
    """The planned compaction of one such table by a spark-submit of its own."""
    program = str(PROGRAMS / "spark-submit")
    costs = []
    for table in small_tables(runs, scratch):
        request = RunRequest(str(table), "compaction").to_json()
        command = [program, "--master", "local[2]", "--py-files", str(publish_zip()), str(entry_file())]
        cost, _ = run_whole_process([*command, "--request", request], environment=spark_environment(os.environ))
        costs.append(cost)
    return middle(costs)


def compaction(size: str, runs: int) -> dict[str, Any]:
    """The same plan by each engine, in turns, whole process; rows must agree."""
    table = table_of(size)
    costs: dict[str, list[Cost]] = {"local": [], "spark": []}
    seen: dict[str, dict[str, Any]] = {}
    for _ in range(runs):
        for engine, found in costs.items():
            arguments = ["--engine", engine, *(["--master", "local[2]"] if engine == "spark" else [])]

            def work(copy: Path, arguments: Sequence[str] = arguments) -> Cost:
                command = [str(PROGRAMS / "hudictl"), "run", "compaction", str(copy), "--json", *arguments]
                return run_whole_process(command)[0]

            cost, seen[engine] = on_a_copy(table, work, contents)
            found.append(cost)
    if any(seen["local"][name] != seen["spark"][name] for name in ("rows", "ts", "a")):
        raise RuntimeError(f"the engines do not hold the same rows: {seen}")
    local, spark = middle(costs["local"]), middle(costs["spark"])
    return {
        "rows": seen["local"]["rows"],
        "local": local.as_json(),
        "spark": spark.as_json(),
        "cpu_ratio": round(spark.cpu / local.cpu, 2),
        "wall_ratio": round(spark.wall / local.wall, 2),
    }


def little_work(counts: Sequence[int], runs: int) -> dict[str, Any]:
    """Starts, an idle table, and, where `counts` has some, many small ones beside one Spark start a table."""
    with tempfile.TemporaryDirectory(prefix="hudi-fleet-") as name:
        scratch = Path(name)
        for folder in ("quiet", "made"):
            (scratch / folder).mkdir()
        quiet = open_case("9", "mor_basic", scratch / "quiet").table
        found: dict[str, Any] = {"idle": idle(quiet, scratch)}
        if not counts:
            return found
        each = one_spark_start(scratch, runs)
        found |= {
            "machine": machine(),
            "start": start(quiet, runs),
            "one_spark_start": each.as_json(),
            "small_tables": {},
        }
        for count in counts:
            measured = fleet(count, scratch)
            found["small_tables"][str(count)] = {
                **measured,
                "cpu_ratio": round(count * each.cpu / measured["cost"]["cpu"], 1),
                "wall_ratio": round(count * each.wall / measured["cost"]["wall"], 1),
            }
    return found


def main() -> None:
    """Measures and stores the result; what is not measured stays as it was stored."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1m,4m", help="of the compactions; '' for none")
    parser.add_argument("--counts", default="20,200", help="of small tables; '' for none and no starts")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    found: dict[str, Any] = json.loads(chosen.output.read_text()) if chosen.output.exists() else {}
    counts, sizes = ([item for item in text.split(",") if item] for text in (chosen.counts, chosen.sizes))
    if counts or not sizes:
        found |= little_work([*map(int, counts)], chosen.runs)
    if sizes:
        measured = {size: compaction(size, chosen.runs) for size in sizes}
        found["compaction"] = {"machine": machine(), "commit": code(), **measured}
    store(chosen.output, found)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
