"""Another process rolls a build back: a writer of Hudi the deltacommit that is pending in the metadata table, once its
heartbeat has expired.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.config.table_config import METADATA_INFLIGHT, update_properties
from hudi_core.errors import BuildRolledBackError
from hudi_core.metadata_table.initialize.indexing import Build, IndexBuild
from hudi_core.services.indexing.job import ATTEMPTS
from hudi_core.storage.base import Storage
from hudi_core.timeline.instant import Action
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.tiers import tiered
from tests.unit.hudi_core.metadata_table.initialize.test_indexing_heartbeat import beating
from tests.unit.hudi_core.services.indexing.test_job import differences, planned, run

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")


def is_there(table: Path, build: Build) -> bool:
    if build.deltacommit is None:
        return not Table(table).config.metadata_partitions_inflight.isdisjoint(build.targets)
    return Table(table).metadata_timeline.load().find(build.deltacommit, Action.DELTA_COMMIT) is not None


def roll_back(monkeypatch: pytest.MonkeyPatch, table: Path, often: int, *, before: bool = False) -> list[str | None]:
    """Another process rolls so many builds back when their files are written, or `before`, file groups and all, as
    Hudi's rollback does.

    Returns the deltacommits of these, which version 6 has not.
    """
    fill: Callable[..., object] = IndexBuild.fill
    gone: list[str | None] = []

    def remove(storage: Storage, build: Build) -> None:
        if len(gone) < often and is_there(table, build):
            gone.append(build.deltacommit)
            if before:
                for target in build.targets.values():
                    storage.delete_folder(target.folder)
            if build.deltacommit is None:
                update_properties(storage, {METADATA_INFLIGHT.name: ""})
            else:
                Table(table).metadata_timeline.delete_instant(build.deltacommit, Action.DELTA_COMMIT)

    def filled(self: IndexBuild, build: Build, *arguments: object) -> object:
        if before:
            remove(self._storage, build)
        written = fill(self, build, *arguments)
        remove(self._storage, build)
        return written

    monkeypatch.setattr(IndexBuild, "fill", filled)
    return gone


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("often", tiered(range(1, ATTEMPTS + 1), [1, ATTEMPTS]))
@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_a_build_that_is_rolled_back_is_repeated(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, often: int, before: bool
) -> None:
    """At last under the lock of the table, where no writer comes between."""
    table = golden(version, "indexing_requested").table
    gone = roll_back(monkeypatch, table, often, before=before)
    assert run(table, planned(table)) == "completed"
    assert len(gone) == often
    assert differences(table) == []
    assert not Table(table).metadata_timeline.load().pending().instants
    assert beating(table) == set()


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_rollback_under_the_lock_ends_with_a_conflict(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """By a process that does not know of the lock. It leaves nothing that counts, and can be run again."""
    table = golden(version, "indexing_requested").table
    instant, before = planned(table), Table(table).config.metadata_partitions
    with monkeypatch.context() as patch:
        gone = roll_back(patch, table, ATTEMPTS + 1)
        with pytest.raises(BuildRolledBackError, match="run the indexing again"):
            run(table, instant)
    assert len(gone) == ATTEMPTS + 1
    assert Table(table).config.metadata_partitions == before
    assert run(table, instant) == "completed"
    assert differences(table) == []
