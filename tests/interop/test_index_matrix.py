"""Which operations of which release of Hudi leave something out of an index: all of them on copies of one table with
every partition type. What is found is what we guard against (docs/decisions/0018), and nothing else. It is stored in
benchmarks/results/index_matrix.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.interop.index_matrix import run
from tests.interop.index_matrix_results import RESULTS, lacking, store, summary
from tests.interop.judged import KINDS, MOR
from tests.interop.real_hudi import RealHudi
from tests.torture.explore import commit

pytestmark = [pytest.mark.hudi, pytest.mark.conformance]

WRITERS = {
    "0.15.0": ("6",),
    "1.0.2": ("6", "8"),
    "1.1.1": ("8", "9"),
    "1.2.0": ("6", "8", "9"),
}
"""The table versions that a release writes."""

ROWS_UNTOLD = frozenset({"bulk_insert", "bulk_insert behind a compaction"})
"""Writes of rows of Spark, of which 1.1 and later tell a secondary index nothing."""
RANGES_NARROWED = frozenset(
    {
        "upsert behind a compaction",
        "insert behind a compaction",
        "bulk_insert behind a compaction",
        "delete behind a compaction",
        "compaction overtaken by an upsert",
    }
)
"""What makes 1.0 leave files out of the ranges of whole partitions."""


SQL = frozenset({"update", "delete from", "insert into"})
"""By statements, 1.0.2 begins partition_stats on version 6, with the files of the commit alone."""
CLUSTERED = frozenset({"clustering", "clustering by records"})
"""By 1.x on version 6, without statistics of two `_hoodie_` columns; their readers and ours read the files then."""


def expected(release: str, version: str, kind: str) -> Mapping[str, frozenset[str]]:
    """By index, the operations after which it lacks something."""
    if release == "0.15.0":
        return {"record_index": frozenset({"insert_overwrite by rows"})}
    if version == "6":
        return {"column_stats": CLUSTERED, "partition_stats": SQL if (release, kind) == ("1.0.2", MOR) else frozenset()}
    if release == "1.0.2" and kind == MOR:
        return {"partition_stats": RANGES_NARROWED, "expr_index_by_day": RANGES_NARROWED}
    if release in ("1.1.1", "1.2.0"):
        return {"secondary_index_by_name": ROWS_UNTOLD}
    return {}


@pytest.fixture(scope="module", params=WRITERS)
def hudi(request: pytest.FixtureRequest) -> Iterator[RealHudi]:
    worker = RealHudi(request.param)
    yield worker
    worker.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_what_each_operation_leaves_out(hudi: RealHudi, version: str, kind: str, tmp_path: Path) -> None:
    if version not in WRITERS[hudi.version]:
        return
    cells = list(run(hudi, tmp_path, version, kind, []))
    store(RESULTS, summary(hudi.version, version, kind, cells, commit()))
    done = [cell.operation for cell in cells if not cell.refused]
    assert len(done) > (20 if kind == MOR else 15), [cell.refused for cell in cells if cell.refused]
    due = {index: operations & set(done) for index, operations in expected(hudi.version, version, kind).items()}
    assert lacking(cells) == {index: operations for index, operations in due.items() if operations}
