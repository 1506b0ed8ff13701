"""Names of time zones."""

from __future__ import annotations

import pytest

from hudi_core.request.texts import region


def test_a_zone_has_its_name() -> None:
    assert str(region("Europe/Berlin")) == "Europe/Berlin"
    assert str(region("UTC")) == "UTC"


@pytest.mark.parametrize(
    "name", ["", "Nowhere/Town", "../etc/passwd", "/etc/passwd", "Europe", "America", "a" * 5000, "x\x00y", "\udcff"]
)
def test_what_is_no_zone(name: str) -> None:
    assert region(name) is None
