"""Writers that commit while an index is built: the deltacommits of real Hudi, block for block, put where its writers
would put them then.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import pytest

from hudi_core.config.concurrency_config import HeartbeatConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.record import FileEntry, FilesRecord, RecordType, files_datum
from hudi_core.metadata_table.records.files import partition_key
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.lifetime import drop_partitions
from hudi_core.metadata_table.write.rollback import files_written_by
from hudi_core.model.names import BaseFileName, LogFileName, WriteToken, parse_data_file
from hudi_core.services.indexing.planner import IndexingService
from hudi_core.services.waiting import wait_for_writers
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit, encode_commit_avro
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.writer_heartbeats import read_heartbeats
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Records, Table, comparable
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.indexing.test_job import QUICK, differences, planned, run
from tests.unit.hudi_core.services.indexing.test_job_catch_up import (
    during_the_build,
    pending_write,
    schedule,
    without_indexes,
)

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
BEATS = {"hoodie.client.heartbeat.interval_in_ms": "600000"}
TWO = {
    "hoodie.metadata.record.index.enable": "true",
    "airflow_hudi.indexing.file_groups": "2",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.bloom.filter.file.group.count": "2",
}
BUILDS: dict[str, dict[str, tuple[set[str], dict[str, str]]]] = {
    "files and rows": {
        "6": (
            {"record_index", "bloom_filters", "column_stats"},
            {**TWO, "hoodie.metadata.index.column.stats.enable": "true"},
        ),
        "8": ({"record_index", "bloom_filters"}, TWO),
        "9": ({"record_index", "bloom_filters"}, TWO),
    },
    "a column": {
        version: (
            {"secondary_index_idx_name"},
            {
                "hoodie.metadata.index.secondary.column": "name",
                "hoodie.index.name": "idx_name",
                "airflow_hudi.indexing.file_groups": "10",
            },
        )
        for version in ("8", "9")
    },
}


ROWS_ALONE = {
    version: (
        {"record_index"},
        {"hoodie.metadata.record.index.enable": "true", "airflow_hudi.indexing.file_groups": "10"},
    )
    for version in VERSIONS
}


@dataclass(frozen=True)
class Commit:
    """A commit that was rolled back: what completes it, and the log files and deltacommit of real Hudi in the metadata
    table.
    """

    instant: str
    action: str
    content: bytes
    recorded: CommitMetadata
    logs: tuple[tuple[str, LogFileName, bytes], ...]


def made_pending(table: Table) -> list[Commit]:
    """The last commits become pending: their writers are alive, and have written their data files. The first one stays,
    and what is compacted.
    """
    taken = []
    compacted = table.metadata_timeline.load().of_actions(Action.COMMIT).last()
    first = "" if compacted is None else compacted.requested_time
    for item in reversed([item for item in list(table.data.load().commits())[1:] if item.requested_time > first]):
        instant, metadata_timeline = item.requested_time, table.metadata_timeline.load()
        recorded = table.metadata_timeline.read_commit(metadata_timeline.get(instant, Action.DELTA_COMMIT))
        if table.config.features.log_name_has_delta_commit:
            paths = [info.path for info, _ in files_written_by(table.storage, frozenset({instant}))]
        else:
            paths = [f"{ROOT}/{stat.path}" for stat in recorded.write_stats()]
        logs = []
        for path in paths:
            name = parse_data_file(path.rpartition("/")[2])
            assert isinstance(name, LogFileName)
            logs.append((path.split("/")[-2], name, table.storage.read(path)))
            table.storage.delete(path)
        table.metadata_timeline.delete_instant(instant, Action.DELTA_COMMIT)
        content = table.storage.read(table.data.path_of(item))
        table.data.remove(instant, item.pending_action, State.COMPLETED)
        beat = table.path / ".hoodie" / ".heartbeat" / instant
        beat.parent.mkdir(exist_ok=True)
        beat.touch()
        taken.append(Commit(instant, item.pending_action, content, recorded, tuple(logs)))
    return taken[::-1]


def commit_again(table: Table, commit: Commit, building: Collection[str], *, silent: Collection[str] = ()) -> None:
    """What the writer does at last, under the lock: it updates the metadata table, except `silent`, and completes."""
    context, metadata_timeline = context_of(table.path), table.metadata_timeline
    own_clock = MetadataTimeline(table.storage, table.config, context.clock())
    with context.lock(Owner.current("the writer")):
        for partition, name, data in commit.logs:
            if partition in silent:
                continue
            if partition in building and not table.config.features.log_name_has_delta_commit:
                there = [parse_data_file(info.name) for info in table.storage.list_files(f"{ROOT}/{partition}")]
                latest = max(
                    (item for item in there if isinstance(item, LogFileName) and item.file_id == name.file_id),
                    key=lambda item: item.version,
                )
                name = LogFileName(name.file_id, latest.instant, latest.version + 1, name.token)
            table.storage.create_exclusive(f"{ROOT}/{partition}/{name}", data)
        stats = {name: items for name, items in commit.recorded.partition_to_write_stats.items() if name not in silent}
        recorded = replace(commit.recorded, partition_to_write_stats=stats)
        metadata_timeline.create_requested(commit.instant, Action.DELTA_COMMIT)
        metadata_timeline.to_inflight(commit.instant, Action.DELTA_COMMIT)
        encode = encode_commit if table.config.features.json_commits else encode_commit_avro
        metadata_timeline.complete(
            commit.instant, Action.DELTA_COMMIT, encode(recorded), own_clock.completion_time(commit.instant)
        )
        later = context.clock().next(table.data.load(), minimum=commit.instant) if table.data.layout == 2 else None
        table.data.complete(commit.instant, commit.action, commit.content, later)
    (table.path / ".hoodie" / ".heartbeat" / commit.instant).unlink()


def recorded(records: Records) -> Records:
    """Records without the instant that an index which begins later gives a place or a filter."""
    plain = comparable(records)
    for name, items in plain.items():
        if name == "record_index":
            plain[name] = {key: (value.partition, value.file_id) for key, value in items.items()}
        if name == "bloom_filters":
            plain[name] = {key: value[1] for key, value in items.items()}
    return plain


def drop(table: Table, names: set[str]) -> None:
    """The indexes go; definitions stay, as real Hudi's own drop of a partition leaves them."""
    drop_partitions(table.storage, table.config, names)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "version", "case"),
    tiered(
        [
            *(
                (build, version, case)
                for build, versions in BUILDS.items()
                for version in versions
                for case in ("mdt_all_mor", "mdt_all_cow")
            ),
            *(("rows alone", version, "mdt_record_index_lookup") for version in VERSIONS),
        ],
        [
            ("files and rows", "6", "mdt_all_mor"),
            ("files and rows", "9", "mdt_all_cow"),
            ("a column", "9", "mdt_all_mor"),
            ("rows alone", "8", "mdt_record_index_lookup"),
        ],
    ),
)
def test_commits_that_tell_an_index_while_it_is_built(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, build: str, version: str, case: str
) -> None:
    names, options = (ROWS_ALONE if case == "mdt_record_index_lookup" else BUILDS[build])[version]
    table = Table(golden(version, case).table)
    before = recorded(table.live())
    commits = made_pending(table)
    assert len(commits) >= (
        4 if version == "6" and case != "mdt_record_index_lookup" else 1 if case == "mdt_all_mor" else 2
    )
    drop(table, names)
    options = {**options, **BEATS}
    instant = schedule(table.path, options)
    initialized = during_the_build(
        monkeypatch, lambda: [commit_again(table, commit, names) for commit in commits].clear()
    )
    assert run(table.path, instant, options) == "completed"
    assert initialized == [len(names)], "all of them updated it, so that nothing was built twice"
    assert table.config.metadata_partitions_inflight == frozenset()
    after = recorded(table.live())
    for name in before:
        assert after[name] == before[name], name
    assert differences(table.path) == []


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["record_index", "bloom_filters"])
def test_a_writer_whose_options_do_not_enable_the_index_is_not_believed(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, name: str
) -> None:
    """Its deltacommit has the instant's name, which is all that real Hudi's indexer looks at."""
    names, options = BUILDS["files and rows"][version]
    table = Table(golden(version, "mdt_all_cow").table)
    before = recorded(table.live())
    commits = made_pending(table)
    drop(table, names)
    options = {**options, **BEATS}
    instant = schedule(table.path, options)
    initialized = during_the_build(
        monkeypatch, lambda: [commit_again(table, commit, names, silent={name}) for commit in commits].clear()
    )
    assert run(table.path, instant, options) == "completed"
    assert initialized == [2 * len(names)]
    assert recorded(table.live())[name] == before[name]
    assert differences(table.path) == []


def update_in_place(table: Table) -> None:
    """A writer that begins and commits now: it writes the base file of a file group again, with as many updated rows,
    and lists it.
    """
    context = context_of(table.path)
    with context.lock(Owner.current("the writer")):
        last = table.data.load().commits().last()
        assert last is not None
        view = context.view(table.data.load())
        base = next(
            item.base_file
            for name in view.partitions()
            for item in view.latest_merged_slices(name)
            if item.base_file and not item.log_files
        )
        old = parse_data_file(base.name)
        assert isinstance(old, BaseFileName)
        instant = context.new_instant(table.data.load())
        new = BaseFileName(old.file_id, old.token, instant, old.extension)
        shutil.copy2(table.path / base.path, (table.path / base.path).with_name(str(new)))
        stat = WriteStat(
            old.file_id, f"{base.partition}/{new}", base.partition, old.instant, 5, 0, 5, 0, base.size, base.size
        )
        metadata = replace(
            table.data.read_commit(last), partition_to_write_stats={base.partition: (stat,)}, operation_type="UPSERT"
        )
        table.data.create_requested(instant, Action.DELTA_COMMIT)
        table.data.to_inflight(instant, Action.DELTA_COMMIT)
        records = [FilesRecord(partition_key(base.partition), RecordType.FILES, {str(new): FileEntry(base.size)})]
        metadata_timeline = MetadataTimeline(table.storage, table.config, context.clock())
        DeltaWriter(metadata_timeline, WriteToken(0, 0, 0)).write(
            instant, {"files": [(item.key, files_datum(item)) for item in records]}
        )
        encode = encode_commit if table.config.features.json_commits else encode_commit_avro
        later = context.clock().next(table.data.load(), minimum=instant) if table.data.layout == 2 else None
        table.data.complete(instant, Action.DELTA_COMMIT, encode(metadata), later)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_commit_of_updates_has_nothing_to_say_to_the_record_index(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Else a table that is updated all the time would get its record index under the lock at last."""
    table = Table(golden(version, "mdt_record_index_lookup").table)
    before = recorded(table.live())["record_index"]
    without_indexes(table.path)
    options = {"hoodie.metadata.record.index.enable": "true"}
    instant = schedule(table.path, options)
    initialized = during_the_build(monkeypatch, lambda: update_in_place(table))
    assert run(table.path, instant, options) == "completed"
    assert initialized == [1]
    assert recorded(table.live())["record_index"] == before
    assert differences(table.path) == []


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_writer_that_dies_meanwhile_is_waited_for_until_its_heartbeat_expires(golden: Golden, version: str) -> None:
    table = golden(version, "indexing_requested").table
    instant = planned(table)
    writer = str(int(instant) - 1)
    pending_write(table, writer, beats=0)
    options = {
        **QUICK,
        "hoodie.client.heartbeat.interval_in_ms": "30000",
        "hoodie.client.heartbeat.tolerable.misses": "2",
    }
    context, slept, beat = context_of(table, options), list[float](), table / ".hoodie" / ".heartbeat" / writer

    def sleep(seconds: float) -> None:
        """Time passes, and the writer does not beat any more."""
        slept.append(seconds)
        os.utime(beat, (time.time() - 12.0 * len(slept), time.time() - 12.0 * len(slept)))

    assert wait_for_writers(context, {writer}, lambda: None, sleep) == {writer}
    assert 5 <= len(slept) <= 6, "an interval times the misses that are tolerated: 60 seconds"
    assert read_heartbeats(context.storage, HeartbeatConfig.of(options)).is_expired(writer)
    assert IndexingService().run(context, instant, LocalEngine(1), Owner.current("test"), None).state == "completed"
    assert not Table(table).data.load().contains(writer), "it cannot complete behind the index any more"
    assert differences(table) == []
