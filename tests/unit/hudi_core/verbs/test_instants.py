"""Rollbacks and restores as requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hudi_core.engine.local import LocalEngine
from hudi_core.verbs.instants import RestoreRequest, RollbackRequest
from hudi_core.verbs.request import Request
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase
from tests.support.table_requests import perform

Golden = Callable[[str, str], GoldenCase]


def performed(table: Path, verb: type[Request], **request: Any) -> dict[str, Any]:
    result = perform(open_context(table), verb(str(table), **request), LocalEngine(1), an_owner())
    assert result.document is not None
    return dict(result.document)


def pending(table: Path) -> list[str]:
    return [item.requested_time for item in open_context(table).active.load().pending()]


def test_a_failed_write_is_rolled_back(golden: Golden) -> None:
    table = golden("8", "failed_inflight_cow").table
    (failed,) = pending(table)
    shown = performed(table, RollbackRequest, instant=failed, dry_run=True)
    assert (shown["instant"], shown["target"], pending(table)) == (None, failed, [failed])
    assert performed(table, RollbackRequest, instant=failed)["target"] == failed
    assert pending(table) == []


def test_a_restore_without_an_instant_lists(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    listed = performed(table, RestoreRequest, dry_run=True)
    commits = open_context(table).active.load().commits().requested_times
    assert {item["instant"] for item in listed["restorable"]} == commits
    assert listed["target"] is None
