"""Which slices of the metadata table are cleaned, and that readers need none of them."""

from __future__ import annotations

import pytest

from hudi_core.errors import FormatError
from hudi_core.metadata_table.instants import OperationSuffix
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.services.table_services import clean
from hudi_core.model.names import parse_base_file
from hudi_core.timeline.actions.clean import CleanPlan, encode_clean_plan
from hudi_core.timeline.instant import Action
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.metadata_records import Table
from tests.support.metadata_services import VERSIONS, Golden, data_files, many_slices, metadata_timeline_of
from tests.support.tiers import tiered
from tests.unit.hudi_core.metadata_table.services.test_compaction import compaction, held


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_clean_leaves_what_is_read(golden: Golden, version: str) -> None:
    table = many_slices(golden, version)
    before, files = held(table), data_files(table)
    done = clean(metadata_timeline_of(table), 1)
    assert done.files > 4, done.reason
    (instant,) = done.instants
    assert version != "6" or instant.endswith("002")
    assert held(table) == before
    found = table.metadata_timeline.load().get(instant, Action.CLEAN)
    assert found.is_completed
    metadata = table.metadata_timeline.read_of(found)
    names = {
        (partition, name)
        for partition, part in metadata["partitionMetadata"].items()
        for name in part["successDeleteFiles"]
    }
    assert len(names) == metadata["totalFilesDeleted"] == done.files
    assert not any((table.path / ROOT / partition / name).exists() for partition, name in names)
    assert data_files(table) == files - done.files
    again = clean(metadata_timeline_of(table), 1)
    assert not again.instants
    assert again.reason


@pytest.mark.parametrize("version", VERSIONS)
def test_a_clean_waits_for_readers_behind_a_compaction(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor_compacted").table)
    compaction(table).run(trigger=1)
    assert "instants came after compaction" in clean(metadata_timeline_of(table), 1).reason
    fresh = Table(golden("6", "mdt_all_mor").table)
    assert "never compacted" in clean(metadata_timeline_of(fresh), 1).reason


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_commits_that_a_clean_is_to_keep(golden: Golden, version: str) -> None:
    """With all of them kept, what goes are the slices before the one that the oldest of them reads; by versions, all
    but two slices.
    """
    table = many_slices(golden, version)
    done = clean(metadata_timeline_of(table), 10000)
    assert bool(done.instants) is (version == "9")
    assert all(
        len(list(folder.glob("files-0000-0_*.hfile"))) == 2
        for folder in (table.path / ROOT).glob("files")
        if version == "9"
    )


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_pending_plan_that_names_what_readers_need_deletes_nothing(golden: Golden, version: str) -> None:
    table = many_slices(golden, version)
    metadata_timeline = metadata_timeline_of(table)
    (latest, *_) = (table.path / ROOT / "files").glob(f"*_{newest_base(table)}.hfile")
    plan = CleanPlan("KEEP_LATEST_COMMITS", {"files": (latest.name,)})
    instant = f"{max(metadata_timeline.active.load().requested_times)[:-1]}9"
    content = encode_clean_plan(plan, lambda path: f"/t/{ROOT}/{path}")
    metadata_timeline.active.create_requested(instant, Action.CLEAN, content)
    before = sorted(table.path.rglob("*"))
    with pytest.raises(FormatError, match=latest.name) as caught:
        clean(metadata_timeline, 1)
    assert instant in str(caught.value.path)
    assert sorted(table.path.rglob("*")) == before


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("inflight", [False, True])
def test_a_clean_whose_plan_a_crash_left_empty_leaves_the_timeline(
    golden: Golden, version: str, inflight: bool
) -> None:
    """Its instant is the one that the next clean has in version 6."""
    table = many_slices(golden, version)
    metadata_timeline, before = metadata_timeline_of(table), held(table)
    latest = metadata_timeline.active.load().completed().of_actions(Action.DELTA_COMMIT).last()
    assert latest is not None
    empty = OperationSuffix.CLEAN.of(latest.requested_time)
    metadata_timeline.active.create_requested(empty, Action.CLEAN)
    if inflight:
        metadata_timeline.active.to_inflight(empty, Action.CLEAN)
    done = clean(metadata_timeline, 1)
    assert done.files > 4, done.reason
    timeline = metadata_timeline.active.load()
    assert timeline.pending().of_actions(Action.CLEAN).instants == ()
    assert (empty in timeline.requested_times) is (version == "6")
    assert held(table) == before


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_a_clean_that_was_cut_off_is_finished_by_its_plan(golden: Golden, version: str) -> None:
    table, whole = many_slices(golden, version), many_slices(golden, version)
    assert clean(metadata_timeline_of(whole), 1).files > 4
    plan = FaultPlan(kill_at=3, counts=MUTATIONS)
    storage = FaultStorage(table.storage, plan)
    with pytest.raises(InjectedCrash):
        clean(metadata_timeline_of(table, storage), 1)
    (pending,) = metadata_timeline_of(table).active.load().pending().of_actions(Action.CLEAN)
    assert clean(metadata_timeline_of(table), 1).instants == (pending.requested_time,)
    assert data_files(table) == data_files(whole)


def newest_base(table: Table) -> str:
    """The instant of the newest base file of `files`."""
    return max(parse_base_file(path.name).instant for path in (table.path / ROOT / "files").glob("*.hfile"))
