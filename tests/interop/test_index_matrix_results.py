"""What the index matrix stores; no JVM."""

from __future__ import annotations

import json
from pathlib import Path

from tests.interop.index_matrix import FEWER, Cell
from tests.interop.index_matrix_results import RESULTS, lacking, store, summary

CELLS = [
    Cell("nothing"),
    Cell("upsert", ("partition_stats 2024-01-01: lacks 5", "record_index : has k1, but no row has it")),
    Cell("clean", refused="no"),
    Cell(f"clean{FEWER}"),
    Cell("restore", refused="no"),
    Cell(f"restore{FEWER}", refused="no"),
]


def test_the_entry_of_a_case() -> None:
    entry = summary("1.0.2", "8", "MERGE_ON_READ", CELLS, "abc")
    assert entry.pop("machine")["cores"] > 0
    assert entry == {
        "hudi": "1.0.2",
        "table_version": "8",
        "table_type": "MERGE_ON_READ",
        "commit": "abc",
        "operations": 2,
        "refused": ["clean", "restore"],
        "lacks": {"partition_stats": ["upsert"]},
        "records_without_rows": {"record_index": ["upsert"]},
    }
    assert lacking(CELLS) == {"partition_stats": frozenset({"upsert"})}


def test_a_case_is_stored_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "results" / "index_matrix.json"
    for release in ("1.2.0", "1.0.2"):
        store(path, summary(release, "8", "MERGE_ON_READ", CELLS, "old"))
    store(path, summary("1.2.0", "8", "MERGE_ON_READ", CELLS[:1], "new"))
    found = json.loads(path.read_text())
    assert [(item["hudi"], item["commit"], item["operations"]) for item in found] == [
        ("1.0.2", "old", 2),
        ("1.2.0", "new", 0),
    ]


def test_the_stored_results_take_another_case(tmp_path: Path) -> None:
    path = tmp_path / RESULTS.name
    path.write_bytes(RESULTS.read_bytes())
    cases = len(json.loads(path.read_text()))
    store(path, summary("1.0.2", "8", "MERGE_ON_READ", CELLS, "new"))
    found = json.loads(path.read_text())
    assert len(found) == cases
    assert [item["commit"] for item in found if item.get("commit") == "new"] == ["new"]
