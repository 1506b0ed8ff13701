"""Plans over 100,000 file groups, ours against real Hudi's: `python -m benchmarks.plans`.

Stores benchmarks/results/plans.json: of a clustering and of a compaction, on version 6 with Hudi 0.15.0 and on version
9 with 1.2.0, with a metadata table on both sides. Hudi's wall seconds are those of its procedure in a warm session,
ours those of the whole process of `hudictl schedule`; CPU seconds and peak memory are of whole processes. Medians; both
plans have as many groups of as many file slices. Each case is stored as it ends, with the commit.

`--growth` measures ours alone instead, over RFC-15's dataset E and smaller ones with as many files in a partition.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from benchmarks.compaction import code
from benchmarks.measure import Cost, machine, middle, run_whole_process, store
from benchmarks.metadata import load
from benchmarks.metadata_tables import DATASETS, Dataset, make_listing, new_table
from benchmarks.service_tables import add_logs, single_slices, to_version_9
from benchmarks.table_copies import cache, on_a_copy
from benchmarks.tables import NAME, hudi_session
from hudi_core.engine.local import LocalEngine
from hudi_core.services.metadata.maintain import create_metadata
from hudi_core.timeline.instant import Action, State
from tests.support.changed_tables import an_owner, open_context

RESULTS = Path(__file__).parent / "results" / "plans.json"
RELEASES: Final = {"6": "0.15.0", "9": "1.2.0"}
"""Of Hudi, by the version of the table."""
GROUPS, PARTITIONS = 100_000, 1_000
SERVICES: Final = {
    "clustering": {"hoodie.clustering.plan.strategy.max.num.groups": "1000000"},
    "compaction": {"hoodie.compact.inline.max.delta.commits": "1"},
}
"""With the options by which all file groups are planned."""

GROWTH: Final = (0.0044, 0.044, 0.44, 1.0)
"""The shares of dataset E: some 10,000, 100,000 and a million files, and all 2.27 million."""
ON_DATASETS: Final = {
    "compaction": ("compaction", {"hoodie.compact.inline.max.delta.commits": "1"}),
    "compaction of all": (
        "compaction",
        {
            "hoodie.compact.inline.max.delta.commits": "1",
            "hoodie.compaction.strategy": "org.apache.hudi.table.action.compact.strategy.UnBoundedCompactionStrategy",
        },
    ),
    "clustering": ("clustering", {}),
    "clustering of none": ("clustering", {"hoodie.clustering.plan.strategy.small.file.limit": "1"}),
    "clean of half": (
        "clean",
        {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"},
    ),
}
"""Service and options by case: as much as the defaults take, all file groups, none, the older file of each group."""


def table_of(service: str, version: str) -> Path:
    """A table with a metadata table: of base files alone to be clustered, each with a log file to be compacted."""
    folder = cache() / f"plan-{service}-{version}-{GROUPS}"
    if not folder.is_dir():
        fresh = folder.with_name(folder.name + ".made")
        shutil.rmtree(fresh, ignore_errors=True)
        single_slices(GROUPS, PARTITIONS, fresh)
        if service == "compaction":
            add_logs(fresh, version)
        if version == "9":
            to_version_9(fresh)
        create_metadata(open_context(fresh), [], LocalEngine(1), an_owner())
        fresh.rename(folder)
    return folder


def compare(service: str, version: str, runs: int) -> dict[str, Any]:
    """All figures of one case; the engines take turns. Raises RuntimeError where their plans differ."""
    table = table_of(service, version)
    costs: dict[str, list[Cost]] = {"hudi": [], "ours": []}
    planned: dict[str, Counter[int]] = {}
    given = [word for pair in SERVICES[service].items() for word in ("--option", "=".join(pair))]
    for _ in range(runs):
        for engine, found in costs.items():

            def plan(copy: Path, engine: str = engine) -> Cost:
                if engine == "ours":
                    program = str(Path(sys.executable).parent / "hudictl")
                    return run_whole_process([program, "schedule", service, str(copy), *given, "--json"])[0]
                command = [sys.executable, "-m", "benchmarks.plans", "--plan", service, version, str(copy)]
                cost, output = run_whole_process(command)
                return Cost(json.loads(output.strip().splitlines()[-1])["wall"], cost.cpu, cost.peak_mib)

            cost, planned[engine] = on_a_copy(table, plan, lambda copy: _groups_of(copy, service))
            found.append(cost)
    if planned["hudi"] != planned["ours"]:
        raise RuntimeError(f"{service}, {version}: the plans have other groups: {planned}")
    walls = {engine: statistics.median(cost.wall for cost in found) for engine, found in costs.items()}
    return {
        "file_groups": GROUPS,
        "groups": sum(planned["ours"].values()),
        "runs": runs,
        **{
            engine: {
                name: round(statistics.median(getattr(cost, name) for cost in found), 2)
                for name in Cost.__annotations__
            }
            for engine, found in costs.items()
        },
        "wall_ratio": round(walls["hudi"] / walls["ours"], 2),
    }


def dataset_table(service: str, dataset: Dataset) -> Path:
    """A table with a metadata table and no data files: of a base and a log file, or of two base files a file group."""
    is_logged = service == "compaction"
    folder = cache() / f"plan-{'logged' if is_logged else 'based'}-{dataset.files}-{dataset.partitions}"
    if not folder.is_dir():
        fresh = folder.with_name(folder.name + ".made")
        shutil.rmtree(fresh, ignore_errors=True)
        make_listing(new_table(fresh, merge_on_read=is_logged), dataset, logged=is_logged)
        fresh.rename(folder)
    return folder


def growth(case: str, share: float, runs: int) -> dict[str, Any]:
    """The medians of our plans over a share of dataset E, with the machine's load, for reading wall times."""
    service, options = ON_DATASETS[case]
    dataset = DATASETS["E"] if share >= 1 else DATASETS["E"].scaled(share)
    given = [word for pair in options.items() for word in ("--option", "=".join(pair))]

    def plan(copy: Path) -> Cost:
        program = str(Path(sys.executable).parent / "hudictl")
        return run_whole_process([program, "schedule", service, str(copy), *given, "--json"])[0]

    table = dataset_table(service, dataset)
    costs = [on_a_copy(table, plan, lambda copy: None)[0] for _ in range(runs)]
    size = {"files": dataset.files, "partitions": dataset.partitions, "runs": runs, "load": load()}
    return {**size, **middle(costs).as_json()}


def _groups_of(table: Path, service: str) -> Counter[int]:
    """How many groups of how many file slices the one plan has."""
    active = open_context(table).active
    (instant,) = active.load().pending().instants
    document = active.read_any(instant.requested_time, instant.pending_action, State.REQUESTED)
    if service == "compaction":
        return Counter({1: len(document["operations"])})
    assert instant.pending_action in (Action.CLUSTERING, Action.REPLACE_COMMIT)
    return Counter(len(group["slices"]) for group in document["clusteringPlan"]["inputGroups"])


def plan_by_hudi(service: str, version: str, table: Path) -> float:
    """Wall seconds until Hudi's plan is on the timeline."""
    session = hudi_session(2, RELEASES[version])
    session.sql(f"CREATE TABLE {NAME} USING hudi LOCATION '{table}'")
    session.sql("SELECT 1").collect()
    options = {**SERVICES[service], "hoodie.metadata.enable": "true"}
    listed = ",".join(f"{key}={value}" for key, value in options.items())
    started = time.perf_counter()
    session.sql(f"CALL run_{service}(table => '{NAME}', op => 'schedule', options => '{listed}')").collect()
    wall = time.perf_counter() - started
    session.stop()
    return wall


def main() -> None:
    """Measures the chosen cases and stores each as it ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--services", default=",".join(SERVICES))
    parser.add_argument("--versions", default=",".join(RELEASES))
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--cases", default=",".join(ON_DATASETS), help="of --growth")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--plan", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.plan:
        service, version, table = chosen.plan
        print(json.dumps({"wall": plan_by_hudi(service, version, Path(table))}))
        return
    stored = json.loads(chosen.output.read_text()) if chosen.output.is_file() else {}
    if chosen.growth:
        for case in chosen.cases.split(","):
            found = [growth(case, share, chosen.runs) for share in GROWTH]
            stored.setdefault("growth", {})[case] = {"machine": machine(), "commit": code(), "sizes": found}
            store(chosen.output, stored)
            print(json.dumps({case: found}), flush=True)
        return
    for service in chosen.services.split(","):
        for version in chosen.versions.split(","):
            name = f"{service}, version {version}, Hudi {RELEASES[version]}"
            compared = compare(service, version, chosen.runs)
            stored.setdefault("cases", {})[name] = {"machine": machine(), "commit": code(), **compared}
            store(chosen.output, stored)
            print(json.dumps({name: compared}), flush=True)


if __name__ == "__main__":
    main()
