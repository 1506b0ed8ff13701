"""Rounds of an archival, and the writer of each layout."""

from __future__ import annotations

import pytest

from hudi_core.config.services.retention_config import ArchiveConfig
from hudi_core.config.versions import V6, V8, V9, TableVersion
from hudi_core.errors import StorageNotFoundError
from hudi_core.history.archived_instant import ArchivedInstant
from hudi_core.history.archiving import ROUND_BYTES, LogArchiveWriter, archive_writer, rounds
from hudi_core.history.lsm_writer import LsmWriter
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import State
from tests.support.golden_timelines import Layout1
from tests.support.memory_storage import MemoryStorage


def timeline(storage: MemoryStorage, *sizes: int) -> ActiveTimeline:
    """A timeline with a completed deltacommit for each size, in bytes, of a completed file."""
    active = ActiveTimeline(storage, Layout1())
    for number, size in enumerate(sizes, 1):
        active.create_requested(f"{number:03d}", "deltacommit")
        active.to_inflight(f"{number:03d}", "deltacommit", b"profile")
        active.complete(f"{number:03d}", "deltacommit", b"x" * size)
    return active


def times_of(storage: MemoryStorage, active: ActiveTimeline, most: int | None = None) -> list[list[str]]:
    found = rounds(storage, active, "UTC", active.load().instants, most=most)
    return [[item.instant.requested_time for item in taken] for taken in found]


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (2, [["001", "002"], ["003", "004"], ["005"]]),
        (5, [["001", "002", "003", "004", "005"]]),
        (None, [["001", "002", "003", "004", "005"]]),
    ],
)
def test_a_round_has_at_most_so_many_instants(most: int | None, expected: list[list[str]]) -> None:
    storage = MemoryStorage()
    assert times_of(storage, timeline(storage, 1, 1, 1, 1, 1), most) == expected


def test_a_round_ends_before_it_exceeds_its_bytes_but_for_a_single_larger_commit() -> None:
    storage = MemoryStorage()
    active = timeline(storage, 1, ROUND_BYTES + 1, 1, ROUND_BYTES // 2, ROUND_BYTES // 2)
    assert times_of(storage, active) == [["001"], ["002"], ["003", "004"], ["005"]]


def test_an_instant_comes_with_all_its_state_files() -> None:
    storage = MemoryStorage()
    active = timeline(storage, 3)
    ((item,),) = list(rounds(storage, active, "UTC", active.load().instants))
    assert [(file.state, file.data, file.path.rpartition("/")[2]) for file in item.files] == [
        (State.REQUESTED, b"", "001.deltacommit.requested"),
        (State.INFLIGHT, b"profile", "001.deltacommit.inflight"),
        (State.COMPLETED, b"xxx", "001.deltacommit"),
    ]


def test_pending_files_may_be_gone_but_not_the_completed_one() -> None:
    """An archival that was cut off as it removed the files of a round has removed pending ones first."""
    storage = MemoryStorage()
    active = timeline(storage, 3)
    instants = active.load().instants
    storage.delete(active.path("001", "deltacommit", State.REQUESTED))
    storage.delete(active.path("001", "deltacommit", State.INFLIGHT))

    def read() -> list[list[ArchivedInstant]]:
        return list(rounds(storage, active, "UTC", instants))

    assert [file.state for file in read()[0][0].files] == [State.COMPLETED]
    storage.delete(active.path_of(instants[0]))
    with pytest.raises(StorageNotFoundError):
        read()


@pytest.mark.parametrize(("version", "writer"), [(V6, LogArchiveWriter), (V8, LsmWriter), (V9, LsmWriter)])
def test_the_writer_is_that_of_the_timelines_layout(version: TableVersion, writer: type) -> None:
    made = archive_writer(MemoryStorage(), version, "archive", ArchiveConfig.of({}), lambda: None)
    assert type(made) is writer
    assert made.held([]) == frozenset()
