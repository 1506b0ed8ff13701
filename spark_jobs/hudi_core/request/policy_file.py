"""Reads policies from YAML, and says in which line a mistake is.

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

A file that has neither `policies` nor `tables` is one policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from hudi_core.errors import ConfigError, HudiError
from hudi_core.request.conditions import bytes_of, seconds_of, whole_number_of
from hudi_core.request.policy import Policy, QuietHours, ServicePolicy, TablePolicies
from hudi_core.request.secrets import refuse_secret_address, refuse_secrets

T = TypeVar("T")
MAX_BYTES: Final = 1 << 20
"""Of a file of policies."""
_POLICY: Final = ("services", "budget", "quiet_hours", "alerts", "options", "pool")
_DEFAULT: Final = "default"
_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp")
)


def read_policies(path: str) -> TablePolicies:
    """The policies of a file of this machine. Raises ConfigError as parse_policies, and where it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            return parse_policies(stream.read(MAX_BYTES + 1), path=path)
    except OSError as error:
        raise ConfigError(f"the file of policies cannot be read: {error.strerror}", path=path) from error


def parse_policies(text: str | bytes, *, path: str) -> TablePolicies:
    """The policies of a file. Raises ConfigError naming `path` and the line."""
    if len(text) > MAX_BYTES:
        raise ConfigError(f"a file of policies has {len(text)} bytes, more than {MAX_BYTES}", path=path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigError(f"the file is no YAML: {' '.join(str(error).split())}", path=path) from error
    except (UnicodeError, RecursionError) as error:
        raise ConfigError(f"the file is no YAML: {error}", path=path) from error
    if node is None:
        raise ConfigError("the file of policies is empty", path=path)
    root = _Node(node, path)
    found = root.members()
    if not {"policies", "tables"} & found.keys():
        return TablePolicies({_DEFAULT: _policy(root)})
    root.check_names(("policies", "tables"))
    policies = (
        {name: _policy(value) for name, value in found["policies"].members().items()} if "policies" in found else {}
    )
    policies.setdefault(_DEFAULT, Policy())
    tables: dict[str, Policy] = {}
    for item in found["tables"].items() if "tables" in found else ():
        name, policy = _table(item, policies)
        if name in tables:
            raise item.error(f"the table {name} is named twice")
        tables[name] = policy
    return TablePolicies(policies, tables)


class _Node:
    """A node of the document, which knows its line."""

    def __init__(self, node: yaml.Node, path: str) -> None:
        self._node = node
        self._path = path
        if node.tag not in _TAGS:
            raise self.error(f"the tag {node.tag} is not known here")

    def error(self, what: str, remedy: str | None = None) -> ConfigError:
        """A mistake here."""
        return ConfigError(f"line {self._node.start_mark.line + 1}: {what}", path=self._path, remedy=remedy)

    def read(self, parse: Callable[[str], T]) -> T:
        """The scalar, read by `parse`."""
        text = self.text()
        try:
            return parse(text)
        except ValueError as error:
            raise self.error(f"{text!r} {error}") from error

    def checked(self, make: Callable[[], T]) -> T:
        """A value whose own checks are mistakes here."""
        try:
            return make()
        except HudiError as error:
            raise self.error(error.message, error.remedy) from error

    def text(self) -> str:
        """The scalar as it is written."""
        if not isinstance(self._node, yaml.ScalarNode) or self.is_empty:
            raise self.error("a text or number is expected")
        return str(self._node.value)

    @property
    def is_scalar(self) -> bool:
        """Whether it is one text or number."""
        return isinstance(self._node, yaml.ScalarNode)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written, or null."""
        return isinstance(self._node, yaml.ScalarNode) and self._node.tag == "tag:yaml.org,2002:null"

    def items(self) -> list[_Node]:
        """The nodes of a list."""
        if not isinstance(self._node, yaml.SequenceNode):
            raise self.error("a list is expected")
        return [_Node(item, self._path) for item in self._node.value]

    def members(self) -> dict[str, _Node]:
        """The nodes of a mapping by name; none of what is empty."""
        if self.is_empty:
            return {}
        if not isinstance(self._node, yaml.MappingNode):
            raise self.error("names with values are expected")
        found: dict[str, _Node] = {}
        for key, value in self._node.value:
            name = _Node(key, self._path).text()
            if name in found:
                raise _Node(key, self._path).error(f"{name} is there twice")
            found[name] = _Node(value, self._path)
        return found

    def texts(self) -> dict[str, str]:
        """The scalars of a mapping by name, booleans as Hudi writes them."""
        return {name: node.text() for name, node in self.members().items()}

    def check_names(self, known: tuple[str, ...]) -> None:
        """Raises for a name that is not known."""
        for name, node in self.members().items():
            if name not in known:
                raise node.error(f"{name!r} is not known here", f"one of {', '.join(known)}")


def _policy(node: _Node) -> Policy:
    node.check_names(_POLICY)
    found = node.members()
    given: dict[str, Any] = {}
    if "services" in found:
        given["services"] = tuple(_service(name, item) for name, item in found["services"].members().items())
        if not given["services"]:
            raise found["services"].error("no service is named")
    if "budget" in found:
        found["budget"].check_names(("minutes", "bytes"))
        budget = found["budget"].members()
        given["minutes"] = budget["minutes"].read(whole_number_of) if "minutes" in budget else None
        given["size"] = budget["bytes"].read(bytes_of) if "bytes" in budget else None
    if "quiet_hours" in found:
        given["quiet_hours"] = tuple(item.read(QuietHours.parse) for item in found["quiet_hours"].items())
    if "alerts" in found:
        found["alerts"].check_names(("pending_age",))
        alerts = found["alerts"].members()
        given["pending_age"] = alerts["pending_age"].read(seconds_of) if "pending_age" in alerts else None
    if "options" in found:
        given["options"] = _options(found["options"])
    if "pool" in found:
        given["pool"] = found["pool"].text()
    return Policy(**given)


def _service(name: str, node: _Node) -> ServicePolicy:
    when = node.members()
    options = _options(when.pop("options")) if "options" in when else {}
    return node.checked(lambda: ServicePolicy(name, {key: item.text() for key, item in when.items()}, options))


def _options(node: _Node) -> dict[str, str]:
    options = node.texts()
    node.checked(lambda: refuse_secrets(options, where="options of a policy"))
    return options


def _table(node: _Node, policies: Mapping[str, Policy]) -> tuple[str, Policy]:
    if node.is_scalar:
        name, policy = node.text(), _DEFAULT
    else:
        node.check_names(("table", "policy"))
        found = node.members()
        if "table" not in found:
            raise node.error("the table is not named")
        name = found["table"].text()
        policy = found["policy"].text() if "policy" in found else _DEFAULT
    node.checked(lambda: refuse_secret_address(name, what="the address of a table"))
    if policy not in policies:
        raise node.error(f"there is no policy {policy!r}", f"one of {', '.join(policies)}")
    return name.rstrip("/"), policies[policy]
