"""Policies from files and arguments."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi.arguments import read_policies, tables_of
from hudi_core.config.policy_file import TablePolicies
from hudi_core.errors import ConfigError
from hudi_core.request.policy import Policy, ServicePolicy


def test_a_file_and_an_argument_are_read_alike(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("services: {clean: {commits: 3}}\n")
    expected = TablePolicies({"default": Policy((ServicePolicy("clean", {"commits": "3"}),))})
    assert read_policies(str(file)) == read_policies({"services": {"clean": {"commits": 3}}}) == expected


def test_a_mistake_names_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as error:
        read_policies(str(tmp_path / "none.yaml"))
    assert error.value.path == str(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="clean has no condition 'bytes'") as error:
        read_policies({"services": {"clean": {"bytes": 3}}})
    assert error.value.path == "the argument policy"
    loop: dict[str, Any] = {}
    loop["options"] = loop
    for policy, message in (({"alerts": {"pending_age": timedelta(hours=2)}}, "timedelta"), (loop, "Circular")):
        with pytest.raises(ConfigError, match=message) as error:
            read_policies(policy)
        assert error.value.path == "the argument policy"


def test_tables_are_those_named_or_those_of_the_file() -> None:
    policies = TablePolicies({}, {"a": Policy(), "b": Policy()})
    assert tables_of(["c", "c"], policies) == ["c"]
    assert tables_of([], policies) == ["a", "b"]
    for without in (None, TablePolicies({})):
        with pytest.raises(ConfigError, match="no table is named"):
            tables_of([], without)
