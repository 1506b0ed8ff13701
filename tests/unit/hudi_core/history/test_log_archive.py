"""The archive of layout 1: state files as Avro records, interrupted appends and merges."""

from __future__ import annotations

import json
import logging
import tracemalloc
from typing import Any

import pytest

from hudi_core.codec.avro.container import write_container
from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.codec.log.content import encode_avro_block
from hudi_core.errors import CorruptFileError
from hudi_core.history.log_archive import MERGE_PLAN, LogArchive
from hudi_core.storage.base import ByteRange
from hudi_core.timeline.instant import Instant, State
from tests.support.avro_data import encode_datum
from tests.support.memory_storage import MemoryStorage

FOLDER = ".hoodie/archived"
_TEXT = ["null", "string"]
_COMMIT = {
    "type": "record",
    "name": "HoodieCommitMetadata",
    "fields": [{"name": "operationType", "type": _TEXT, "default": None}],
}
_PLAN = {
    "type": "record",
    "name": "HoodieCompactionPlan",
    "fields": [{"name": "version", "type": ["null", "int"], "default": None}],
}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "HoodieArchivedMetaEntry",
    "fields": [
        {"name": "hoodieCommitMetadata", "type": ["null", _COMMIT], "default": None},
        {"name": "commitTime", "type": _TEXT, "default": None},
        {"name": "actionType", "type": _TEXT, "default": None},
        {"name": "hoodieCompactionPlan", "type": ["null", _PLAN], "default": None},
        {"name": "actionState", "type": _TEXT, "default": None},
    ],
}
MERGE_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "HoodieMergeArchiveFilePlan",
    "fields": [
        {"name": "version", "type": ["int", "null"], "default": 1},
        {"name": "candidate", "type": ["null", {"type": "array", "items": "string"}], "default": None},
        {"name": "mergedArchiveFileName", "type": _TEXT, "default": None},
    ],
}


def _record(time: str | None, action: str, state: str | None = "COMPLETED", **members: Any) -> dict[str, Any]:
    return {"commitTime": time, "actionType": action, "actionState": state, **members}


def _block(*records: dict[str, Any]) -> bytes:
    content = encode_avro_block([encode_datum(SCHEMA, record) for record in records])
    return encode_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: json.dumps(SCHEMA)}, content)


def _archive(storage: MemoryStorage, number: int, *blocks: bytes) -> str:
    name = f".commits_.archive.{number}_1-0-1"
    storage.write(f"{FOLDER}/{name}", b"".join(blocks))
    return name


def _merge_plan(storage: MemoryStorage, merged: str) -> None:
    storage.write(
        f"{FOLDER}/{MERGE_PLAN}",
        write_container(MERGE_SCHEMA, [{"version": 1, "candidate": ["a"], "mergedArchiveFileName": merged}]),
    )


def _times(storage: MemoryStorage) -> list[str]:
    return [instant.requested_time for instant in LogArchive(storage, FOLDER).instants()]


class _Counting(MemoryStorage):
    """Notes the files that are opened, and every read of one."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[str, int]] = []

    def read_range(self, path: str, span: ByteRange) -> bytes:
        self.reads.append((path.rsplit("/", 1)[-1], span.start))
        return super().read_range(path, span)

    def opened(self) -> set[str]:
        """The files opened since the last call."""
        names = {name for name, _ in self.reads}
        self.reads.clear()
        return names


def test_the_states_of_an_instant_are_one_archived_instant() -> None:
    storage = MemoryStorage()
    plan = {"hoodieCompactionPlan": {"version": 2}}
    _archive(
        storage, 1, _block(_record("2", "compaction", "REQUESTED", **plan), _record("2", "compaction", "INFLIGHT"))
    )
    _archive(
        storage,
        2,
        _block(_record("2", "commit", hoodieCommitMetadata={"operationType": "COMPACT"}), _record("1", "deltacommit")),
    )
    archive = LogArchive(storage, FOLDER)
    first, second = archive.instants()
    assert second == Instant("2", "commit", State.COMPLETED)
    assert second.pending_action == "compaction"
    assert archive.plan(second) == {"version": 2}
    assert archive.content(second) == {"operationType": "COMPACT"}
    metadata = archive.commit("2")
    assert metadata is not None
    assert metadata.operation_type == "COMPACT"
    assert archive.content(first) == {} == archive.plan(first)
    assert archive.completion_time("2") == "2"
    assert archive.completion_time("3") is None


def test_an_instant_without_a_completed_state_is_not_archived_history() -> None:
    storage = MemoryStorage()
    _archive(storage, 1, _block(_record("1", "commit", "REQUESTED"), _record("2", "commit")))
    assert _times(storage) == ["2"]


def test_very_old_records_have_no_state() -> None:
    storage = MemoryStorage()
    _archive(storage, 1, _block(_record("1", "commit", None)))
    assert _times(storage) == ["1"]


def test_foreign_files_and_blocks_are_passed_over() -> None:
    storage = MemoryStorage()
    storage.write(f"{FOLDER}/notes.txt", b"hello")
    storage.write(f"{FOLDER}/.commits_.archive.x", b"hello")
    _archive(storage, 10, _block(_record("10", "commit")))
    _archive(
        storage, 9, encode_block(BlockType.COMMAND, {HeaderKey.COMMAND_BLOCK_TYPE: "0"}), _block(_record("9", "commit"))
    )
    _archive(storage, 11)
    assert _times(storage) == ["10", "9"]  # as text


def test_an_append_that_was_cut_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    storage = MemoryStorage()
    whole, cut = _block(_record("1", "commit")), _block(_record("2", "commit"))
    _archive(storage, 1, whole, cut[:-9])
    with caplog.at_level(logging.WARNING):
        assert _times(storage) == ["1"]
    assert "not written to its end" in caplog.text


def test_a_corrupt_block_before_others_is_damage() -> None:
    storage = MemoryStorage()
    block = _block(_record("1", "commit"))
    name = _archive(storage, 1, block[:-9], block)
    with pytest.raises(CorruptFileError, match=name):
        _times(storage)


def test_a_merged_file_beside_the_files_that_it_merges() -> None:
    storage = MemoryStorage()
    _archive(storage, 1, _block(_record("1", "commit")))
    _archive(storage, 2, _block(_record("2", "commit")))
    merged = _archive(storage, 3, _block(_record("1", "commit"), _record("2", "commit")))
    _merge_plan(storage, merged)
    assert _times(storage) == ["1", "2"]


def test_a_merge_that_was_cut_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    storage = MemoryStorage()
    _archive(storage, 1, _block(_record("1", "commit")))
    merged = _archive(storage, 2, b"#HU")
    storage.write(f"{FOLDER}/{merged}", b"garbage that is no log file")
    with pytest.raises(CorruptFileError, match=merged):
        _times(storage)
    _merge_plan(storage, merged)
    with caplog.at_level(logging.WARNING):
        assert _times(storage) == ["1"]
    assert "not merged to its end" in caplog.text


@pytest.mark.parametrize("plan", [b"", b"Obj\x01cut", None])
def test_a_merge_plan_that_was_cut_excuses_nothing(plan: bytes | None) -> None:
    storage = MemoryStorage()
    name = _archive(storage, 1, b"garbage that is no log file")
    if plan is None:
        _merge_plan(storage, "another file")
    else:
        storage.write(f"{FOLDER}/{MERGE_PLAN}", plan)
    with pytest.raises(CorruptFileError, match=name):
        _times(storage)


@pytest.mark.parametrize("record", [_record(None, "commit"), _record("x", "commit"), _record("1", "commit", "DONE")])
def test_records_that_are_no_instants_are_damage(record: dict[str, Any]) -> None:
    storage = MemoryStorage()
    name = _archive(storage, 1, _block(record))
    with pytest.raises(CorruptFileError, match=name):
        _times(storage)


def test_a_block_without_a_schema_or_with_cut_records_is_damage() -> None:
    storage = MemoryStorage()
    _archive(storage, 1, encode_block(BlockType.AVRO_DATA, {}, encode_avro_block([])))
    with pytest.raises(CorruptFileError, match="no schema"):
        _times(storage)
    content = bytearray(encode_avro_block([encode_datum(SCHEMA, _record("1", "commit"))]))
    content[8:12] = (1 << 20).to_bytes(4, "big")
    _archive(storage, 1, encode_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: json.dumps(SCHEMA)}, bytes(content)))
    with pytest.raises(CorruptFileError, match="needs 1048576 bytes, has"):
        _times(storage)


def test_an_archive_that_is_opened_again_is_listed_and_not_read() -> None:
    storage = _Counting()
    first = _archive(storage, 1, _block(_record("1", "commit", hoodieCommitMetadata={"operationType": "x"})))
    assert _times(storage) == ["1"]
    assert storage.opened() == {first}
    again = LogArchive(storage, FOLDER)
    assert [item.requested_time for item in again.instants()] == ["1"]
    assert storage.opened() == set()
    assert again.content(again.instants()[0]) == {"operationType": "x"}
    assert storage.opened() == {first}


def test_an_archive_that_changed_is_read_again() -> None:
    storage = _Counting()
    first = _archive(storage, 1, _block(_record("1", "commit")))
    before = LogArchive(storage, FOLDER)
    assert len(before.instants()) == 1
    second = _archive(storage, 2, _block(_record("2", "commit")))
    storage.opened()
    assert _times(storage) == ["1", "2"]
    assert storage.opened() == {first, second}
    _archive(storage, 2, _block(_record("2", "commit")), _block(_record("3", "commit")))  # appended to
    assert _times(storage) == ["1", "2", "3"]
    storage.delete(f"{FOLDER}/{first}")
    assert _times(storage) == ["2", "3"]
    assert len(before.instants()) == 1, "an archive is as at its first query"


def test_every_folder_and_every_storage_has_an_archive_of_its_own() -> None:
    storage, other = _Counting(), MemoryStorage()
    name = _archive(storage, 1, _block(_record("1", "commit")))
    _archive(other, 1, _block(_record("5", "commit")))
    storage.write(f"metadata/{name}", _block(_record("3", "deltacommit")))
    metadata = LogArchive(storage, "metadata").instants()
    assert [[item.requested_time for item in metadata], _times(storage), _times(other)] == [["3"], ["1"], ["5"]]
    storage.opened()
    assert [LogArchive(storage, "metadata").instants(), _times(storage)] == [metadata, ["1"]]
    assert storage.opened() == set()


def test_a_damaged_archive_stays_one() -> None:
    storage = MemoryStorage()
    block = _block(_record("1", "commit"))
    _archive(storage, 1, block[:-9], block)
    for _ in range(2):
        with pytest.raises(CorruptFileError, match="corrupt block"):
            _times(storage)
    _archive(storage, 1, block)
    assert _times(storage) == ["1"]


def test_instants_are_found_without_their_content(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[str]] = []

    class Seen(DatumCodec):
        def decode(self, data: bytes | memoryview, *, path: str | None = None) -> Any:
            record = super().decode(data, path=path)
            seen.append(set(record))
            return record

    monkeypatch.setattr("hudi_core.history.log_archive.DatumCodec", Seen)
    storage = MemoryStorage()
    texts = [{"hoodieCommitMetadata": {"operationType": name}} for name in "abc"]
    _archive(storage, 1, _block(*[_record(str(at), "commit", **text) for at, text in enumerate(texts)]))
    archive = LogArchive(storage, FOLDER)
    instants = archive.instants()
    assert seen == 3 * [{"commitTime", "actionType", "actionState"}]
    seen.clear()
    assert archive.content(instants[1]) == {"operationType": "b"}
    assert len(seen) == 1, "of the others in the block nothing is decoded"


def test_of_many_commits_a_block_is_read_once() -> None:
    storage = _Counting()
    text = {"hoodieCommitMetadata": {"operationType": "x"}}
    states = [
        _record(str(at), "commit", state, **(text if state == "COMPLETED" else {}))
        for at in range(1, 7)
        for state in ("REQUESTED", "COMPLETED")
    ]
    _archive(storage, 1, _block(*states[:6]), _block(*states[6:]))
    archive = LogArchive(storage, FOLDER)
    instants = archive.instants()
    assert len(instants) == 6
    storage.reads.clear()
    assert {metadata.operation_type for _, metadata in archive.commits(reversed(instants))} == {"x"}
    assert len(storage.reads) == 2


def test_whether_an_archive_is_empty_needs_one_file() -> None:
    storage = _Counting()
    pending = _archive(storage, 1, _block(_record("1", "commit", "REQUESTED")))
    assert LogArchive(storage, FOLDER).is_empty()
    first = _archive(storage, 2, _block(_record("1", "commit")))
    _archive(storage, 3, _block(_record("2", "commit")))
    storage.opened()
    assert not LogArchive(storage, FOLDER).is_empty()
    assert storage.opened() == {pending, first}


def test_what_is_kept_of_an_archive_is_small() -> None:
    storage = MemoryStorage()
    texts = [
        _record(str(number), "commit", hoodieCommitMetadata={"operationType": "x" * 4000})
        for number in range(1000, 1200)
    ]
    _archive(storage, 1, *[_block(*texts[start : start + 2]) for start in range(0, len(texts), 2)])
    archive = LogArchive(storage, FOLDER)
    tracemalloc.start()
    try:
        assert len(archive.instants()) == 200
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 200 * 1000
    assert peak < 200 * 1000 + 400_000
