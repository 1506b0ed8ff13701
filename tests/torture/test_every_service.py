"""The conformance core of `make test`: every service on each table version and table type, real Hudi as writer and
judge.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.judged import JUDGES
from tests.interop.real_hudi import RealHudi
from tests.torture.every_service import every_service
from tests.torture.session import Judges, Readers, run

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

MAY_CHANGE_NOTHING = {"hudictl doctor", "hudictl metadata update"}
"""A metadata table that real Hudi keeps need not be updated."""


@pytest.fixture
def judges(version: str, request: pytest.FixtureRequest) -> Iterator[Judges]:
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    made = Judges()
    made.lend(hudi)
    yield made
    made.close()


@pytest.mark.parametrize("on_read", [True, False], ids=["mor", "cow"])
@pytest.mark.parametrize("version", JUDGES)
def test_every_service_keeps_every_row(judges: Judges, version: str, on_read: bool) -> None:
    program = every_service(version, on_read=on_read)
    outcome = run(judges, program, readers=Readers(3, 100))
    assert outcome.failure is None, outcome.failure
    assert outcome.steps.total() == len(program.steps), outcome.avoided
    assert not outcome.refused
    assert {name for name, count in outcome.idle.items() if count} <= MAY_CHANGE_NOTHING
