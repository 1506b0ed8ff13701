"""In version 6 an index that is built beside writers is initialized under a base instant before every timeline; its
partition metadata says what the index holds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, CorruptFileError
from hudi_core.metadata_table.initialize.indexing import IndexBuild
from hudi_core.metadata_table.instants import early_instant, initialization_time, is_early, is_metadata_suffix
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.services.compaction import MetadataCompaction
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.restore_reach import initialized_at, initialized_since, reach_of
from hudi_core.model.names import BaseFileName, WriteToken, parse_data_file
from hudi_core.services.indexing.job import ATTEMPTS
from hudi_core.services.metadata.index_drop import drop_metadata
from hudi_core.services.metadata.maintain import update_metadata
from hudi_core.services.unschedule import unschedule
from hudi_core.timeline.instant import Action
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.unit.hudi_core.metadata_table.services.test_compaction import compaction
from tests.unit.hudi_core.services.indexing.test_job import OWNER, differences, planned, run

Golden = Callable[[str, str], GoldenCase]
LAST = "20261120214905004"
AT_ONCE = {"hoodie.metadata.compact.max.delta.commits": "1"}


def test_it_is_before_every_instant_of_a_metadata_table() -> None:
    """Of version 6, and of those to which the table may be upgraded."""
    assert early_instant(0) == early_instant(2) != early_instant(1)
    for epoch in (0, 1):
        assert all(
            early_instant(epoch) < start for start in ("00000000000000000", "00000000000000010", LAST, f"{LAST}010")
        )
        assert is_early(early_instant(epoch))
        assert is_metadata_suffix(early_instant(epoch)), "the empty first block of a file group"
    assert not any(map(is_early, ("00000000000000010", "0" * 14, "0" * 17, LAST)))
    assert [initialization_time(last) for last in (LAST, None)] == [f"{LAST}004", "0" * 14]


def test_an_index_holds_what_had_completed_when_it_was_initialized(golden: Golden) -> None:
    """A commit before it cannot be rolled back without it, nor the table restored to one with it."""
    table = Table(golden("6", "indexing_requested").table)
    first, *_, last = table.data.load().commits().instants
    names = table.config.metadata_partitions
    assert run(table.path, planned(table.path)) == "completed"
    built = table.config.metadata_partitions - names
    files = [
        parse_data_file(info.name) for name in built for info in table.storage.list_files(f".hoodie/metadata/{name}")
    ]
    assert all(is_early(item.instant) for item in files if item is not None)
    assert {initialized_at(table.storage, name) for name in built} == {f"{last.requested_time}004"}
    metadata_timeline = MetadataTimeline(table.storage, table.config)
    assert all(
        built <= initialized_since(table.storage, table.config, metadata_timeline, commit) for commit in (first, last)
    )
    assert reach_of(table.storage, table.config, metadata_timeline, last.requested_time).late == built
    assert reach_of(table.storage, table.config, metadata_timeline, table.new_instant()).late == frozenset()
    assert differences(table.path) == []
    table.storage.write(f".hoodie/metadata/{min(built)}/.hoodie_partition_metadata", b"commitTime=soon")
    with pytest.raises(CorruptFileError, match="does not say when the index was initialized"):
        initialized_since(table.storage, table.config, metadata_timeline, last)


def while_it_is_built(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], often: int = 1) -> list[object]:
    """Does something that many times when base files are to be written; returns what came of it."""
    fill: Callable[..., object] = IndexBuild.fill
    done: list[object] = []

    def filled(self: IndexBuild, *arguments: object) -> object:
        if len(done) < often:
            done.append(act())
        return fill(self, *arguments)

    monkeypatch.setattr(IndexBuild, "fill", filled)
    return done


def test_we_do_not_compact_beneath_a_build(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(golden("6", "indexing_requested").table)
    done = while_it_is_built(
        monkeypatch, lambda: update_metadata(context_of(table.path, AT_ONCE), LocalEngine(1), OWNER, 1)
    )
    assert run(table.path, planned(table.path)) == "completed"
    assert len(done) == 1
    assert differences(table.path) == []
    assert not table.metadata_timeline.load().of_actions(Action.COMMIT).instants


def compact(table: Table) -> None:
    """As a writer of Hudi, which writes a base file for a group with nothing but its first, empty block."""
    compaction(table).run(trigger=1)
    done = table.metadata_timeline.load().completed().of_actions(Action.COMMIT).last()
    assert done is not None
    (source,) = (table.path / ROOT / "files").glob(f"*_{done.requested_time}.hfile")
    name = min(table.config.metadata_partitions_inflight)
    group = next(
        item.file_id
        for info in table.storage.list_files(f"{ROOT}/{name}")
        if (item := parse_data_file(info.name)) is not None
    )
    shutil.copy(
        source, table.path / ROOT / name / str(BaseFileName(group, WriteToken(0, 9, 9), done.requested_time, "hfile"))
    )


@pytest.mark.parametrize("often", [1, ATTEMPTS])
def test_an_index_that_a_writer_compacts_is_rebuilt(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, often: int
) -> None:
    """Real Hudi compacts as long as the metadata table has no deltacommit that is younger than the indexing."""
    table = Table(golden("6", "indexing_requested").table)
    monkeypatch.setattr("hudi_core.metadata_table.services.compaction._building", lambda *_: None)
    done = while_it_is_built(monkeypatch, lambda: compact(table), often)
    assert run(table.path, planned(table.path)) == "completed"
    assert len(done) == often
    assert differences(table.path) == []


def test_a_plan_to_compact_what_is_built_is_finished_first(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer planned it and died: without the files that it names it could not be finished, and no write of Hudi
    would go on.
    """
    table = Table(golden("6", "indexing_requested").table)
    instant = planned(table.path)

    def dies() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(MetadataCompaction, "_execute_all", fails)
            with pytest.raises(OSError, match="the writer is gone"):
                compaction(table).run(trigger=1)

    with monkeypatch.context() as patch:
        patch.setattr("hudi_core.metadata_table.services.compaction._building", lambda *_: None)
        while_it_is_built(patch, dies)
        with pytest.raises(ConflictError, match="is pending, and its plan may name files of"):
            run(table.path, instant)
    for act in (lambda: run(table.path, instant), lambda: unschedule(context_of(table.path), instant, OWNER)):
        with pytest.raises(ConflictError, match="hudictl metadata update"):
            act()
    copy = Table(table.path.with_name("copy"))
    shutil.copytree(table.path, copy.path)
    drop_metadata(context_of(copy.path), ["files"], OWNER)  # with its plans
    assert copy.config.metadata_partitions == copy.config.metadata_partitions_inflight == frozenset()
    assert update_metadata(context_of(table.path), LocalEngine(1), OWNER, 1).upkeep.compacted.files > 0
    assert run(table.path, instant) == "completed"
    assert differences(table.path) == []


def fails(*_: object) -> object:
    raise OSError("the writer is gone")
