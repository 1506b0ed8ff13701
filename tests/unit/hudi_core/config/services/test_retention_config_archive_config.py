from __future__ import annotations

import pytest

from hudi_core.config.services.retention_config import ARCHIVE_KEYS, ArchiveConfig
from hudi_core.errors import ConfigError


def test_defaults_are_those_of_hudi() -> None:
    config = ArchiveConfig.of({})
    assert config == ArchiveConfig()
    assert (config.keep_min, config.keep_max, config.delta_commits, config.batch) == (20, 30, 5, 10)


def test_more_is_kept_at_most_than_at_least() -> None:
    with pytest.raises(ConfigError, match=r"keep\.min\.commits is 30"):
        ArchiveConfig.of({"hoodie.keep.min.commits": "30"})
    assert ArchiveConfig.of({"hoodie.keep.min.commits": "29"}).keep_min == 29


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [("NUM_COMMITS", 7), ("NUM_AND_TIME", 7), ("TIME_ELAPSED", None), ("NUM_OR_TIME", None)],
)
def test_deltacommits_count_where_the_trigger_counts_them(trigger: str, expected: int | None) -> None:
    options = {
        "hoodie.compact.inline.trigger.strategy": trigger,
        "hoodie.compact.inline.max.delta.commits": "7",
    }
    assert ArchiveConfig.of(options).delta_commits == expected


@pytest.mark.parametrize("key", ARCHIVE_KEYS, ids=lambda key: key.name)
def test_a_value_that_is_none_is_refused_by_its_key(key: object) -> None:
    with pytest.raises(ConfigError, match=key.name):  # type: ignore[attr-defined]
        ArchiveConfig.of({key.name: "no such value"})  # type: ignore[attr-defined]
