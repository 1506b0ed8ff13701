"""A run that is killed (SIGKILL) is its own retry: the same command, without a token, goes on at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.timeline.actions.replacecommit import encode_requested_overwrite
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.writer_heartbeats import process_of
from tests.contract.killed_hudictl import run_killed
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

OWNER = Owner.current("test")
Golden = Callable[[str, str], GoldenCase]

PARTITION = "2024-01-01"
LOCK = "hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
MODES = {
    "one writer": (),
    "several": ("--option", "hoodie.write.concurrency.mode=optimistic_concurrency_control", "--option", LOCK),
}
UNCLAIMED, IN_THE_MIDDLE = 1, 9
"""Behind which change of the storage the run is killed: its request, without a claim yet; its inflight file."""


def pending(table: Path) -> list[Instant]:
    return [*context_of(table).active.load().pending()]


def killed(golden: Golden, version: str, kill_at: int, *options: str) -> tuple[Path, tuple[str, ...]]:
    """A table with what a killed run left, and its command."""
    table = golden(version, "mor_basic").table
    command = ("delete-partition", str(table), "--partition", PARTITION, *options, "--json")
    assert run_killed(command, kill_at)
    (left,) = pending(table)
    assert (left.action, left.state is State.INFLIGHT) == (Action.REPLACE_COMMIT, kill_at == IN_THE_MIDDLE)
    return table, command


@pytest.mark.parametrize(
    ("version", "kill_at", "mode"),
    tiered(
        [
            ("6", UNCLAIMED, "one writer"),
            ("6", IN_THE_MIDDLE, "several"),
            ("8", UNCLAIMED, "several"),
            ("8", IN_THE_MIDDLE, "one writer"),
            ("9", UNCLAIMED, "one writer"),
            ("9", IN_THE_MIDDLE, "one writer"),
        ],
        [("8", UNCLAIMED, "several"), ("9", IN_THE_MIDDLE, "one writer")],
    ),
)
def test_the_same_command_takes_over_at_once(
    golden: Golden, caplog: pytest.LogCaptureFixture, version: str, kill_at: int, mode: str
) -> None:
    table, command = killed(golden, version, kill_at, *MODES[mode])
    left = pending(table)
    done = hudictl(*command)
    assert done.code == 0, done.err
    assert done.document["instant"] not in [item.requested_time for item in left]
    assert pending(table) == []
    assert PARTITION not in read_rows(table).column("_hoodie_partition_path").to_pylist()
    assert "EAGER" not in caplog.text


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_rollback_without_a_name_finds_it(golden: Golden, version: str) -> None:
    table, _ = killed(golden, version, UNCLAIMED)
    rows = read_rows(table)
    (left,) = pending(table)
    done = hudictl("rollback", table, "--json")
    assert (done.code, done.document["target"], pending(table)) == (0, left.requested_time, [])
    assert_same_rows(read_rows(table), rows)


def test_a_live_owner_is_not_succeeded(golden: Golden) -> None:
    """This process, which has requested an overwrite and not claimed it yet."""
    table = golden("9", "mor_basic").table
    context = context_of(table)
    with context.lock(OWNER):
        instant = context.new_instant(context.active.load())
        content = encode_requested_overwrite(
            "insert_overwrite", token=None, layout=2, names_deletes=False, process=process_of(OWNER)
        )
        context.active.create_requested(instant, Action.REPLACE_COMMIT, content)
    done = hudictl("delete-partition", table, "--partition", PARTITION, "--json")
    assert (done.code, [item.requested_time for item in pending(table)]) == (3, [instant])
    assert hudictl("rollback", table, "--json").document["target"] is None
