"""A deletion with a lesser ordering value than the row's: no merge applies it, and real Hudi deletes the row's place in
the record index. A query of ours finds the row (docs/decisions/0018).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.golden.make_stale_indexes import KEYS
from tests.interop.judged import JUDGES, MOR, Judged, first_rows
from tests.interop.real_hudi import RealHudi
from tests.support.stale_indexes import StaleTable
from tests.support.tiers import tiered

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
