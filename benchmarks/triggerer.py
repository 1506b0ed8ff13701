"""A thousand tables on one triggerer: `python -m benchmarks.triggerer`.

Stores benchmarks/results/triggerer.json; ends with 1 when an event was missed or came two intervals late or more. The
tables are copies of one, with the timeline of thirty writes, on local disk. Airflow's own TriggerRunner runs the
triggers of all in one process (benchmarks/triggerer_process.py): those that watch assets, those of deferred tasks, and
a thousand of these on ten tables, which share their looks. Compactions are requested at random tables. Stored are the
intervals from the request to the event, when the trigger fires it and when Airflow takes it (once a second); listings a
minute; CPU seconds a minute; the peak of resident memory, and that before the triggers; and how late the event loop
was. And what importing the provider adds to a process of Airflow.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.compaction import code
from benchmarks.measure import machine, store
from benchmarks.triggerer_process import WAITS, WATCHERS, Measurement
from hudi_core.timeline.instant_time import earlier
from tests.support.golden_data import open_case

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "triggerer.json"
WRITES = 30
"""On each timeline: as many as Hudi's archival leaves by default."""
MOST_POLLS = 2.0
IMPORTS = 7
_IMPORT = """
import importlib, json, sys, time
from airflow_hudi.get_provider_info import get_provider_info
info = get_provider_info()
kinds = [info[kind] for kind in ("operators", "sensors", "hooks", "triggers")]
ours = ["airflow_hudi.assets", *(name for kind in kinds for item in kind for name in item["python-modules"])]
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
before = set(sys.modules)
wall, cpu = time.perf_counter(), time.process_time()
for name in ours:
    importlib.import_module(name)
times = [time.perf_counter() - wall, time.process_time() - cpu]
below = [name for name in sys.modules if name.startswith("airflow.")]
print(json.dumps([below, len(set(sys.modules) - before), times]))
"""


def make_tables(count: int, folder: Path) -> Path:
    """Copies of the timeline of a golden table, with earlier writes before its own; their files are hard links."""
    made = folder / "made"
    made.mkdir(parents=True)
    hoodie = open_case("9", "mor_basic", made).table / ".hoodie"
    timeline = hoodie / "timeline"
    first = min(timeline.glob("*.deltacommit")).name
    requested, completed = first.removesuffix(".deltacommit").split("_")
    states = [f"{requested}.deltacommit.requested", f"{requested}.deltacommit.inflight", first]
    for number in range(1, WRITES + 1 - len(list(timeline.glob("*.deltacommit")))):
        before = earlier(requested, number * 60_000)
        names = [
            name.replace(requested, before).replace(completed, earlier(completed, number * 60_000)) for name in states
        ]
        for name, new in zip(states, names, strict=True):
            shutil.copyfile(timeline / name, timeline / new)
    tables = folder / f"tables-{count}"
    for number in range(count):
        target = tables / f"table_{number:04}" / ".hoodie"
        target.mkdir(parents=True)
        shutil.copyfile(hoodie / "hoodie.properties", target / "hoodie.properties")
        shutil.copytree(timeline, target / "timeline", copy_function=os.link, ignore=shutil.ignore_patterns("history"))
    return tables


def measurements(
    triggers: int, few: int, intervals: list[float], seconds: float, folder: Path
) -> Iterator[Measurement]:
    """Each with tables of its own, since plans are left on them."""
    for interval in intervals:
        for kind, tables in ((WATCHERS, triggers), (WAITS, triggers), (WAITS, few)):
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                yield Measurement(kind, str(make_tables(tables, Path(scratch))), triggers, interval, seconds)


def run(measurement: Measurement, home: Path) -> dict[str, Any]:
    """A process of its own, so that its memory is; with an Airflow that has neither a file of configuration nor a
    database.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
    environment |= {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__UNIT_TEST_MODE": "True"}
    command = [sys.executable, "-m", "benchmarks.triggerer_process", json.dumps(asdict(measurement))]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    found: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
    return found


def import_cost(home: Path) -> dict[str, Any]:
    """What importing every operator, sensor, hook and trigger adds to a process that has Airflow's modules below them:
    milliseconds, medians, and modules.
    """
    environment = {**os.environ, "AIRFLOW_HOME": str(home)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    loaded: list[str] = []
    modules, times = 0, []
    for _ in range(IMPORTS + 1):
        command = [sys.executable, "-c", _IMPORT, json.dumps(loaded)]
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        loaded, modules, found = json.loads(done.stdout.splitlines()[-1])
        times.append(found)
    # The first one loaded Airflow's part as well.
    wall, cpu = (round(statistics.median(column) * 1000) for column in zip(*times[1:], strict=True))
    return {"runs": IMPORTS, "wall_ms": wall, "cpu_ms": cpu, "modules": modules}


def is_in_time(found: Mapping[str, Any]) -> bool:
    """Whether every event came in less than two intervals."""
    return bool(found["missed"] == 0 and found["lag_polls"]["max"] < MOST_POLLS)


def main() -> int:
    """Measures and stores the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triggers", type=int, default=1000)
    parser.add_argument("--few", type=int, default=10, help="tables that waits share")
    parser.add_argument("--intervals", default="2,10", help="seconds between two looks")
    parser.add_argument("--seconds", type=float, default=180.0, help="for which plans appear")
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    intervals = [float(text) for text in chosen.intervals.split(",")]
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="hudi-triggerer-") as name:
        folder = Path(name)
        imported = import_cost(folder / "airflow")
        print(json.dumps(imported), file=sys.stderr, flush=True)
        for item in measurements(chosen.triggers, chosen.few, intervals, chosen.seconds, folder):
            tables = len(list(Path(item.folder).iterdir()))
            described = {"kind": item.kind, "triggers": item.triggers, "tables": tables, "interval": item.interval}
            results.append({**described, "seconds": item.seconds, **run(item, folder / "airflow")})
            print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    found = {
        "machine": machine(),
        "commit": code(),
        "import": imported,
        "instants_per_table": WRITES,
        "measured": results,
    }
    store(chosen.output, found)
    print(json.dumps(found, indent=2))
    return 0 if all(map(is_in_time, results)) else 1


if __name__ == "__main__":
    sys.exit(main())
