"""The compaction unit against real Hudi: same rows, same counts, for every operation of the stored plans of the golden
tables.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.bloom import BloomFilter
from hudi_core.config.rows_config import WriteConfig
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.protocol import Json, TaskAttempt
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError, CorruptFileError, StorageNotFoundError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import MergePolicy, reads_as_hudi_1
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.write.markers import Marker, list_markers
from hudi_core.services.compaction.merge_slice import CompactedSlice, CompactionUnit, compact_operation
from hudi_core.services.rewriting.new_file_groups import NewFiles
from hudi_core.services.rewriting.slice_rows import SliceTarget
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.write_stats import stat_to_json
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.schemas import schema_of
from tests.support.bloom_filters import might_contain
from tests.support.compaction_units import configured
from tests.support.golden_data import GoldenCase
from tests.support.log_files import deletes
from tests.support.running_attempts import let_run

CASES = (
    "mor_compaction_requested",
    "mor_compaction_requested_only",
    "compaction_inflight",
    "payload_default",
    "payload_overwrite_latest",
    "schema_evolution_mor_compaction_requested",
    "bucket_index_mor",
    "bucket_index_consistent_mor",
)
COUNTS = (
    "numWrites",
    "numDeletes",
    "numUpdateWrites",
    "numInserts",
    "totalWriteErrors",
    "totalLogRecords",
    "totalLogFilesCompacted",
    "totalLogSizeCompacted",
    "totalUpdatedRecordsCompacted",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
)
ATTEMPT = TaskAttempt(7, 1, 3)
Golden = Callable[[str, str], GoldenCase]


def units_of(table: Path, options: dict[str, str] | None = None) -> list[CompactionUnit]:
    """The units of the table's one pending compaction, each as an engine sends it."""
    storage = LocalStorage(str(table))
    config = TableConfig.load(storage)
    active = ActiveTimeline(storage, config)
    timeline = active.load()
    (pending,) = timeline.pending_compactions()
    let_run(storage, pending.requested_time, 0, 1)
    schema, as_hudi_1 = schema_of(timeline, active.read_details), reads_as_hudi_1(config)
    policy = MergePolicy.for_table(config, options)
    has_meta = config.populate_meta_fields
    files = NewFiles(
        pending.requested_time, schema, WriteConfig.of(options or {}), sys.maxsize, as_hudi_1, has_meta=has_meta
    )
    target = SliceTarget(str(table), {}, files, CommittedInstants.of(timeline), policy)
    units = [CompactionUnit(target, operation) for operation in active.read_plan(pending.requested_time).operations]
    return [from_text(CompactionUnit, to_text(unit)) for unit in units]


def json_of(result: CompactedSlice) -> Json:
    """The write stat as commits hold it."""
    assert result.stat is not None
    return stat_to_json(result.stat)


def stat_of(unit: CompactionUnit, attempt: TaskAttempt) -> Json:
    return json_of(compact_operation(unit, attempt))


def rows_of(path: Path) -> Counter[str]:
    """The rows of a base file, without the name of the file itself."""
    table = pq.ParquetFile(path).read()
    return Counter(
        repr(sorted((name, repr(value)) for name, value in row.items() if name != "_hoodie_file_name"))
        for row in table.to_pylist()
    )


def stats_of(table: Path, instant: str) -> dict[str, Json]:
    """Real Hudi's write stats of a completed compaction, by file id."""
    commit = json.loads((table / ".hoodie" / f"{instant}.commit").read_text())
    return {stat["fileId"]: stat for stats in commit["partitionToWriteStats"].values() for stat in stats}


@pytest.mark.parametrize("name", CASES)
def test_every_operation_gives_the_rows_and_counts_of_real_hudi(golden: Golden, name: str) -> None:
    case = golden("6", name)
    after = case.after()
    units = units_of(case.table)
    real = stats_of(after, units[0].target.files.instant)
    assert len(units) == len(real) > 0
    total = 0
    for unit in units:
        result = compact_operation(unit, ATTEMPT)
        ours, theirs = json_of(result), real[unit.operation.file_id]
        assert {key: ours[key] for key in (*COUNTS, "fileId", "prevCommit", "partitionPath")} == {
            key: theirs[key] for key in (*COUNTS, "fileId", "prevCommit", "partitionPath")
        }
        written = case.table / ours["path"]
        assert written.stat().st_size == ours["fileSizeInBytes"] == ours["totalWriteBytes"]
        assert rows_of(written) == rows_of(after / theirs["path"])
        assert set(pq.ParquetFile(written).read(["_hoodie_file_name"])[0].to_pylist()) <= {written.name}
        total += ours["numWrites"]
    assert total > 0
    if name == "bucket_index_consistent_mor":
        assert all(unit.operation.base_file is None for unit in units), "this case is here for slices of logs alone"


def test_the_rows_of_all_units_are_the_read_optimized_rows_of_real_hudi(golden: Golden) -> None:
    case = golden("6", "mor_compaction_requested")
    expected = pq.read_table(case.expected / "after_read_optimized.parquet")
    names = [name for name in expected.column_names if name != "_hoodie_file_name"]
    found = Counter(
        tuple(row.values())
        for unit in units_of(case.table)
        for row in pq.ParquetFile(case.table / stat_of(unit, ATTEMPT)["path"]).read(names).to_pylist()
    )
    assert found == Counter(tuple(row[name] for name in names) for row in expected.to_pylist())


def test_a_block_of_a_pending_write_hides_none_behind_it(golden: Golden) -> None:
    """Of writers that find conflicts, one that began later may write first. Hudi 0.15 loses the rows behind it."""
    whole, other = golden("6", "mor_compaction_requested").table, golden("6", "mor_compaction_requested").table
    (expected, *_), (unit, *_) = units_of(whole), units_of(other)
    assert expected.operation.file_id == unit.operation.file_id
    log = other / unit.operation.partition / unit.operation.log_files[0]
    log.write_bytes(deletes("29990101000000000", [("nothing", None)]) + log.read_bytes())
    ours, theirs = compact_operation(unit, ATTEMPT), compact_operation(expected, ATTEMPT)
    assert ours.records == theirs.records
    assert theirs.records.updated > 0
    assert rows_of(other / json_of(ours)["path"]) == rows_of(whole / json_of(theirs)["path"])


def test_footer_is_what_hudi_writes(golden: Golden) -> None:
    case = golden("6", "mor_compaction_requested")
    after = case.after()
    units = units_of(case.table)
    real = stats_of(after, units[0].target.files.instant)
    for unit in units:
        stat = stat_of(unit, ATTEMPT)
        written, theirs = (
            pq.ParquetFile(case.table / stat["path"]),
            pq.ParquetFile(after / real[stat["fileId"]]["path"]),
        )
        ours_footer, real_footer = written.metadata.metadata, theirs.metadata.metadata
        for key in (
            b"hoodie_min_record_key",
            b"hoodie_max_record_key",
            b"hoodie_bloom_filter_type_code",
            b"writer.model.name",
        ):
            assert ours_footer[key] == real_footer[key], key
        assert (
            json.loads(ours_footer[b"parquet.avro.schema"])["fields"]
            == json.loads(real_footer[b"parquet.avro.schema"])["fields"]
        )
        assert ours_footer[b"org.apache.hudi.bloomfilter"] == real_footer[b"org.apache.hudi.bloomfilter"]
        bloom = BloomFilter.parse(ours_footer[b"org.apache.hudi.bloomfilter"], "DYNAMIC_V0", path="footer")
        assert all(might_contain(bloom, key.encode()) for key in written.read(["_hoodie_record_key"])[0].to_pylist())
        assert written.metadata.row_group(0).column(0).compression == "GZIP"


def test_base_order_is_kept_and_inserts_come_last(golden: Golden) -> None:
    case = golden("6", "schema_evolution_mor_compaction_requested")
    for unit in units_of(case.table):
        base = case.table / unit.operation.partition / unit.operation.base_file
        before = pq.ParquetFile(base).read(["_hoodie_record_key"])[0].to_pylist()
        after = pq.ParquetFile(case.table / stat_of(unit, ATTEMPT)["path"]).read(["_hoodie_record_key"])[0].to_pylist()
        known = set(before)
        assert [key for key in after if key in known] == [key for key in before if key in set(after)]
        assert all(key in known for key in after[: sum(key in known for key in after)])


def test_marker_is_written_before_the_file_and_names_it(golden: Golden) -> None:
    case = golden("6", "mor_compaction_requested_only")
    unit = units_of(case.table)[0]
    stat = stat_of(unit, ATTEMPT)
    partition, _, name = stat["path"].rpartition("/")
    assert list_markers(LocalStorage(str(case.table)), unit.target.files.instant) == [Marker(partition, name, "MERGE")]
    assert name == f"{unit.operation.file_id}_7-1-3_{unit.target.files.instant}.parquet"


@pytest.mark.parametrize(("which", "position"), [("base_file", None), ("log_files", 0)])
def test_missing_file_of_the_plan_is_named(golden: Golden, which: str, position: int | None) -> None:
    case = golden("6", "mor_compaction_requested_only")
    unit = units_of(case.table)[0]
    value: Any = getattr(unit.operation, which)
    name = value if position is None else value[position]
    path = f"{unit.operation.partition}/{name}"
    (case.table / path).unlink()
    with pytest.raises(StorageNotFoundError) as caught:
        compact_operation(unit, ATTEMPT)
    assert caught.value.path is not None
    assert caught.value.path.endswith(path)
    assert caught.value.exit_code == 2
    assert_nothing_written(case.table, unit)


def assert_nothing_written(table: Path, unit: CompactionUnit) -> None:
    """No base file of the instant is left."""
    assert not list(table.glob(f"**/*_{unit.target.files.instant}.parquet"))


@pytest.mark.parametrize("damage", ["truncated base", "no base at all", "flipped log block"])
def test_broken_files_are_typed_errors_that_name_the_file(golden: Golden, damage: str) -> None:
    case = golden("6", "mor_compaction_requested_only")
    unit = units_of(case.table)[0]
    folder = case.table / unit.operation.partition
    base, log = folder / unit.operation.base_file, folder / unit.operation.log_files[0]
    target = log if "log" in damage else base
    data = target.read_bytes()
    if damage == "truncated base":
        target.write_bytes(data[: len(data) // 2])
    elif damage == "no base at all":
        target.write_bytes(b"")
    else:
        head, content = data[:-400], data[-400:]
        target.write_bytes(head + bytes(byte ^ 0xFF for byte in content[:200]) + content[200:])
    with pytest.raises(CorruptFileError) as caught:
        compact_operation(unit, ATTEMPT)
    assert target.name in str(caught.value)
    assert_nothing_written(case.table, unit)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), CorruptFileError)


def test_a_base_file_with_change_operations_is_refused(golden: Golden) -> None:
    """The new file would not have the column."""
    case = golden("9", "mor_compaction_requested")
    unit = next(one for one in units_of(case.table) if one.operation.base_file)
    path = case.table / unit.operation.partition / str(unit.operation.base_file)
    rows = pq.ParquetFile(path).read()
    pq.write_table(rows.append_column("_hoodie_operation", pa.array(["I"] * rows.num_rows)), path)
    with pytest.raises(UnsupportedError, match="rows with the column _hoodie_operation") as caught:
        compact_operation(unit, ATTEMPT)
    assert path.match(str(caught.value.path))
    assert_nothing_written(case.table, unit)


def test_corrupt_log_block_is_refused_unless_allowed(golden: Golden) -> None:
    case = golden("6", "mor_compaction_requested_only")
    (unit, *_) = units_of(case.table)
    log = case.table / unit.operation.partition / unit.operation.log_files[-1]
    log.write_bytes(log.read_bytes()[:-20])
    with pytest.raises(CorruptFileError, match="corrupt log block") as caught:
        compact_operation(unit, ATTEMPT)
    assert log.name in str(caught.value)
    (allowed, *_) = units_of(case.table, {"airflow_hudi.allow_corrupt_log_blocks": "true"})
    stat = stat_of(allowed, ATTEMPT)
    assert stat["totalCorruptLogBlock"] == 1
    assert stat["numDeletes"] == 0, "the broken block was the delete block"


def test_a_slice_without_base_whose_blocks_do_not_count_gives_no_file(golden: Golden) -> None:
    case = golden("6", "mor_compaction_requested_only")
    (unit, *_) = units_of(case.table)
    nothing = CommittedInstants(frozenset(), frozenset(), None)
    target = replace(unit.target, committed=nothing)
    unit = replace(unit, operation=replace(unit.operation, base_file=None), target=target)
    result = compact_operation(unit, ATTEMPT)
    assert result.stat is None
    assert_nothing_written(case.table, unit)
    assert list_markers(LocalStorage(str(case.table)), unit.target.files.instant) == []


def test_codec_is_that_of_the_replaced_file_or_the_option(golden: Golden) -> None:
    case = golden("6", "mor_compaction_requested_only")
    for options, codec in (({}, "GZIP"), ({"hoodie.parquet.compression.codec": "zstd"}, "ZSTD")):
        unit = units_of(case.table, options)[0]
        stat = stat_of(unit, TaskAttempt(0, 0, len(options)))
        assert pq.ParquetFile(case.table / stat["path"]).metadata.row_group(0).column(0).compression == codec


@pytest.mark.parametrize("broken", ["{}", "[]", "[null]"])
def test_a_unit_of_another_version_is_a_config_error(broken: str) -> None:
    with pytest.raises(ConfigError):
        from_text(CompactionUnit, broken)


def test_tiny_memory_budget_gives_the_same_file(golden: Golden) -> None:
    case = golden("6", "payload_default")
    for unit in units_of(case.table):
        roomy = compact_operation(unit, TaskAttempt(0, 0, 1))
        small = configured(unit, memory_bytes=2048, batch_rows=3)
        tight = compact_operation(small, TaskAttempt(0, 0, 2))
        assert roomy.records == tight.records
        assert rows_of(case.table / json_of(roomy)["path"]) == rows_of(case.table / json_of(tight)["path"])


@pytest.mark.parametrize("name", ["mor_compaction_requested", "bucket_index_consistent_mor"])
def test_a_file_that_replaces_none_says_that_its_dates_are_proleptic(golden: Golden, name: str) -> None:
    """As Spark reads log records. Those here that are replaced leave it to the reader, and so do the new ones."""
    table = golden("6", name).table
    for unit in units_of(table):
        stat = compact_operation(unit, ATTEMPT).stat
        assert stat is not None
        footer = pq.read_metadata(table / stat.path).metadata
        assert (b"org.apache.spark.version" in footer) == (unit.operation.base_file is None)
