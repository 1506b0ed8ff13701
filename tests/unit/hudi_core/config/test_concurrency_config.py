from __future__ import annotations

import pytest

from hudi_core.config.concurrency_config import (
    CLOCK_SKEW_MS,
    CONFLICT_STRATEGY,
    FAILED_WRITES_POLICY,
    HEARTBEAT_INTERVAL_MS,
    HEARTBEAT_MISSES,
    HeartbeatConfig,
    Strategy,
)
from hudi_core.errors import ConfigError


@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize("package", ["", "org.apache.hudi.client.transaction."])
def test_strategies_by_either_name(strategy: Strategy, package: str) -> None:
    assert CONFLICT_STRATEGY.read({CONFLICT_STRATEGY.name: package + strategy.value}) is strategy


def test_no_other_class_is_a_strategy() -> None:
    with pytest.raises(ConfigError, match="PreferWriterConflictResolutionStrategy"):
        CONFLICT_STRATEGY.read({CONFLICT_STRATEGY.name: "com.example.Mine"})
    assert CONFLICT_STRATEGY.read({}) is Strategy.SIMPLE


def test_the_policy_of_failed_writes_has_two_names() -> None:
    assert FAILED_WRITES_POLICY.read({}) == "LAZY"
    for name in ("hoodie.cleaner.policy.failed.writes", "hoodie.clean.failed.writes.policy"):
        assert FAILED_WRITES_POLICY.read({name: "EAGER"}) == "EAGER"


@pytest.mark.parametrize("value", ["-1", "60001", "soon"])
def test_a_skew_of_clocks_has_bounds(value: str) -> None:
    with pytest.raises(ConfigError, match="max_expected_clock_skew_ms"):
        CLOCK_SKEW_MS.read({CLOCK_SKEW_MS.name: value})


def test_a_heartbeat_has_the_rhythm_of_the_options() -> None:
    assert HeartbeatConfig.of({}) == HeartbeatConfig(60_000, 2)
    assert HeartbeatConfig.of({HEARTBEAT_INTERVAL_MS.name: "500"}) == HeartbeatConfig(500, 2)


def test_no_run_may_be_silent_for_more_than_a_day() -> None:
    a_day = {HEARTBEAT_INTERVAL_MS.name: "43200000"}
    assert HeartbeatConfig.of(a_day) == HeartbeatConfig(43_200_000, 2)
    with pytest.raises(ConfigError, match=HEARTBEAT_MISSES.name):
        HeartbeatConfig.of({**a_day, HEARTBEAT_MISSES.name: "3"})
