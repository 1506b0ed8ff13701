"""What people see of an instant: sums that are those of its files, in a terminal of 80 columns."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from hudi_cli.inspect_commands import instant_details
from hudi_core.engine.protocol import Json
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl

Golden = Callable[[str, str], GoldenCase]
CASES = (
    ("6", "mor_compaction_requested"),
    ("6", "clean_requested_mor"),
    ("8", "savepoint_mor"),
    ("8", "clustering_requested_cow"),
    ("9", "failed_inflight_cow"),
    ("9", "mdt_all_mor"),
)


def shown(document: Json) -> list[str]:
    """The lines in a terminal of 80 columns."""
    out = io.StringIO()
    console = Console(file=out, width=80)
    for item in instant_details({"completed": None, **document}):
        console.print(item, highlight=False, soft_wrap=not isinstance(item, Table))
    return out.getvalue().splitlines()


@pytest.mark.parametrize(("version", "name"), CASES)
def test_every_instant_is_shown(golden: Golden, version: str, name: str) -> None:
    table = golden(version, name).table
    for item in hudictl("timeline", table, "--json").document["instants"]:
        document = hudictl("show", table, item["requested_time"], "--json").document
        lines = shown(document)
        assert lines[0].startswith(f"{document['action']} {item['requested_time']}: {document['state']}")
        assert [part for part in ("plan", "metadata", "savepoint") if document[part] is not None] == [
            line for line in lines if line in ("plan", "metadata", "savepoint")
        ]
        assert lines[-1] == "--json shows all of it"
        people = hudictl("show", table, item["requested_time"])
        assert (people.code, people.err) == (0, "")


def test_a_commit_is_summed_up_by_partition(golden: Golden) -> None:
    table = golden("8", "mdt_all_mor").table
    first = hudictl("timeline", table, "--json").document["instants"][0]["requested_time"]
    document = hudictl("show", table, first, "--json").document
    stats = document["metadata"]["partitionToWriteStats"]
    rows = [re.split(r" {2,}", line.strip()) for line in shown(document)]
    (heading,) = [row for row in rows if row[0] == "partition"]
    for partition, found in stats.items():
        (row,) = [row for row in rows if row[0] == partition]
        cells = dict(zip(heading, row, strict=True))
        assert cells["entries"] == str(len(found))
        assert cells["records"] == str(sum(item["numWrites"] for item in found))
        assert cells["size"] == decimal(sum(item["fileSizeInBytes"] for item in found))
    (total,) = [row for row in rows if row[0] == "all"]
    everything = [item for found in stats.values() for item in found]
    assert dict(zip(heading, total, strict=True))["records"] == str(sum(item["numWrites"] for item in everything))


def test_a_plan_is_summed_up_by_partition(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    (plan,) = hudictl("timeline", table, "--json", "--action", "compaction").document["instants"]
    document = hudictl("show", table, plan["requested_time"], "--json").document
    rows = [re.split(r" {2,}", line.strip()) for line in shown(document)]
    for partition in {item["partitionPath"] for item in document["plan"]["operations"]}:
        operations = [item for item in document["plan"]["operations"] if item["partitionPath"] == partition]
        logs = sum(len(item["deltaFilePaths"]) for item in operations)
        assert [partition, str(len(operations)), str(logs)] in rows


def test_what_is_long_is_counted() -> None:
    document = {"action": "commit", "instant": "1", "state": "completed", "plan": None, "savepoint": None}
    metadata = {"extraMetadata": {"schema": "x" * 1000, "note": "[bold]"}, "list": list(range(500)), "none": None}
    lines = shown({**document, "metadata": metadata})
    assert f"    schema: {'x' * 60}… (1,000 characters)" in lines
    assert "    note: [bold]" in lines
    assert "  list: 500 entries" in lines
    assert not [line for line in lines if "none" in line]


@pytest.mark.parametrize(
    "entries", [[{"slices": ["a"]}], [{"slices": "a"}], [{"slices": {"a": 1}}], [{"slices": [{"partitionPath": 1}]}]]
)
def test_what_is_no_group_of_a_plan_is_shown_as_it_is(entries: list[object]) -> None:
    document = {"action": "commit", "instant": "1", "state": "completed", "plan": None, "savepoint": None}
    lines = shown({**document, "metadata": {"oddity": entries}})
    assert f"  oddity: {json.dumps(entries)}" in lines
