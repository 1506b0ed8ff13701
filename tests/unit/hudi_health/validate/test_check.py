"""What is kept of many differences."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hudi_health.validate.check import KEPT, Difference, Findings


def test_differences_are_counted_and_some_are_kept() -> None:
    findings = Findings()
    read: list[int] = []

    def many() -> Iterator[Difference]:
        for number in range(10 * KEPT):
            read.append(number)
            yield Difference("record_index", "p", "g", f"key {number}")

    findings.add_all("record_index", 10 * KEPT, many())
    findings.add_all("files", 0, ())
    findings.add("files", "listed, but it is not there", partition="p", file="f")
    for _ in range(3):
        findings.not_checked("expr_index_x", "because")
    report = findings.report(["record_index", "files"], 1, 2, 3)
    assert sum(findings.report((), 0, 0, 0).counts.values()) == 10 * KEPT + 1
    assert len(read) == KEPT
    assert report.counts == {"files": 1, "record_index": 10 * KEPT}
    assert len(report.differences) == KEPT + 1
    assert not report.is_clean
    document = json.loads(json.dumps(report.to_dict()))
    assert document["differences"][0] == {
        "kind": "files",
        "partition": "p",
        "file": "f",
        "what": "listed, but it is not there",
    }
    assert document["not_checked"] == [{"kind": "expr_index_x", "why": "because"}]
    assert (document["kinds"], document["partitions"], document["files"], document["rows"]) == (
        ["files", "record_index"],
        1,
        2,
        3,
    )


def test_nothing() -> None:
    report = Findings().report([], 0, 0, 0)
    assert report.is_clean
    assert report.to_dict()["differences"] == []
