"""Real Hudi judges metadata tables of all partition types that we created from nothing, caught up, compacted, cleaned
and archived.

It answers by our indexes what it answers by scanning all files, writes on by them, and our validation finds nothing
afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pyarrow.compute as pc
import pytest

from tests.interop.changes import user_columns
from tests.interop.fully_indexed_table import BY_RECORD_INDEX, COMPACT_AT_ONCE, EXPRESSION, OURS, FullyIndexedTable
from tests.interop.judged import COW, JUDGES, KEEP_ONE, KINDS, MOR, OTHERS
from tests.interop.real_hudi import RealHudi
from tests.support.damaged_tables import DamagedTable

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

LABELS = {**JUDGES, **OTHERS}
ARCHIVE = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
Sources = Callable[[str, str], FullyIndexedTable]


@pytest.fixture(scope="module")
def sources(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """Tables that real Hudi wrote without a metadata table, and for which we made one: each once, to be copied."""
    made: dict[tuple[str, str], FullyIndexedTable] = {}

    def source(label: str, kind: str) -> FullyIndexedTable:
        if (label, kind) not in made:
            hudi: RealHudi = request.getfixturevalue(LABELS[label])
            table = FullyIndexedTable.without_metadata(
                hudi, tmp_path_factory.mktemp("source") / "table", kind, label[0]
            )
            table.begin()
            made[label, kind] = table
        return made[label, kind].copy(tmp_path_factory.mktemp("judged") / "table")

    return source


def created(table: FullyIndexedTable) -> None:
    """As it was initialized."""


def compacted(table: FullyIndexedTable) -> None:
    """Our data compaction updates every partition type; a table without logs has a clean of ours instead."""
    if table.is_mor:
        table.compact_ours()
    else:
        assert table.run(service="clean", schedule=True, options={**OURS, **KEEP_ONE}).instants


def caught_up(table: FullyIndexedTable) -> None:
    """A write that is missing from the metadata table."""
    table.catch_up()


def dropped(table: FullyIndexedTable) -> None:
    """Without the index of an expression, beside which real Hudi cannot clean; of version 6 a whole metadata table that
    was dropped and created again.
    """
    if EXPRESSION in table.config.metadata_partitions:
        table.drop(EXPRESSION)
    else:
        table.ours("metadata_drop")
        table.begin()


def kept_up(table: FullyIndexedTable) -> None:
    """Compactions, cleans and the archival of the metadata table, among writes of real Hudi."""
    cleaned = archived = 0
    for _ in range(3):
        for _ in range(3):  # a clean waits for three instants after a compaction
            table.upsert(3, fresh=False, options=BY_RECORD_INDEX)
        table.run(service="archive", options={**OURS, **ARCHIVE})
        done = table.ours("metadata_update", {**COMPACT_AT_ONCE, **ARCHIVE})
        assert done["compacted"]["files"] > 0, done
        cleaned += done["cleaned"]["files"]
        archived += done["archived"]
    assert cleaned > 0
    assert archived > 0


def tagged(table: FullyIndexedTable) -> None:
    """It is by our record index that real Hudi finds rows: a key that the index does not map is a new one to it, which
    an upsert adds again.
    """
    keys = table.rows.sort_by("id")["id"].slice(9, 3).combine_chunks()
    unknown = keys[1].as_py()
    DamagedTable(table.base).write({"record_index": [(unknown, None)]})
    table.write(table.rows.filter(pc.is_in(table.rows["id"], value_set=keys)), BY_RECORD_INDEX)
    after = user_columns(table.hudi.snapshot(table.base, metadata=False))["id"].to_pylist()
    assert [key for key in after if after.count(key) > 1] == [unknown] * 2
    assert len(after) == table.rows.num_rows + 1


STEPS = (created, compacted, caught_up, dropped, kept_up)
SEPARATELY = [*product(LABELS, KINDS, STEPS)]


@pytest.mark.parametrize("label", JUDGES)
def test_real_hudi_goes_on_with_a_metadata_table_that_we_made_and_kept(sources: Sources, label: str) -> None:
    table = sources(label, MOR)
    compacted(table)
    caught_up(table)
    table.judge()
    table.keep_up()
    table.go_on()
    tagged(table)


@pytest.mark.parametrize(
    ("label", "kind", "step"), SEPARATELY, ids=[f"{label} {kind} {step.__name__}" for label, kind, step in SEPARATELY]
)
def test_real_hudi_goes_on_after_each_step(
    sources: Sources, label: str, kind: str, step: Callable[[FullyIndexedTable], None]
) -> None:
    table = sources(label, kind)
    step(table)
    table.judge()
    table.go_on()
    table.judge()


@pytest.mark.parametrize("label", LABELS)
def test_it_is_our_record_index_by_which_real_hudi_tags(sources: Sources, label: str) -> None:
    tagged(sources(label, COW))


@pytest.mark.parametrize("label", ["8", "9"])
def test_what_a_real_clean_leaves_beside_an_index_of_an_expression_is_repaired(sources: Sources, label: str) -> None:
    """See FullyIndexedTable.clean_once."""
    table = sources(label, MOR)
    table.compact()
    assert table.clean(KEEP_ONE) == 1
    assert {finding.split()[0] for finding in table.found()} == {EXPRESSION}
    table.drop("column_stats")
    table.drop(EXPRESSION)
    table.ours("metadata_create", partitions=("column_stats", "partition_stats"))
    table.dropped = frozenset({EXPRESSION})
    table.judge()
    table.go_on()
    table.judge()
