from __future__ import annotations

import os

import pytest

from hudi_cli import options
from hudi_cli.options import Target


@pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 1000680000"), OSError("No username set")])
def test_a_user_without_a_name_is_its_number(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """As in a container of OpenShift; an OSError from Python 3.13 on."""

    def fail() -> str:
        raise error

    monkeypatch.setattr(options, "getuser", fail)
    assert Target("t", (), None).request_fields(())["owner"] == f"hudictl of uid {os.getuid()}"
