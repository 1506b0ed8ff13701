"""A look at a table: what a request would find due."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from hudi_core.storage.local import LocalStorage
from hudi_core.verbs.request import Request
from tests.support.changed_tables import open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage
from tests.support.table_files import contents
from tests.support.table_requests import nothing_to_do


def looked(table: Path, request: Request) -> dict[str, Any] | None:
    """What a look finds; it changes nothing, deletes nothing, and lists no folder twice."""
    before, plan = contents(table), FaultPlan()
    context = open_context(table, dict(request.options), FaultStorage(LocalStorage(table), plan))
    nothing_due = nothing_to_do(context, request)
    assert contents(table) == before
    # Not even of what is not there: another process may just have put it there.
    assert [operation for operation in plan.operations if operation.kind in MUTATIONS] == []
    listings = Counter(operation for operation in plan.operations if operation.kind in ("list_files", "list_names"))
    # Claims are always looked up: processes see each other by them.
    assert [operation for operation, count in listings.items() if count > 1 and "/claims/" not in operation.path] == []
    return None if nothing_due is None else nothing_due.to_dict()
