"""Commit metadata: the keys of real Hudi 0.15, nothing lost, nothing believed unread."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import CorruptFileError, FormatError, StorageNotFoundError
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.actions import commit
from hudi_core.timeline.actions.commit import (
    CommitMetadata,
    Operation,
    decode_commit,
    encode_commit,
    encode_commit_avro,
    replaced_file_groups,
)
from hudi_core.timeline.actions.content import decode_any, dump
from hudi_core.timeline.actions.write_stats import WriteStat, stat_from_json, stat_to_json
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.naming import timeline_of
from hudi_core.timeline.schemas import schema_of
from tests.support.golden_timelines import load_table, timelines_of
from tests.support.memory_storage import MemoryStorage

COMPACTION = ".hoodie/20261120214905004.commit"


def _real() -> dict[str, Any]:
    raw: dict[str, Any] = json.loads(load_table("mor_compaction_requested.after").read(COMPACTION))
    return raw


def test_a_compaction_commit_has_exactly_the_keys_of_real_hudi() -> None:
    real = _real()
    stat = WriteStat("f-0", "p/f-0_0-0-0_5.parquet", "p", "3", 41, 7, 21, 0, 437182, 437182, total_log_records=24)
    ours = json.loads(encode_commit(CommitMetadata({"p": (stat,)}, True, Operation.COMPACT, {"schema": "{}"})))
    assert list(ours) == list(real)
    (their_stats, *_) = real["partitionToWriteStats"].values()
    assert list(ours["partitionToWriteStats"]["p"][0]) == list(their_stats[0])
    assert list(ours["partitionToWriteStats"]["p"][0]["runtimeStats"]) == list(their_stats[0]["runtimeStats"])
    assert (ours["compacted"], ours["operationType"]) == (real["compacted"], real["operationType"])


def test_what_a_compaction_of_real_hudi_says() -> None:
    metadata = decode_commit(load_table("mor_compaction_requested.after").read(COMPACTION), path=COMPACTION)
    assert metadata.compacted
    assert metadata.operation_type == "COMPACT"
    assert metadata.schema_text is not None
    stat = metadata.partition_to_write_stats["2024-01-02"][0]
    assert (stat.num_writes, stat.num_deletes, stat.num_update_writes, stat.total_log_records) == (41, 7, 21, 24)
    assert (stat.total_scan_time_ms, stat.total_upsert_time_ms, stat.extra) == (240, 288, {})
    assert len(list(metadata.write_stats())) == 3
    metadata.check_paths(source=COMPACTION)


@pytest.mark.parametrize("encode", [encode_commit, encode_commit_avro])
def test_without_its_write_stats_the_rest_is_the_same(encode: Callable[[CommitMetadata], bytes]) -> None:
    read = decode_commit(load_table("mor_compaction_requested.after").read(COMPACTION), path=COMPACTION)
    for metadata in (read, replace(read, operation_type="CLUSTER", replaced_file_ids={"p": ("a-0",)})):
        data = encode(metadata)
        found = decode_commit(data, path=COMPACTION)
        assert list(found.write_stats())
        assert decode_commit(data, path=COMPACTION, stats=False) == replace(found, partition_to_write_stats={})
        with pytest.raises(CorruptFileError):
            decode_commit(data[:-40], path=COMPACTION, stats=False)


def test_a_large_commit_is_passed_over_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its content: of another commit of the same name nothing is remembered."""
    monkeypatch.setattr(commit, "_LARGE", 1)
    metadata = decode_commit(load_table("mor_compaction_requested.after").read(COMPACTION), path=COMPACTION)
    first, second = (encode_commit_avro(replace(metadata, extra_metadata={"schema": text})) for text in ("a", "b"))
    decoded = []
    monkeypatch.setattr(commit, "decode_any", lambda data, **more: decoded.append(data) or decode_any(data, **more))
    for data, text in ((first, "a"), (first, "a"), (second, "b"), (first, "a")):
        assert decode_commit(data, path=COMPACTION, stats=False).schema_text == text
    assert decoded == [first, second, first]


def test_unknown_members_are_kept() -> None:
    raw = _real() | {"newMember": {"a": [1, {}, []]}}
    (stats, *_) = raw["partitionToWriteStats"].values()
    stats[0] |= {"newCount": 7, "minEventTime": 12, "runtimeStats": None, "path": None}
    metadata = decode_commit(dump(raw), path="x")
    assert json.loads(encode_commit(metadata)) == raw
    (stat, *_) = metadata.write_stats()
    assert stat.extra == {"newCount": 7, "minEventTime": 12, "runtimeStats": None, "path": None}
    assert stat.total_scan_time_ms == 0


_counts = st.integers(0, 2**62)
_stats = st.builds(
    WriteStat,
    st.text(),
    st.text(),
    st.text(),
    st.text(),
    *([_counts] * 6),
    log_version=st.none() | st.integers(1, 99),
    log_offset=st.none() | _counts,
    base_file=st.none() | st.text(min_size=1),
    log_files=st.lists(st.text()).map(tuple),
    cdc_stats=st.dictionaries(st.text(), _counts).map(lambda items: tuple(items.items())),
    extra=st.dictionaries(st.sampled_from(["recordsStats", "prevBaseFile"]), st.integers() | st.text()),
)


@given(_stats)
def test_write_stats_round_trip_as_json(stat: WriteStat) -> None:
    raw = json.loads(json.dumps(stat_to_json(stat)))
    again = stat_from_json(raw, path="x")
    assert stat_to_json(again) == raw
    if stat.log_version is not None and stat.base_file is not None:
        assert again == stat


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    )
)
def test_pretty_json_is_json(value: Any) -> None:
    assert json.loads(dump(value)) == value


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"a":' * 100_000,
        b'{"partitionToWriteStats": []}',
        b'{"partitionToWriteStats": {"p": {}}}',
        b'{"partitionToWriteStats": {"p": [1]}}',
        b'{"partitionToWriteStats": {"p": [{"numWrites": "1"}]}}',
        b'{"partitionToWriteStats": {"p": [{"numWrites": true}]}}',
        b'{"partitionToWriteStats": {"p": [{"logFiles": [1]}]}}',
        b'{"compacted": 1}',
        b'{"extraMetadata": {"schema": 1}}',
        b'{"partitionToReplaceFileIds": {"p": "f"}}',
        b'{"partitionToReplaceFileIds": {"p": [1]}}',
    ],
)
def test_damaged_metadata_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match=COMPACTION):
        decode_commit(data, path=COMPACTION)


@pytest.mark.parametrize(
    ("partition", "path"), [("../p", "p/f"), ("p", "../f"), ("p", "/etc/passwd"), (".hoodie", "f")]
)
def test_paths_outside_the_table_are_refused_before_use(partition: str, path: str) -> None:
    metadata = CommitMetadata({partition: (WriteStat("f", path, "p", "null", 0, 0, 0, 0, 0, 0),)})
    with pytest.raises(FormatError, match=COMPACTION):
        metadata.check_paths(source=COMPACTION)


@pytest.mark.parametrize(
    "changed",
    [
        {"partition_path": "../p"},
        {"partition_path": "/p"},
        {"partition_path": ".hoodie"},
        {"cdc_stats": (("p/f.cdc", 1), ("../f.cdc", 1))},
    ],
)
def test_what_a_write_stat_says_besides_its_path_is_refused_alike(changed: dict[str, Any]) -> None:
    stat = WriteStat("f", "p/f", "p", "null", 0, 0, 0, 0, 0, 0)
    CommitMetadata({"p": (stat,)}).check_paths(source=COMPACTION)
    with pytest.raises(FormatError, match=COMPACTION):
        CommitMetadata({"p": (replace(stat, **changed),)}).check_paths(source=COMPACTION)


def test_replaced_file_groups_of_real_tables() -> None:
    for name in ("insert_overwrite_table", "delete_partition_cow", "clustered_cow"):
        active = timelines_of(load_table(name))[0]
        timeline = active.load()
        replaced = replaced_file_groups(timeline, active.read_commit)
        assert replaced
        last = timeline.completed().of_actions("replacecommit").last()
        assert last is not None
        assert last in replaced.values()
        groups = set(active.read_commit(last).replaced_file_groups())
        assert all(isinstance(group, FileGroupId) for group in groups)
        assert groups <= set(replaced)


def _schema(name: str) -> str:
    return json.dumps({"type": "record", "name": name, "fields": []})


def _commits(*commits: tuple[str, str | None]) -> tuple[MemoryStorage, list[str]]:
    storage = MemoryStorage()
    names = []
    for number, (operation, schema) in enumerate(commits):
        metadata = CommitMetadata(operation_type=operation, extra_metadata={} if schema is None else {"schema": schema})
        names.append(f"{number:03d}.commit")
        storage.write(names[-1], encode_commit(metadata))
    return storage, names


def test_the_schema_is_that_of_the_last_commit_that_may_set_one() -> None:
    storage, names = _commits(
        ("INSERT", _schema("a")), ("UPSERT", _schema("b")), ("UPSERT", ""), ("DELETE", None), ("COMPACT", _schema("c"))
    )
    read = lambda instant: storage.read(f"{instant.requested_time}.{instant.action}")  # noqa: E731
    assert schema_of(timeline_of(names), read)["name"] == "b"
    assert schema_of(timeline_of(names[4:]), read)["name"] == "c"
    assert schema_of(timeline_of([]), read, create_schema=_schema("d"))["name"] == "d"
    storage.write(names[2], b"{")
    with pytest.raises(CorruptFileError, match=r"\.hoodie/002\.commit"):
        schema_of(timeline_of(names[2:3]), read, path_of=lambda instant: f".hoodie/{instant.requested_time}.commit")
    storage.write(names[2], encode_commit(CommitMetadata()))
    with pytest.raises(FormatError, match="no completed commit records"):
        schema_of(timeline_of(names[2:4]), read)


def test_a_replacecommit_that_was_archived_meanwhile_is_passed_over() -> None:
    def gone(instant: Instant) -> CommitMetadata:
        raise StorageNotFoundError("gone", path=instant.requested_time)

    assert replaced_file_groups(timeline_of(["001.replacecommit"]), gone) == {}
