"""A command that is killed (SIGKILL) is its own retry: the same command, without a token, ends its work at once, and
does it once. Overwrites are in tests/unit/hudi_core/services/write/test_verb_killed.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.table import HudiTable
from tests.contract.killed_hudictl import BEFORE, run_killed
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, pending_instants, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
QUICK = ("hoodie.time.generator.max_expected_clock_skew_ms=0", "hoodie.cleaner.policy.failed.writes=EAGER")
INSTANT = r"\.hoodie/(timeline/)?\d{17}"
COMPLETED = INSTANT + r"(_\d{17})?\.(?!inflight)[a-z]+"
KILLED_AT = {
    "requested": INSTANT + r"\.[a-z]+\.requested",
    "inflight": INSTANT + r"(\.[a-z]+)?\.inflight",
    "completing": BEFORE + COMPLETED,
    "completed": COMPLETED,
}


@dataclass(frozen=True)
class Command:
    """What is run on a golden table, the action that it completes, and which of its commits has the rows that it leaves
    (-1 is the newest).
    """

    words: str
    action: str
    options: tuple[str, ...] = ()
    commit: int = -1
    case: str = "mor_basic"

    def on(self, table: Path) -> list[str]:
        commits = open_context(table).active.load().commits().completed().instants
        known = {"newest": commits[-1].requested_time, "oldest": commits[0].requested_time, "TABLE": str(table)}
        options = [word for option in (*QUICK, *self.options) for word in ("--option", option)]
        return [*self.words.format(**known).split(), *options, "--json"]


def service(name: str) -> str:
    return f"run {name} {{TABLE}} --schedule --engine local"


COMMANDS = {
    "compaction": Command(service("compaction"), "commit", ("hoodie.compact.inline.max.delta.commits=1",)),
    "log compaction": Command(
        service("log_compaction"),
        "deltacommit",
        ("hoodie.log.compaction.enable=true", "hoodie.log.compaction.blocks.threshold=1"),
    ),
    "clustering": Command(
        service("clustering"),
        "replacecommit",
        (
            "hoodie.clustering.plan.strategy.single.group.clustering.enabled=true",
            "hoodie.clustering.plan.strategy.sort.columns=id",
        ),
    ),
    "clean": Command(service("clean"), "clean", ("hoodie.clean.commits.retained=1",), case="mor_compacted"),
    "indexing": Command(service("indexing"), "indexing", ("hoodie.metadata.index.bloom.filter.enable=true",)),
    "rollback": Command("rollback {TABLE} --instant {newest}", "rollback", commit=-2),
    "restore": Command("restore {TABLE} --instant {oldest}", "restore", commit=0),
    "savepoint": Command("savepoint create {TABLE} --instant {newest} --comment kept", "savepoint"),
}
RUNS = [
    (version, name, moment)
    for version in VERSIONS
    for name in COMMANDS
    for moment in KILLED_AT
    if (name, moment) != ("savepoint", "requested")  # it begins inflight
]
CORE = [
    ("9", "compaction", "inflight"),
    ("6", "compaction", "completed"),
    ("8", "log compaction", "requested"),
    ("9", "log compaction", "completing"),
    ("6", "clustering", "inflight"),
    ("9", "clustering", "completing"),
    ("6", "clean", "inflight"),
    ("9", "clean", "completed"),
    ("8", "indexing", "inflight"),
    ("9", "indexing", "completing"),
    ("9", "rollback", "requested"),
    ("6", "rollback", "completing"),
    ("6", "restore", "inflight"),
    ("8", "restore", "completed"),
    ("8", "savepoint", "completing"),
]
"""Each command while it works and when it completes, a savepoint when it completes."""


def completed(table: Path) -> Counter[str]:
    return Counter(item.action for item in open_context(table).active.load().completed())


def rows_as_of(table: Path, commit: int) -> pa.Table:
    instant = open_context(table).active.load().commits().completed().instants[commit].requested_time
    result = HudiTable.open(str(table)).read(as_of=instant)
    return pa.Table.from_batches(list(result.batches), result.schema)


@pytest.mark.parametrize(("version", "name", "moment"), tiered(RUNS, CORE))
def test_the_same_command_ends_the_work(golden: Golden, version: str, name: str, moment: str) -> None:
    command = COMMANDS[name]
    table = golden(version, command.case).table
    rows, before, words = rows_as_of(table, command.commit), completed(table), command.on(table)
    assert run_killed(words, KILLED_AT[moment])
    done = hudictl(*words)
    assert done.code == 0, done.err
    assert pending_instants(table) == set()
    assert completed(table)[command.action] - before[command.action] == 1
    assert_same_rows(read_rows(table), rows)
    assert_metadata_true(table)


def state(table: Path) -> tuple[list[str], tuple[str, ...]]:
    timeline = open_context(table).active.load()
    return [str(item) for item in timeline.completed()], tuple(sorted(open_context(table).config.metadata_partitions))


WITHOUT_INSTANTS = {
    "archive": Command(
        "run archive {TABLE} --engine local",
        "",
        ("hoodie.keep.min.commits=2", "hoodie.keep.max.commits=3", "hoodie.clean.commits.retained=1"),
        case="archived_timeline_mor",
    ),
    "metadata create": Command("metadata create {TABLE} --partition bloom_filters", ""),
}


@pytest.mark.parametrize("change", tiered([4, 12], [12]))
@pytest.mark.parametrize("name", WITHOUT_INSTANTS)
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_so_does_one_without_an_instant(golden: Golden, version: str, name: str, change: int) -> None:
    command = WITHOUT_INSTANTS[name]
    table, undisturbed = (golden(version, command.case).table for _ in range(2))
    rows = read_rows(table)
    assert hudictl(*command.on(undisturbed)).code == 0
    words = command.on(table)
    assert run_killed(words, change)
    done = hudictl(*words)
    assert done.code == 0, done.err
    assert state(table) == state(undisturbed) != state(golden(version, command.case).table)
    assert pending_instants(table) == set()
    assert_same_rows(read_rows(table), rows)
    assert_metadata_true(table)
