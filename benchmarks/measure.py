"""CPU seconds and peak memory of a command with every process it starts, also those that outlive their parent."""

from __future__ import annotations

import ctypes
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Cost:
    """The cost of a piece of work: seconds of wall time and of CPU, and the peak of resident memory.

    The peak is in MiB, summed over its processes.
    """

    wall: float
    cpu: float
    peak_mib: float

    def as_json(self) -> dict[str, float]:
        """Rounded for storing."""
        return {key: round(value, 2) for key, value in asdict(self).items()}


def descendants(root: int) -> list[int]:
    """The process ids below `root`, itself included, from /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields is not None:
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue.extend(children.get(pid, []))
    return found


def _stat(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def percentiles(values: Iterable[float]) -> dict[str, float]:
    """The median, the 95th percentile and the largest; empty without values."""
    ordered = sorted(values)
    if not ordered:
        return {}
    at = {"p50": 0.5, "p95": 0.95, "max": 1.0}
    return {name: round(ordered[math.ceil(share * len(ordered)) - 1], 3) for name, share in at.items()}


def import_engine() -> None:
    """Import what a table imports with the first service that it runs, for a clock that starts afterwards."""
    importlib.import_module("hudi_core.services.runner")


def tree_cpu(root: int) -> float:
    """CPU seconds so far of a process tree, children that were waited for included."""
    ticks = sum(
        sum(int(value) for value in fields[11:15]) for pid in descendants(root) if (fields := _stat(pid)) is not None
    )
    return ticks / os.sysconf("SC_CLK_TCK")


def _tree_resident_mib(pids: Sequence[int]) -> float:
    """Proportional set size: memory that processes share counts once."""
    total = 0
    for pid in pids:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total / 1024


class TreeWatch:
    """Samples memory and CPU of a process tree until stopped.

    CPU has to be sampled: Spark's Python daemon ignores SIGCHLD, so the kernel accounts its workers to no process.
    """

    def __init__(self, poll_seconds: float = POLL_SECONDS) -> None:
        self._poll_seconds = poll_seconds
        self._done = threading.Event()
        self._cpu: dict[tuple[int, str], float] = {}
        self.peak_mib = 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> TreeWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def cpu(self) -> float:
        """CPU seconds of every process seen, up to its last sample."""
        return sum(self._cpu.values())

    def _watch(self) -> None:
        mine = os.getpid()
        while not self._done.wait(self._poll_seconds):
            # Orphans become children of this process (it is their subreaper), so the tree is read from here.
            pids = [pid for pid in descendants(mine) if pid != mine]
            self.peak_mib = max(self.peak_mib, _tree_resident_mib(pids))
            for pid in pids:
                if (fields := _stat(pid)) is not None:
                    self._cpu[pid, fields[19]] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_whole_process(
    command: Sequence[str], *, environment: dict[str, str] | None = None, poll_seconds: float = POLL_SECONDS
) -> tuple[Cost, str]:
    """Runs a command to its end and that of everything it started; returns its cost and its standard output.

    Python may keep compiled modules, whatever the environment says: those of an installed package are compiled, which
    takes a second of each process where they are not.

    Memory is looked at every `poll_seconds`, which takes some milliseconds of a core.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    _reap_ended()
    started = time.perf_counter()
    given = {name: value for name, value in (environment or os.environ).items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=given, text=True)
    with TreeWatch(poll_seconds) as tree:
        output, errors = process.communicate()
        wall = time.perf_counter() - started
        _reap_orphans()
    if process.returncode != 0:
        sys.stderr.write(errors[-8000:])
        raise subprocess.CalledProcessError(process.returncode, command, output, errors)
    return Cost(wall, tree.cpu, tree.peak_mib), output


def _reap_ended() -> None:
    """Orphans of earlier commands that have ended: until then the CPU seconds that they took are seen."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _reap_orphans() -> None:
    """Waits for processes whose parents ended before them: their work counts too."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def peak_mib(pid: int) -> int:
    """The most memory in MiB that was resident of a process so far, as the kernel kept count."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return round(int(line.split()[1]) / 1024)


def middle(costs: Sequence[Cost]) -> Cost:
    """The median of each figure."""
    return Cost(*(statistics.median(getattr(cost, name) for cost in costs) for name in ("wall", "cpu", "peak_mib")))


def machine() -> dict[str, Any]:
    """What a stored figure must be read with."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "unknown",
    )
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    return {
        "cores": os.cpu_count(),
        "cpu": model,
        "memory_gib": round(memory_kib / 2**20, 1),
        "python": sys.version.split()[0],
    }


def head_commit() -> str:
    """The commit that is checked out."""
    command = ["git", "rev-parse", "HEAD"]
    root = Path(__file__).parents[1]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def store(path: Path, results: Any) -> None:
    """Stores what was measured, in a folder that is made where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n")
