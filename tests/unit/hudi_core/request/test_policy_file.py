"""Policies from YAML: what is read, and in which line a mistake is."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.errors import ConfigError
from hudi_core.request import policy_file
from hudi_core.request.policy import Policy, QuietHours, ServicePolicy
from hudi_core.request.policy_file import parse_policies

WHOLE = """\
policies:
  default:
    services:
      rollback:
      compaction: {commits: 5, log_ratio: 0.5}
      clean: {commits: 10, options: {hoodie.clean.commits.retained: 20}}
    budget: {minutes: 60, bytes: 50GiB}
    quiet_hours: ["08:00-18:00 Europe/Berlin"]
    alerts: {pending_age: 2h}
    options: {hoodie.metadata.enable: true}
    pool: hudi
  nightly:
    services: {archive: {}}
tables:
  - sales/orders
  - {table: s3://lake/returns/, policy: nightly}
"""


def test_the_whole_form() -> None:
    found = parse_policies(WHOLE, path="p.yaml")
    services = (
        ServicePolicy("rollback"),
        ServicePolicy("compaction", {"commits": "5", "log_ratio": "0.5"}),
        ServicePolicy("clean", {"commits": "10"}, {"hoodie.clean.commits.retained": "20"}),
    )
    hours = (QuietHours.parse("08:00-18:00 Europe/Berlin"),)
    options = {"hoodie.metadata.enable": "true"}
    default = Policy(services, options, 60, 50 << 30, hours, 7200, "hudi")
    assert found.policies["default"] == default
    assert found.tables == {"sales/orders": default, "s3://lake/returns": found.policies["nightly"]}
    assert found.of("s3://lake/returns").services == (ServicePolicy("archive"),)


def test_one_policy_alone_and_as_json() -> None:
    text = "services: {clean: {commits: 3}}\n"
    expected = Policy((ServicePolicy("clean", {"commits": "3"}),))
    assert parse_policies(text, path="p").of("/any") == expected
    assert parse_policies(json.dumps({"services": {"clean": {"commits": 3}}}), path="p").of("/any") == expected
    assert parse_policies("tables: [a, b]\n", path="p").tables == {"a": Policy(), "b": Policy()}


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("log_ratio: 0.5", "log_ratio: -1", 5, "log_ratio of compaction: '-1' is no number above 0"),
        ("log_ratio: 0.5", "ratio: 1", 5, "compaction has no condition 'ratio'"),
        ("rollback:", "rollbacks:", 4, "the service rollbacks is not in this release"),
        ("minutes: 60", "minutes: 0", 7, "'0' is no whole number"),
        ("minutes: 60", "hours: 1", 7, "'hours' is not known here"),
        ("08:00-18:00 Europe/Berlin", "all day", 8, "'all day' are no hours"),
        ("pending_age: 2h", "pending_age: 2", 9, "'2' is no duration"),
        ("hoodie.metadata.enable: true", "s3.secret.key: x", 10, "secret"),
        ("hoodie.metadata.enable: true", "hoodie.metadata.enable: [1]", 10, "a text or number is expected"),
        ("{archive: {}}", "{}", 13, "no service is named"),
        ("{archive: {}}", "[archive]", 13, "names with values are expected"),
        ("policy: nightly", "policy: hourly", 16, "there is no policy 'hourly'"),
        ("{table: s3://lake/returns/, policy: nightly}", "{policy: nightly}", 16, "the table is not named"),
        ("{table: s3://lake/returns/, policy: nightly}", "sales/orders/", 16, "the table sales/orders is named twice"),
        ("s3://lake/returns/", "s3://me:pw@lake/returns/", 16, "address of a table"),
        ("  nightly:", "  default:", 12, "default is there twice"),
        ("tables:", "table:", 15, "'table' is not known here"),
    ],
)
def test_a_mistake_has_its_line(old: str, new: str, line: int, message: str) -> None:
    assert old in WHOLE
    with pytest.raises(ConfigError) as error:
        parse_policies(WHOLE.replace(old, new, 1), path="p.yaml")
    assert error.value.path == "p.yaml"
    assert error.value.message.startswith(f"line {line}: ")
    assert message in error.value.message


@pytest.mark.parametrize(
    "text", ["", "- a", "a: [", "!!python/object:os.system {}", "a: &b [*b]", b"\xff\xfe\x00", "\0"]
)
def test_what_is_no_file_of_policies(text: str | bytes) -> None:
    with pytest.raises(ConfigError) as error:
        parse_policies(text, path="p.yaml")
    assert error.value.path == "p.yaml"


def test_a_file_that_is_too_large_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_file, "MAX_BYTES", 10)
    with pytest.raises(ConfigError, match="more than 10"):
        parse_policies(WHOLE, path="p.yaml")


@given(st.text(max_size=80) | st.binary(max_size=80))
@settings(max_examples=300, deadline=None)
def test_anything_else_is_refused_by_name(text: str | bytes) -> None:
    with suppress(ConfigError):
        parse_policies(text, path="p.yaml")
