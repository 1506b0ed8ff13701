"""What `hudictl plan` says of every golden table: an answer for each service; what is pending is due."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.request.policy import ALL_SERVICES
from hudi_core.request.services import SERVICES, service_of_action
from hudi_core.services.policy import decide
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_compactions import FOLDERS
from tests.support.golden_data import GoldenCase, golden_cases

Golden = Callable[[str, str], GoldenCase]
QUICK = ("mor_compaction_requested", "clustering_requested_cow", "empty_table_no_commits", "bucket_index_mor")
CASES = [
    pytest.param(folder, case, marks=() if case in QUICK else pytest.mark.conformance)
    for folder in FOLDERS
    for case in golden_cases(folder)
]


def tree(table: Path) -> dict[str, int]:
    return {str(path.relative_to(table)): path.stat().st_size for path in table.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("folder", "case"), CASES)
def test_every_service_is_due_or_not(golden: Golden, folder: str, case: str) -> None:
    table = golden(folder, case).table
    before = tree(table)
    context = open_context(table, {"spark.sql.session.timeZone": "UTC"})
    found = decide(context, ALL_SERVICES, an_owner()).services
    assert tree(table) == before
    assert {item.service for item in found} == SERVICES.keys()
    assert all(item.why for item in found)
    pending = {service_of_action(item.pending_action) for item in context.active.load().pending()} - {None, "rollback"}
    assert pending <= {item.service for item in found if item.due}
