"""One instant decoded, where several actions share it and where the archival took some of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError
from hudi_core.query.context import ReadContext
from hudi_core.query.show import show_instant
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")


def opened(case: GoldenCase) -> ReadContext:
    storage = LocalStorage(str(case.table))
    config = TableConfig.load(storage)
    return ReadContext(storage.uri, storage, config, ActiveTimeline(storage, config))


def saved_instant(context: ReadContext) -> str:
    saved = context.active.load().completed().of_actions(Action.SAVEPOINT).first()
    assert saved is not None
    return saved.requested_time


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_comes_with_the_savepoint_that_holds_it(golden: Golden, version: str) -> None:
    context = opened(golden(version, "savepoint_mor"))
    instant = saved_instant(context)
    shown = show_instant(context, instant)
    assert shown.instant.action in (Action.COMMIT, Action.DELTA_COMMIT)
    assert shown.metadata is not None
    assert "partitionToWriteStats" in shown.metadata
    assert shown.savepoint is not None
    assert shown.savepoint["savepointedBy"]
    chosen = show_instant(context, instant, "savepoint")
    assert (chosen.instant.action, chosen.plan, chosen.metadata) == (Action.SAVEPOINT, None, shown.savepoint)
    assert show_instant(context, instant, shown.instant.action) == shown
    with pytest.raises(ConfigError, match=f"holds clean {instant}") as caught:
        show_instant(context, instant, "clean")
    assert str(caught.value.remedy) == f"there is: {shown.instant.action}, savepoint"


def test_a_savepoint_that_is_not_complete_has_no_content(golden: Golden) -> None:
    case = golden("6", "savepoint_mor")
    context = opened(case)
    instant = saved_instant(context)
    (case.table / ".hoodie" / f"{instant}.savepoint").unlink()
    assert show_instant(context, instant).savepoint is None
    chosen = show_instant(context, instant, "savepoint")
    assert (chosen.instant.state, chosen.metadata) == (State.INFLIGHT, None)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_of_the_archive_comes_with_a_savepoint_that_stayed(golden: Golden, version: str) -> None:
    """hoodie.archive.beyond.savepoint lets the archival take what a savepoint holds."""
    saving = golden(version, "savepoint_mor")
    instant = saved_instant(opened(saving))
    case = golden(version, "archived_timeline_mor")
    context = opened(case)
    archived = next(item for item in context.history().instants() if item.action == Action.DELTA_COMMIT).requested_time
    copy_savepoint(saving.table, instant, case.table, archived)
    shown = show_instant(context, archived)
    assert (shown.instant.action, shown.instant.state) == (Action.DELTA_COMMIT, State.COMPLETED)
    assert shown.metadata is not None
    assert shown.metadata["operationType"] == "INSERT"
    assert shown.savepoint is not None
    assert show_instant(context, archived, "savepoint").metadata == shown.savepoint


def copy_savepoint(source: Path, instant: str, target: Path, other: str) -> None:
    files = [path for path in (source / ".hoodie").rglob("*savepoint*") if path.name.startswith(instant)]
    assert len(files) == 2
    for path in files:
        shutil.copy(path, (target / path.relative_to(source)).with_name(path.name.replace(instant, other, 1)))


def test_compaction_also_means_its_commit(golden: Golden) -> None:
    case = golden("6", "archived_timeline_mor")
    context = opened(case)
    commit = next(item for item in context.history().instants() if item.action == Action.COMMIT)
    shown = show_instant(context, commit.requested_time, "compaction")
    assert shown.instant == commit
    assert shown.plan is not None


def test_what_is_not_there(golden: Golden) -> None:
    context = opened(golden("6", "savepoint_mor"))
    with pytest.raises(ConfigError, match="holds an instant 20000101000000000"):
        show_instant(context, "20000101000000000")
    with pytest.raises(ConfigError, match="'saved' is no action"):
        show_instant(context, saved_instant(context), "saved")
