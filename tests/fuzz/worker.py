"""Runs a range of one target's inputs in a process of its own: `python -m tests.fuzz.worker TARGET SEED FIRST COUNT
PROGRESS_FILE`.

Prints one JSON line. An input fails when it raises something else than a HudiError that names a file, takes more than
MAX_CPU_SECONDS, or lets the process grow. Address space is limited, so that an allocation by an unchecked length fails
here and not on the machine; the number of the current input stands in the progress file, so that a crash of the
interpreter can be put down to its input.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import logging
import mmap
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from hudi_core.errors import HudiError
from tests.fuzz.target import Target, target_of

MAX_CPU_SECONDS = 5.0
MAX_GROWTH_MIB = 192
"""Of resident memory over all inputs: the largest input has 192 KiB, and a block may hold 1040 times its compressed
size.
"""
MAX_FAILURES = 20
ORIGINALS = 20


class TooSlowError(BaseException):
    """No Exception, so that no handler of the code under test takes it."""


def input_of(name: str, seed: int, index: int, seeds: list[bytes]) -> bytes:
    """The input of that number: a few of the seeds themselves first, then mutations."""
    return (
        seeds[index]
        if index < min(len(seeds), ORIGINALS)
        else target_of(name).mutate(seeds, Random(f"{name}/{seed}/{index}"))
    )


def resident_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_one(target: Target, data: bytes) -> str:
    """How the input ended: `accepted`, the name of a HudiError, or a line that says what is wrong, starting with
    `!`.
    """
    signal.setitimer(signal.ITIMER_PROF, MAX_CPU_SECONDS)
    try:
        target.run(data)
        return "accepted"
    except HudiError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, MemoryError):
                return f"!an allocation beyond the limit: {error}"
            cause = cause.__cause__
        return type(error).__name__ if error.path else f"!the error names no file: {type(error).__name__}: {error}"
    except TooSlowError:
        return f"!more than {MAX_CPU_SECONDS} s of CPU: {traceback.format_exc(limit=-3)}"
    except Exception as error:  # noqa: BLE001 - any other exception is what is looked for
        frames = traceback.extract_tb(error.__traceback__)
        where = next((frame for frame in reversed(frames) if "hudi_core" in frame.filename), frames[-1])
        return f"!{type(error).__name__}: {str(error)[:200]} at {Path(where.filename).name}:{where.lineno}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def too_slow(*_: object) -> None:
    raise TooSlowError


def main(name: str, seed: int, first: int, count: int, progress: Path) -> dict[str, Any]:
    faulthandler.enable()
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGPROF, too_slow)
    target = target_of(name)
    seeds = list(target.seeds())
    ends: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    for index in range(min(len(seeds), 3)):
        run_one(target, seeds[index])  # imports and caches
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (target.spare_mib << 20), resource.RLIM_INFINITY))
    before = limit = resident_mib()
    slowest, kinds = 0.0, set()
    with progress.open("r+b") as file, mmap.mmap(file.fileno(), 8) as current:
        for index in range(first, first + count):
            current[:8] = index.to_bytes(8, "big")
            data = input_of(name, seed, index, seeds)
            started = time.process_time()
            end = run_one(target, data)
            slowest = max(slowest, time.process_time() - started)
            grown = resident_mib() - limit
            if grown > MAX_GROWTH_MIB and not end.startswith("!"):
                end, limit = f"!the process grew by {grown:.0f} MiB", resident_mib()
            ends["failed" if end.startswith("!") else end] += 1
            kind = end.split(" at ")[-1]
            if end.startswith("!") and kind not in kinds and len(failures) < MAX_FAILURES:
                kinds.add(kind)
                failures.append({"index": index, "bytes": len(data), "what": end[1:]})
            if index % 5000 == 0:
                gc.collect()
    return {
        "inputs": count,
        "ends": dict(ends),
        "failures": failures,
        "slowest_cpu_ms": round(slowest * 1000, 1),
        "grown_mib": round(resident_mib() - before, 1),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))))
