from __future__ import annotations

import os
from dataclasses import replace

import pytest

from hudi_core.services.indexing.planner import IndexingService
from hudi_core.timeline.instant import State
from hudi_core.timeline.instant_time import parse_instant
from hudi_core.transaction.owner import Owner
from hudi_health.doctor.clocks import ClockObservations, clock_skew, instant_ahead, read_clocks, timeline_zone
from hudi_health.doctor.findings import Finding
from tests.support.golden_cleans import context_of
from tests.unit.hudi_health.doctor.test_examine import VERSIONS, Golden, findings
from tests.unit.hudi_health.doctor.test_examine import rules as rules_of

CLOCK = ClockObservations("UTC", "UTC", "UTC", 0.2, (-0.1, -0.2, -0.1), -5.0, -5.0, "20261120223342658")


def found(clock: ClockObservations) -> list[Finding]:
    return [finding for rule in (timeline_zone, clock_skew, instant_ahead) for finding in rule(clock)]


def rules(clock: ClockObservations) -> list[str]:
    return [finding.rule for finding in found(clock)]


def test_clocks_that_agree_are_no_finding() -> None:
    assert found(CLOCK) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_writers_in_another_zone(golden: Golden, version: str) -> None:
    """The files' times are set to when their instants say they were made, in another zone."""
    table = golden(version, "mor_compacted").table
    context = context_of(table)
    for instant in context.active.load():
        path = table / context.active.path(instant.requested_time, instant.pending_action, State.REQUESTED)
        if path.exists():
            made = parse_instant(instant.requested_time, "Asia/Kolkata").timestamp() + 0.3
            os.utime(path, (made, made))
    utc = {"airflow_hudi.timeline.zone": "UTC"}
    (finding,) = [item for item in findings(table, utc) if item.rule == "timeline_zone"]
    assert "+5.5 h" in finding.what
    assert "timeline_zone" not in rules_of(table, {"airflow_hudi.timeline.zone": "Asia/Kolkata"})


def test_an_indexing_that_is_planned_before_the_latest_write_says_nothing_of_a_zone(golden: Golden) -> None:
    table = golden("8", "mor_basic").table
    options = {"airflow_hudi.timeline.zone": "UTC", "hoodie.metadata.index.bloom.filter.enable": "true"}
    context = context_of(table, options)
    before = read_clocks(context, context.active.load(), context.active.modified(), 0.0).offsets
    assert IndexingService().schedule(context, Owner.current("test"), dry_run=False).instant is not None
    assert read_clocks(context, context.active.load(), context.active.modified(), 0.0).offsets == before


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ((7199.9, 7199.8, 7199.9), ["timeline_zone"]),
        ((-12600.1, -12600.2, -12600.5), ["timeline_zone"]),
        ((-0.1, 7199.8, 7199.9), ["mixed_zones"]),
        ((7199.9, 7199.8), []),
        ((7199.9, 7199.8, 400.0), []),
        ((-15 * 3600.0,) * 3, []),
    ],
)
def test_zones(offsets: tuple[float, ...], expected: list[str]) -> None:
    assert rules(replace(CLOCK, offsets=offsets)) == expected


def test_the_zone_finding_names_hours_and_the_option() -> None:
    (finding,) = found(replace(CLOCK, offsets=(7199.9,) * 3))
    assert "+2 h" in finding.what
    assert "airflow_hudi.timeline.zone" in finding.fix


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        (replace(CLOCK, storage_ahead=3.0), ["clock_skew"]),
        (replace(CLOCK, storage_ahead=0.1), []),
        (replace(CLOCK, offsets=(-0.1, 4.0, -0.1)), ["clock_skew"]),
        (replace(CLOCK, offsets=(-0.1, 1.9, -0.1)), []),
        (replace(CLOCK, newest_ahead=3600.0), ["instant_ahead"]),
        (replace(CLOCK, newest_ahead=None, newest=None, storage_ahead=None, offsets=()), []),
    ],
)
def test_clocks(clock: ClockObservations, expected: list[str]) -> None:
    assert rules(clock) == expected


def test_skew_names_the_milliseconds_to_wait_for() -> None:
    (finding,) = found(replace(CLOCK, storage_ahead=3.0))
    assert "hoodie.time.generator.max_expected_clock_skew_ms to 3001" in finding.fix
