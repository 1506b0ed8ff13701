"""hudictl in forks, killed or made to fail at a change of the storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hudi_core.table import HudiTable
from tests.support.golden_data import GoldenCase
from tests.torture.command_server import CommandServer

pytestmark = pytest.mark.slow
COMPACT = ("run", "compaction", "--engine", "local")


@pytest.fixture(scope="module")
def server() -> Iterator[CommandServer]:
    started = CommandServer()
    yield started
    started.close()


def states(case: GoldenCase) -> list[str]:
    """Of the compaction: what an attempt left is rolled back by a rollback of its own."""
    timeline = HudiTable.open(str(case.table)).timeline()
    return [item.state.value for item in timeline if item.action not in ("deltacommit", "rollback")]


def test_a_command_is_killed_at_a_change_and_runs_again(
    server: CommandServer, golden: Callable[[str, str], GoldenCase]
) -> None:
    case = golden("9", "mor_compaction_requested")
    ended = server.run([*COMPACT, str(case.table)], "kill", 4)
    assert (ended.code, ended.fault, ended.document) == (None, True, {})
    assert "completed" not in states(case)
    again = server.run([*COMPACT, str(case.table)])
    assert (again.code, again.fault) == (0, False)
    assert states(case) == ["completed"]


def test_a_change_fails(server: CommandServer, golden: Callable[[str, str], GoldenCase]) -> None:
    case = golden("9", "mor_compaction_requested")
    ended = server.run([*COMPACT, str(case.table)], "error", 4)
    assert (ended.code, ended.fault) == (1, True)
    assert "as the test has it" in str(ended.document)
    assert server.run([*COMPACT, str(case.table)], "error", 10_000).fault is False
    assert states(case) == ["completed"]


def test_an_error_of_hudictl_is_its_document(server: CommandServer) -> None:
    ended = server.run(["doctor", "/nowhere"])
    assert ended.code == 2
    assert ended.error["type"] == "ConfigError"
