"""What is wrong with how a run of hudictl on a hostile table ended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.forked import MEMORY_MIB, Ended
from tests.hostile.table_copies import Tree, difference
from tests.support.rows import PHYSICAL, rows_of

CODES = (0, 1, 2, 3)
FAULTS = ("crash", "hang", "over memory", "untyped error", "written at exit 2", "silent wrong rows", "unreadable after")
NO_FILE = "names no file"
DEFECT = "this is a defect of hudictl"
_OUT_OF_MEMORY = re.compile(
    r"MemoryError|not enough memory|bad_alloc|memory allocation of \d+ bytes failed|Cannot allocate memory"
    r"|malloc of size|realloc of size"
)


@dataclass(frozen=True)
class Fault:
    """One of FAULTS, and what shows it."""

    fault: str
    what: str


def faults_of(ended: Ended) -> Iterator[Fault]:
    """A signal, a limit, or an answer that is not one."""
    if ended.late:
        yield Fault("hang", f"stopped after {ended.cpu_seconds} s of CPU time")
    elif ended.signal is not None and not _OUT_OF_MEMORY.search(ended.err):
        yield Fault("crash", f"signal {ended.signal}: {ended.err[-300:]}")
    if ended.peak_mib > MEMORY_MIB or (_OUT_OF_MEMORY.search(ended.err) and not _is_typed(ended)):
        yield Fault("over memory", f"{ended.peak_mib} MiB: {ended.err[-300:]}")
    elif ended.signal is None:
        yield from (Fault("untyped error", what) for what in answer_faults(ended))


def _is_typed(ended: Ended) -> bool:
    """Whether an allocation that the limit refused ended in an error that names the file."""
    return ended.signal is None and DEFECT not in ended.err and '"path": "' in ended.out


def answer_faults(ended: Ended) -> Iterator[str]:
    """What an error lacks, or what makes it one that was not raised on purpose. Its output is one JSON document."""
    if "Traceback (most recent call last)" in ended.err or DEFECT in ended.err + ended.out:
        yield f"a defect: {ended.err[-600:]}"
        return
    if ended.code not in CODES:
        yield f"exit code {ended.code}"
    try:
        document = json.loads(ended.out, parse_constant=_no_constant)
    except ValueError:
        yield f"no JSON document: {ended.out[-200:]!r}, {ended.err[-300:]}"
        return
    if ended.code and isinstance(document, dict) and "error" in document:
        error: dict[str, Any] = document["error"]
        if not error.get("remedy"):
            yield f"names no remedy: {error}"
        if ended.code == 2 and not error.get("path") and "no column" not in error["message"]:
            yield f"{NO_FILE}: {error}"
    elif ended.code == 2 and not any(item.get("error") for item in document.get("instants", ())):
        yield f"no error in the document: {ended.out[-200:]}"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def tree_faults(ended: Ended, writes: bool, before: Tree, after: Tree) -> Iterator[Fault]:
    """Exit 2 wrote nothing, and neither did what only reads."""
    if (ended.code == 2 or not writes) and (changes := difference(before, after)):
        yield Fault("written at exit 2", f"exit {ended.code}: {', '.join(changes)[:600]}")


def rows_in(output: Path) -> pa.Table | None:
    """What a query wrote; None for nothing. Read by one thread, as the process forks."""
    return pq.ParquetFile(output).read(use_threads=False) if output.exists() else None


def is_reported(ended: Ended) -> bool:
    """Whether a query that succeeded said what it skipped."""
    return bool(json.loads(ended.out).get("corrupt_log_blocks"))


def row_faults(what: str, actual: pa.Table | None, expected: pa.Table | None) -> Iterator[Fault]:
    """A difference of rows by their multiset, columns that name a writer's files aside."""
    if actual is None or expected is None or actual.equals(expected):
        return
    columns = [name for name in expected.column_names if name not in PHYSICAL]
    if sorted(columns) != sorted(name for name in actual.column_names if name not in PHYSICAL):
        yield Fault("silent wrong rows", f"{what}: columns {actual.column_names} instead of {expected.column_names}")
        return
    mine, theirs = rows_of(actual, columns), rows_of(expected, columns)
    if mine != theirs:
        lost, extra = sum((theirs - mine).values()), sum((mine - theirs).values())
        first = next(iter((theirs - mine) or (mine - theirs)))
        yield Fault("silent wrong rows", f"{what}: {lost} rows lost, {extra} extra, such as {str(first)[:300]}")
