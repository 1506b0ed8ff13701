"""Which services are due, by pending instants, conditions and planners; quiet hours and alerts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hudi_core.errors import ConfigError
from hudi_core.request.policy import ALL_SERVICES, Policy, QuietHours, ServicePolicy, services_named
from hudi_core.request.services import SERVICES
from hudi_core.services.policy import Decision, Decisions, decide
from hudi_core.verbs.batch import requests_of_policy
from tests.support.changed_tables import an_owner, listed, open_context
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]


def decided(table: Path, policy: Policy, now: datetime | None = None) -> Decisions:
    return decide(open_context(table), policy, an_owner(), now)


def only(table: Path, service: str, **when: str) -> Decision:
    (found,) = decided(table, Policy((ServicePolicy(service, when),))).services
    return found


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_every_service_of_a_table_is_due_or_not(golden: Golden, version: str) -> None:
    """Nothing is written."""
    table = golden(version, "mor_basic").table
    before = listed(table)
    found = decided(table, ALL_SERVICES)
    assert {item.service for item in found.services} == SERVICES.keys()
    assert all(item.why for item in found.services)
    document = found.to_dict()
    assert {item["service"] for item in document["due"]} | {item["service"] for item in document["not_due"]} == {
        *SERVICES
    }
    assert listed(table) == before


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_pending_compaction_is_due_whatever_the_conditions_are(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compaction_requested").table
    found = only(table, "compaction", commits="1000")
    assert found.due
    assert "is pending" in found.why
    assert found.file_groups > 0
    assert found.size > 0


def test_a_plan_is_due_where_a_condition_holds(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    found = only(table, "compaction", commits="1")
    assert found.due
    assert found.why.endswith("due at 1")
    assert found.file_groups > 0
    assert found.size > 0
    far = only(table, "compaction", commits="1000")
    assert not far.due
    assert far.why.endswith("due at 1000")


def test_a_service_that_cannot_serve_the_table_is_not_due(golden: Golden) -> None:
    found = only(golden("9", "cow_basic").table, "log_compaction")
    assert not found.due
    assert found.why


def test_nothing_is_due_in_quiet_hours(golden: Golden) -> None:
    table = golden("9", "mor_compaction_requested").table
    hours = QuietHours.parse("08:00-18:00")
    policy = Policy((ServicePolicy("compaction"), ServicePolicy("clean")), quiet_hours=(hours,))
    noon = datetime(2026, 11, 25, 12, tzinfo=timezone.utc)
    assert {item.why for item in decided(table, policy, noon).services} == {"quiet hours: 08:00-18:00"}
    night = decided(table, policy, noon + timedelta(hours=10))
    assert night.services[0].due


def test_what_is_pending_for_too_long_is_an_alert(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    policy = Policy(services_named(["clean"]).services, pending_age=60)
    (alert,) = decided(table, policy).alerts
    (pending,) = open_context(table).active.load().pending()
    assert alert.instant == pending.requested_time
    assert alert.age_seconds > 60
    assert f"{pending.requested_time} is requested for" in alert.what
    assert decided(table, Policy(policy.services, pending_age=10**9)).alerts == []
    quiet = tuple(map(QuietHours.parse, ("00:00-12:00", "12:00-00:00")))
    assert decided(table, Policy(policy.services, pending_age=60, quiet_hours=quiet)).alerts == []


def test_options_of_a_policy_are_checked(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    with pytest.raises(ConfigError, match=r"airflow_hudi\.none"):
        decided(table, Policy(options={"airflow_hudi.none": "1"}))


def test_options_that_are_given_come_before_those_of_the_policy_as_in_its_runs(golden: Golden) -> None:
    table = golden("9", "mor_basic").table
    never, always = ({"hoodie.compact.inline.max.delta.commits": number} for number in ("1000", "1"))
    service = ServicePolicy("compaction", options=never)
    (found,) = decide(open_context(table, always), Policy((service,)), an_owner()).services
    assert found.due
    (other,) = decide(
        open_context(table, never), Policy((ServicePolicy("compaction", options=always),)), an_owner()
    ).services
    assert not other.due
    (request,) = requests_of_policy(Policy((service,)), str(table), options=always)
    assert request.options == always
