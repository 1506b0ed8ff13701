"""A look at an update of the metadata table: it is run up to its first change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.verbs.metadata import (
    MetadataUpdateRequest,
)
from hudi_core.verbs.request import Request
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase
from tests.support.table_files import contents
from tests.support.table_looks import looked
from tests.support.table_requests import perform
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
LAZY = {"hoodie.cleaner.policy.failed.writes": "LAZY"}
EAGER = {"hoodie.cleaner.policy.failed.writes": "EAGER"}


def done(table: Path, request: Request) -> dict[str, Any]:
    return perform(open_context(table, dict(request.options)), request, LocalEngine(1), an_owner()).to_dict()


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_an_update_of_the_metadata_table_is_looked_at(
    golden: Golden, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """By running it up to its first change: what it records in the properties as whole is one, and is there then."""
    table = golden(version, "mdt_all_mor").table
    request = MetadataUpdateRequest(str(table), options={"spark.sql.session.timeZone": "UTC"})
    done(table, request)
    before, found = contents(table), looked(table, request)
    assert found is not None
    assert found == done(table, request)
    assert (found["applied"], found["cleaned"]["instants"], contents(table)) == ([], [], before)
    metadata_timeline = open_context(table).active.folder.replace(".hoodie", ".hoodie/metadata/.hoodie", 1)
    newest_of_it = max(path for path in (table / metadata_timeline).glob("*.deltacommit") if path.is_file())
    newest_of_it.unlink()
    caplog.clear()
    assert looked(table, request) is None
    assert caplog.messages == []
    assert done(table, request)["applied"]
