"""docs/reference/writer-expectations.md names modules and tests that exist, for each sentence of the specification."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "writer-expectations.md"
CORE = ROOT / "spark_jobs" / "hudi_core"
_ROW = re.compile(
    r"^\| (?P<step>\d\.\d) \| (?P<text>[^|]+) \| (?P<where>[^|]+) \|(?: \[test\]\[(?P<test>[\d.]+)\])? \|$", re.M
)
_TEST = re.compile(r'^\[(?P<step>[\d.]+)\]: (?P<path>\S+)\n  "(?P<name>\w+)"$', re.M)


def test_each_sentence_has_its_module_and_its_test_or_a_reason() -> None:
    text = PAGE.read_text()
    rows, tests = [*_ROW.finditer(text)], {match["step"]: match for match in _TEST.finditer(text)}
    assert len(rows) == text.count("\n| ") - 1 == 17
    assert {row["test"] for row in rows if row["test"]} == tests.keys()
    for row in rows:
        module = re.sub(r"^write/", "services/write/", row["where"].strip("`"))
        assert (CORE / module).is_file() if row["test"] == row["step"] else module.startswith("not done")
    for match in tests.values():
        assert f"\ndef {match['name']}(" in (PAGE.parent / match["path"]).read_text(), match["name"]
