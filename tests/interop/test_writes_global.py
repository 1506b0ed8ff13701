"""The same writes of ours and of real Hudi by an index of the whole table: rows name other partitions than their keys
have.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.model.names import PARTITION_PATH
from tests.interop.golden_judge import Judge
from tests.interop.twice_written import Twice
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.writes import changed, like, own_columns

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

Golden = Callable[[str, str], GoldenCase]
MOVES = "hoodie.{}.index.update.partition.path"
INDEXES = {
    "bloom": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "bloom, fixed": {"hoodie.index.type": "GLOBAL_BLOOM", MOVES.format("bloom"): "false"},
    "simple": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "record": {"hoodie.index.type": "RECORD_INDEX"},
    "record, moves": {"hoodie.index.type": "RECORD_INDEX", MOVES.format("record"): "true"},
}
INDEXED = ("mdt_all_cow", "mdt_all_mor")
TABLES = ("cow_basic", "mor_basic", "merge_mode_event_time_cow", *INDEXED)


DOUBLED = {("9", name, "bloom, fixed") for name in ("mdt_all_mor", "mor_basic")}
"""1.2.0 leaves the old rows beside those that changed in their old partition."""
ABSENT = {("6", "merge_mode_event_time_cow"), ("8", "mor_basic")}
"""No golden table, and one that 1.0.2 fails to read."""


def cases() -> list[tuple[str, str, str]]:
    """By a record index only where there is one."""
    tables = [(version, name) for version in ("6", "8", "9") for name in TABLES if (version, name) not in ABSENT]
    return [
        (*table, index)
        for table in tables
        for index in INDEXES
        if table[1] in INDEXED or not index.startswith("record")
    ]


def other_day(day: str) -> str:
    return {"2024-01-01": "2024-01-02", "2024-01-02": "2031-01-01"}.get(day, "2024-01-01")


def given_rows(rows: pa.Table) -> pa.Table:
    """Rows of later and of equal ordering values that name another partition or their own, and new ones."""
    day = {"dt": other_day}
    return pa.concat_tables(
        [
            changed(rows.slice(0, 5), **day, ts=lambda ts: ts + 9, name="moved"),
            changed(rows.slice(5, 3), ts=lambda ts: ts + 9, name="stays"),
            changed(rows.slice(11, 2), **day, name="equal"),
            like(rows, *({"id": f"new {at}", "dt": dt} for at, dt in enumerate(("2024-01-01", "2031-01-01")))),
        ]
    )


@pytest.mark.conformance
@pytest.mark.parametrize(("version", "name", "index"), cases())
def test_rows_are_where_real_hudi_puts_them(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str, index: str
) -> None:
    twice = Twice(Judge.of(golden, request, version, name))
    rows, before = own_columns(read_rows(twice.ours)).sort_by("id"), twice.judge.theirs
    for operation, given in (("upsert", given_rows(rows)), ("delete", changed(rows.slice(2, 7), dt=other_day))):
        twice.write(operation, given, INDEXES[index])
        if (version, name, index) not in DOUBLED:
            twice.check(operation, before)
    assert_metadata_true(twice.ours)
    # A row that comes too late and does not move: real Hudi writes the old one again, with another commit time.
    late = changed(rows.slice(13, 3), dt=other_day, ts=lambda ts: ts - 999_999, name="late")
    twice.write("upsert", late, INDEXES[index])
    ours, theirs = (twice.judge.snapshot(table, metadata=True) for table in (twice.ours, twice.theirs))
    if (version, name, index) in DOUBLED:
        assert theirs.num_rows > ours.num_rows == len(pc.unique(ours["_hoodie_record_key"]))
        return
    assert_same_rows(*(rows.select([PARTITION_PATH, *own_columns(rows).column_names]) for rows in (ours, theirs)))
    assert_metadata_true(twice.ours)
