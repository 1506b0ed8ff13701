"""What an object store costs: `python -m benchmarks.requests`, on versitygw with 30 ms before each request.

Stores benchmarks/results/requests.json: of each command of a small table (3 file groups) and of a middling one (48),
the seconds of its process, the seconds in which it waited for the store, and its requests by kind. The commands follow
each other on one table. Both tables are of version 9, merge on read, with `files`, `column_stats` and
`partition_stats`. Where other processes compute, the seconds of waiting tell more than those of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.delaying_proxy import Traffic, delaying_proxy
from benchmarks.measure import head_commit, machine, store
from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.partition_type import COLUMN_STATS, PARTITION_STATS
from hudi_core.services.metadata.maintain import create_metadata
from hudi_core.table import HudiTable
from hudi_core.verbs.run import ScheduleRequest
from tests.contract.racing_servers import racing_server
from tests.contract.s3_server import upload
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import open_case

RESULTS = Path(__file__).parent / "results" / "requests.json"
PROGRAM = str(Path(sys.executable).parent / "hudictl")
DELAY_SECONDS: Final = 0.03
CASE: Final = "mor_compaction_requested"
COPIES: Final = {"small": 1, "middling": 16}
"""Of each of the three file groups that real Hudi wrote."""
PARTITION: Final = "2024-01-01"
_FILE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CLEAN: Final = ("hoodie.clean.policy=KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained=1")
COMMANDS: Final[Mapping[str, Sequence[str]]] = {
    "plan": ("plan", "TABLE"),
    "compaction": ("run", "compaction", "TABLE", "--engine", "local"),
    "clean": (
        *("run", "clean", "TABLE", "--schedule", "--engine", "local"),
        *(word for option in _CLEAN for word in ("--option", option)),
    ),
    "clustering": ("run", "clustering", "TABLE", "--schedule", "--engine", "local"),
    "read": ("read", "TABLE", "--output", "ROWS"),
    "overwrite": (
        *("insert-overwrite", "TABLE", "--source", "SOURCE"),
        *("--partition", PARTITION, "--engine", "local"),
    ),
}
"""In the order in which they follow each other."""
_DONE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "plan": lambda found: [due["service"] for due in found["due"]] == ["compaction"],
    **dict.fromkeys(("compaction", "clustering"), lambda found: found["instants"][0]["files_written"]),
    "clean": lambda found: found["instants"][0]["files_deleted"],
    "read": lambda found: found["rows"],
    "overwrite": lambda found: found["files_written"],
}
"""Whether a command says that it did something."""


def table_of(copies: int, folder: Path) -> Path:
    """The golden table with so many copies of each of its file groups, and a compaction of all of them planned."""
    folder.mkdir()
    table = open_case("9", CASE, folder).table
    if copies == 1:
        return table
    for path in sorted(table.glob("[0-9]*/*")):
        found = _FILE_ID.search(path.name)
        if found is None or path.suffix == ".crc":
            continue
        for number in range(1, copies):
            name = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{found[0]} {number}"))
            shutil.copy2(path, path.with_name(path.name.replace(found[0], name)))
    next(table.glob(".hoodie/timeline/*.compaction.requested")).unlink()
    shutil.rmtree(table / ".hoodie" / "metadata")
    properties = table / ".hoodie" / "hoodie.properties"
    text = re.sub(
        r"(?m)^hoodie.table.metadata.partitions=.*$", "hoodie.table.metadata.partitions=", properties.read_text()
    )
    properties.write_text(text)
    create_metadata(open_context(table), [COLUMN_STATS, PARTITION_STATS], LocalEngine(1), an_owner())
    HudiTable.open(str(table)).run(ScheduleRequest(str(table), "compaction"), LocalEngine(1))
    return table


def measure(table: str, options: Sequence[str], traffic: Traffic, scratch: Path, source: Path) -> dict[str, Any]:
    """The figures of each command on the table at an address."""
    places = {"TABLE": table, "ROWS": str(scratch / "rows.parquet"), "SOURCE": str(source)}
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    found = {}
    for name, words in COMMANDS.items():
        traffic.clear()
        command = [PROGRAM, *(places.get(word, word) for word in words), *options, "--json"]
        seconds, cpu_seconds, output = _run(command, environment)
        found[name] = {
            "seconds": round(seconds, 2),
            "cpu_seconds": round(cpu_seconds, 2),
            "waited_seconds": round(traffic.waited(), 2),
            "in_turn": traffic.in_turn(),
            "requests": traffic.counts(),
        }
        if not _DONE[name](json.loads(output)):
            raise RuntimeError(f"{name} of {table} did nothing: {output}")
        (scratch / f"{name}.json").write_text(json.dumps(traffic.requests))
    return found


def _run(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float, str]:
    """Runs a process; its seconds of wall time and of CPU, and its output. run_whole_process would wait for the server
    as well, which is a child of this process, too.
    """
    given = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, env=given)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        return seconds, usage.ru_utime + usage.ru_stime, output.read().decode()


def _rows_of(table: Path) -> pa.Table:
    """The rows of one base file, without meta fields: what an overwrite writes."""
    rows = pq.read_table(next((table / PARTITION).glob("*.parquet")), partitioning=None)
    return rows.select([name for name in rows.column_names if not name.startswith("_hoodie")])


def _middle(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The run of median waiting."""
    return dict(sorted(runs, key=lambda run: run["waited_seconds"])[len(runs) // 2])


def main() -> None:
    """Measures and stores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=",".join(COPIES), help="with commas between them")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="a folder for the requests of each command")
    given = parser.parse_args()
    results: dict[str, Any] = {}
    with (
        racing_server("versitygw") as server,
        delaying_proxy(server.url, DELAY_SECONDS) as (url, traffic),
    ):
        options = ("--storage-option", f"endpoint_url={url}", "--storage-option", "region=us-east-1")
        for name in given.tables.split(","):
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch)
                made, source = table_of(COPIES[name], folder / "made"), folder / "source.parquet"
                pq.write_table(_rows_of(made), source)
                runs = [
                    measure(upload(server, made, f"{name}-{number}"), options, traffic, folder, source)
                    for number in range(given.runs)
                ]
                if given.keep:
                    shutil.copytree(folder, given.keep / name, ignore=shutil.ignore_patterns("made", "*.parquet"))
            results[name] = {command: _middle([run[command] for run in runs]) for command in COMMANDS}
            print(name, json.dumps(results[name]), flush=True)
    before = json.loads(RESULTS.read_text())["runs"] if RESULTS.is_file() else []
    load = round(os.getloadavg()[2], 1)  # of the last quarter of an hour, other processes included
    run = {"commit": head_commit(), "load": load, "runs": given.runs, "tables": results}
    store(RESULTS, {"machine": machine(), "delay_ms": DELAY_SECONDS * 1000, "runs": [*before, run]})


if __name__ == "__main__":
    main()
