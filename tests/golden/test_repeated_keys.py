"""A base file that holds keys several times, and log files by record position on it: each row that real Hudi 1.2.0
changed or deleted is, by every way to read, and behind every service.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
from tests.support.log_compactions import FROM_ONE
from tests.support.tiers import tiered

ROWS = [("a", "a5"), ("a", "a5"), ("b", "b1"), ("b", "b2"), ("c", "c1")]
"""What real Hudi reads: a was a1 and a2, and d was there twice."""
BY_KEY = {"hoodie.merge.use.record.positions": "false"}
ROWS_BY_KEY = [("a", "a2"), *ROWS[1:], ("d", "d2")]
"""What it reads then: the first row of a key alone is merged."""


def rows(folder: Path, options: dict[str, str] | None = None, **requested: Any) -> list[tuple[str, str]]:
    found = HudiTable.open(str(folder), options=options).read(**requested)
    table = pa.Table.from_batches(found.batches, found.schema)
    return sorted(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))


def run(folder: Path, service: str, options: dict[str, str]) -> None:
    chosen = {"airflow_hudi.verify": "full", **options}
    request = RunRequest(str(folder), service=service, schedule=True, options=chosen, owner="the tests")
    done = HudiTable.open(str(folder)).run(request, LocalEngine(1))
    assert (done.exit_code, len(done.instants)) == (0, 1), done


@pytest.fixture
def table(reported: Callable[[str], Path]) -> Path:
    return reported("duplicate_keys_v9")


def test_every_way_to_read(table: Path) -> None:
    for metadata in ("on", "off"):
        assert rows(table, metadata=metadata) == ROWS
    assert rows(table, BY_KEY) == ROWS_BY_KEY
    predicate = HudiTable.open(str(table)).read(where="v = 'a5'")
    assert sum(batch.num_rows for batch in predicate.batches) == 2
    first, second, third = (item.completed_at for item in HudiTable.open(str(table)).timeline().commits())
    assert rows(table, query="incremental", begin="000") == ROWS
    assert rows(table, query="incremental", begin="000", end=second) == [*ROWS, ("d", "d1"), ("d", "d2")]
    # Its slice is the log file alone, which is merged by keys; so Hudi 1.0.2 does, which we let read whole file groups.
    properties = table / ".hoodie" / "hoodie.properties"
    for version in ("9", "8"):
        text = properties.read_text().replace("table.version=9", f"table.version={version}")
        properties.write_text(text + "hoodie.table.precombine.field=ts\n")
        assert rows(table) == ROWS
        assert rows(table, query="incremental", begin=first, end=third) == [("a", "a5")]


@pytest.mark.parametrize("options", [{}, BY_KEY])
def test_change_data(table: Path, options: dict[str, str]) -> None:
    """The rows of each commit, changed as the change data says, are those of the next; Hudi has a change per key."""
    opened = HudiTable.open(str(table), options=options)
    state: Counter[str] = Counter()
    ops = []
    for commit in opened.timeline().commits():
        for batch in opened.read("cdc", begin=str(int(str(commit.completed_at)) - 1), end=commit.completed_at).batches:
            for change in batch.to_pylist():
                ops.append(change["op"])
                for image, count in (("before", -1), ("after", 1)):
                    if change[image] is not None:
                        state[json.loads(change[image])["v"]] += count
                        assert state[json.loads(change[image])["v"]] >= 0
        assert sorted(state.elements()) == sorted(
            value for _, value in rows(table, options, as_of=commit.requested_time)
        )
    assert Counter(ops) == ({"i": 7, "u": 2, "d": 2} if not options else {"i": 7, "u": 1, "d": 1})


@pytest.mark.parametrize("copied", tiered(["true", "false"], ["true"]))
def test_compaction(table: Path, copied: str) -> None:
    options = {
        "hoodie.compact.inline.max.delta.commits": "1",
        "airflow_hudi.parquet.row_group.rows": "2",
        "airflow_hudi.compaction.copy_row_groups": copied,
    }
    run(table, "compaction", options)
    assert rows(table) == rows(table, query="read_optimized") == ROWS


def test_compaction_by_keys(table: Path) -> None:
    run(table, "compaction", {"hoodie.compact.inline.max.delta.commits": "1", **BY_KEY})
    assert rows(table) == ROWS_BY_KEY


@pytest.mark.parametrize(
    "columns",
    tiered(
        [
            pytest.param({}, id="joined"),
            pytest.param({"hoodie.clustering.plan.strategy.sort.columns": "v"}, id="sorted"),
        ],
        ["joined"],
    ),
)
def test_clustering(table: Path, columns: dict[str, str]) -> None:
    options = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true", **columns}
    run(table, "clustering", options)
    assert rows(table) == rows(table, query="read_optimized") == ROWS


def test_log_compaction(table: Path) -> None:
    """Its block keeps the positions, where Hudi's loses them, and with them the rows; a compaction follows."""
    run(table, "log_compaction", FROM_ONE)
    assert rows(table) == ROWS
    assert rows(table, BY_KEY) == ROWS_BY_KEY
    run(table, "compaction", {"hoodie.compact.inline.max.delta.commits": "1"})
    assert rows(table) == ROWS
