"""Tables without meta columns (hoodie.populate.meta.fields=false): real Hudi reads what each of our services leaves, by
every index, runs what we planned, and goes on with writes, deletes, a compaction, a clustering and a clean.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from hudi_core.timeline.instant import Action
from tests.interop.changes import after_upsert, upsert_rows, user_columns, write_parquet
from tests.interop.judged import JUDGES, KINDS, MOR, Judged
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.overwrites import delete, overwrite, put_source
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

NO_META = {
    "hoodie.populate.meta.fields": "false",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.datasource.write.partitionpath.field": "dt",
}
"""Without the last, Hudi's clustering brings rows without meta columns to the partition ""
(docs/reference/hudi-notes.md).
"""
PLAN = "hoodie.clustering.plan.strategy."
CLUSTER = {f"{PLAN}small.file.limit": str(1 << 30), f"{PLAN}sort.columns": "name"}
ONE = {"hoodie.compact.inline.max.delta.commits": "1"}
KEYS = {
    "one": {},
    "several": {
        "hoodie.datasource.write.recordkey.field": "id,dt",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    },
}


def check(table: Judged) -> None:
    """Real Hudi and we read the rows due; so do filters by column statistics; the metadata table is true."""
    assert_same_rows(user_columns(read_rows(table.base)), table.rows)
    assert_metadata_true(table.base)
    for metadata in (True, False):
        assert_same_rows(user_columns(table.hudi.snapshot(table.base, metadata=metadata)), table.rows)
    some = table.rows.sort_by("id").slice(0, 2).to_pylist()
    predicates = [f"{name} = '{row[name]}'" for row in some for name in ("id", "name", "dt")]
    for found in table.hudi.ask("skipping", base=str(table.base), predicates=[*predicates, "amount > 12"]):
        assert found["same"], found
    assert table.hudi.ask("validate_metadata", base=str(table.base))["wrong"] == []


def planned(table: Judged, service: str, options: dict[str, str]) -> str:
    """The instant of our plan."""
    document = table.run("schedule", service=service, options=options).document
    assert document is not None
    return str(document["instant"])


def delete_rows(table: Judged, count: int) -> None:
    """Real Hudi deletes the rows with the least keys."""
    rows = table.rows.sort_by("id")
    gone = write_parquet(rows.slice(0, count), table.base.parent, f"{table.base.name}-deletes{table.steps}")
    table.hudi.ask("write", base=str(table.base), operation="delete", parquet=gone, options=table.options)
    table.rows = rows.slice(count)


def replace_all(table: Judged, scratch: Path) -> None:
    """The table is overwritten by its own rows, with other values."""
    place = table.rows.schema.get_field_index("amount")
    changed = pc.add(table.rows["amount"], 1000.0)
    table.rows = table.rows.set_column(place, table.rows.schema.field(place), changed)
    overwrite(table.base, put_source(table.rows, scratch), whole_table=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", JUDGES)
def test_real_hudi_goes_on_behind_each_service(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, kind: str
) -> None:
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = Judged.create(hudi, tmp_path / "table", kind, version, NO_META)
    table.upsert()
    delete_rows(table, 2)
    if kind == MOR:
        table.run(service="compaction", schedule=True, options=ONE)
        check(table)
        table.upsert(fresh=False)
        hudi.ask("compact", base=str(table.base), instant=planned(table, "compaction", ONE), options=table.options)
        check(table)
        table.upsert()
        delete_rows(table, 1)
    table.run(service="clustering", schedule=True, options=CLUSTER)
    check(table)
    plan = planned(table, "clustering", {**CLUSTER, f"{PLAN}sort.columns": "id"})
    hudi.ask("service", base=str(table.base), name="cluster", instant=plan, options=table.options)
    check(table)
    replace_all(table, tmp_path)
    check(table)
    partition = "2024-01-01"
    assert delete(table.base, partition).replaced_file_groups > 0
    table.rows = table.rows.filter(pc.not_equal(table.rows["dt"], partition))
    check(table)
    before = table.times(Action.ROLLBACK, completed=False)
    table.upsert()
    if kind == MOR:
        table.upsert(fresh=False)
        table.compact()
    table.hudi.ask("service", base=str(table.base), name="clean", options=table.options)
    check(table)
    assert table.times(Action.ROLLBACK, completed=False) == before


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("version", JUDGES)
def test_compactions_merge_as_those_of_real_hudi(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, keys: str
) -> None:
    """Changes, new rows and deletes, among them a row that comes back. 0.15.0 and 1.0.2 merge no log files by keys of
    several fields, neither in queries; 1.0.2 reads what we make of them, 0.15.0 by read-optimized queries alone.
    """
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    table = Judged.create(hudi, tmp_path / "table", MOR, version, {**NO_META, **KEYS[keys]})
    table.upsert()
    gone = table.rows.sort_by("id")
    delete_rows(table, 3)
    table.upsert()
    back = upsert_rows(gone, 1, "back").slice(0, 1)
    table.write(back)
    table.rows = after_upsert(table.rows, back)
    theirs = table.copy(tmp_path / "theirs")
    if keys == "several" and version != "9":
        with pytest.raises(RealHudiError, match="Not a valid schema field: id,dt"):
            theirs.compact()
    else:
        theirs.compact()
        assert_same_rows(user_columns(hudi.snapshot(theirs.base, metadata=True)), table.rows)
    assert_same_rows(user_columns(read_rows(table.base)), table.rows)
    table.run(service="compaction", schedule=True, options=ONE)
    if (version, keys) != ("6", "several"):
        check(table)
        return
    assert_same_rows(user_columns(read_rows(table.base)), table.rows)
    assert_metadata_true(table.base)
    found = hudi.snapshot(table.base, metadata=True, query="read_optimized")
    assert_same_rows(user_columns(found), table.rows)
