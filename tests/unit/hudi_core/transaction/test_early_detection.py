"""Who is writing to a file group now, by the markers of writers that are alive."""

from __future__ import annotations

import pytest

from hudi_core.errors import ConflictError
from hudi_core.filegroup.write.markers import Marker, MarkerType, create_marker, marker_folder
from hudi_core.model.names import FileGroupId
from hudi_core.testing.memory import MemoryStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.transaction.early_detection import check_markers, marked_groups, rivals
from tests.support.inflight_compactions import Layout
from tests.support.pending_operations import Operations

OLD, EARLIER, ME, LATER = "20260103000000000", "20260104000000000", "20260105000000000", "20260106000000000"
G, H = FileGroupId("p/q", "f-0"), FileGroupId("p/q", "g-0")
EVERYBODY = frozenset({OLD, EARLIER, ME, LATER})


class Writers:
    def __init__(self, layout: int) -> None:
        self.storage = MemoryStorage()
        self.active = ActiveTimeline(self.storage, Layout(layout))

    def mark(self, instant: str, group: FileGroupId, kind: MarkerType = MarkerType.MERGE) -> None:
        create_marker(self.storage, instant, group.partition, f"{group.file_id}_0-1-2_{instant}.parquet", kind)

    def check(self, *groups: FileGroupId, live: frozenset[str] = EVERYBODY) -> None:
        check_markers(self.storage, self.active.load(), ME, groups, live)


@pytest.fixture(params=[1, 2])
def writers(request: pytest.FixtureRequest) -> Writers:
    return Writers(request.param)


@pytest.mark.parametrize("kind", list(MarkerType))
def test_an_earlier_live_writer_in_the_same_group_is_named(writers: Writers, kind: MarkerType) -> None:
    writers.mark(EARLIER, G, kind)
    with pytest.raises(ConflictError, match=f"{EARLIER} is writing to file group f-0") as caught:
        writers.check(H, G)
    assert caught.value.path == f".hoodie/.temp/{EARLIER}"
    writers.check(H)
    writers.check(FileGroupId("p", "f-0"))


def test_a_log_files_marker_counts_alike(writers: Writers) -> None:
    create_marker(writers.storage, EARLIER, G.partition, f".f-0_{EARLIER}.log.1_0-1-2", MarkerType.APPEND)
    with pytest.raises(ConflictError):
        writers.check(G)


def test_markers_that_a_timeline_server_keeps_in_batches_count_alike(writers: Writers) -> None:
    folder = marker_folder(EARLIER)
    writers.storage.write(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    writers.storage.write(f"{folder}/MARKERS3", f"p/q/f-0_0-1-2_{EARLIER}.parquet.marker.CREATE\n".encode())
    with pytest.raises(ConflictError):
        writers.check(G)


def test_a_dead_writers_markers_count_for_nothing(writers: Writers) -> None:
    writers.mark(EARLIER, G)
    writers.check(G, live=EVERYBODY - {EARLIER})


def test_later_writers_and_oneself_do_not_count(writers: Writers) -> None:
    """Of two, the later one gives way: else both would."""
    writers.mark(ME, G)
    writers.mark(LATER, G)
    writers.check(G)


def test_services_that_are_pending_do_not_count(writers: Writers) -> None:
    Operations(writers.active).compact(OLD, G)
    Operations(writers.active).cluster(EARLIER, G)
    writers.mark(OLD, G)
    writers.mark(EARLIER, G)
    writers.check(G)


def test_the_earliest_rival_is_told_and_foreign_files_are_passed_over() -> None:
    announced = [Marker("p", "f-0_0-1-2_3.parquet", "MERGE"), Marker("p", "readme.txt", "CREATE")]
    assert marked_groups({EARLIER: announced, OLD: announced[:1]}) == {FileGroupId("p", "f-0"): OLD}
    empty = ActiveTimeline(MemoryStorage(), Layout(1)).load()
    assert rivals([EARLIER, OLD, "view-storage-conf"], ME, empty, EVERYBODY) == [OLD, EARLIER]


def test_nothing_is_listed_where_nobody_marks(writers: Writers) -> None:
    writers.check(G)
    Operations(writers.active).write(EARLIER, G)
    writers.check(G)
    assert writers.active.load().get(EARLIER, Action.DELTA_COMMIT)
