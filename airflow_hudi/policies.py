"""Policies of tables, from a file or an argument."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hudi_core.config import policy_file
from hudi_core.config.policy_file import TablePolicies
from hudi_core.errors import ConfigError


def read_policies(policy: str | Mapping[str, Any]) -> TablePolicies:
    """Of a YAML file by its path, or of one policy as a mapping. Raises ConfigError naming the file and the line."""
    if isinstance(policy, str):
        return policy_file.read_policies(policy)
    where = "the argument policy"
    try:
        text = json.dumps(policy)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"it holds what a file cannot: {error}", path=where, remedy="texts and numbers") from error
    return policy_file.parse_policies(text, path=where)


def tables_of(names: Sequence[str], policies: TablePolicies | None) -> list[str]:
    """The tables by their names, each once, or those of the policies. Raises ConfigError without any."""
    found = names or (() if policies is None else tuple(policies.tables))
    if not found:
        raise ConfigError("no table is named", remedy="set tables=, or name them in the policy file")
    return list(dict.fromkeys(found))
