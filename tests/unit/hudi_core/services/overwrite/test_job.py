"""What an overwrite does with what comes in between."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.errors import ConflictError, ExecutionError, UnsupportedError
from hudi_core.metadata_table import row_updates
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.services.overwrite import job
from hudi_core.services.overwrite.plan import OverwritePlan
from hudi_core.services.rewriting import job as rewrite
from hudi_core.services.rewriting.other_writers import check_early
from hudi_core.services.write.new_rows import write_rows
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import delete, overwrite, own_rows, put_source, within
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, leftovers, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


def meanwhile(monkeypatch: pytest.MonkeyPatch, does: Callable[[], object]) -> None:
    """Once the rows are written."""

    def both(*given: Any) -> Any:
        found = write_rows(*given)
        with monkeypatch.context() as patch:
            patch.setattr(job, "write_rows", write_rows)
            does()
        return found

    monkeypatch.setattr(job, "write_rows", both)


def pending(table: Path) -> list[str]:
    return [item.action for item in open_context(table).active.load().pending()]


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_write_to_the_partition_meanwhile_wins(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Its rows were acknowledged: they neither go unseen nor stay beside the new ones."""
    table = golden(version, "cow_basic").table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    mine = put_source(own_rows(table, within(rows, name)), tmp_path / "mine")
    other = put_source(own_rows(table, within(rows, name).slice(0, 2)), tmp_path / "other")
    options = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    meanwhile(monkeypatch, lambda: overwrite(table, other, options))
    with pytest.raises(ConflictError):
        overwrite(table, mine, options)
    assert within(read_rows(table), name).num_rows == 2
    assert pending(table) == []
    assert_metadata_true(table)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_write_between_plan_and_work_wins(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """The plan lacks its file groups: their rows would stay beside the new ones."""
    table = golden(version, "cow_basic").table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    mine = put_source(own_rows(table, within(rows, name)), tmp_path / "mine")
    other = put_source(own_rows(table, within(rows, name).slice(0, 2)), tmp_path / "other")
    options = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}

    def commits_first(*given: Any) -> None:
        monkeypatch.setattr(job, "check_early", check_early)
        overwrite(table, other, options)

    monkeypatch.setattr(job, "check_early", commits_first)
    with pytest.raises(ConflictError):
        overwrite(table, mine, options)
    assert within(read_rows(table), name).num_rows == 2
    assert pending(table) == []
    assert_metadata_true(table)


def test_a_write_elsewhere_meanwhile_is_no_conflict(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "mor_basic").table
    rows = read_rows(table)
    first, second = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))[:2]
    given = put_source(own_rows(table, within(rows, first).slice(0, 3)), tmp_path)
    monkeypatch.setattr(job, "check_early", lambda *_: None)
    meanwhile(monkeypatch, lambda: delete_beside(table, second))
    overwrite(table, given, {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"})
    after = read_rows(table)
    assert within(after, first).num_rows == 3
    assert within(after, second).num_rows == 0
    assert_metadata_true(table)


def delete_beside(table: Path, partition: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        from hudi_core.services.write import verb

        patch.setattr(verb, "live_writer", lambda *_: None)
        delete(table, partition)


@pytest.mark.parametrize("version", tiered(["6", "9"], ["9"]))
def test_a_failed_attempt_is_rolled_back_at_once(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    table = golden(version, "mdt_all_mor").table
    rows = read_rows(table)
    given = put_source(own_rows(table, rows), tmp_path)

    def fails() -> None:
        raise ExecutionError("no more")

    with monkeypatch.context() as patch:
        meanwhile(patch, fails)
        with pytest.raises(ExecutionError, match="no more"):
            overwrite(table, given, whole_table=True)
    assert_same_rows(read_rows(table), rows, ignore=())
    assert Action.REPLACE_COMMIT not in pending(table)
    assert not list((table / ".hoodie" / ".temp").glob("*/*"))
    assert_metadata_true(table)


def test_equal_keys_do_not_fit_a_record_index(golden: Golden, tmp_path: Path) -> None:
    """Two rows of a key in two partitions: the index holds one place for it."""
    table = golden("9", "mdt_all_mor").table
    rows = read_rows(table)
    before = own_rows(table, rows)
    first, second = sorted(set(before.column("dt").to_pylist()))[:2]
    one = before.filter(pa.compute.equal(before.column("dt"), first)).slice(0, 1)
    at = one.schema.get_field_index("dt")
    twice = pa.concat_tables([one, one.set_column(at, one.schema.field(at), [[second]])])
    with pytest.raises(UnsupportedError, match="is in two file groups"):
        overwrite(table, put_source(twice, tmp_path), whole_table=True)
    assert_same_rows(read_rows(table), rows, ignore=())
    assert_metadata_true(table)


def with_key_of(table: Path, partition: str, other: str) -> tuple[pa.Table, str]:
    """The rows of a partition, and a copy of a row of another one that comes to it, with its key."""
    rows = read_rows(table)
    key = min(within(rows, other).column("_hoodie_record_key").to_pylist())
    copied = own_rows(table, rows.filter(pc.equal(rows.column("_hoodie_record_key"), key)))
    at = copied.schema.get_field_index("dt")
    copied = copied.set_column(at, copied.schema.field(at), pa.array([partition] * copied.num_rows, pa.string()))
    return pa.concat_tables([own_rows(table, within(rows, partition)), copied]), key


def found(table: Path, where: str) -> list[str]:
    """The partitions of the rows of a query."""
    batches = HudiTable.open(str(table)).read(where=where).batches
    return [name for batch in batches for name in batch.column("_hoodie_partition_path").to_pylist()]


@pytest.mark.parametrize(
    ("version", "case"),
    tiered(
        [("6", "mdt_all_cow"), ("8", "mdt_all_mor"), ("9", "mdt_all_cow")], [("6", "mdt_all_cow"), ("8", "mdt_all_mor")]
    ),
)
def test_a_key_of_a_partition_that_stays_is_refused(golden: Golden, tmp_path: Path, version: str, case: str) -> None:
    table = golden(version, case).table
    rows = read_rows(table)
    first, second = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))[:2]
    given, key = with_key_of(table, first, second)
    source = put_source(given, tmp_path)
    with pytest.raises(UnsupportedError, match=f"record key '{key}' comes to .* is in partition '{second}'"):
        overwrite(table, source)
    assert_same_rows(read_rows(table), rows, ignore=())
    assert pending(table) == []
    assert_metadata_true(table)


def in_two_partitions(table: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str, str]:
    """A key whose row is in two partitions, as writers leave it that do not look it up; the index has the second."""
    first, second = sorted(set(read_rows(table).column("_hoodie_partition_path").to_pylist()))[:2]
    given, key = with_key_of(table, first, second)
    again = own_rows(table, within(read_rows(table), second))
    with monkeypatch.context() as patch:
        patch.setattr(row_updates, "OVERWRITES", frozenset())
        overwrite(table, put_source(given, folder, name="first"))
        overwrite(table, put_source(again, folder, name="second"))
    context = open_context(table)
    (place,) = MetadataTable(context.storage, context.config, context.active.load()).record_locations([key])[key]
    assert place.partition == second
    return first, second, key


@pytest.mark.parametrize(
    ("version", "case"),
    tiered(
        [("6", "mdt_all_cow"), ("8", "mdt_all_cow"), ("9", "mdt_all_mor")], [("6", "mdt_all_cow"), ("9", "mdt_all_mor")]
    ),
)
def test_a_key_keeps_its_place_in_a_partition_that_stays(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, case: str
) -> None:
    """Its row there is found by the record index, and by a secondary index."""
    table = golden(version, case).table
    first, second, key = in_two_partitions(table, tmp_path, monkeypatch)
    delete(table, first)
    where = f"_hoodie_record_key = '{key}'"
    assert found(table, where) == [second]
    rows = read_rows(table)
    (name,) = rows.filter(pc.equal(rows.column("_hoodie_record_key"), key)).column("name").to_pylist()
    assert second in found(table, f"name = '{name}'")
    assert_metadata_true(table)


def test_other_keys_lose_their_places(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("9", "mdt_all_cow").table
    first, _, key = in_two_partitions(table, tmp_path, monkeypatch)
    gone = sorted({*within(read_rows(table), first).column("_hoodie_record_key").to_pylist()} - {key})
    assert gone
    delete(table, first)
    context = open_context(table)
    metadata = MetadataTable(context.storage, context.config, context.active.load())
    assert metadata.record_locations(gone) == {}
    assert first not in {place.partition for _, place in metadata.record_index.all()}


def test_a_commit_with_a_later_instant_that_the_plan_knows(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its range of the partition would hide the new rows: log files of the metadata table merge by instants."""
    table = golden("9", "mdt_all_cow").table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    mine = put_source(own_rows(table, within(rows, name)), tmp_path / "mine")
    other = put_source(own_rows(table, within(rows, name).slice(0, 2)), tmp_path / "other")
    options = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    plan = job.OverwriteJob.plan

    def commits_first(self: job.OverwriteJob, _: Timeline) -> OverwritePlan:
        monkeypatch.setattr(job.OverwriteJob, "plan", plan)
        overwrite(table, other, options)
        return plan(self, self.active.load())

    monkeypatch.setattr(job.OverwriteJob, "plan", commits_first)
    with pytest.raises(ConflictError, match="has written to partition"):
        overwrite(table, mine, options)
    assert within(read_rows(table), name).num_rows == 2
    assert pending(table) == []
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_executors_make_the_records_of_many_files(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(rewrite, "DRIVER_FILES", 0)
    table = golden(version, "mdt_all_cow").table
    rows = read_rows(table)
    result = overwrite(table, put_source(own_rows(table, rows), tmp_path), whole_table=True)
    assert read_rows(table).num_rows == rows.num_rows
    assert_metadata_true(table)
    assert leftovers(table, str(result.instant)) == []


def test_a_record_index_of_each_partition_gets_file_groups_for_new_partitions(written: Path, tmp_path: Path) -> None:
    """They are made under the lock: no other writer rolls them back, or makes them a second time."""
    table = Path(shutil.copytree(written / "partitioned_v9", tmp_path / "table"))
    rows = read_rows(table)
    moved = own_rows(table, within(rows, min(rows.column("_hoodie_partition_path").to_pylist())))
    context = open_context(table)
    at = moved.schema.get_field_index(context.config.partition_fields[0])
    moved = moved.set_column(at, moved.schema.field(at), pa.array(["new"] * moved.num_rows, pa.string()))
    result = overwrite(table, put_source(moved, tmp_path))
    index = MetadataTable(context.storage, context.config, context.active.load()).record_index
    found = sorted((place.partition, key) for key, place in index.all() if place.partition.startswith("new"))
    after = read_rows(table)
    names = ("_hoodie_partition_path", "_hoodie_record_key")
    rows_of = zip(*(after.column(name).to_pylist() for name in names), strict=True)
    assert found == sorted(item for item in rows_of if item[0].startswith("new"))
    assert len(found) == result.records == moved.num_rows
    assert_metadata_true(table)
