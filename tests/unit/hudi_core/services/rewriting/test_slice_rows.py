"""The rows of a planned slice, and that none is lost or doubled on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.rows_config import WriteConfig
from hudi_core.errors import CorruptFileError, ExecutionError, StorageNotFoundError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import MergePolicy, reads_as_hudi_1
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.new_file_groups import NewFiles
from hudi_core.services.rewriting.slice_rows import SliceTarget, open_slice
from hudi_core.timeline.actions.replacecommit import ClusteringSlice
from hudi_core.view.file_group import FileSlice
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


def target_of(context: TableContext) -> SliceTarget:
    timeline = context.active.load()
    schema = table_schema(context.storage, context.config, timeline)
    files = NewFiles(
        "29990101000000000", schema, WriteConfig.of(context.options), 1 << 30, reads_as_hudi_1(context.config)
    )
    return SliceTarget(
        context.uri,
        {},
        files,
        CommittedInstants.of(timeline),
        MergePolicy.for_table(context.config, context.options),
    )


def slices_of(context: TableContext) -> list[FileSlice]:
    view = context.view(context.active.load())
    return [item for partition in view.partitions() for item in view.latest_slices(partition)]


def planned(item: FileSlice) -> ClusteringSlice:
    base = None if item.base_file is None else item.base_file.name
    names = tuple(file.name for file in (*item.log_files, *item.cdc_files))
    return ClusteringSlice(item.file_group.partition, item.file_group.file_id, base, names)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("case", ["clustered_mor", "mor_log_only", "cow_basic"])
def test_rows_are_those_of_a_query(golden: Golden, version: str, case: str) -> None:
    table = golden(version, case).table
    context = open_context(table)
    keys: list[str] = []
    for item in slices_of(context):
        with open_slice(context.storage, target_of(context), planned(item)) as rows:
            before = len(keys)
            for batch in rows.batches():
                keys += batch.column("_hoodie_record_key").to_pylist()
            assert rows.rows == len(keys) - before
            assert "_hoodie_file_name" not in rows.schema.names
    assert sorted(keys) == sorted(read_rows(table).column("_hoodie_record_key").to_pylist())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_slice_without_a_base_file_has_the_rows_of_its_logs(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "mor_basic").table)
    for logged_slice in (planned(one) for one in slices_of(context) if one.log_files):
        with open_slice(context.storage, target_of(context), logged_slice) as rows:
            whole = pa.Table.from_batches(rows.batches(), rows.schema)
        with open_slice(context.storage, target_of(context), replace(logged_slice, base_file=None)) as rows:
            logged = pa.Table.from_batches(rows.batches(), rows.schema)
        assert 0 < logged.num_rows < whole.num_rows
        assert set(logged["_hoodie_record_key"].to_pylist()) <= set(whole["_hoodie_record_key"].to_pylist())


def test_a_row_that_is_lost_on_the_way_is_found(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    context = open_context(golden("9", "cow_basic").table)
    item = planned(slices_of(context)[0])
    with open_slice(context.storage, target_of(context), item) as rows:
        whole = rows.base_rows

        def short(*_: object, **__: object) -> object:
            return (batch.slice(1) for batch in whole())

        monkeypatch.setattr(type(rows), "base_rows", short)
        with pytest.raises(ExecutionError, match="rows of the file slice were read"):
            list(rows.batches())


def test_a_file_that_is_gone_is_named(golden: Golden) -> None:
    context = open_context(golden("9", "clustered_mor").table)
    item = next(one for one in slices_of(context) if one.log_files)
    gone = replace(planned(item), base_file="x_0-0-0_20250101000000000.parquet")
    with (
        pytest.raises(StorageNotFoundError, match="x_0-0-0"),
        open_slice(context.storage, target_of(context), gone),
    ):
        pass


@pytest.mark.parametrize("version", VERSIONS)
def test_lost_rows_of_a_commit_stop_it_unless_allowed(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "log_truncated").table)
    target = target_of(context)
    allowed = replace(target, files=replace(target.files, config=WriteConfig(allow_corrupt_log_blocks=True)))
    refused = 0
    for item in map(planned, slices_of(context)):
        try:
            with open_slice(context.storage, target, item) as rows:
                list(rows.batches())
        except CorruptFileError:
            refused += 1
            with open_slice(context.storage, allowed, item) as rows:
                assert list(rows.batches())
    assert refused == 3


def test_log_files_are_not_left_out_where_there_are_no_rules(golden: Golden) -> None:
    """A task of a plan without log files has none."""
    context = open_context(golden("9", "mor_basic").table)
    target = replace(target_of(context), policy=None)
    slices = slices_of(context)
    assert {bool(item.log_files) for item in slices} == {True, False}
    for item in slices:
        if item.log_files:
            with pytest.raises(ExecutionError, match="no rules"), open_slice(context.storage, target, planned(item)):
                pass
        else:
            with open_slice(context.storage, target, planned(item)) as rows:
                assert list(rows.batches())


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_of_rows_with_one_key_the_logs_change_the_first(golden: Golden, version: str) -> None:
    """As in queries, in version 6 as well, where a compaction changes both."""
    table = golden(version, "mor_basic").table
    context = open_context(table)
    stored = ("_hoodie_record_key", "_hoodie_commit_seqno")
    found: Counter[tuple[str, str]] = Counter()
    for item in slices_of(context):
        if item.base_file is not None:
            path = table / item.base_file.path
            rows = pq.ParquetFile(path).read()
            pq.write_table(pa.concat_tables([rows, rows]), path)
        with open_slice(context.storage, target_of(context), planned(item)) as opened:
            for batch in opened.batches():
                found.update(zip(*(batch.column(name).to_pylist() for name in stored), strict=True))
    seen = read_rows(table, "off")
    assert found == Counter(zip(*(seen.column(name).to_pylist() for name in stored), strict=True))
    by_key: dict[str, set[str]] = {}
    for key, number in found:
        by_key.setdefault(key, set()).add(number)
    assert any(len(numbers) > 1 for numbers in by_key.values()), "updated rows beside older ones"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", ["cow_basic", "clustered_mor"])
def test_a_base_file_with_change_operations_is_refused(golden: Golden, version: str, case: str) -> None:
    """The new file would not have the column."""
    table = golden(version, case).table
    context = open_context(table)
    item = next(one for one in slices_of(context) if one.base_file is not None)
    assert item.base_file is not None
    path = table / item.base_file.path
    rows = pq.ParquetFile(path).read()
    pq.write_table(rows.append_column("_hoodie_operation", pa.array(["I"] * rows.num_rows)), path)
    with (
        pytest.raises(UnsupportedError, match="rows with the column _hoodie_operation") as caught,
        open_slice(context.storage, target_of(context), planned(item)),
    ):
        pass
    assert caught.value.path == item.base_file.path
