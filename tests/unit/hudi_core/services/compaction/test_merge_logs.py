"""What a log compaction copies: whatever the logs of a slice hold, and by whichever rules they are merged, a reader
that goes on from the new log file finds what it would have found without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import without_meta_fields
from hudi_core.codec.log.blocks import BlockType, HeaderKey, LogBlock, encode_block
from hudi_core.codec.log.content import OrderingValue
from hudi_core.codec.log.positions import decode_positions, encode_positions
from hudi_core.config.rows_config import Payload, WriteConfig
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ConflictError, CorruptFileError, StorageNotFoundError, UnsupportedError
from hudi_core.filegroup.merge.ordering_values import Ordering
from hudi_core.filegroup.merge.table_policy import DeleteMark, MergePolicy, Rules
from hudi_core.filegroup.read.log_scan import CommittedInstants, log_blocks, scan_log_files
from hudi_core.filegroup.read.slice_reader import merging
from hudi_core.model.names import RECORD_KEY, parse_log_file
from hudi_core.services.compaction import merge_logs
from hudi_core.services.compaction.block_order import BlockOrder
from hudi_core.services.compaction.merge_logs import LogCompactionUnit, MergedLogs, merge_operation
from hudi_core.services.rewriting.new_file_groups import NewFiles
from hudi_core.services.rewriting.slice_rows import SliceTarget
from hudi_core.timeline.actions.compaction import CompactionOperation
from hudi_core.transaction.reconcile import OWN_ATTEMPTS
from hudi_core.view.file_group import DataFile
from tests.support.log_compactions import reader_without_log_compaction
from tests.support.log_files import FULL, SCHEMA, data, deletes, put, rollback
from tests.support.memory_storage import MemoryStorage
from tests.support.running_attempts import let_run

KEYS = ("a", "b", "c")
MARK = DeleteMark("text", ("gone",))
POLICIES = [
    MergePolicy((RECORD_KEY,), ("ts",), rules, payload, delete_marks=(MARK,), string_deletes_win=wins)
    for rules, payload, wins in (
        (Rules.PAYLOAD_0_15, Payload.LATEST, False),
        (Rules.PAYLOAD_0_15, Payload.DEFAULT, False),
        (Rules.PAYLOAD_0_15, Payload.EVENT_TIME, False),
        (Rules.COMMIT_TIME, Payload.LATEST, False),
        (Rules.EVENT_TIME, Payload.LATEST, False),
        (Rules.EVENT_TIME, Payload.LATEST, True),
        (Rules.CUSTOM_1_0, Payload.DEFAULT, True),
        (Rules.CUSTOM_1_1, Payload.DEFAULT, False),
        (Rules.CUSTOM_1_1, Payload.LATEST, False),
    )
]
COMMITTED = CommittedInstants(
    frozenset(f"{number:03d}{half}" for number in range(2, 20) for half in ("", "5")), frozenset(), "001"
)
MERGE = "012"
"""The log compaction's instant, behind the writes of 002 to 011."""

BASE = "p/f-0_0-1-2_001.parquet"

record = st.tuples(st.sampled_from(KEYS), st.integers(0, 3), st.sampled_from(("x", "y", "gone")))
value = st.one_of(
    st.none(), st.builds(OrderingValue, st.just("long"), st.integers(0, 3)), st.just(OrderingValue("int", 0))
)
entry = st.tuples(st.sampled_from(KEYS), value)
write = st.one_of(st.lists(record, min_size=1, max_size=4), st.lists(entry, min_size=1, max_size=3))
base_rows = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 3))


def written(storage: MemoryStorage, number: int, rows: Sequence[Any]) -> DataFile:
    instant = f"{number:03d}"
    block = deletes(instant, rows) if len(rows[0]) == 2 else data(instant, rows)
    return put(storage, number, block)


def unit(
    files: Sequence[DataFile],
    policy: MergePolicy,
    *,
    instant: str = MERGE,
    committed: CommittedInstants = COMMITTED,
    config: WriteConfig | None = None,
    operation: CompactionOperation | None = None,
    order: BlockOrder | None = None,
) -> LogCompactionUnit:
    new = NewFiles(instant, without_meta_fields(SCHEMA), config or WriteConfig(), 1, policy.is_hudi_1)
    whole = CompactionOperation("p", "f-0", "001", None, tuple(file.name for file in files))
    unordered = BlockOrder(False, frozenset(), frozenset())
    return LogCompactionUnit(SliceTarget("memory", {}, new, committed, policy), operation or whole, order or unordered)


def merge(storage: MemoryStorage, given: LogCompactionUnit) -> MergedLogs:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_logs, "open_data_storage", lambda uri, options: storage)
        let_run(storage, given.target.files.instant, 1)
        return merge_operation(given, TaskAttempt(4, 1, 0))


def new_file(storage: MemoryStorage, merged: MergedLogs) -> DataFile:
    assert merged.stat is not None
    return DataFile("p", merged.stat.name, storage.stat(merged.stat.path).size)


def blocks_of(storage: MemoryStorage, file: DataFile) -> list[LogBlock]:
    return [block for block in log_blocks(storage, [file]) if isinstance(block, LogBlock)]


def read(
    storage: MemoryStorage, files: Sequence[DataFile], policy: MergePolicy, base: Sequence[tuple[str, int]]
) -> list[Any]:
    """The rows of a slice with these log files."""
    schema = arrow_schema(FULL)
    rows = [
        {
            "_hoodie_commit_time": "001",
            "_hoodie_commit_seqno": key,
            "_hoodie_record_key": key,
            "_hoodie_partition_path": "p",
            "_hoodie_file_name": "base",
            "id": key,
            "ts": ts,
            "text": "base",
        }
        for key, ts in base
    ]
    scan = scan_log_files(storage, files, COMMITTED, latest_instant="999", stop_at_newer=not policy.is_hudi_1)
    ordering = Ordering.of(policy, SCHEMA, path="p")
    with merging(storage, scan, schema, policy, ordering, base=BASE, first_only=True, budget=1 << 20) as found:
        batches = list(found.rows([pa.RecordBatch.from_pylist(rows, schema)], batch_rows=100))
    return sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: str(row["id"]))


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(POLICIES),
    st.lists(write, min_size=1, max_size=6),
    st.lists(write, max_size=3),
    base_rows,
    st.integers(1, 6),
)
def test_readers_go_on_from_it_as_from_what_it_merged(
    policy: MergePolicy, before: list[Any], after: list[Any], base: dict[str, int], first: int
) -> None:
    """Readers that place its blocks and readers that do not, with and without later writes; also where a second one
    merges the file of the first.
    """
    storage, rows_of_base = MemoryStorage(), sorted(base.items())
    files = [written(storage, number, rows) for number, rows in enumerate(before, 2)]
    early = files[: min(first, len(files))]
    once = new_file(storage, merge(storage, unit(early, policy, instant=f"{len(early) + 1:03d}5")))
    twice = merge(storage, unit([*files, once], policy))
    assert twice.keys == len({row[0] for rows in before for row in rows}) == twice.records + twice.deletes
    merged = new_file(storage, twice)
    late = [written(storage, number, rows) for number, rows in enumerate(after, 13)]
    expected = read(storage, [*files, *late], policy, rows_of_base)
    assert read(storage, [*files, once, merged, *late], policy, rows_of_base) == expected
    with reader_without_log_compaction():
        in_order = [*early, once, *files[len(early) :], merged]
        assert read(storage, [*in_order, *late], policy, rows_of_base) == expected
        assert read(storage, [merged, *late], policy, rows_of_base) == expected
    placed = [block.instant_time for block in blocks_of(storage, merged)]
    assert set(placed) == {MERGE}


def test_blocks_names_and_counts() -> None:
    """Data blocks by the schema of their records, in the order of the logs, then the delete entries; the headers are
    those of a log compaction.
    """
    storage = MemoryStorage()
    files = [
        put(storage, 1, data("002", [("a", 1, "old"), ("b", 1, "kept")]), deletes("002", [("z", None)])),
        put(storage, 2, data("003", [("a", 2, "new"), ("c", 1, "kept")])),
        put(storage, 3, deletes("004", [("c", OrderingValue("long", 5)), ("y", OrderingValue("long", 1))])),
        put(storage, 4, rollback("006", "005")),
    ]
    done = merge(storage, unit(files, POLICIES[4]))
    stat = done.stat
    assert stat is not None
    assert (done.keys, done.records, done.deletes) == (5, 2, 3)
    assert (stat.num_writes, stat.num_deletes, stat.num_update_writes, stat.num_inserts) == (2, 3, 2, 0)
    assert (stat.total_log_files_compacted, stat.total_log_blocks, stat.total_log_records) == (4, 5, 4)
    assert (stat.log_version, stat.log_offset, stat.prev_commit) == (5, 0, "001")
    assert stat.log_files == (*(file.name for file in reversed(files)), stat.name)
    name = parse_log_file(stat.name)
    assert (name.instant, name.version, str(name.token)) == ("001", 5, f"4-1-{OWN_ATTEMPTS}")
    kept, removed = blocks_of(storage, new_file(storage, done))
    assert (kept.type, removed.type) == (BlockType.AVRO_DATA, BlockType.DELETE)
    for block in (kept, removed):
        assert block.headers.keys() == {HeaderKey.INSTANT_TIME, HeaderKey.COMPACTED_BLOCK_TIMES, HeaderKey.SCHEMA}
        assert (block.instant_time, block.headers[HeaderKey.COMPACTED_BLOCK_TIMES]) == (MERGE, "002,003,004")
    assert storage.exists(f".hoodie/.temp/{MERGE}/p/{stat.name}.marker.APPEND")


def test_positions_in_the_base_file_are_kept() -> None:
    """Of a key that it holds twice each row has its own version, in the order of the rows; so have deletes. Without
    them readers would go back to the first row of a key.
    """
    storage, policy = MemoryStorage(), replace(POLICIES[4], by_position=True)

    def at(*rows: int) -> dict[HeaderKey, str]:
        return {
            HeaderKey.RECORD_POSITIONS: encode_positions(np.array(rows)),
            HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: "001",
        }

    files = [
        put(storage, 1, data("002", [("a", 5, "a1"), ("b", 5, "b"), ("a", 5, "a2")], at(0, 4, 5))),
        put(storage, 2, deletes("003", [("a", None), ("c", None), ("c", None)], at(0, 2, 3))),
        put(storage, 3, data("004", [("d", 5, "d")], at(1))),
    ]
    operation = CompactionOperation("p", "f-0", "001", BASE.removeprefix("p/"), tuple(file.name for file in files))
    done = merge(storage, unit(files, policy, operation=operation))
    assert (done.keys, done.records, done.deletes) == (6, 3, 3)
    kept, removed = blocks_of(storage, new_file(storage, done))
    for block, rows in ((kept, [1, 4, 5]), (removed, [0, 2, 3])):
        assert block.positions_instant == "001"
        assert decode_positions(block.record_positions or "", path="p").rows(3).tolist() == rows
    base = list(zip("adccba", [1] * 6, strict=True))
    expected = read(storage, files, policy, base)
    assert [row["text"] for row in expected] == ["a2", "b", "d"]
    assert read(storage, [*files, new_file(storage, done)], policy, base) == expected
    with reader_without_log_compaction():
        assert read(storage, [new_file(storage, done)], policy, base) == expected
    by_key = merge(storage, unit(files, POLICIES[4], operation=operation, instant="0125"))
    assert [block.record_positions for block in blocks_of(storage, new_file(storage, by_key))] == [None, None]


def test_in_layout_2_it_is_named_after_its_instant() -> None:
    storage = MemoryStorage()
    files = [put(storage, 1, data("002", [("a", 1, "x")]))]
    order = BlockOrder(True, frozenset(), frozenset())
    stat = merge(storage, unit(files, POLICIES[4], order=order)).stat
    assert stat is not None
    assert stat.name == f".f-0_{MERGE}.log.1_4-1-{OWN_ATTEMPTS}"
    assert (stat.log_files, stat.base_file) == ((stat.name,), "")
    assert storage.exists(f".hoodie/.temp/{MERGE}/p/{stat.name}.marker.CREATE")


def test_a_slice_of_rolled_back_blocks_is_nothing() -> None:
    storage = MemoryStorage()
    files = [put(storage, 1, data("002", [("a", 1, "x")])), put(storage, 2, rollback("003", "002"))]
    assert merge(storage, unit(files, POLICIES[0])) == MergedLogs(None, None, 0)
    assert storage.list_files(".hoodie/.temp") == []


@pytest.mark.parametrize("kind", [BlockType.PARQUET_DATA, BlockType.HFILE_DATA])
def test_blocks_that_are_not_copied_are_refused_before_anything_is_written(kind: BlockType) -> None:
    storage = MemoryStorage()
    headers = {HeaderKey.INSTANT_TIME: "002", HeaderKey.SCHEMA: "{}"}
    files = [put(storage, 1, encode_block(kind, headers, b"content"))]
    before = storage.list_files("p")
    with pytest.raises(UnsupportedError, match=f"no log file with a block of type {kind.name}") as caught:
        merge(storage, unit(files, POLICIES[0]))
    assert caught.value.path == files[0].path
    assert storage.list_files("p") == before


@pytest.mark.parametrize(
    ("headers", "what"),
    [
        ({HeaderKey.IS_PARTIAL: "true"}, "partial rows"),
        ({HeaderKey.SCHEMA: '{"fields": [{"name": "_hoodie_operation"}]}'}, "change operations"),
    ],
)
def test_rows_that_are_no_rows_of_the_table_are_refused(headers: dict[HeaderKey, str], what: str) -> None:
    storage = MemoryStorage()
    with pytest.raises(UnsupportedError, match=f"no log file with {what}"):
        merge(storage, unit([put(storage, 1, data("002", [("a", 1, "x")], headers))], POLICIES[0]))


def test_damage_is_named() -> None:
    storage = MemoryStorage()
    whole = put(storage, 1, data("002", [("a", 1, "x")]))
    torn = put(storage, 2, data("003", [("b", 1, "x")])[:-20])
    properties = "hoodie.table.name=t\nhoodie.table.type=MERGE_ON_READ\nhoodie.table.version=6\n"
    storage.write(".hoodie/hoodie.properties", properties.encode())
    with pytest.raises(CorruptFileError, match="corrupt log block") as caught:
        merge(storage, unit([whole, torn], POLICIES[0]))
    assert caught.value.path == torn.path
    allowed = unit([whole, torn], POLICIES[0], config=WriteConfig(allow_corrupt_log_blocks=True))
    assert merge(storage, allowed).keys == 1
    storage.delete(whole.path)
    with pytest.raises(StorageNotFoundError):
        merge(storage, unit([whole], POLICIES[0]))


def test_a_pending_write_in_between_is_a_conflict() -> None:
    storage = MemoryStorage()
    files = [put(storage, 1, data("002", [("a", 1, "x")])), put(storage, 3, data("004", [("a", 2, "y")]))]
    put(storage, 2, data("003", [("a", 3, "between")]))
    committed = CommittedInstants(COMMITTED.completed - {"003"}, frozenset({"003"}), "001")
    order = BlockOrder(False, frozenset({"003"}), frozenset())
    with pytest.raises(ConflictError, match="write 003 is pending"):
        merge(storage, unit(files, POLICIES[0], order=order, committed=committed))
