"""A deletion with a lesser ordering value than the row's: no merge applies it, and real Hudi deletes the row's place in
the record index. A query of ours finds the row (docs/decisions/0018).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.golden.make_stale_indexes import KEYS
from tests.interop.judged import COW, JUDGES, MOR, Judged, first_rows
from tests.interop.real_hudi import RealHudi
from tests.support.overwrites import put_source
from tests.support.rows import assert_same_rows
from tests.support.stale_indexes import StaleTable
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.support.writes import write

pytestmark = [pytest.mark.hudi, pytest.mark.slow]
DELETED = "_hoodie_is_deleted"


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_the_row_of_a_late_deletion_is_found(request: pytest.FixtureRequest, tmp_path: Path, version: str) -> None:
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    rows = first_rows(20)
    rows = rows.append_column(DELETED, pa.array([False] * rows.num_rows))
    table = Judged.create(hudi, tmp_path / "table", MOR, version, {**KEYS, "hoodie.index.type": "SIMPLE"}, rows)
    late = rows.filter(pc.equal(rows["id"], "key-0003"))
    late = late.set_column(late.column_names.index("ts"), "ts", pa.array([1], pa.int64()))
    table.write(late.set_column(late.column_names.index(DELETED), DELETED, pa.array([True])))
    known = StaleTable(table.base, hudi.snapshot(table.base, metadata=False))
    assert "key-0003" in known.rows["id"].to_pylist(), "the row has a greater ordering value"
    assert known.metadata().record_locations(["key-0003"]) == {}
    assert known.found("id = 'key-0003'") == ["key-0003"]
    assert known.found("id = 'key-0004'") == ["key-0004"]


@pytest.mark.conformance
@pytest.mark.parametrize("payload", ["AWSDms", "OverwriteNonDefaultsWithLatest", "PartialUpdate", "EventTime"])
def test_a_write_of_1_0_asks_the_payload_class_about_a_late_deletion(
    hudi_1_0: RealHudi, tmp_path: Path, payload: str
) -> None:
    """Its reader does not: there a deletion needs the greater ordering value."""
    rows = first_rows(4).append_column("Op", pa.array(["I"] * 4)).append_column(DELETED, pa.array([False] * 4))
    options = {"hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}AvroPayload"}
    theirs = Judged.create(hudi_1_0, tmp_path / "theirs" / "table", COW, "8", options, rows)
    ours = theirs.copy(tmp_path / "ours" / "table")
    late = rows.slice(0, 3).set_column(rows.column_names.index("ts"), "ts", pa.array([-1, -1, 1 << 40], pa.int64()))
    ops = ["D", "U", "D"] if payload == "AWSDms" else ["U"] * 3
    late = late.set_column(late.column_names.index("Op"), "Op", pa.array(ops))
    if payload != "AWSDms":
        late = late.set_column(late.column_names.index(DELETED), DELETED, pa.array([True, False, True]))
    theirs.write(late)
    write(ours.base, "upsert", put_source(late, tmp_path))
    our_rows = read_rows(ours.base).select(rows.column_names)
    assert our_rows.num_rows == 2
    assert_same_rows(our_rows, hudi_1_0.snapshot(theirs.base, metadata=True).select(rows.column_names))


@pytest.mark.conformance
@pytest.mark.parametrize("kind", [COW, MOR])
def test_a_row_of_aws_dms_moves_whatever_its_ordering_value(hudi_1_0: RealHudi, tmp_path: Path, kind: str) -> None:
    rows = first_rows(4).append_column("Op", pa.array(["I"] * 4))
    options = {
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.AWSDmsAvroPayload",
        "hoodie.index.type": "GLOBAL_SIMPLE",
    }
    theirs = Judged.create(hudi_1_0, tmp_path / "theirs" / "table", kind, "8", options, rows)
    ours = theirs.copy(tmp_path / "ours" / "table")
    late = rows.slice(0, 1).set_column(rows.column_names.index("ts"), "ts", pa.array([-1], pa.int64()))
    late = late.set_column(late.column_names.index("dt"), "dt", pa.array(["2031-01-01"]))
    theirs.write(late)
    write(ours.base, "upsert", put_source(late, tmp_path), {"hoodie.index.type": "GLOBAL_SIMPLE"})
    our_rows = read_rows(ours.base).select(rows.column_names)
    assert "2031-01-01" in our_rows.column("dt").to_pylist()
    assert_same_rows(our_rows, hudi_1_0.snapshot(theirs.base, metadata=True).select(rows.column_names))
