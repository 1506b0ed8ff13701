"""docs/reference/writer-expectations.md names modules and tests that exist, for each sentence of the specification."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "writer-expectations.md"
_ROW = re.compile(r"^\| \d\.\d \| [^|]+ \| (?P<where>[^|]+) \|(?: `(?P<path>\S+)::(?P<name>\w+)`)? \|$", re.MULTILINE)


def test_each_sentence_has_its_module_and_its_test_or_a_reason() -> None:
    text = PAGE.read_text()
    rows = [*_ROW.finditer(text)]
    assert len(rows) == text.count("\n| ") - 1 == 17
    for row in rows:
        if row["path"] is None:
            assert row["where"].startswith("not done (")
        else:
            assert (ROOT / "spark_jobs" / "hudi_core" / row["where"].strip("`")).is_file()
            assert f"\ndef {row['name']}(" in (ROOT / "tests" / row["path"]).read_text(), row["name"]
