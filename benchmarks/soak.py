"""What takes too long for `make test`: the demo as a newcomer runs it, judged by real Hudi.

Stores benchmarks/results/soak.json. `make demo` runs in a fresh clone of this checkout's HEAD, with an empty HOME, no
caches, and a PATH on which there is no Java; afterwards no process of it may be left. Then real Hudi 0.15.0 and 1.2.0
read the demo's table with the metadata table on and off, and 0.15.0 writes more rows on top and compacts again. A file
group of 5 million rows is read within its memory bound. And our services work beside real Hudi's writer
(benchmarks/soak_services.py), ten minutes under each lock.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import head_commit, machine, store
from benchmarks.soak_services import SECONDS
from benchmarks.soak_services import run as run_services_beside_a_writer
from hudi_core.timeline.instant import State
from tests.interop.changes import after_upsert, upsert_rows, user_columns, write_parquet
from tests.interop.real_hudi import RealHudi
from tests.memory.test_read import BUDGET, FIXED, MIB, PER_LOG_RECORD
from tests.memory.test_read import run as read_in_process
from tests.support.golden_data import open_case
from tests.support.large_file_group import make_group
from tests.support.rows import assert_same_rows, read_parquet

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "soak.json"
CASE = "mor_compaction_requested"
READ_ROWS = 5_000_000
HIDDEN = {"java", "javac", "mvn", "spark-submit", "uv"}
KEPT_VARIABLES = ("LANG", "LC_ALL", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
KEPT_PREFIXES = ("PIP_", "UV_", "HTTP", "http", "NO_PROXY", "no_proxy")


def bare_path(folder: Path) -> str:
    """A PATH with every program of this machine's PATH but Java and the tools that would help."""
    folder.mkdir()
    for entry in os.environ["PATH"].split(os.pathsep):
        if Path(entry).is_dir() and ".venv" not in entry:
            for program in Path(entry).iterdir():
                link = folder / program.name
                if (
                    program.name not in HIDDEN
                    and not link.exists()
                    and not link.is_symlink()
                    and os.access(program, os.X_OK)
                ):
                    link.symlink_to(program)
    return str(folder)


def left_running(mark: str) -> list[str]:
    """The command lines of processes whose command line or environment names `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if mark.encode() in command + environment:
                found.append(command.replace(b"\0", b" ").decode(errors="replace")[:200])
    return found


def run_demo(scratch: Path) -> tuple[Path, dict[str, Any]]:
    """The demo in a fresh clone; returns the clone and what was measured. Raises when it fails or leaves a process."""
    clone = scratch / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    home = scratch / "home"
    home.mkdir()
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT_VARIABLES or (name.startswith(KEPT_PREFIXES) and name != "UV_CACHE_DIR")
    }
    environment |= {"HOME": str(home), "PATH": bare_path(scratch / "bin")}
    seconds = {}
    for name in ("first", "again"):
        started = time.monotonic()
        done = subprocess.run(
            ["make", "demo"], cwd=clone, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        seconds[name] = round(time.monotonic() - started, 1)
        sys.stderr.write(done.stdout + done.stderr)
        if done.returncode != 0:
            raise RuntimeError(f"make demo ended with {done.returncode}")
        running = left_running(str(scratch))
        if running:
            raise RuntimeError(f"make demo left processes: {running}")
    output = done.stdout.replace(str(clone), ".").splitlines()
    return clone, {
        "seconds_with_set_up": seconds["first"],
        "seconds": seconds["again"],
        "output": output,
        "left_running": 0,
    }


def judge(table: Path, scratch: Path) -> dict[str, Any]:
    """Real Hudi's verdict on the demo's table; raises when a row is wrong."""
    expected = read_parquet(open_case("6", CASE, scratch).expected / "after_snapshot.parquet")
    optimized = read_parquet(open_case("6", CASE, scratch).expected / "after_read_optimized.parquet")
    verdict: dict[str, Any] = {"rows": expected.num_rows, "read_by": []}
    for version in ("1.2.0", "0.15.0"):
        hudi = RealHudi(version)
        try:
            for metadata in (True, False):
                assert_same_rows(hudi.snapshot(table, metadata=metadata), expected)
                assert_same_rows(hudi.snapshot(table, metadata=metadata, query="read_optimized"), optimized)
                verdict["read_by"].append(f"{version}, metadata table {'on' if metadata else 'off'}")
            if version == "0.15.0":
                verdict["written_on_top"] = write_on_top(hudi, table, scratch)
        finally:
            hudi.close()
    return verdict


def write_on_top(hudi: RealHudi, table: Path, scratch: Path) -> dict[str, Any]:
    """An upsert, a schedule and a compaction by real Hudi, and the rows afterwards."""
    rows = upsert_rows(hudi.snapshot(table, metadata=True), 5, "soak").slice(0, 5)
    expected = after_upsert(hudi.snapshot(table, metadata=True), rows)
    hudi.ask("write", base=str(table), operation="upsert", parquet=write_parquet(rows, scratch, "soak"))
    instant = hudi.ask("schedule_compaction", base=str(table))
    hudi.ask("compact", base=str(table), instant=instant)
    for metadata in (True, False):
        assert_same_rows(user_columns(hudi.snapshot(table, metadata=metadata)), expected)
    return {"upserted": rows.num_rows, "compaction": State.COMPLETED.value, "rows": expected.num_rows}


def read_memory(folder: Path) -> dict[str, Any]:
    """The peak of reading a large file group in its own process, and its bound, in MiB; raises when it is exceeded."""
    folder.mkdir()
    expected = make_group(folder, READ_ROWS)
    answer = read_in_process(folder, BUDGET)
    bound = FIXED + PER_LOG_RECORD * expected["changed"]
    if answer["peak"] > bound or {name: answer[name] for name in expected} != expected:
        raise RuntimeError(f"{READ_ROWS} rows: {answer} where {expected} and a peak of {bound} bytes were due")
    return {
        "rows": READ_ROWS,
        "log_records": expected["changed"],
        "budget_mib": BUDGET // MIB,
        "peak_mib": answer["peak"] // MIB,
        "bound_mib": bound // MIB,
    }


def main() -> None:
    """Runs it all and stores the result."""
    scratch = Path(tempfile.mkdtemp(prefix="airflow-hudi-soak-"))
    try:
        clone, demo = run_demo(scratch)
        verdict = judge(clone / ".demo" / "warehouse" / CASE, scratch)
        memory = read_memory(scratch / "group")
        head = head_commit()
        services = run_services_beside_a_writer(SECONDS)
        found = {
            "machine": machine(),
            "commit": head,
            "demo": demo,
            "real_hudi": verdict,
            "read_memory": memory,
            "services": services,
        }
        store(RESULTS, found)
        print(json.dumps(found, indent=2))
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
