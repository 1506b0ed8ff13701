"""What hudictl is asked of a hostile table: a query, an inspection or a service."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

TABLE, OUTPUT = "{table}", "{output}"
QUICK = (
    "hoodie.time.generator.max_expected_clock_skew_ms=0",
    "hoodie.index.bloom.num_entries=100",
    "hoodie.write.lock.wait_time_ms=300",
    "airflow_hudi.indexing.catchup_minutes=0",
)
"""No waits for clocks, locks and writers, and small bloom filters."""


@dataclass(frozen=True)
class Command:
    """Arguments of hudictl with places for the table and the output.

    `mode`: whether a query lists files by the metadata table. `changes_rows`: it rolls commits back.
    """

    arguments: tuple[str, ...]
    writes: bool = False
    mode: str | None = None
    changes_rows: bool = False


def query(mode: str, *more: str) -> Command:
    """A read; `mode` is on, off or auto."""
    return Command(("read", TABLE, "--output", OUTPUT, "--metadata", mode, *more), mode=mode)


SNAPSHOT_OFF = query("off")


def _service(*words: str, changes_rows: bool = False, options: Sequence[str] = QUICK) -> Command:
    given = tuple(word for option in options for word in ("--option", option))
    return Command((*words[:-1], words[-1], *given), writes=True, changes_rows=changes_rows)


def _run(service: str, *more: str) -> Command:
    return _service("run", service, TABLE, "--engine", "local", *more)


RUNS = {
    "compaction": (_run("compaction"), _run("compaction", "--all-pending")),
    "clean": (_run("clean"), _run("clean", "--schedule", "--option", "hoodie.clean.commits.retained=1")),
    "archive": (
        _run("archive", "--option", "hoodie.keep.min.commits=2", "--option", "hoodie.keep.max.commits=3"),
        _run("archive", "--option", "hoodie.keep.min.commits=2", "--option", "hoodie.keep.max.commits=3"),
    ),
    "indexing": (
        _run("indexing"),
        _run("indexing", "--schedule", "--option", "hoodie.metadata.index.bloom.filter.enable=true"),
        _run("indexing", "--schedule", "--option", "hoodie.metadata.record.index.enable=true"),
    ),
    "rollback": (_run("rollback"), _service("rollback", TABLE), _service("rollback", TABLE)),
    "metadata": (
        _service("metadata", "update", TABLE, "--engine", "local"),
        _service("metadata", "create", TABLE, "--engine", "local", "--partition", "files"),
        _service("metadata", "create", TABLE, "--engine", "local", "--partition", "column_stats"),
        _service("metadata", "drop", TABLE),
    ),
    "savepoint": (_service("savepoint", "create", TABLE),),
    "plan": (
        _service("schedule", "clean", TABLE),
        _service("schedule", "indexing", TABLE, "--option", "hoodie.metadata.index.column.stats.enable=true"),
    ),
}
INSPECTIONS = (
    Command(("timeline", TABLE)),
    Command(("timeline", TABLE, "--archived")),
    Command(("files", TABLE)),
    Command(("files", TABLE, "--metadata", "off")),
    Command(("doctor", TABLE)),
    Command(("metadata", "validate", TABLE)),
    Command(("savepoint", "list", TABLE)),
    Command(("restore", TABLE, "--dry-run")),
    *(Command(("schedule", service, TABLE, "--dry-run")) for service in ("clean", "archive", "compaction")),
    Command(("plan", TABLE)),
    Command(("schedule", "indexing", TABLE, "--dry-run", "--option", "hoodie.metadata.index.bloom.filter.enable=true")),
)
QUERIES = (
    *(query(mode) for mode in ("on", "on", "off", "off", "auto")),
    query("auto", "--query", "read_optimized"),
    query("auto", "--query", "incremental", "--begin", "000"),
    query("auto", "--query", "cdc", "--begin", "000"),
    query("on", "--where", "amount > 10 AND id <> 'x'"),
    query("off", "--columns", "_hoodie_record_key"),
)
_FITTING = (
    ("compaction", "compaction"),
    ("clean", "clean"),
    ("rollback|marker|inflight|heartbeat", "rollback"),
    ("archive|history", "archive"),
    ("index", "indexing"),
    ("metadata", "metadata"),
    ("log file|base file|commit|claim|lock", "compaction"),
)
"""A kind of file, and the services that read it first."""


def choose(random: Random, kind: str, instants: Sequence[str], pending: Sequence[str]) -> Command:
    """A command for a table with a hostile file of that kind."""
    step = random.randrange(20)
    if step <= 7:
        return random.choice(QUERIES)
    if step <= 9:
        return random.choice(INSPECTIONS)
    if step <= 11 and instants:
        return _on_instant(random, instants, pending)
    fitting = [service for pattern, service in _FITTING if re.search(pattern, kind)]
    service = random.choice(fitting) if fitting and random.randrange(3) else random.choice(sorted(RUNS))
    return random.choice(RUNS[service])


def _on_instant(random: Random, instants: Sequence[str], pending: Sequence[str]) -> Command:
    instant = random.choice(instants)
    waiting = random.choice(pending) if pending else instant
    return random.choice(
        (
            Command(("show", TABLE, instant)),
            query("off", "--as-of", instant),
            query("auto", "--as-of", instant),
            Command(("unschedule", TABLE, waiting), writes=True),
            Command(("takeover", TABLE, waiting), writes=True),
            _service("rollback", TABLE, "--instant", instant, changes_rows=True),
            _service("rollback", TABLE, "--instant", waiting, changes_rows=not pending),
            _service("restore", TABLE, "--instant", instant, changes_rows=True),
            _service("savepoint", "create", TABLE, "--instant", instant),
            _service("savepoint", "delete", TABLE, "--instant", instant, options=()),
        )
    )
