"""Policies of tables, from a file or an argument."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hudi_core.errors import ConfigError
from hudi_core.request import policy_file
from hudi_core.request.policy import TablePolicies


def read_policies(policy: str | Mapping[str, Any]) -> TablePolicies:
    """Of a YAML file by its path, or of one policy as a mapping. Raises ConfigError naming the file and the line."""
    if isinstance(policy, str):
        return policy_file.read_policies(policy)
    return policy_file.parse_policies(json.dumps(policy), path="the argument policy")


def tables_of(names: Sequence[str], policies: TablePolicies | None) -> list[str]:
    """The tables by their names, each once, or where there are none those of the policies. Raises ConfigError without
    any.
    """
    found = names or (() if policies is None else tuple(policies.tables))
    if not found:
        raise ConfigError("no table is named", remedy="set tables=, or name them in the policy file")
    return list(dict.fromkeys(found))
