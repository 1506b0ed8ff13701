from __future__ import annotations

import time
from pathlib import Path

import pytest

from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError, CorruptFileError, StorageNotFoundError, UnsupportedError
from hudi_core.filegroup.read.log_records import block_content
from hudi_core.filegroup.read.log_scan import (
    CommittedInstants,
    ScanCounts,
    ScanResult,
    has_counting_block,
    latest_compaction_instant,
    latest_read_instant,
    scan_log_files,
)
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile
from tests.support.counting_storage import CountingStorage
from tests.support.log_files import data, deletes, put, rollback
from tests.support.memory_storage import MemoryStorage

ROW = [("a", 1, "x")]
COMMITTED = CommittedInstants(frozenset({"002", "003", "004", "005"}), frozenset({"006"}), "002")


def scan(*files: list[bytes], latest: str | None = "009", committed: CommittedInstants = COMMITTED) -> ScanResult:
    """Scans log files 1, 2, … of these blocks."""
    storage = MemoryStorage()
    made = [put(storage, version, *blocks) for version, blocks in enumerate(files, 1)]
    return scan_log_files(storage, made, committed, latest_instant=latest)


def instants(result: ScanResult) -> list[str | None]:
    """The instants of the blocks to merge, in order."""
    return [block.instant_time for block in result.blocks]


def test_blocks_merge_in_file_order_not_by_instant() -> None:
    result = scan([data("003", ROW), deletes("003", [("a", None)])], [data("002", ROW)])
    assert instants(result) == ["003", "003", "002"]
    assert [block.type for block in result.blocks] == [BlockType.AVRO_DATA, BlockType.DELETE, BlockType.AVRO_DATA]
    assert result.counts == ScanCounts(files=2, blocks=3)


def test_uncommitted_and_inflight_blocks_are_skipped() -> None:
    result = scan([data("002", ROW), data("006", ROW), data("0035", ROW), deletes("007", [("a", None)])])
    assert instants(result) == ["002"]
    assert result.counts.blocks == 4


def test_instants_before_the_timeline_are_archived_and_so_committed() -> None:
    assert instants(scan([data("001", ROW)])) == ["001"]
    assert instants(scan([data("001", ROW)], committed=CommittedInstants(frozenset(), frozenset(), None))) == []


def test_inflight_wins_over_before_the_start() -> None:
    assert (
        instants(scan([data("001", ROW)], committed=CommittedInstants(frozenset({"002"}), frozenset({"001"}), "002")))
        == []
    )


def test_scan_stops_at_the_first_newer_block_even_a_command() -> None:
    result = scan([data("002", ROW), data("005", ROW), data("003", ROW)], latest="004")
    assert instants(result) == ["002"]
    assert result.counts.blocks == 2
    assert instants(scan([data("002", ROW), rollback("005", "002"), data("003", ROW)], latest="004")) == ["002"]


def test_hudi_1_passes_over_newer_blocks_and_obeys_newer_commands() -> None:
    files = [[data("002", ROW), data("005", ROW), data("003", ROW)], [rollback("008", "002"), data("004", ROW)]]
    storage = MemoryStorage()
    made = [put(storage, version, *blocks) for version, blocks in enumerate(files, 1)]
    result = scan_log_files(storage, made, COMMITTED, latest_instant="004", stop_at_newer=False)
    assert instants(result) == ["003", "004"]
    assert result.counts == ScanCounts(files=2, blocks=5, rolled_back=1)


@pytest.mark.parametrize("order", ["002,003", "003,002"])
def test_log_compaction_lists_its_inputs_in_either_order(order: str) -> None:
    merged = data("005", ROW, {HeaderKey.COMPACTED_BLOCK_TIMES: order})
    assert instants(
        scan([data("002", ROW)], [data("003", ROW), deletes("003", [("a", None)])], [data("004", ROW)], [merged])
    ) == ["005", "004"]


def test_uncommitted_log_compaction_leaves_its_inputs() -> None:
    merged = data("006", ROW, {HeaderKey.COMPACTED_BLOCK_TIMES: "002,003"})
    assert instants(scan([data("002", ROW), data("003", ROW), merged])) == ["002", "003"]


def test_blocks_of_several_instants_in_one_file() -> None:
    blocks = [
        data("002", ROW),
        deletes("003", [("a", None)]),
        data("004", ROW),
        deletes("004", [("b", None)]),
        data("006", ROW),
        data("005", ROW),
    ]
    assert instants(scan(blocks)) == ["002", "003", "004", "004", "005"]
    assert instants(scan([*blocks, rollback("007", "004")])) == ["002", "003", "005"], "rolled back later"


def test_no_latest_instant_reads_nothing() -> None:
    assert instants(scan([data("002", ROW)], latest=None)) == []


def test_rollback_removes_earlier_blocks_of_its_target_only() -> None:
    result = scan(
        [data("002", ROW), data("003", ROW), deletes("003", [("a", None)])],
        [rollback("008", "003"), data("003", ROW), data("004", ROW)],
    )
    assert instants(result) == ["002", "003", "004"], "a block of the target that comes after the command counts"
    assert result.counts.rolled_back == 2


def test_rollback_command_counts_whether_or_not_it_completed() -> None:
    assert instants(scan([data("002", ROW), rollback("0085", "002")])) == []


def test_rollback_of_something_else_changes_nothing() -> None:
    result = scan([data("002", ROW), rollback("008", "007"), rollback("008", "007")])
    assert instants(result) == ["002"]
    assert result.counts.rolled_back == 0


def test_what_is_left_behind_a_rollback_keeps_the_order_of_the_file() -> None:
    mixed = [data("002", ROW), data("003", ROW), data("004", ROW), data("002", ROW), data("003", ROW)]
    assert instants(scan([*mixed, rollback("008", "004"), data("002", ROW)])) == ["002", "003", "002", "003", "002"]


def test_thousands_of_rollback_commands_take_the_time_of_one_each() -> None:
    """A command costs what it removes: to pass over all blocks for each took half a minute for a log of 1.7 MB."""
    kept = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: "002"})
    start = time.monotonic()
    result = scan([kept] * 10_000 + [rollback("008", "001")] * 10_000)
    assert time.monotonic() - start < 10
    assert (len(result.blocks), result.counts.rolled_back) == (10_000, 0)


def test_corrupt_block_is_reported_and_a_rollback_removes_it() -> None:
    broken = data("003", ROW)[:-9]
    result = scan([data("002", ROW), broken], [data("004", ROW)])
    assert instants(result) == ["002", "004"]
    assert len(result.corrupt) == result.counts.corrupt == 1
    with pytest.raises(CorruptFileError, match=r"\.log\.1_0-1-1.*corrupt log block"):
        result.refuse_corrupt()
    rolled_back = scan([data("002", ROW), broken], [rollback("008", "003")])
    assert (rolled_back.corrupt, len(rolled_back.corrupt_removed)) == ((), 1)
    assert rolled_back.counts == ScanCounts(files=2, blocks=3, corrupt=1, rolled_back=1)
    rolled_back.refuse_corrupt()


@pytest.mark.parametrize(
    ("blocks", "counts"),
    [
        ([], False),
        ([data("006", ROW), deletes("007", [("a", None)])], False),
        ([data("006", ROW), data("003", ROW)], True),
        ([deletes("003", [("a", None)])], True),
        ([rollback("007", "003")], True),
        ([rollback("003", "006")], False),
    ],
)
def test_whether_a_file_changes_what_a_reader_sees(blocks: list[bytes], counts: bool) -> None:
    """A command counts by the instant whose rows it takes away."""
    storage = MemoryStorage()
    assert has_counting_block(storage, put(storage, 1, *blocks), COMMITTED) is counts


def test_empty_log_file_has_no_blocks() -> None:
    assert scan([], [data("002", ROW)]).counts == ScanCounts(files=1, blocks=1)


def test_missing_log_file_is_not_found() -> None:
    with pytest.raises(StorageNotFoundError, match="gone"):
        scan_log_files(MemoryStorage(), [DataFile("p", "gone", 100)], COMMITTED, latest_instant="009")


def test_garbage_is_no_log_file() -> None:
    storage = MemoryStorage()
    storage.write("p/log", b"x" * 200)
    with pytest.raises(CorruptFileError, match="p/log"):
        scan_log_files(storage, [DataFile("p", "log", 200)], COMMITTED, latest_instant="009")


@pytest.mark.parametrize(
    ("kind", "headers", "error"),
    [
        (BlockType.CDC_DATA, {HeaderKey.INSTANT_TIME: "002"}, UnsupportedError),
        (BlockType.AVRO_DATA, {}, CorruptFileError),
        (BlockType.COMMAND, {HeaderKey.INSTANT_TIME: "002", HeaderKey.COMMAND_BLOCK_TYPE: "1"}, UnsupportedError),
        (BlockType.COMMAND, {HeaderKey.INSTANT_TIME: "002", HeaderKey.COMMAND_BLOCK_TYPE: "0"}, UnsupportedError),
    ],
)
def test_blocks_that_no_log_of_rows_holds_are_refused(
    kind: BlockType, headers: dict[HeaderKey, str], error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"\.log\.1"):
        scan([encode_block(kind, headers, b"", hudi_1_headers=True)])


def test_log_compaction_output_stands_where_its_newest_input_stood() -> None:
    merged = data("005", ROW, {HeaderKey.COMPACTED_BLOCK_TIMES: "003,002"})
    result = scan([data("002", ROW)], [data("003", ROW)], [data("004", ROW)], [merged])
    assert instants(result) == ["005", "004"]


def test_log_compaction_of_a_log_compaction() -> None:
    first = data("004", ROW, {HeaderKey.COMPACTED_BLOCK_TIMES: "003,002"})
    second = data("005", ROW, {HeaderKey.COMPACTED_BLOCK_TIMES: "0041,004"})
    committed = CommittedInstants(frozenset({"002", "003", "004", "0041", "005"}), frozenset(), "002")
    result = scan([data("002", ROW), data("003", ROW), data("0041", ROW), first, second], committed=committed)
    assert instants(result) == ["005"]


def test_rolled_back_log_compaction_leaves_its_inputs() -> None:
    merged = data("005", ROW, {HeaderKey.COMPACTED_BLOCK_TIMES: "003,002"})
    assert instants(scan([data("002", ROW), data("003", ROW), merged, rollback("008", "005")])) == ["002", "003"]


TIMELINE = Timeline(
    [
        Instant("003", "deltacommit", State.COMPLETED),
        Instant("004", "clean", State.COMPLETED),
        Instant("005", "deltacommit", State.INFLIGHT),
        Instant("006", "commit", State.COMPLETED),
        Instant("007", "replacecommit", State.REQUESTED),
        Instant("008", "compaction", State.INFLIGHT),
        Instant("009", "rollback", State.COMPLETED),
    ]
)


@pytest.mark.parametrize(
    ("instant", "committed"),
    [("001", True), ("003", True), ("004", False), ("005", False), ("006", True), ("007", False), ("010", False)],
)
def test_what_is_committed_survives_json(instant: str, committed: bool) -> None:
    statistics = CommittedInstants.of(TIMELINE)
    assert statistics(instant) is committed
    assert from_text(CommittedInstants, to_text(statistics)) == statistics


def test_what_was_committed_up_to_an_instant_or_before_it() -> None:
    statistics = CommittedInstants.of(TIMELINE)
    requested = ["001", "002", "003", "005", "006", "010"]
    expected = {"003": ["001", "002", "003"], "006": ["001", "002", "003", "006"], "005": ["001", "002", "003"]}
    for instant, committed in expected.items():
        assert list(filter(statistics.up_to(instant), requested)) == committed
        assert list(filter(statistics.up_to(instant, inclusive=False), requested)) == [
            time for time in committed if time < instant
        ]
    archived = statistics.up_to("001")
    assert list(filter(archived, requested)) == ["001"], "instants that were archived after it are not committed yet"
    assert list(filter(statistics.up_to("002", inclusive=False), requested)) == ["001"]


def test_latest_instants() -> None:
    assert latest_read_instant(TIMELINE) == "006"
    assert latest_compaction_instant(TIMELINE) == "009", "a rollback's command blocks must be obeyed"
    assert latest_read_instant(Timeline()) is None
    assert latest_compaction_instant(Timeline()) is None


@pytest.mark.parametrize("older", [None, "commit", "deltacommit", "rollback"])
def test_a_compaction_reads_logs_whose_commits_are_archived(older: str | None) -> None:
    """Those that Hudi looks for are older than the archived ones, or there is none."""
    left = [Instant("005", "replacecommit", State.COMPLETED), Instant("006", "clean", State.COMPLETED)]
    timeline = Timeline([*left, *([] if older is None else [Instant("001", older, State.COMPLETED)])])
    assert latest_compaction_instant(timeline) == "005"


@pytest.mark.parametrize("raw", ["{}", "[]", "[1,[],null]"])
def test_other_json_is_refused(raw: str) -> None:
    with pytest.raises(ConfigError):
        from_text(CommittedInstants, raw)


def test_a_small_file_is_read_once(tmp_path: Path) -> None:
    counted = CountingStorage(tmp_path)
    wide = [(f"key-{number:05d}", number, "x" * 100) for number in range(1000)]
    made = [put(counted, version, data("002", rows)) for version, rows in ((1, ROW), (2, wide))]
    assert made[0].size < 1 << 16 < made[1].size
    blocks = scan_log_files(counted, made, COMMITTED, latest_instant="009").blocks
    assert len(blocks) == 2
    for block, file in zip(blocks, made, strict=True):
        before = len(counted.ranges)
        content = block_content(counted, block)
        assert counted.read(file.path)[block.content_offset :][: block.content_length] == content
        assert len(counted.ranges) - before == (file is made[1])
