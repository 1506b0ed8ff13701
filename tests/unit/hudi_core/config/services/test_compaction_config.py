"""Options of planning compactions."""

from __future__ import annotations

import pytest

from hudi_core.config.services.compaction_config import CompactionConfig, Strategy, Trigger
from hudi_core.errors import ConfigError

HUDI = "org.apache.hudi.table.action.compact.strategy"


def test_defaults_are_those_of_hudi() -> None:
    config = CompactionConfig.of({})
    assert (config.trigger, config.delta_commits, config.delta_seconds) == (Trigger.NUM_COMMITS, 5, 3600)
    assert (config.strategies, config.target_io_mb) == ((Strategy.LOG_FILE_SIZE,), 512_000)


@pytest.mark.parametrize("strategy", Strategy)
def test_a_strategy_is_named_by_its_class_with_or_without_package(strategy: Strategy) -> None:
    for name in (strategy.value, f"{HUDI}.{strategy.value}"):
        assert CompactionConfig.of({"hoodie.compaction.strategy": name}).strategies == (strategy,)


def test_several_strategies_work_one_after_the_other() -> None:
    names = f"{HUDI}.{Strategy.DAY_BASED.value}, {Strategy.BOUNDED_IO.value}"
    found = CompactionConfig.of({"hoodie.compaction.strategy": names}).strategies
    assert found == (Strategy.DAY_BASED, Strategy.BOUNDED_IO)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.compaction.strategy", "com.acme.Mine"),
        ("hoodie.compaction.strategy", " , "),
        ("hoodie.compact.inline.trigger.strategy", "SOMETIMES"),
        ("hoodie.compaction.partition.path.regex", "("),
        ("hoodie.compaction.target.io", "0"),
    ],
)
def test_what_is_not_valid_names_the_option(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        CompactionConfig.of({key: value})
