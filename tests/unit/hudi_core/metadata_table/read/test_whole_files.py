"""Files of the metadata table that are shorter than its commits say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.codec.log.blocks import walk
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.read.file_group import merged_slices
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.read.whole_files import refuse_short
from hudi_core.storage.base import FileInfo
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.commit import encode_commit_avro
from hudi_core.timeline.actions.write_stats import WrittenFile
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_health.table import doctor_report
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
FOLDER = ".hoodie/metadata/files"
T1, T2, T3 = "20260101000000001", "20260101000000002", "20260101000000003"
COMPACTED = f"{T1}001"
BASE, BASE_2 = f"f-0_0-0-0_{T1}.hfile", f"f-0_0-0-0_{COMPACTED}.hfile"
LOG = f".f-0_{T1}.log.1_0-0-0"
LOG_2 = f".f-0_{COMPACTED}.log.1_0-0-0"


def done(time: str, action: str = Action.DELTA_COMMIT) -> Instant:
    return Instant(time, action, State.COMPLETED, time, action)


def check(
    files: Mapping[str, int], commits: Sequence[Instant], written: Mapping[str, Mapping[str, int]], layout: int = 1
) -> list[str]:
    """The instants whose commits were read."""
    requested: list[str] = []

    def stats_of(items: Sequence[Instant]) -> dict[Instant, Iterable[WrittenFile]]:
        requested.extend(item.requested_time for item in items)
        return {
            item: [
                WrittenFile("f-0", f"files/{name}", size) for name, size in written.get(item.requested_time, {}).items()
            ]
            for item in items
        }

    listed = [FileInfo(f"{FOLDER}/{name}", size, 1.0) for name, size in files.items()]
    timeline = Timeline(commits)
    slices = merged_slices(FOLDER, listed, timeline, layout)
    refuse_short(
        FOLDER, listed, slices, timeline, stats_of, lambda item: stats_of([item])[item], named_by_writer=layout > 1
    )
    return requested


def test_a_log_to_which_several_commits_append() -> None:
    """As Hudi 0.15 does on storage that appends: each commit records the size of the whole file."""
    commits = [done(T1), done(T2), done(T3)]
    written = {T1: {BASE: 50}, T2: {LOG: 100}, T3: {LOG: 250}}
    for size in (250, 251, 900):
        assert check({BASE: 50, LOG: size}, commits, written) == [T1, T2, T3]
    for size in (249, 100, 0):
        with pytest.raises(CorruptFileError, match=f"{T3} wrote this file with 250 bytes, but it has {size}") as caught:
            check({BASE: 50, LOG: size}, commits, written)
        assert caught.value.path == f"{FOLDER}/{LOG}"
        assert "without its metadata table" in str(caught.value.remedy)


def test_an_empty_log_of_a_writer_that_died() -> None:
    pending = Instant(T3, Action.DELTA_COMMIT, State.INFLIGHT, None, Action.DELTA_COMMIT)
    files = {BASE: 50, LOG: 100, LOG.replace("log.1", "log.2"): 0}
    assert check(files, [done(T1), done(T2), pending], {T1: {BASE: 50}, T2: {LOG: 100}}) == [T1, T2]


def test_a_base_file() -> None:
    with pytest.raises(CorruptFileError, match="50 bytes, but it has 49"):
        check({BASE: 49}, [done(T1)], {T1: {BASE: 50}})


def test_what_a_compaction_merged_is_not_asked_for() -> None:
    commits = [done(T1), done(T2), done(COMPACTED, Action.COMMIT), done(T3)]
    written = {T1: {BASE: 50}, "20260101000000000": {LOG: 100}, COMPACTED: {BASE_2: 90}, T3: {LOG_2: 30}}
    assert check({BASE_2: 90, LOG_2: 30, LOG: 3}, commits, written) == [COMPACTED, T2, T3]


@pytest.mark.parametrize("gone", [BASE_2, LOG_2])
def test_a_file_of_layout_1_that_is_gone(gone: str) -> None:
    commits = [done(T1), done(COMPACTED, Action.COMMIT), done(T3)]
    written = {T1: {BASE: 50, LOG: 100}, COMPACTED: {BASE_2: 90}, T3: {LOG_2: 30}}
    files = {BASE: 50, LOG: 100, BASE_2: 90, LOG_2: 30}
    check(files, commits, written)
    with pytest.raises(CorruptFileError, match="is not there") as caught:
        check({name: size for name, size in files.items() if name != gone}, commits, written)
    assert caught.value.path == f"{FOLDER}/{gone}"


def test_an_index_that_a_downgrade_began_again_in_layout_1() -> None:
    """Behind a compaction of version 9, under an earlier instant. A compaction of version 6 counts as ever."""
    first_instant, later, newest = f"{T1}010", T2, f"{T3}001"
    first, compacted = BASE.replace(T1, first_instant), BASE.replace(T1, later)
    commits = [done(first_instant), done(later, Action.COMMIT)]
    written = {first_instant: {first: 50}, later: {compacted: 90}, newest: {BASE.replace(T1, newest): 70}}
    assert check({first: 50}, commits, written) == [first_instant, later]
    with pytest.raises(CorruptFileError, match=f"{newest} wrote this file with 70 bytes, but it is not there"):
        check({first: 50}, [*commits, done(newest, Action.COMMIT)], written)
    with pytest.raises(CorruptFileError, match=f"{later} wrote this file with 90 bytes, but it is not there"):
        check({BASE: 50}, [done(T1), done(later, Action.COMMIT)], {T1: {BASE: 50}, **written})


def test_a_group_without_files_may_be_of_an_index_that_was_dropped() -> None:
    assert check({}, [done(T1)], {T1: {BASE: 50}}) == []
    other = "g-0_0-0-0_20260101000000001.hfile"
    assert check({other: 10}, [done(T1)], {T1: {BASE: 50, other: 10}}) == [T1]


def test_an_index_that_was_built_beside_writers_in_layout_1() -> None:
    """Its names are the same in each of its lives."""
    early = LOG.replace(T1, "000000000000000")
    assert check({early: 80}, [done(T1)], {T1: {early: 900}}) == []


def test_in_layout_2_only_the_commits_are_read_that_wrote_the_files() -> None:
    names = {time: f".f-0_{time}.log.1_0-0-0" for time in (T1, T2, T3)}
    commits = [done(T1), done(T2), done(T3)]
    written = {time: {name: 100} for time, name in names.items()}
    assert check({names[T1]: 100, names[T3]: 100}, commits, written, layout=2) == [T1, T3]
    with pytest.raises(CorruptFileError, match="but it has 0"):
        check({names[T1]: 100, names[T3]: 0}, commits, written, layout=2)


def newest_log(table: Path, partition: str = "files") -> Path:
    """A log of the newest deltacommit that wrote into the partition, by its write stats."""
    storage = LocalStorage(str(table))
    config = TableConfig.load(storage, base=".hoodie/metadata")
    active = ActiveTimeline(storage, config, ".hoodie/metadata")
    for commit in reversed(list(active.load().commits())):
        for stat in active.read_commit(commit).write_stats():
            if stat.partition_path == partition and ".log." in stat.path:
                return table / ".hoodie" / "metadata" / stat.path
    raise AssertionError(partition)


def cut_to(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


CASES = [("6", "mdt_all_mor"), ("8", "mdt_all_mor_compacted"), ("9", "mdt_all_mor_compacted")]


@pytest.mark.parametrize(("version", "name"), CASES)
def test_a_log_of_no_bytes_in_a_real_table(golden: Golden, version: str, name: str) -> None:
    table = golden(version, name).table
    whole = HudiTable.open(str(table)).read(metadata="on")
    rows = sum(batch.num_rows for batch in whole.batches)
    victim = newest_log(table)
    cut_to(victim, 0)
    with pytest.raises(CorruptFileError, match="but it has 0") as caught:
        HudiTable.open(str(table)).read()
    assert caught.value.path == str(victim.relative_to(table))
    assert caught.value.exit_code == 2
    without = HudiTable.open(str(table)).read(metadata="off")
    assert sum(batch.num_rows for batch in without.batches) == rows
    found = doctor_report(HudiTable.open(str(table))).findings
    assert any(item.rule == "metadata_unreadable" and victim.name in item.what for item in found)


@pytest.mark.parametrize(("version", "name"), CASES)
def test_a_log_that_ends_with_an_earlier_block(golden: Golden, version: str, name: str) -> None:
    """A whole log file by its framing."""
    table = golden(version, name).table
    victim = newest_log(table)
    data = victim.read_bytes()
    cut_to(victim, 0)
    with victim.open("ab") as file:
        file.write(data + data)
    HudiTable.open(str(table)).read(metadata="on")
    blocks = list(walk(lambda offset, length: data[offset : offset + length], len(data), victim.name))
    cut_to(victim, blocks[-1].offset)
    with pytest.raises(CorruptFileError, match=f"with {len(data)} bytes, but it has {blocks[-1].offset}"):
        HudiTable.open(str(table)).read(metadata="on")


@pytest.mark.parametrize("name", ["mdt_all_mor"])
def test_a_log_of_layout_1_that_is_gone(golden: Golden, name: str) -> None:
    table = golden("6", name).table
    victim = newest_log(table)
    victim.unlink()
    with pytest.raises(CorruptFileError, match="is not there") as caught:
        HudiTable.open(str(table)).read(metadata="on")
    assert caught.value.path == str(victim.relative_to(table))


def test_each_commit_is_read_once_for_all_partitions(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = golden("9", "mdt_all_mor_compacted").table
    storage = LocalStorage(str(table))
    config = TableConfig.load(storage)
    read: list[str] = []
    monkeypatch.setattr(storage, "read", lambda path, of=storage.read: (read.append(path), of(path))[1])
    snapshot = MetadataTableSnapshot(storage, config, ActiveTimeline(storage, config).load())
    for partition in sorted(config.metadata_partitions):
        snapshot.checked_slices(partition)
    commits = [path for path in read if path.endswith("commit")]
    assert commits
    assert len(commits) == len(set(commits))


def test_a_commit_that_two_attempts_completed(golden: Golden) -> None:
    """The log file is one attempt's, the completed file that counts may be the other's."""
    table = golden("9", "mdt_all_mor_compacted").table
    storage = LocalStorage(str(table))
    active = ActiveTimeline(storage, TableConfig.load(storage, base=".hoodie/metadata"), ".hoodie/metadata")
    victim = newest_log(table)
    commit = next(item for item in active.load().commits() if item.requested_time in victim.name)
    first = table / active.path_of(commit)
    ours = first.read_bytes()
    found = active.read_commit(commit)
    larger = {
        partition: tuple(replace(stat, file_size_in_bytes=stat.file_size_in_bytes + 5) for stat in stats)
        for partition, stats in found.partition_to_write_stats.items()
    }
    first.write_bytes(encode_commit_avro(replace(found, partition_to_write_stats=larger)))
    with pytest.raises(CorruptFileError, match=victim.name):
        HudiTable.open(str(table)).read(metadata="on")
    time = str(commit.completion_time)
    first.with_name(first.name.replace(time, str(int(time) + 1))).write_bytes(ours)
    assert sum(batch.num_rows for batch in HudiTable.open(str(table)).read(metadata="on").batches)
