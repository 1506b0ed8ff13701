"""Where the keys of a write are looked for."""

from __future__ import annotations

import pytest

from hudi_core.services.source import files
from hudi_core.services.write.tagging import exchange


@pytest.fixture(params=["few keys", "many keys", "many keys of files"])
def look(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the keys of the source are so few that only these are looked for; also by all base files together."""
    if request.param == "many keys":
        monkeypatch.setattr(files, "FEW_KEYS", 0)
    elif request.param != "few keys":
        monkeypatch.setattr(exchange, "_MOST_WANTED", 3)
    return str(request.param)
