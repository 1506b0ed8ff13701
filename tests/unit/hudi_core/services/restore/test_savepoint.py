"""Creating savepoints on tables of real Hudi."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hudi_core.errors import ConfigError, FormatError, HudiError, LockError, StorageError, TimelineError
from hudi_core.model.names import LogFileName, parse_data_file
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.restore.candidates import RestoreCandidates
from hudi_core.services.restore.savepoint import SavepointJob, read_savepoint, savepoint_create, savepoint_list
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action
from hudi_core.transaction import commit
from hudi_core.transaction.commit import Completer
from tests.support.changed_tables import an_owner, complete_at, data_files, leftovers, open_context
from tests.support.counting_storage import CountingStorage
from tests.support.fault_storage import FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["savepoint_cow", "savepoint_mor"])
def test_the_files_of_a_commit_are_those_that_hudi_keeps(golden: Golden, version: str, name: str) -> None:
    context = open_context(golden(version, name).table)
    (theirs,) = context.active.load().of_actions(Action.SAVEPOINT)
    kept = {partition: set(names) for partition, names in read_savepoint(context, theirs).files.items() if names}
    context.storage.delete(context.active.path_of(theirs))
    made = savepoint_create(context, theirs.requested_time, an_owner(), comment="again")
    (ours,) = context.active.load().completed().of_actions(Action.SAVEPOINT)
    files = {partition: set(names) for partition, names in read_savepoint(context, ours).files.items() if names}
    extra = [file for partition, names in files.items() for file in names - kept.get(partition, set())]
    assert all(names <= files[partition] for partition, names in kept.items())
    assert all(isinstance(parse_data_file(file), LogFileName) for file in extra), "log files since then are kept too"
    assert (made.instant, made.existed, made.comment) == (theirs.requested_time, False, "again")


@pytest.mark.parametrize("version", VERSIONS)
def test_without_an_instant_the_newest_commit_is_saved(golden: Golden, version: str) -> None:
    table = golden(version, "mor_basic").table
    context, before = open_context(table), data_files(table)
    made = savepoint_create(context, None, replace(an_owner(), text="ann"))
    assert made.instant == context.active.load().commits().instants[-1].requested_time
    assert made.by == "ann"
    assert made.files > 0
    assert [item.instant for item in savepoint_list(context)] == [made.instant]
    assert data_files(table) == before
    assert leftovers(table, made.instant) == []


@pytest.mark.parametrize("name", ["cow_basic", "mor_basic"])
def test_where_writes_overlapped_a_restore_to_the_savepoint_keeps_every_commit(golden: Golden, name: str) -> None:
    table = golden("9", name).table
    context = open_context(table)
    *_, overlapping, last = context.active.load().commits().instants
    complete_at(table, overlapping.requested_time, str(int(last.completed_at) + 1))
    assert savepoint_create(context, None, an_owner()).instant == overlapping.requested_time
    timeline = context.active.load()
    (saved,) = (commit for commit in timeline.commits() if commit.requested_time == overlapping.requested_time)
    assert not any(instant.is_completed for instant in RestoreCandidates(context, timeline).after(saved))


def test_no_commit_is_saved_unnamed_if_a_restore_to_it_would_roll_another_back(golden: Golden) -> None:
    table = golden("9", "mor_compacted").table
    context = open_context(table)
    commits = context.active.load().commits().instants
    compaction = next(index for index, commit in enumerate(commits) if commit.action == Action.COMMIT)
    for later, index in enumerate((compaction - 1, compaction), start=1):
        complete_at(table, commits[index].requested_time, str(int(commits[-1].completed_at) + later))
    with pytest.raises(ConfigError, match="would roll an overlapping commit back") as caught:
        savepoint_create(context, None, an_owner())
    assert "name the commit" in str(caught.value.remedy)
    assert savepoint_list(context) == []


@pytest.mark.parametrize("name", ["archived_timeline_cow", "archived_timeline_mor"])
def test_the_archive_of_version_6_is_read_once(golden: Golden, name: str) -> None:
    """Before the savepoint, under the lock, and when it completes, cleans are looked for."""
    table = golden("6", name).table
    storage = CountingStorage(table)
    context = open_context(table, storage=storage)
    newest = context.active.load().commits().instants[-1].requested_time
    assert savepoint_create(context, newest, an_owner()).files > 0
    opened = [path for path, start in storage.ranges if "/.commits_.archive." in path and start == 0]
    assert opened
    assert len(opened) == len(set(opened))


def test_a_savepoint_that_exists_is_left(golden: Golden) -> None:
    context = open_context(golden("9", "cow_basic").table)
    first = savepoint_create(context, None, an_owner(), comment="first")
    second = savepoint_create(context, first.instant, an_owner(), comment="second")
    assert (first.existed, second.existed) == (False, True)
    assert second.comment == "first"


def test_an_inflight_savepoint_is_completed(golden: Golden) -> None:
    context = open_context(golden("9", "cow_basic").table)
    newest = context.active.load().commits().instants[-1].requested_time
    context.active.to_inflight(newest, Action.SAVEPOINT)
    assert savepoint_create(context, newest, an_owner()).files > 0
    assert not context.active.load().pending().of_actions(Action.SAVEPOINT)


def test_an_instant_that_is_no_commit_is_refused(golden: Golden) -> None:
    context = open_context(golden("8", "cow_basic").table)
    with pytest.raises(ConfigError, match="no completed commit at instant 20200101000000000"):
        savepoint_create(context, "20200101000000000", an_owner())
    empty = open_context(golden("8", "empty_table_no_commits").table)
    with pytest.raises(ConfigError, match="the table has no completed commit"):
        savepoint_create(empty, None, an_owner())
    assert savepoint_list(context) == savepoint_list(empty) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cleaned_commit_cannot_be_saved(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "clean_requested_cow").table)
    (clean,) = CleanService().pending(context, context.active.load())
    oldest = context.active.load().commits().instants[0].requested_time
    assert oldest < clean
    with pytest.raises(TimelineError, match="cleans may have removed files of it"):
        savepoint_create(context, oldest, an_owner())
    assert savepoint_list(context) == []


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("kind", [LockError, StorageError, FormatError])
def test_a_creation_that_failed_leaves_nothing(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, kind: type[HudiError]
) -> None:
    """It fails between its two locks."""
    context = open_context(golden(version, "cow_basic").table)

    def fails(*_: object) -> None:
        raise kind("it failed")

    monkeypatch.setattr(SavepointJob, "execute", fails)
    with pytest.raises(kind, match="it failed"):
        savepoint_create(context, None, an_owner())
    assert not context.active.load().of_actions(Action.SAVEPOINT).instants
    monkeypatch.undo()
    assert savepoint_create(context, None, an_owner()).files > 0


def test_the_error_of_a_creation_is_shown_where_its_file_cannot_go(golden: Golden) -> None:
    """The storage fails for good between the two locks; the file is there for the next run."""
    table = golden("9", "cow_basic").table
    plan = FaultPlan(
        when=lambda operation: operation.kind == "delete" and operation.path.endswith(".savepoint.inflight"),
        error=lambda operation: StorageError("unreachable", path=operation.path),
    )
    context = open_context(table, storage=FaultStorage(LocalStorage(table), plan))

    def fails(*_: object) -> None:
        raise LockError("taken")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SavepointJob, "execute", fails)
        with pytest.raises(LockError, match="taken"):
            savepoint_create(context, None, an_owner())
    assert plan.fired
    assert context.active.load().pending().of_actions(Action.SAVEPOINT)
    assert savepoint_create(context, None, an_owner()).files > 0


@pytest.mark.parametrize("cleaned", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_savepoint_that_was_decided_is_made_only_while_its_files_are_there(
    golden: Golden, version: str, cleaned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its run is killed between its decision and its put, which cannot arrive any more: until it is on the timeline it
    keeps no file.
    """
    monkeypatch.setattr(commit, "LATE_SECONDS", 0)
    context = open_context(golden(version, "cow_basic").table, {"hoodie.clean.commits.retained": "1"})
    first = context.active.load().commits().instants[0].requested_time

    def killed(*_: object) -> None:
        raise InjectedCrash("right after the decision")

    with pytest.MonkeyPatch.context() as dying:
        dying.setattr(Completer, "_put", killed)
        with pytest.raises(InjectedCrash):
            savepoint_create(context, first, an_owner())
    if not cleaned:
        assert savepoint_create(context, first, an_owner()).files > 0
        return
    clean = CleanService().schedule(context, an_owner(), dry_run=False).instant
    assert clean is not None
    with pytest.raises(TimelineError, match="cannot be kept"):
        savepoint_create(context, first, an_owner())
    assert not context.active.load().of_actions(Action.SAVEPOINT).instants
