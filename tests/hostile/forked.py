"""hudictl as forks of one process that has imported it, each with limits on memory and time.

An import takes two seconds of CPU time, a fork two hundredths of one. The process that forks runs no code under test,
so that no pool of threads is started before a fork.

Why the limits are as they are: the libraries map 1.8 GiB of address space before they do anything (1 GiB of it is the
arena of Arrow's allocator), so neither RLIMIT_AS nor RLIMIT_DATA can be 1.5 GiB in all. What is mapped beyond the state
at the fork is limited to 1.5 GiB, so that a hostile length fails here and not on the machine; and a run whose resident
memory was above 1.5 GiB is over the limit, whatever became of it.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import resource
import select
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MEMORY_MIB = 1536
CPU_SECONDS = 20
WALL_SECONDS = 90
"""A busy machine takes several times the CPU time; what waits without working is stopped by this one."""
KEPT_OUTPUT = 1 << 20


@dataclass(frozen=True)
class Ended:
    """How a run of hudictl ended: `code`, or the `signal` that ended it; `late` when a limit of time did."""

    arguments: list[str]
    code: int | None
    signal: int | None
    late: bool
    out: str
    err: str
    cpu_seconds: float
    peak_mib: int

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)


def prepare() -> None:
    """Imports all that hudictl may need; to be called once, before the first fork."""
    for name in ("pyarrow.parquet", "pyarrow.compute", "pyarrow.dataset", "pyarrow.fs", "polars", "fastavro", "numpy"):
        importlib.import_module(name)
    import hudi_cli.main
    import hudi_core

    for package in (hudi_core, hudi_cli):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def run_forked(arguments: Sequence[str | os.PathLike[str]], environment: Mapping[str, str] | None = None) -> Ended:
    """hudictl with these arguments in a fork of this process, which has called `prepare`."""
    words = [os.fspath(argument) for argument in arguments]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = os.fork()
        if process == 0:
            _become_hudictl(words, out.fileno(), err.fileno(), environment or {})
        status, usage, late = _wait(process)
        stopped = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        return Ended(
            words,
            None if stopped else os.WEXITSTATUS(status),
            stopped,
            late or stopped == signal.SIGXCPU,
            _text(out.fileno()),
            _text(err.fileno()),
            round(usage.ru_utime + usage.ru_stime, 3),
            usage.ru_maxrss >> 10,
        )


def _become_hudictl(words: list[str], out: int, err: int, environment: Mapping[str, str]) -> None:
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        os.environ.update(environment)
        os.environ["COLUMNS"] = "120"
        sys.argv = ["hudictl", *words]
        # The streams of the parent may hold what it has not flushed yet.
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        limit = _mapped_bytes() + (MEMORY_MIB << 20)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        from hudi_cli.main import main

        main()
        code: Any = 0
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 (as Python ends a process)
        import traceback

        traceback.print_exc()
        code = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code if isinstance(code, int) else int(code is not None))


def _mapped_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    raise RuntimeError("the kernel reports no VmData")


def _wait(process: int) -> tuple[int, resource.struct_rusage, bool]:
    descriptor = os.pidfd_open(process)
    try:
        ended, _, _ = select.select([descriptor], [], [], WALL_SECONDS)
        if not ended:
            os.killpg(process, signal.SIGKILL)
    finally:
        os.close(descriptor)
    _, status, usage = os.wait4(process, 0)
    return status, usage, not ended


def _text(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, KEPT_OUTPUT).decode("utf-8", "replace")
