"""Policies from YAML: what is read, in which line a mistake is, and which table has which."""

from __future__ import annotations

import json
import logging
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.config import policy_file
from hudi_core.config.policy_file import TablePolicies, parse_policies
from hudi_core.errors import ConfigError
from hudi_core.request.policy import Policy, QuietHours, ServicePolicy, services_named

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
        ("tables:", "table:", 14, "'table' is not known here"),
        ("log_ratio: 0.5", "age: 0s", 5, "age of compaction: '0s' is not above 0"),
        ("log_ratio: 0.5", "bytes: 0", 5, "bytes of compaction: '0' is not above 0"),
        ("hoodie.clean.commits.retained: 20", "hoodie.clean.commits.retained: abc", 6, "not a whole number"),
        ("minutes: 60", "minutes: 1000001", 7, "'1000001' is more than 1000000"),
        ("bytes: 50GiB", "bytes: 0", 7, "airflow_hudi.plan.max.bytes is '0': not between 1 and 9007199254740992"),
        ("bytes: 50GiB", "bytes: 100000TB", 7, "airflow_hudi.plan.max.bytes is '100000000000000000': not between"),
        ("08:00-18:00", "08:00-08:00", 8, "end where they begin"),
        ("hoodie.metadata.enable: true", "airflow_hudi.plan.max.byte: 5", 10, "airflow_hudi.plan.max.byte"),
        ("s3://lake/returns/", '""', 16, "the address of the table is empty"),
        ("s3://lake/returns/", "./sales//orders", 16, "the table ./sales//orders is named twice"),
    ],
)
def test_a_mistake_has_its_line(old: str, new: str, line: int, message: str) -> None:
    assert old in WHOLE
    with pytest.raises(ConfigError) as error:
        parse_policies(WHOLE.replace(old, new, 1), path="p.yaml")
    assert error.value.path == "p.yaml"
    assert error.value.message.startswith(f"line {line}: ")
    assert message in error.value.message


BLOCKS = """\
policies:
  default:
    services:
      rollback:
      compaction:
        commits: 5
        log_ratio: 0.5
        options:
          hoodie.compaction.target.io:
            100
          hoodie.memory.compaction.max.size: 1000
    budget:
      minutes: 60
    alerts:
      pending_age:
        2h
tables:
  - table: a
    policy: default
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("commits: 5", "commits: many", 6, "commits of compaction: 'many'"),
        ("log_ratio: 0.5", "log_ratio: lots", 7, "log_ratio of compaction: 'lots'"),
        ("log_ratio: 0.5", "ratio: 0.5", 7, "compaction has no condition 'ratio'"),
        ("compaction:", "compactions:", 5, "the service compactions"),
        ("budget:", "budgets:", 12, "'budgets' is not known here"),
        ("budget:\n      minutes: 60", "budget:\n      - minutes", 12, "names with values are expected"),
        ("minutes: 60", "hours: 60", 13, "'hours' is not known here"),
        ("pending_age:", "pending:", 15, "'pending' is not known here"),
        ("hoodie.memory.compaction.max.size: 1000", "fs.s3a.secret.key: x", 11, "fs.s3a.secret.key"),
        ("hoodie.memory.compaction.max.size: 1000", "airflow_hudi.none: x", 11, "unknown options: airflow_hudi.none"),
        ("            100", "            many", 9, "hoodie.compaction.target.io is 'many'"),
        ("policies:", "policy:", 1, "'policy' is not known here"),
        ("policy: default", "policy: nope", 19, "there is no policy 'nope'"),
        ("table: a", "tables: a", 18, "'tables' is not known here"),
        ("- table: a", "- table: s3://me:pw@lake/a", 18, "the address of a table"),
    ],
)
def test_a_mistake_in_blocks_has_the_line_of_its_name(old: str, new: str, line: int, message: str) -> None:
    assert parse_policies(BLOCKS, path="p").tables.keys() == {"a"}
    assert old in BLOCKS
    with pytest.raises(ConfigError) as error:
        parse_policies(BLOCKS.replace(old, new, 1), path="p.yaml")
    assert message in error.value.message
    assert error.value.message.startswith(f"line {line}: ")


def test_an_option_that_has_no_effect_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        parse_policies("options: {hoodie.clean.commits.retaind: 3}", path="p.yaml")
    (record,) = caplog.records
    assert "the option hoodie.clean.commits.retaind does not exist" in record.message


def test_which_table_has_which() -> None:
    one, two = services_named(["clean"]), services_named(["archive"])
    found = TablePolicies({"default": one, "other": two}, {"s3://lake/orders": two})
    assert [found.of("s3://lake/orders/"), found.of("/x")] == [two, one]
    assert TablePolicies({"only": two}).of("/x") == two
    with pytest.raises(ConfigError, match="no policy is for /x"):
        TablePolicies({"a": one, "b": two}).of("/x")


def test_entries_below_a_base_path_are_found_by_addresses() -> None:
    one, two, three = (services_named([name]) for name in ("clean", "archive", "compaction"))
    found = TablePolicies({"default": one}, {"sales/returns": two, "returns": three})
    assert found.of("s3://lake/sales/returns/") == found.of("sales/returns") == two
    assert found.of("s3://lake/other/returns") == found.of("returns") == three
    assert found.of("s3://lake/noreturns") == one


@pytest.mark.parametrize(
    ("entry", "table", "same"),
    [
        ("s3://lake/orders", "s3a://lake/orders", True),
        ("S3N://lake//orders/", "s3://lake/orders", True),
        ("s3://lake/orders", "s3://lake/Orders", False),
        ("s3://lake/orders", "gs://lake/orders", False),
        ("/data/orders", "/data//orders/", True),
        ("/data/orders", "//data/./orders", True),
        ("/data/orders", "file:///data/orders", True),
        ("file:/data/my%20orders", "/data/my orders", True),
        ("./sales/orders", "/data/sales/orders", True),
        ("/lake/orders", "s3://lake/orders", False),
        ("/orders", "/data/orders", False),
    ],
)
def test_two_names_of_one_table(entry: str, table: str, same: bool) -> None:
    one, two = services_named(["clean"]), services_named(["archive"])
    assert TablePolicies({"default": one}, {entry: two}).of(table) == (two if same else one)


def test_a_file_without_a_policy_called_default() -> None:
    """The only one is for all tables; there is no other behind several."""
    only = parse_policies("policies: {nightly: {services: {clean: }}}\ntables: [a]\n", path="p")
    assert only.tables["a"] == only.of("/any") == only.policies["nightly"]
    assert only.policies.keys() == {"nightly"}
    text = "policies: {one: {pool: x}, two: }\ntables:\n  - {table: b, policy: two}\n"
    several = parse_policies(text, path="p")
    assert several.of("b") == Policy()
    with pytest.raises(ConfigError, match="no policy is for /any"):
        several.of("/any")
    with pytest.raises(ConfigError, match="line 4: no policy is named for the table a, and none is called default"):
        parse_policies(f"{text}  - a\n", path="p")
    for empty in ("policies:\ntables: [a]\n", "tables: [a]\n"):
        assert parse_policies(empty, path="p").of("/any") == Policy()


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


@pytest.mark.parametrize("text", ['"\\U00110000"', '"\\UFFFFFFFF"', f"%YAML 1.{'9' * 5000}\n--- a"])
def test_characters_and_numbers_that_are_none_are_named(text: str) -> None:
    with pytest.raises(ConfigError, match="is no YAML"):
        parse_policies(text, path="policies.yaml")
