"""Which tables a write refuses, and which file slices it finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.config.table_config import update_properties
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.services.source.count import counted_rows
from hudi_core.services.source.files import RowsFrom, Source
from hudi_core.services.write.plan import RowsWork, WritePlan, plan_write
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.instant import Action
from tests.support.changed_tables import data_files, open_context
from tests.support.golden_data import SCHEMA_ON_READ, GoldenCase, unpack
from tests.support.overwrites import BUCKETS, put_source
from tests.support.table_invariants import assert_metadata_true, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.support.writes import APART, Model, base_files, changed, like, own_columns, write

Golden = Callable[[str, str], GoldenCase]
OPERATIONS = ("bulk_insert", "insert", "upsert", "delete")
TAGGING = ("upsert", "delete")
TWO_BUCKETS = {**BUCKETS, "hoodie.bucket.index.num.buckets": "2"}


def planned(table: Path, operation: str, given: Path, options: dict[str, str] | None = None) -> WritePlan:
    """The plan for the rows of a source."""
    context = open_context(table, options)
    work = RowsWork(operation.upper(), rows_from=RowsFrom(str(given)))
    rows = counted_rows(context, Source(str(given)), LocalEngine(1), work.needs())
    return plan_write(context, context.active.load(), RowsWork(work.operation, rows=rows))


def refused(
    table: Path, operation: str, given: Path, options: dict[str, str], kind: type[Exception], match: str
) -> None:
    """The write is refused before anything is written; so is a dry run."""
    before = pending_instants(table), data_files(table)
    for dry_run in (True, False):
        with pytest.raises(kind, match=match):
            write(table, operation, given, options, dry_run=dry_run)
    assert (pending_instants(table), data_files(table)) == before


@pytest.mark.parametrize(
    ("operation", "options", "match"),
    [
        ("upsert", {"hoodie.index.type": "hbase"}, r"UPSERT by hoodie\.index\.type=HBASE"),
        ("delete", {"hoodie.index.type": "INMEMORY"}, r"DELETE by hoodie\.index\.type=INMEMORY"),
        ("upsert", {"hoodie.combine.before.upsert": "false"}, "UPSERT with hoodie.combine.before.upsert=false"),
        ("delete", {"hoodie.combine.before.upsert": "false"}, "DELETE with hoodie.combine.before.upsert=false"),
        ("insert", {"hoodie.merge.allow.duplicate.on.inserts": "false"}, "allow.duplicate.on.inserts=false"),
        ("insert", {"hoodie.datasource.write.insert.drop.duplicates": "true"}, "INSERT with .*drop.duplicates=true"),
        ("bulk_insert", {"hoodie.datasource.insert.dup.policy": "drop"}, "BULK_INSERT with .*dup.policy=drop"),
        ("upsert", {"hoodie.datasource.insert.dup.policy": "FAIL"}, "UPSERT with .*dup.policy=fail"),
    ],
)
def test_options_that_ask_for_more_are_refused(
    golden: Golden, tmp_path: Path, operation: str, options: dict[str, str], match: str
) -> None:
    table = golden("9", "cow_basic").table
    given = put_source(own_columns(read_rows(table)).slice(0, 3), tmp_path)
    refused(table, operation, given, options, UnsupportedError, match)


@pytest.mark.parametrize("index", ["GLOBAL_BLOOM", "RECORD_INDEX", "simple", "BLOOM"])
def test_an_insert_looks_for_no_keys(golden: Golden, tmp_path: Path, index: str) -> None:
    table = golden("9", "cow_basic").table
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table)).slice(0, 3)
    model.insert(rows)
    options = {"hoodie.index.type": index, "hoodie.combine.before.upsert": "false"}
    assert write(table, "insert", put_source(rows, tmp_path), options).inserted == 3
    model.check(table)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("properties", "case", "match"),
    [
        ({}, "bucket_index_consistent_mor", "consistent hashing"),
        ({"hoodie.table.base.file.format": "ORC"}, "cow_basic", "base files of format ORC"),
    ],
)
def test_tables_that_only_hudi_writes_are_refused(
    golden: Golden, tmp_path: Path, operation: str, properties: dict[str, str], case: str, match: str
) -> None:
    table = golden("9", case).table
    given = put_source(own_columns(read_rows(table)).slice(0, 3), tmp_path)
    update_properties(LocalStorage(table), properties)
    refused(table, operation, given, {}, UnsupportedError, match)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_schema_on_read_evolution_is_refused(tmp_path: Path, operation: str) -> None:
    table = unpack(SCHEMA_ON_READ, tmp_path)
    given = put_source(own_columns(read_rows(table)).slice(0, 3), tmp_path)
    refused(table, operation, given, {}, UnsupportedError, "schema-on-read evolution")


@pytest.mark.parametrize("version", tiered(["6", "9"], ["9"]))
@pytest.mark.parametrize("first", ["US", "US/CA"])
def test_no_partition_comes_below_another(golden: Golden, tmp_path: Path, version: str, first: str) -> None:
    """Listings end at a partition, so that the rows of the lower one would be lost."""
    table = golden(version, "mdt_disabled").table
    rows = own_columns(read_rows(table)).slice(0, 1)

    def given(*values: str) -> Path:
        parts = [changed(rows, dt=value) for value in values]
        return put_source(pa.concat_tables(parts), tmp_path, name="+".join(values).replace("/", "-"))

    message = "'US/CA' would lie below partition 'US'"
    refused(table, "upsert", given("US", "US/CA"), {}, ConfigError, message)
    again = given(first)
    write(table, "upsert", again)
    refused(table, "insert", given(*{"US", "US/CA"} - {first}), {}, ConfigError, message)
    assert write(table, "upsert", given("USA")).inserted == 1
    assert write(table, "upsert", again).updated == 1


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_source_without_rows_is_nothing_to_do(golden: Golden, tmp_path: Path, operation: str) -> None:
    table = golden("9", "cow_basic").table
    before = data_files(table)
    result = write(table, operation, put_source(own_columns(read_rows(table)).slice(0, 0), tmp_path), token="a")
    assert (result.instant, result.reason) == (None, "the source has no rows")
    assert data_files(table) == before
    assert list(open_context(table).active.load().pending()) == []


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_the_slices_are_those_of_the_partitions_of_the_rows(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "mor_basic").table
    rows = own_columns(read_rows(table))
    context = open_context(table)
    timeline = context.active.load()
    view = context.view(timeline)
    first, *_ = view.partitions()
    given = put_source(like(rows, {"dt": first}, {"dt": "2031-01-01"}), tmp_path)
    plan = planned(table, "upsert", given)
    assert plan.partitions == (first, "2031-01-01")
    assert plan.new_partitions == {"2031-01-01"}
    assert plan.slices == tuple(view.latest_merged_slices(first))
    assert plan.log_instants == tuple(item.base_instant for item in plan.slices)
    assert plan.known == timeline.commits().requested_times
    assert plan.buckets is None
    assert planned(table, "bulk_insert", given).slices == (), "it looks for no keys and fills no small files"


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_new_log_files_belong_to_a_pending_compaction(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "mor_compaction_requested").table
    plan = planned(table, "upsert", put_source(own_columns(read_rows(table)), tmp_path))
    context = open_context(table)
    timeline = context.active.load()
    (compaction,) = timeline.pending_compactions()
    operations = context.active.read_plan(compaction.requested_time).operations
    of_plan = {item.file_group for item in operations}
    assert {item.file_group for item in plan.slices} >= of_plan
    for item, instant in zip(plan.slices, plan.log_instants, strict=True):
        assert instant == (compaction.requested_time if item.file_group in of_plan else item.base_instant)
    assert all(item.base_file is not None for item in plan.slices), "the slice that is compacted, with later logs"


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
@pytest.mark.parametrize(("case", "options"), [("merge_mode_event_time", {}), ("mor_log_only", TWO_BUCKETS)])
def test_keys_of_slices_without_a_base_file_are_known_by_their_buckets_alone(
    golden: Golden, tmp_path: Path, version: str, case: str, options: dict[str, str]
) -> None:
    """Hudi's simple index reads base files: it would take the keys for new."""
    table = golden(version, "payload_default" if (version, case) == ("6", "merge_mode_event_time") else case).table
    for base in base_files(table):
        base.unlink()
    given = put_source(own_columns(read_rows(table)), tmp_path)
    if not options:
        for operation in TAGGING:
            refused(table, operation, given, {}, UnsupportedError, "log files alone, whose keys are in no base file")
        return
    plan = planned(table, "upsert", given, options)
    assert plan.slices
    assert all(item.base_file is None and item.log_files for item in plan.slices)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_action_is_that_of_the_table_type(golden: Golden, tmp_path: Path, version: str, operation: str) -> None:
    for case, action in (("cow_basic", Action.COMMIT), ("mor_basic", Action.DELTA_COMMIT)):
        table = golden(version, case).table
        given = put_source(own_columns(read_rows(table)).slice(0, 4), tmp_path, name=case)
        result = write(table, operation, given, APART)
        done = open_context(table).active.load().get(str(result.instant), action)
        assert done.is_completed
        assert result.operation == getattr(Operation, operation.upper())
        assert_metadata_true(table)
