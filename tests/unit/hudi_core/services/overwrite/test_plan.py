"""What an overwrite replaces, and what stands in its way."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.errors import ConfigError, ConflictError, UnsupportedError
from hudi_core.filegroup.write.buckets import PARTITION_BUCKETS_FOLDER
from hudi_core.services.overwrite.plan import Overwrite, check_not_written, plan_overwrite
from hudi_core.services.rollback.verb import rollback
from hudi_core.timeline.actions.commit import Operation
from tests.support.changed_tables import an_owner, begin_like_a_bucket, choose_payload, data_files, open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, delete, overwrite, own_rows, put_source, within
from tests.support.table_invariants import pending_instants, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]


def test_the_plan_has_every_file_group_of_its_partitions(golden: Golden) -> None:
    context = open_context(golden("9", "mor_basic").table)
    timeline = context.active.load()
    view = context.view(timeline)
    one = view.partitions()[0]
    plan = plan_overwrite(context, timeline, Overwrite(Operation.DELETE_PARTITION, partitions=(one,)), with_slices=True)
    assert plan.partitions == {one}
    assert plan.replaced[one] == tuple(item.file_group.file_id for item in view.latest_merged_slices(one))
    assert len(plan.slices) == len(plan.file_groups()) > 0
    whole = plan_overwrite(context, timeline, Overwrite(Operation.INSERT_OVERWRITE_TABLE), with_slices=False)
    assert whole.partitions == set(view.partitions())
    assert (whole.slices, whole.new_partitions) == ((), frozenset())


def test_unknown_partitions_are_bad_input(golden: Golden) -> None:
    table = golden("6", "cow_basic").table
    with pytest.raises(ConfigError, match="no partition 'nowhere'"):
        delete(table, "nowhere")


@pytest.mark.parametrize("version", tiered(["6", "9"], ["9"]))
@pytest.mark.parametrize("first", ["US", "US/CA"])
def test_no_partition_comes_below_another(golden: Golden, tmp_path: Path, version: str, first: str) -> None:
    """Listings end at a partition, so that the rows of the lower one would be lost."""
    table = golden(version, "mdt_disabled").table
    rows = own_rows(table, read_rows(table)).slice(0, 1)
    at = rows.schema.get_field_index("dt")

    def source(*values: str) -> Path:
        parts = [rows.set_column(at, "dt", pa.array([value])) for value in values]
        return put_source(pa.concat_tables(parts), tmp_path, name="+".join(values).replace("/", "-"))

    refused = "'US/CA' would lie below partition 'US'"
    with pytest.raises(ConfigError, match=refused):
        overwrite(table, source("US", "US/CA"))
    given = source(first)
    overwrite(table, given)
    before = read_rows(table)
    with pytest.raises(ConfigError, match=refused):
        overwrite(table, source(*{"US", "US/CA"} - {first}))
    overwrite(table, source("USA"))
    assert read_rows(table).num_rows == before.num_rows + 1
    overwrite(table, given)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_a_deletion_needs_no_payload_class(golden: Golden, version: str) -> None:
    """No row is merged for it; the rows of a source go through the class, which decides about deletes."""
    table = golden(version, "mor_basic").table
    rows = read_rows(table)
    choose_payload(table, "com.acme.MyPayload")
    (first, *_) = names = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))
    assert delete(table, first).replaced_file_groups > 0
    context = open_context(table)
    view = context.view(context.active.load())
    assert [len(view.latest_merged_slices(name)) for name in names] == [0, *([2] * len(names[1:]))]


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_source_needs_the_payload_class(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "cow_basic").table
    given = put_source(own_rows(table, read_rows(table)), tmp_path)
    choose_payload(table, "com.acme.MyPayload")
    before = pending_instants(table), data_files(table)
    with pytest.raises(UnsupportedError, match=r"com\.acme\.MyPayload"):
        overwrite(table, given, whole_table=True)
    assert (pending_instants(table), data_files(table)) == before


def test_an_index_needs_the_rows_that_log_files_change(golden: Golden) -> None:
    """It is refused before an instant is requested."""
    table = golden("9", "mdt_all_mor").table
    context = open_context(table)
    view = context.view(context.active.load())
    name = next(name for name in view.partitions() if any(item.log_files for item in view.latest_merged_slices(name)))
    choose_payload(table, "com.acme.MyPayload")
    instants, files = len(context.active.load().instants), data_files(table)
    with pytest.raises(UnsupportedError, match=r"com\.acme\.MyPayload"):
        delete(table, name)
    assert (len(context.active.load().instants), data_files(table)) == (instants, files)


def test_rows_outside_of_the_named_partitions_are_bad_input(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    names = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))
    given = put_source(own_rows(table, rows), tmp_path)
    with pytest.raises(ConfigError, match=f"belong to partition '{names[1]}'"):
        overwrite(table, given, partitions=(names[0], *names[2:]))


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
@pytest.mark.parametrize("case", ["mor_compaction_requested", "clustering_requested_cow", "log_compaction_requested"])
def test_hudi_18830_pending_table_services_are_conflicts(golden: Golden, version: str, case: str) -> None:
    """Both would replace a file group."""
    table = golden(version, case).table
    with pytest.raises(ConflictError, match="is pending on file groups of partition") as error:
        delete(table, min(read_rows(table).column("_hoodie_partition_path").to_pylist()))
    assert "hudictl unschedule" in str(error.value)


def test_a_commit_to_an_overwritten_partition_is_a_conflict(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    context = open_context(table)
    known = context.active.load()
    rows = read_rows(table)
    names = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))
    plans = [
        plan_overwrite(context, known, Overwrite(Operation.DELETE_PARTITION, partitions=(name,)), with_slices=False)
        for name in names[:2]
    ]
    overwrite(table, put_source(own_rows(table, within(rows, names[0])), tmp_path))
    now = context.active.load()
    with pytest.raises(ConflictError, match="has written to partition"):
        check_not_written(context, now, "T", plans[0])
    check_not_written(context, now, "T", plans[1])
    check_not_written(context, known, "T", plans[0])


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_commit_that_is_rolled_back_meanwhile_is_a_conflict(golden: Golden, version: str) -> None:
    """The file groups that it had replaced are there again, and the plan does not name them."""
    table = golden(version, "cow_basic").table
    names = sorted(set(read_rows(table).column("_hoodie_partition_path").to_pylist()))
    gone = delete(table, names[0]).instant
    context = open_context(table)
    work = Overwrite(Operation.INSERT_OVERWRITE_TABLE)
    plan = plan_overwrite(context, context.active.load(), work, with_slices=False)
    check_not_written(context, context.active.load(), "T", plan)
    rollback(context, gone, an_owner())
    with pytest.raises(ConflictError, match=f"commit {gone} was rolled back"):
        check_not_written(context, context.active.load(), "T", plan)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_buckets_by_consistent_hashing_are_refused(golden: Golden, version: str) -> None:
    """Their hashing metadata names file ids: rows that Hudi writes later would go to those that are replaced."""
    table = golden(version, "bucket_index_consistent_mor").table
    context = open_context(table)
    name = context.view(context.active.load()).partitions()[0]
    before = pending_instants(table), data_files(table)
    with pytest.raises(UnsupportedError, match="buckets by consistent hashing"):
        delete(table, name)
    assert (pending_instants(table), data_files(table)) == before


def test_numbers_of_buckets_of_single_partitions_stand_in_the_way_of_rows_alone(golden: Golden, tmp_path: Path) -> None:
    """A partition without file groups gets them by the number that is recorded for it."""
    table = golden("9", "bucket_index_cow").table
    rows = read_rows(table)
    context = open_context(table)
    context.storage.write(f"{PARTITION_BUCKETS_FOLDER}/configs/00000000000000.hashing_config", b"{}")
    given = put_source(own_rows(table, rows), tmp_path)
    with pytest.raises(UnsupportedError, match="a number of buckets for each partition"):
        overwrite(table, given, BUCKETS, whole_table=True)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    assert delete(table, name).replaced_file_groups > 0


def test_copies_are_independent(golden: Golden, tmp_path: Path) -> None:
    """A dry run writes nothing."""
    table = golden("9", "mor_basic").table
    copy = Path(shutil.copytree(table, tmp_path / "copy"))
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    looked = delete(table, name, dry_run=True)
    assert (looked.instant, looked.reason) == (None, "a dry run")
    assert sorted(p.relative_to(table) for p in table.rglob("*")) == sorted(
        p.relative_to(copy) for p in copy.rglob("*")
    )
    done = delete(table, name)
    assert (done.replaced_file_groups, done.partitions) == (looked.replaced_file_groups, looked.partitions)


@pytest.mark.parametrize("alone", [False, True], ids=["one of two", "alone in what is replaced"])
@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_a_file_group_that_begins_like_a_bucket_by_chance(
    golden: Golden, tmp_path: Path, version: str, alone: bool
) -> None:
    table = golden(version, "cow_basic" if alone else "mor_basic").table
    partition, _ = begin_like_a_bucket(table)
    rows = read_rows(table)
    mine = own_rows(table, within(rows, partition))
    done = overwrite(table, put_source(mine, tmp_path))
    assert (done.records, done.replaced_file_groups) == (mine.num_rows, 1 if alone else 2)
    assert read_rows(table).num_rows == rows.num_rows
    with pytest.raises(ConfigError, match="is no bucket"):
        overwrite(table, tmp_path / "source", BUCKETS, whole_table=True)
