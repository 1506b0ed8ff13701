"""The metadata table, measured: `python -m benchmarks.metadata` stores benchmarks/results/metadata.json.

Datasets of RFC-15 as metadata tables without data files, a record index against RFC-8's figures, and statistics against
RFC-27's; every question cold, open and cached (benchmarks.metadata_process), beside the figure of its RFC and, but for
`--without-hudi`, beside real Hudi 0.15.0 on the same metadata table in the same run. Each measurement is a process of
its own, whose peak of resident memory is stored with it; with each part the machine's load before and after it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.measure import machine, run_whole_process, store
from benchmarks.metadata_process import WIDE
from benchmarks.metadata_tables import DATASETS, PLACES, Dataset
from benchmarks.table_copies import cache

RESULTS = Path(__file__).parent / "results" / "metadata.json"
ENTRIES = 1_000_000
GROUPS = 10
STATISTICS = Dataset(20_000, 40)
RFC_15: dict[str, dict[str, Any]] = {
    "C": {"bytes": 39_579, "all_partitions_ms": 0.2, "files_in_partition_ms": 0.1, "verbs_ms": (1, 1, 39, 3, 2, 2)},
    "M": {
        "bytes": 8_570_289,
        "all_partitions_ms": 11.3,
        "files_in_partition_ms": 0.5,
        "verbs_ms": (193, 140, 82, 187, 106, 109),
    },
    "E": {
        "bytes": 91_027_607,
        "all_partitions_ms": 2.9,
        "files_in_partition_ms": 267.6,
        "verbs_ms": (1394, 2021, 626, 2519, 3701, 3214),
    },
}
"""`metadata perf` of the RFC, with HFile blocks of 4 KiB; verbs in the order of metadata_process.VERBS."""
RFC_8 = {"bytes_per_mapping": "50 to 55", "single_us": "1000 to 2000", "batched_us_per_key": 6}
"""Sizes and single lookups are the RFC's; 100,000 keys of a million in 600 ms are from Hudi's blog of 2023-11-01.

The blog also gives 48 bytes for an entry.
"""
RFC_27 = {
    "hfile": {"full_scan_ms": 15_000, "10_rows_ms": 51, "5k_rows_ms": 17_000, "mb": 100},
    "parquet": {"full_scan_ms": 6_100, "10_rows_ms": 1_900, "5k_rows_ms": 2_100, "mb": 43},
    "parquet_spark_sql": {"full_scan_ms": 7_000, "10_rows_ms": 440, "5k_rows_ms": 1_500, "mb": 43},
}
AIMS = {
    "bytes_per_mapping": 48,
    "batched_us_per_key": 6,
    "E_all_partitions_open_ms": 2.9,
    "E_files_in_partition_open_ms": 20,
}


class Run:
    """Where a run keeps its tables, and how it measures: each work in a process of its own."""

    def __init__(self, scratch: Path, *, with_hudi: bool) -> None:
        self.scratch = scratch
        self._with_hudi = with_hudi

    def ours(self, work: str, folder: Path, **requested: Any) -> dict[str, Any]:
        """What our process found, and its peak of memory in MiB."""
        return self._module("metadata_process", work, folder, requested)

    def hudi(self, work: str, folder: Path, **requested: Any) -> dict[str, Any]:
        """The figures of real Hudi's process, under its name; nothing where it is skipped."""
        return {"hudi_0_15_0": self._module("metadata_spark", work, folder, requested)} if self._with_hudi else {}

    def _module(self, module: str, work: str, folder: Path, requested: dict[str, Any]) -> dict[str, Any]:
        command = [sys.executable, "-m", f"benchmarks.{module}", work, str(folder), json.dumps(requested)]
        if work == "create":
            # The one work of several processes, whose memory has to be sampled; the others say their own.
            cost, output = run_whole_process(command, poll_seconds=0.5)
            return {**_last_line(output), "peak_mib": round(cost.peak_mib)}
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.stderr.write(done.stderr[-8000:])
            raise subprocess.CalledProcessError(done.returncode, command)
        return _last_line(done.stdout)


def _last_line(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return found


def load() -> list[float]:
    """The machine's load, for reading wall times: processes that ran or waited, of the last 1, 5 and 15 minutes."""
    return [round(figure, 1) for figure in os.getloadavg()]


def dataset(run: Run, name: str, scale: float) -> dict[str, Any]:
    """A dataset: its creation, listing and verbs. The table is deleted afterwards."""
    made = DATASETS[name] if scale >= 1 else DATASETS[name].scaled(scale)
    folder, size = run.scratch / name, asdict(made)
    created = run.ours("create", folder, **size)
    found = run.ours("listing", folder, **size)
    result = {
        **size,
        "rfc_15": RFC_15[name],
        "create": created,
        "listing": {
            "ours": found,
            **run.hudi("listing", folder, **size, files_of_the_partition=found["files_of_the_partition"]),
        },
        "verbs": {"ours": run.ours("verbs", folder), **run.hudi("verbs", folder)},
    }
    shutil.rmtree(folder)
    return result


def record_index(run: Run, scale: float) -> dict[str, Any]:
    """A million mappings in one file group: bytes, and microseconds per key with the same blocks.

    And in several groups, against K + M/N.
    """
    entries = max(round(ENTRIES * scale), 1_000)
    found: dict[str, Any] = {"rfc_8": RFC_8, "places": PLACES}
    for name, groups in (("one_group", 1), ("groups", GROUPS)):
        folder = run.scratch / name
        created = run.ours("create", folder, files=100, partitions=10, entries=entries, groups=groups)
        work = "keys" if groups == 1 else "groups"
        requested = {"entries": entries, "groups": groups}
        found[name] = {
            "create": created,
            "ours": run.ours(work, folder, **requested),
            **(run.hudi(work, folder, **requested) if groups == 1 else {}),
        }
        shutil.rmtree(folder)
    found["bytes_by_places"] = {
        str(places): _size(run, entries // 5, places) for places in (1, PLACES, 10 * PLACES, 100 * PLACES)
    }
    found["groups"]["model_ms"] = _model(found["one_group"]["ours"], found["groups"]["ours"])
    return found


def _size(run: Run, entries: int, places: int) -> float:
    """Bytes of a mapping when the rows are in so many file groups of the data table."""
    folder = run.scratch / "places"
    created = run.ours("create", folder, files=100, partitions=10, entries=entries, groups=1, places=places)
    shutil.rmtree(folder)
    return round(float(created["bytes"]) / entries, 2)


def _model(one: dict[str, Any], several: dict[str, Any]) -> dict[str, float]:
    """K + M/N times the cost of a key, in milliseconds by M, to compare with `widest_group_ms`.

    K is the time in which a group is opened for one key.
    """
    costs = {int(count): figures["open"] for count, figures in one["batched_us_per_key"].items()}
    counts = [int(name) for name in several if name.isdecimal()]
    found = {}
    for count in counts:
        share = count / several["groups"]
        # A group of a tenth of the entries has a tenth of the blocks, so keys lie as densely in it as M in the one
        # group.
        found[str(count)] = round(several["open_for_one_key_ms"] + share * costs[count] / 1000, 2)
    return found


def column_ranges(run: Run, scale: float) -> dict[str, Any]:
    """Statistics of 20 columns as the partition `column_stats`: 10 and 5,000 rows, a whole column, and bytes."""
    size = asdict(STATISTICS if scale >= 1 else STATISTICS.scaled(scale))
    folder = run.scratch / "statistics"
    created = run.ours("create", folder, **size, statistics=True)
    found = {
        "rfc_27": RFC_27["hfile"],
        "create": created,
        "ours": run.ours("ranges", folder),
        **run.hudi("ranges", folder, wide=WIDE),
    }
    shutil.rmtree(folder)
    return {**size, **found}


def containers(run: Run, scale: float) -> dict[str, Any]:
    """The same records in an HFile and in Parquet (docs/internals/benchmarks.md)."""
    size = asdict(STATISTICS if scale >= 1 else STATISTICS.scaled(scale))
    folder = run.scratch / "containers"
    made = run.ours("containers", folder, **size)
    found = {name: run.ours("containers", folder, container=name) for name in ("hfile", "gzip", "zstd")}
    shutil.rmtree(folder)
    return {**size, "rfc_27": RFC_27, "made": made, **found}


def main() -> None:
    """Measures the given parts and stores the result; stored results of other parts are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default="C,M,E,record_index,column_ranges,containers")
    parser.add_argument("--scale", type=float, default=1.0, help="of every table; below 1 only to try it out")
    parser.add_argument("--without-hudi", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    if chosen.scale < 1 and chosen.output == RESULTS:
        parser.error("a run below full scale is not stored among the results: give --output")
    kept = cache() / "metadata"
    kept.mkdir(parents=True, exist_ok=True)
    found = json.loads(chosen.output.read_text()) if chosen.output.is_file() else {}
    found.update(machine=machine(), aims=AIMS, scale=chosen.scale)
    with tempfile.TemporaryDirectory(dir=kept) as scratch:
        run = Run(Path(scratch), with_hudi=not chosen.without_hudi)
        work: dict[str, Callable[[], Any]] = {
            **{name: (lambda name=name: dataset(run, name, chosen.scale)) for name in DATASETS},  # type: ignore[misc]
            "record_index": lambda: record_index(run, chosen.scale),
            "column_ranges": lambda: column_ranges(run, chosen.scale),
            "containers": lambda: containers(run, chosen.scale),
        }
        for part in chosen.parts.split(","):
            before = load()
            found[part] = {**work[part](), "load": {"before": before, "after": load()}}
            store(chosen.output, found)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
