"""Commands that wait for no other clock."""

from __future__ import annotations

import pytest

from hudi_core.services import context
from hudi_core.transaction.instant_generator import InstantClock
from tests.support.job_server import FILE_CLOCK_MS


@pytest.fixture(autouse=True)
def _one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """No writer has another clock, so an instant waits only until the times of files have moved."""
    monkeypatch.setattr(context, "InstantClock", lambda zone, _: InstantClock(zone, FILE_CLOCK_MS))
