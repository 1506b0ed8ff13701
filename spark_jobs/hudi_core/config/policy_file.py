"""Reads policies of tables from YAML, and says in which line a mistake is.

    policies:
      default:
        services:              # in this order
          rollback:
          compaction: {commits: 5, log_ratio: 0.5}
          clustering: {small_files: 50, options: {hoodie.clustering.plan.strategy.sort.columns: city}}
          clean: {commits: 10}
          archive:
        budget: {minutes: 60, bytes: 50GiB}
        quiet_hours: ["08:00-18:00 Europe/Berlin mon,tue,wed,thu,fri"]
        alerts: {pending_age: 2h}
        options: {hoodie.clean.commits.retained: 20}
    tables:
      - sales/orders
      - {table: sales/returns, policy: nightly}

A file that has neither `policies` nor `tables` is one policy. A mistake is in the line of its name, or of its item.
services/policy.py says when a service is due by a policy.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import yaml

from hudi_core.config.options import check_options, warn_of_misspelt
from hudi_core.errors import ConfigError, HudiError
from hudi_core.frozen import dataclass
from hudi_core.request.policy import MAX_MINUTES, PLAN_MAX_BYTES, Policy, QuietHours, ServicePolicy
from hudi_core.request.secrets import refuse_secret_address, refuse_secrets
from hudi_core.request.services import Conditions, check_service
from hudi_core.request.texts import bytes_of, one_of, seconds_of, whole_number_of
from hudi_core.storage.local import is_file_uri, local_path
from hudi_core.storage.registry import scheme_of

P = ParamSpec("P")
T = TypeVar("T")
MAX_BYTES: Final = 1 << 20
"""The most bytes of a file of policies."""
_POLICY: Final = ("services", "budget", "quiet_hours", "alerts", "options", "pool")
_DEFAULT: Final = "default"
_SLASHES: Final = re.compile("/+")
_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp")
)


@dataclass(frozen=True)
class TablePolicies:
    """The policies of a file by name, and the policy of each table. `tables` are in the order of the file."""

    policies: Mapping[str, Policy]
    tables: Mapping[str, Policy] = field(default_factory=dict)

    def of(self, table: str) -> Policy:
        """Returns the policy of a table: that of its entry; else of the longest relative entry that its address ends
        with, since entries may be below a connection's base path; else `default`; else the only one. An address may be
        written in several ways (place_of). Raises ConfigError.
        """
        place = place_of(table)
        parts = place.split("/")
        ends = (place, *("/".join(parts[at:]) for at in range(1, len(parts)) if parts[at]))
        policy = next((self._by_place[end] for end in ends if end in self._by_place), self.otherwise)
        if policy is None:
            raise ConfigError(
                f"no policy is for {table}", remedy="name it under tables, or call one of the policies default"
            )
        return policy

    @property
    def otherwise(self) -> Policy | None:
        return next(iter(self.policies.values())) if len(self.policies) == 1 else self.policies.get(_DEFAULT)

    @cached_property
    def _by_place(self) -> dict[str, Policy]:
        return {place_of(name): policy for name, policy in self.tables.items()}


def place_of(address: str) -> str:
    """Returns an address for comparisons: without scheme if local, no slash twice or at the end. Raises ConfigError."""
    scheme = scheme_of(address)
    if scheme != "file":
        return f"{scheme}://{_SLASHES.sub('/', address.split('://', 1)[1]).rstrip('/')}"
    return os.path.normpath(_SLASHES.sub("/", local_path(address) if is_file_uri(address) else address))


def read_policies(path: str) -> TablePolicies:
    """Returns the policies of a local file. Raises ConfigError for an unreadable file, and as parse_policies."""
    try:
        with Path(path).open("rb") as stream:
            return parse_policies(stream.read(MAX_BYTES + 1), path=path)
    except OSError as error:
        message = f"the file of policies cannot be read: {error.strerror}"
        raise ConfigError(message, path=path, remedy="give the path of a file that this process may read") from error


def parse_policies(text: str | bytes, *, path: str) -> TablePolicies:
    """Returns the policies of a file. Raises ConfigError naming `path` and the line."""
    if len(text) > MAX_BYTES:
        message = f"a file of policies has {len(text)} bytes, more than {MAX_BYTES}"
        raise ConfigError(message, path=path, remedy="spread its tables over several files")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigError(
            f"the file is no YAML: {' '.join(str(error).split())}", path=path, remedy="correct the file there"
        ) from error
    except (ValueError, OverflowError, RecursionError) as error:
        raise ConfigError(f"the file is no YAML: {error}", path=path, remedy="correct the file there") from error
    if node is None:
        raise ConfigError(
            "the file of policies is empty", path=path, remedy="write a policy into it: docs/use/fleets.md, Policies"
        )
    root = _Node(node, path)
    members = root.members()
    if not {"policies", "tables"} & members.keys():
        return TablePolicies({_DEFAULT: _policy(root)})
    root.check_names(("policies", "tables"))
    named = members["policies"].members() if "policies" in members else {}
    policies = TablePolicies({name: _policy(value) for name, value in named.items()} or {_DEFAULT: Policy()})
    tables: dict[str, Policy] = {}
    places = set[str]()
    for item in members["tables"].items() if "tables" in members else ():
        name, policy = _table(item, policies)
        place = item.checked(place_of, name)
        if place in places:
            raise item.error(f"the table {name} is named twice")
        places.add(place)
        tables[name] = policy
    return TablePolicies(policies.policies, tables)


class _Node:
    """A node of the document, which knows its line. With a `key`, its name, that is the line of the key."""

    def __init__(self, node: yaml.Node, path: str, key: yaml.Node | None = None) -> None:
        self._node = node
        self._path = path
        self._line = (key or node).start_mark.line + 1
        if node.tag not in _TAGS:
            raise self.error(f"the tag {node.tag} is not known here")

    def error(self, what: str, remedy: str | None = None) -> ConfigError:
        return ConfigError(f"line {self._line}: {what}", path=self._path, remedy=remedy)

    def read(self, parse: Callable[[str], T]) -> T:
        text = self.text()
        try:
            return parse(text)
        except ValueError as error:
            raise self.error(f"{text!r} {error}") from error

    def checked(self, make: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Returns the result of `make`. Errors of its own checks become mistakes of this node."""
        try:
            return make(*given, **named)
        except HudiError as error:
            raise self.error(error.message, error.remedy) from error

    def text(self) -> str:
        if not isinstance(self._node, yaml.ScalarNode) or self.is_empty:
            raise self.error("a text or number is expected")
        return str(self._node.value)

    @property
    def is_scalar(self) -> bool:
        return isinstance(self._node, yaml.ScalarNode)

    @property
    def is_empty(self) -> bool:
        return isinstance(self._node, yaml.ScalarNode) and self._node.tag == "tag:yaml.org,2002:null"

    def items(self) -> list[_Node]:
        if not isinstance(self._node, yaml.SequenceNode):
            raise self.error("a list is expected")
        return [_Node(item, self._path) for item in self._node.value]

    def members(self) -> dict[str, _Node]:
        """Returns the nodes of a mapping by name; none for an empty node."""
        if self.is_empty:
            return {}
        if not isinstance(self._node, yaml.MappingNode):
            raise self.error("names with values are expected")
        nodes: dict[str, _Node] = {}
        for key, value in self._node.value:
            name = _Node(key, self._path).text()
            if name in nodes:
                raise _Node(key, self._path).error(f"{name} is there twice")
            nodes[name] = _Node(value, self._path, key)
        return nodes

    def check_names(self, known: tuple[str, ...]) -> None:
        for name, node in self.members().items():
            if name not in known:
                raise node.error(f"{name!r} is not known here", one_of(name, known))


def _policy(node: _Node) -> Policy:
    node.check_names(_POLICY)
    members = node.members()
    fields: dict[str, Any] = {}
    if "services" in members:
        fields["services"] = tuple(_service(name, item) for name, item in members["services"].members().items())
        if not fields["services"]:
            raise members["services"].error("no service is named")
    if "budget" in members:
        members["budget"].check_names(("minutes", "bytes"))
        budget = members["budget"].members()
        fields["minutes"] = budget["minutes"].read(_minutes_of) if "minutes" in budget else None
        fields["size"] = _size(budget["bytes"]) if "bytes" in budget else None
    if "quiet_hours" in members:
        fields["quiet_hours"] = tuple(item.read(QuietHours.parse) for item in members["quiet_hours"].items())
    if "alerts" in members:
        members["alerts"].check_names(("pending_age",))
        alerts = members["alerts"].members()
        fields["pending_age"] = alerts["pending_age"].read(seconds_of) if "pending_age" in alerts else None
    if "options" in members:
        fields["options"] = _options(members["options"])
    if "pool" in members:
        fields["pool"] = members["pool"].text()
    return Policy(**fields)


def _minutes_of(text: str) -> int:
    minutes = whole_number_of(text)
    if minutes > MAX_MINUTES:
        raise ValueError(f"is more than {MAX_MINUTES}")
    return minutes


def _size(node: _Node) -> int:
    size = node.read(bytes_of)
    node.checked(check_options, {PLAN_MAX_BYTES: str(size)})
    return size


def _service(name: str, node: _Node) -> ServicePolicy:
    node.checked(check_service, name)
    members = node.members()
    options = _options(members.pop("options")) if "options" in members else {}
    when = {key: item.text() for key, item in members.items()}
    for key, text in when.items():
        members[key].checked(Conditions.of, name, {key: text})
    return ServicePolicy(name, when, options)


def _options(node: _Node) -> dict[str, str]:
    options = {}
    for name, item in node.members().items():
        option = {name: item.text()}
        item.checked(refuse_secrets, option, where="options of a policy")
        item.checked(check_options, option)
        options.update(option)
    warn_of_misspelt(options)
    return options


def _table(node: _Node, policies: TablePolicies) -> tuple[str, Policy]:
    members = {}
    if not node.is_scalar:
        node.check_names(("table", "policy"))
        members = node.members()
        if "table" not in members:
            raise node.error("the table is not named")
    name = members.get("table", node).text()
    node.checked(refuse_secret_address, name, what="the address of a table")
    if "policy" in members:
        policy = policies.policies.get(members["policy"].text())
        if policy is None:
            given = members["policy"].text()
            raise members["policy"].error(f"there is no policy {given!r}", one_of(given, policies.policies))
    else:
        policy = policies.otherwise
        if policy is None:
            raise node.error(f"no policy is named for the table {name}, and none is called default")
    return name.rstrip("/") or name, policy
