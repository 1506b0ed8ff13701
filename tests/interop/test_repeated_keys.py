"""Keys that a base file holds several times, on tables of versions 8 and 9: real Hudi's writers name the rows that log
records are for by their positions. It and we read the same rows, whoever serves the table in between.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.codec.log.blocks import LogBlock
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from tests.interop.changes import write_parquet
from tests.interop.judged import JUDGES, MOR, Judged
from tests.interop.real_hudi import RealHudi
from tests.support.log_compactions import FROM_ONE
from tests.support.overwrites import put_source
from tests.support.rows import read_parquet
from tests.support.writes import write

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

Rows = list[tuple[str, str]]
BASE = [("a", 1), ("a", 2), ("b", 1), ("b", 1), ("c", 1), ("d", 1), ("d", 2), ("e", 1), ("e", 1)]
"""Key and ordering value of each row."""
DUE = [("a", "new"), ("a", "new"), ("b", "row 2"), ("b", "row 3"), ("c", "row 4"), ("e", "new"), ("e", "new")]
"""Of an update of a and e, and a delete of d."""
EACH = {"hoodie.compact.inline.max.delta.commits": "1"}
WHOLE = {"airflow_hudi.verify": "full"}
ONE_GROUP = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}


def incoming(*keys: str, ts: int = 5, name: str = "new") -> pa.Table:
    return pa.table({"id": list(keys), "dt": ["p"] * len(keys), "ts": [ts] * len(keys), "name": [name] * len(keys)})


def pairs(rows: pa.Table) -> Rows:
    return sorted(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True))


def ours(table: Judged, options: Mapping[str, str] | None = None, **query: Any) -> pa.Table:
    found = HudiTable.open(str(table.base), options=options).read(**query)
    return pa.Table.from_batches(found.batches, found.schema)


def theirs(table: Judged, options: Mapping[str, str]) -> pa.Table:
    output = str(table.base.parent / "answer.parquet")
    table.hudi.ask("read", base=str(table.base), output=output, metadata=False, options=dict(options))
    return read_parquet(output)


def in_range(begin: str, end: str, **more: str) -> dict[str, str]:
    """The options of Hudi's incremental query."""
    prefix = "hoodie.datasource.read."
    return {
        "hoodie.datasource.query.type": "incremental",
        f"{prefix}begin.instanttime": begin,
        f"{prefix}end.instanttime": end,
        **more,
    }


def same_rows(table: Judged) -> Rows:
    """What real Hudi and we read, with the metadata table and without."""
    found = pairs(ours(table))
    for metadata in (True, False):
        assert pairs(table.hudi.snapshot(table.base, metadata=metadata)) == found
    assert table.hudi.ask("validate_metadata", base=str(table.base))["wrong"] == []
    return found


def run_by_real(table: Judged, name: str, options: Mapping[str, str] | None = None, **call: Any) -> Any:
    chosen = {**table.options, **(options or {})}
    return table.hudi.ask("service", base=str(table.base), name=name, options=chosen, **call)


def positions(table: Judged) -> list[bool]:
    """Whether each log block names positions."""
    storage = LocalStorage(table.base)
    files = [file for item in HudiTable.open(str(table.base)).files() for file in item.log_files]
    blocks = [block for block in log_blocks(storage, files) if isinstance(block, LogBlock)]
    return [block.record_positions is not None for block in blocks]


@pytest.fixture(scope="module", params=["8", "9"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """A table of real Hudi, with change data: the base file, the update, the delete."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[request.param])
    rows = pa.table(
        {
            "id": [key for key, _ in BASE],
            "dt": ["p"] * len(BASE),
            "ts": [ts for _, ts in BASE],
            "name": [f"row {number}" for number in range(len(BASE))],
        }
    )
    options = {"hoodie.table.cdc.enabled": "true"}
    table = Judged.create(hudi, tmp_path_factory.mktemp("source") / "table", MOR, request.param, options, rows)
    table.write(incoming("a", "e"))
    parquet = write_parquet(incoming("d"), table.base.parent, "delete")
    hudi.ask("write", base=str(table.base), operation="delete", parquet=parquet, options=table.options)
    assert positions(table) == [True, True]
    return table


@pytest.fixture
def copy(source: Judged, tmp_path: Path) -> Callable[[str], Judged]:
    return lambda name: source.copy(tmp_path / name)


def test_each_row_at_a_position_is_merged(source: Judged, copy: Callable[[str], Judged]) -> None:
    """By queries, and behind our compaction, clustering and log compaction, each with a writer of Hudi on top."""
    assert same_rows(source) == DUE
    off = {"hoodie.merge.use.record.positions": "false"}
    assert pairs(ours(source, off)) == pairs(theirs(source, off)) != DUE
    for service, options in (
        ("compaction", EACH),
        ("clustering", ONE_GROUP),
        ("log_compaction", FROM_ONE),
    ):
        table = copy(service)
        table.run(service=service, schedule=True, options={**options, **WHOLE})
        assert same_rows(table) == DUE, service
        assert positions(table) == [True] * (4 if service == "log_compaction" else 0)
        table.write(incoming("b", name="late"))
        expected = [(key, "late" if key == "b" else name) for key, name in DUE]
        assert same_rows(table) == expected
        table.compact()
        assert same_rows(table) == expected


def test_our_writes_change_the_rows_that_hudis_do(copy: Callable[[str], Judged], tmp_path: Path) -> None:
    """Each row with the key, by its position."""
    ours, theirs = copy("ours"), copy("theirs")
    theirs.write(incoming("b", name="late"))
    write(ours.base, "upsert", put_source(incoming("b", name="late"), tmp_path))
    assert positions(ours) == positions(theirs) == [True] * 3
    assert same_rows(ours) == same_rows(theirs) == [(key, "late" if key == "b" else name) for key, name in DUE]
    gone = write(ours.base, "delete", put_source(incoming("e"), tmp_path, name="gone"))
    assert (gone.deleted, positions(ours)) == (2, [True] * 4)
    due = [(key, "late" if key == "b" else name) for key, name in DUE if key != "e"]
    assert same_rows(ours) == due
    ours.compact()
    assert same_rows(ours) == due


def test_where_hudi_goes_over_to_keys_so_do_we(copy: Callable[[str], Judged]) -> None:
    """A writer without positions, a batch with two rows of a key, Hudi's own log compaction, and an older base file."""
    without = copy("without")
    without.write(incoming("b", name="late"), {"hoodie.write.record.positions": "false"})
    twice = copy("twice")
    twice.write(incoming("b", "b", name="late"), {"hoodie.combine.before.upsert": "false"})
    merged = copy("merged")
    plan = run_by_real(merged, "schedule_log_compaction", FROM_ONE)
    run_by_real(merged, "log_compact", instant=plan)
    for table in (without, twice, merged):
        assert not all(positions(table))
        found = same_rows(table)
        assert {("d", "row 6"), ("a", "row 1")} <= set(found), "the second row of a key is as it was"
        by_real = table.copy(table.base.parent / f"{table.base.name}-theirs")
        by_real.compact()
        table.run(service="compaction", schedule=True, options={**EACH, **WHOLE})
        assert same_rows(table) == same_rows(by_real) == found
    pending = copy("pending")
    pending.schedule_compaction()
    pending.write(incoming("b", name="late"))
    assert same_rows(pending) == [(key, "late" if key == "b" else name) for key, name in DUE]
    by_real = pending.copy(pending.base.parent / "pending-theirs")
    (plan,) = by_real.times(Action.COMPACTION, completed=False)
    by_real.hudi.ask("compact", base=str(by_real.base), instant=plan, options=by_real.options)
    pending.run(service="compaction")
    assert same_rows(pending) == same_rows(by_real) != DUE


def test_ranges_and_change_data(source: Judged) -> None:
    """Hudi reads a range without the base file by keys, and so do we; of change data it has one entry a key."""
    commits = [item.completed_at for item in source.instants(Action.DELTA_COMMIT)]
    for first, last in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        begin, end = str(int(commits[first]) - 1), commits[last]
        asked = {"begin": begin, "end": end}
        answer = theirs(source, in_range(begin, end))
        assert pairs(ours(source, query="incremental", **asked)) == pairs(answer), (first, last)
        changes = ours(source, query="cdc", **asked)
        entries = theirs(source, in_range(begin, end, **{"hoodie.datasource.query.incremental.format": "cdc"}))
        assert not of(entries) - of(changes), (first, last)


def of(changes: pa.Table) -> Counter[tuple[str, ...]]:
    """Operations with the names of the rows before and after."""

    def name(image: str | None) -> str:
        value = None if image is None else json.loads(image)
        return "" if value is None else f"{value['id']} {value['name']}"

    return Counter((row["op"], name(row["before"]), name(row["after"])) for row in changes.to_pylist())
