from __future__ import annotations

import inspect

import pytest

from hudi_core.history.archived import ArchivedTimeline
from hudi_core.history.log_archive import LogArchive
from hudi_core.history.lsm import LsmHistory
from hudi_core.timeline.instant import Instant, State
from tests.support.memory_storage import MemoryStorage

QUESTIONS = sorted(name for name in vars(LogArchive).keys() & vars(LsmHistory).keys() if not name.startswith("_"))


@pytest.mark.parametrize("name", QUESTIONS)
def test_both_layouts_are_asked_alike(name: str) -> None:
    def parameters(of: type) -> list[str]:
        return list(inspect.signature(getattr(of, name)).parameters)

    assert parameters(LogArchive) == parameters(LsmHistory)


@pytest.mark.parametrize("archive", [LogArchive, LsmHistory])
def test_a_folder_that_is_not_there_is_an_empty_archive(archive: type) -> None:
    found: ArchivedTimeline = archive(MemoryStorage(), ".hoodie/absent")
    commit = Instant("001", "commit", State.COMPLETED, "002")
    assert found.is_empty()
    assert (found.instants(), found.completed_in(None, None), len(found.timeline())) == ([], [], 0)
    assert (found.commit("001"), found.completion_time("001"), list(found.commits([commit]))) == (None, None, [])
    assert (found.content(commit), found.plan(commit)) == ({}, {})
