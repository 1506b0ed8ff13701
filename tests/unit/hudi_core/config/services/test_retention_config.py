"""The options of cleaning, under the names of both generations."""

from __future__ import annotations

import pytest

from hudi_core.config.options import KEYS, check_options
from hudi_core.config.services.retention_config import CLEAN_KEYS, CleanConfig
from hudi_core.errors import ConfigError


def test_the_defaults_are_hudis() -> None:
    config = CleanConfig.of({})
    assert (config.policy, config.retained, config.trigger_commits, config.parallelism) == (
        "KEEP_LATEST_COMMITS",
        10,
        1,
        200,
    )
    assert (config.incremental, config.multiple, config.max_commits) == (True, False, None)
    assert (config.hours_retained, config.versions_retained) == (24, 3)


@pytest.mark.parametrize(
    ("old", "new", "value", "field", "expected"),
    [
        ("hoodie.cleaner.policy", "hoodie.clean.policy", "keep_latest_by_hours", "policy", "KEEP_LATEST_BY_HOURS"),
        ("hoodie.cleaner.commits.retained", "hoodie.clean.commits.retained", "4", "commits_retained", 4),
        ("hoodie.cleaner.hours.retained", "hoodie.clean.hours.retained", "5", "hours_retained", 5),
        ("hoodie.cleaner.fileversions.retained", "hoodie.clean.fileversions.retained", "6", "versions_retained", 6),
        ("hoodie.clean.max.commits", "hoodie.clean.trigger.max.commits", "7", "trigger_commits", 7),
        ("hoodie.cleaner.incremental.mode", "hoodie.clean.incremental.enabled", "false", "incremental", False),
        ("hoodie.cleaner.parallelism", "hoodie.clean.parallelism", "8", "parallelism", 8),
        ("hoodie.clean.allow.multiple", "hoodie.clean.multiple.enabled", "true", "multiple", True),
    ],
)
def test_both_generations_of_names_are_read(old: str, new: str, value: str, field: str, expected: object) -> None:
    assert getattr(CleanConfig.of({old: value}), field) == expected
    assert getattr(CleanConfig.of({new: value}), field) == expected


@pytest.mark.parametrize(
    ("options", "policy"),
    [
        ({"hoodie.cleaner.commits.retained": "1"}, "KEEP_LATEST_COMMITS"),
        ({"hoodie.clean.hours.retained": "1"}, "KEEP_LATEST_BY_HOURS"),
        ({"hoodie.cleaner.fileversions.retained": "1"}, "KEEP_LATEST_FILE_VERSIONS"),
        ({"hoodie.cleaner.fileversions.retained": "1", "hoodie.clean.hours.retained": "1"}, "KEEP_LATEST_COMMITS"),
        (
            {"hoodie.cleaner.fileversions.retained": "1", "hoodie.cleaner.policy": "KEEP_LATEST_COMMITS"},
            "KEEP_LATEST_COMMITS",
        ),
    ],
)
def test_the_policy_follows_from_the_one_retention_that_is_set(options: dict[str, str], policy: str) -> None:
    config = CleanConfig.of(options)
    assert config.policy == policy
    assert config.retention.name.startswith("hoodie.clean.")


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.cleaner.policy": "KEEP_ALL"},
        {"hoodie.clean.commits.retained": "0"},
        {"hoodie.clean.fileversions.retained": "0"},
        {"hoodie.clean.hours.retained": "-1"},
        {"hoodie.clean.trigger.strategy": "SOMETIMES"},
        {"hoodie.clean.partition.filter.regex": "(", "hoodie.clean.incremental.enabled": "false"},
        {"hoodie.clean.partition.filter.selected": "a"},
        {"hoodie.clean.partition.filter.regex": "a.*"},
    ],
)
def test_values_that_cannot_be_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        CleanConfig.of(options)


def test_a_filter_takes_whole_paths_and_names_go_first() -> None:
    full = {"hoodie.clean.incremental.enabled": "false"}
    by_pattern = CleanConfig.of({**full, "hoodie.cleaner.partition.filter.regex": "2024.*"})
    assert [by_pattern.takes(partition) for partition in ("2024-01", "x2024", "")] == [True, False, False]
    by_name = CleanConfig.of(
        {**full, "hoodie.cleaner.partition.filter.regex": "2024.*", "hoodie.clean.partition.filter.selected": "a, b"}
    )
    assert [by_name.takes(partition) for partition in ("a", "b", "2024-01")] == [True, True, False]
    assert CleanConfig.of({}).takes("anything")


def test_the_options_are_registered() -> None:
    assert set(CLEAN_KEYS) <= set(KEYS)
    with pytest.raises(ConfigError, match=r"hoodie\.cleaner\.commits\.retained"):
        check_options({"hoodie.cleaner.commits.retained": "many"})
