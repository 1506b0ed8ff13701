"""What every service shares: the instants that it can run, and the document of a plan."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.request.services import SERVICES, service_of_action
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.service import Scheduled, service_of
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_service_finds_the_plans_of_its_action(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "mor_compaction_requested_only").table)
    timeline = context.active.load()
    (plan,) = timeline.pending_compactions()
    assert CompactionService().pending(context, timeline) == [plan.requested_time]
    assert CleanService().pending(context, timeline) == []


def test_a_completed_plan_is_not_pending(golden: Golden) -> None:
    context = open_context(golden("9", "cleaned_commits_cow").table)
    assert CleanService().pending(context, context.active.load()) == []


@pytest.mark.parametrize(
    ("name", "immediate"),
    [
        ("archive", True),
        ("clean", False),
        ("clustering", False),
        ("compaction", False),
        ("log_compaction", False),
        ("indexing", False),
    ],
)
def test_only_archival_leaves_no_instant(name: str, immediate: bool) -> None:
    assert service_of(name).has_instants is not immediate


def test_the_document_of_a_plan() -> None:
    assert Scheduled("1", {"files": 2}).to_dict() == {"instant": "1", "plan": {"files": 2}, "reason": None}
    assert Scheduled(None, None, "why").to_dict() == {"instant": None, "plan": None, "reason": "why"}


@pytest.mark.parametrize("name", SERVICES)
def test_each_line_names_its_service(name: str) -> None:
    service = service_of(name)
    assert service.name == name
    if service.has_instants:
        assert service_of_action(service.action) == name


def test_another_service_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="defragment is not in this release"):
        service_of("defragment")
