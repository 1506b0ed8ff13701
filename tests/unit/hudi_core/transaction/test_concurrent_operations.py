"""What a timeline shows of concurrent operations: their file groups by plan, inflight profile and metadata, on both
layouts.
"""

from __future__ import annotations

import pytest

from hudi_core.config.concurrency_config import Strategy
from hudi_core.config.versions import V6, V8, V9
from hudi_core.errors import ConflictError, CorruptFileError
from hudi_core.filegroup.write.markers import Marker, MarkerType, create_marker, marker_folder
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.instant_time import of_epoch_seconds
from hudi_core.timeline.pending_plans import is_clustering
from hudi_core.transaction.concurrent_operations import (
    ConflictCheck,
    check_markers,
    marked_groups,
    operation_start_at,
    read_operation,
    rivals,
)
from hudi_core.transaction.conflict import RULES, ConcurrentOperation, OperationStart, Other
from tests.support.golden_timelines import every_table, load_timelines, timelines_of
from tests.support.inflight_compactions import Layout
from tests.support.memory_storage import MemoryStorage
from tests.support.pending_operations import Operations, describe

EARLIER, ME, LATER, LATEST = "20260104000000000", "20260105000000000", "20260106000000000", "20260107000000000"
G, H = FileGroupId("p", "f-0"), FileGroupId("p", "g-0")


class Timeline:
    """A timeline of one layout at a time of its own: in layout 1 an instant completes when its file is written."""

    def __init__(self, layout: int) -> None:
        self.now = 1_700_000_000.0
        self.storage = MemoryStorage(clock=lambda: self.now)
        self.active = ActiveTimeline(self.storage, Layout(layout), zone="UTC")
        self.others = Operations(self.active)

    def verdict(
        self,
        strategy: Strategy,
        *,
        action: str = Action.DELTA_COMMIT,
        operation_start: OperationStart | None = None,
        **options: object,
    ) -> list[tuple[ConcurrentOperation, str]]:
        this = ConcurrentOperation(ME, action, State.INFLIGHT, "UPSERT", frozenset({G}))
        release = V6.conflict_release if self.active.layout == 1 else V9.conflict_release
        check = ConflictCheck(
            self.active, this, operation_start or OperationStart(EARLIER), strategy, release, True, **options
        )  # type: ignore[arg-type]
        return check.conflicts(self.active.load())


@pytest.fixture(params=[1, 2])
def timeline(request: pytest.FixtureRequest) -> Timeline:
    return Timeline(request.param)


def test_each_version_has_the_rules_of_the_release_that_writes_it() -> None:
    assert [version.conflict_release for version in (V6, V8, V9)] == ["0.15", "1.0", "1.2"]
    assert set(RULES) == {"0.15", "1.0", "1.2"}


def test_a_write_that_completed_meanwhile(timeline: Timeline) -> None:
    timeline.others.write(LATER, G, completed=LATEST)
    timeline.others.write("20260106000000001", H, completed=LATEST)
    assert describe(timeline.verdict(Strategy.SIMPLE)) == LATER


def test_an_overwrite_that_replaced_the_file_group(timeline: Timeline) -> None:
    timeline.others.overwrite(LATER, G, completed=LATEST)
    timeline.others.overwrite("20260106000000001", H, completed=LATEST)
    assert describe(timeline.verdict(Strategy.SIMPLE)) == LATER


def test_a_clustering_that_is_planned_for_the_file_group(timeline: Timeline) -> None:
    timeline.others.cluster(LATER, G, started=False)
    timeline.others.cluster("20260106000000001", G)
    timeline.others.cluster("20260106000000002", H)
    assert describe(timeline.verdict(Strategy.SIMPLE)) == f"{LATER},20260106000000001"


def test_an_old_clustering_counts_from_1_2_on(timeline: Timeline) -> None:
    timeline.others.cluster("20260101000000000", G)
    assert describe(timeline.verdict(Strategy.SIMPLE)) == ("" if timeline.active.layout == 1 else "20260101000000000")


def test_an_overwrite_that_is_under_way_says_what_it_writes(timeline: Timeline) -> None:
    timeline.others.overwrite(LATER, G)
    timeline.others.overwrite("20260106000000001", H)
    assert describe(timeline.verdict(Strategy.SIMPLE)) == LATER


def test_a_compaction_that_was_planned_after_the_write_began(timeline: Timeline) -> None:
    """In version 6 the write's logs belong to the old slice, which the compaction has planned without them."""
    timeline.others.compact(LATER, G)
    timeline.others.compact("20260106000000001", H, started=False)
    assert describe(timeline.verdict(Strategy.SIMPLE)) == (LATER if timeline.active.layout == 1 else "")


def test_a_service_gives_way_to_a_writer_that_has_announced_the_file_group(timeline: Timeline) -> None:
    timeline.others.write(LATER, G)
    timeline.others.write("20260106000000001", H)
    timeline.others.write("20260106000000002", started=False)
    assert describe(timeline.verdict(Strategy.PREFER_WRITER, action=Action.COMPACTION)) == LATER
    assert not timeline.verdict(Strategy.PREFER_WRITER)
    assert not timeline.verdict(Strategy.SIMPLE)


def test_preferred_writers_go_by_when_it_completed(timeline: Timeline) -> None:
    timeline.others.write("20260101000000000", G, completed="20260101000000001")
    timeline.others.write("20260101000000002", G, completed=LATER)
    late = timeline.active.path_of(timeline.active.load().get("20260101000000002", Action.DELTA_COMMIT))
    timeline.now = 1_900_000_000.0
    timeline.storage.write(late, timeline.storage.read(late))
    assert of_epoch_seconds(1_700_000_000.0, "UTC") < ME < of_epoch_seconds(1_900_000_000.0, "UTC")
    assert describe(timeline.verdict(Strategy.PREFER_WRITER)) == "20260101000000002"


def test_a_rollback_of_this_very_write_is_seen_from_1_2_on(timeline: Timeline) -> None:
    timeline.others.roll_back(LATER, ME)
    timeline.others.roll_back("20260106000000001", EARLIER, started=False)
    assert describe(timeline.verdict(Strategy.PREFER_WRITER)) == ("" if timeline.active.layout == 1 else LATER)


def test_a_clustering_that_waits_for_live_writers_reads_heartbeats(timeline: Timeline) -> None:
    timeline.others.write(LATER, started=False)
    timeline.others.write("20260106000000001", started=False)
    options = {"live": lambda: frozenset({LATER}), "blocks_on_requested": True}
    assert describe(timeline.verdict(Strategy.PREFER_WRITER, action=Action.CLUSTERING, **options)) == LATER
    assert not timeline.verdict(Strategy.PREFER_WRITER, action=Action.CLUSTERING)


def test_as_a_precondition_it_raises(timeline: Timeline) -> None:
    timeline.others.write(LATER, G, completed=LATEST)
    this = ConcurrentOperation(ME, Action.DELTA_COMMIT, State.INFLIGHT, "UPSERT", frozenset({G}))
    check = ConflictCheck(timeline.active, this, OperationStart(), Strategy.SIMPLE, "0.15", merge_on_read=True)
    with pytest.raises(ConflictError, match=LATER):
        check(timeline.active.load())


def test_what_is_gone_since_the_listing_is_passed_over_and_what_is_damaged_is_not(timeline: Timeline) -> None:
    timeline.others.compact(LATER, G)
    listed = timeline.active.load()
    path = timeline.active.path(LATER, Action.COMPACTION, State.REQUESTED)
    timeline.storage.write(path, b"Obj\x01 cut")
    with pytest.raises(CorruptFileError, match=LATER):
        read_operation(timeline.active, Other(listed.get(LATER, Action.COMPACTION)))
    timeline.storage.delete(path)
    assert read_operation(timeline.active, Other(listed.get(LATER, Action.COMPACTION))) is None


def test_what_the_timeline_showed_at_the_start(timeline: Timeline) -> None:
    timeline.others.write("20260101000000000", G, completed="20260101000000001")
    timeline.others.write("20260102000000000", G, completed="20260102000000001")
    timeline.others.write(EARLIER, G)
    timeline.others.write(ME, G)
    timeline.others.compact(LATER, H)
    timeline.others.roll_back(LATEST, ME)
    assert operation_start_at(timeline.active.load(), ME) == OperationStart(
        "20260102000000000", frozenset({EARLIER, LATER})
    )
    assert operation_start_at(ActiveTimeline(MemoryStorage(), Layout(1)).load(), ME) == OperationStart()


def _reads(active: ActiveTimeline) -> None:
    for instant in active.load():
        clustering = (
            not instant.is_completed
            and instant.action in (Action.REPLACE_COMMIT, Action.CLUSTERING)
            and is_clustering(active, instant)
        )
        operation = read_operation(active, Other(instant, clustering=clustering))
        assert operation is not None
        if instant.is_completed and instant.action in (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT):
            metadata = active.read_commit(instant)
            written = {FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.write_stats()}
            assert operation.groups == written | set(metadata.replaced_file_groups())


@pytest.mark.slow
def test_every_instant_of_every_golden_table_can_be_compared() -> None:
    for version, name in every_table("6", "8", "9"):
        _reads(timelines_of(load_timelines(name, version))[0])


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_pending_clusterings_and_compactions_of_real_hudi_conflict_by_their_plans(version: str) -> None:
    for case in ("clustering_requested_mor", "mor_compaction_requested", "compaction_inflight"):
        active = timelines_of(load_timelines(case, version))[0]
        (pending,) = active.load().pending()
        operation = read_operation(active, Other(pending, clustering="clustering" in case))
        assert operation is not None
        assert operation.groups
        assert operation.kind == ("CLUSTER" if "clustering" in case else "COMPACT")


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


def test_the_earliest_rival_is_named_and_foreign_files_are_passed_over() -> None:
    announced = [Marker("p", "f-0_0-1-2_3.parquet", "MERGE"), Marker("p", "readme.txt", "CREATE")]
    assert marked_groups({EARLIER: announced, OLD: announced[:1]}) == {FileGroupId("p", "f-0"): OLD}
    empty = ActiveTimeline(MemoryStorage(), Layout(1)).load()
    assert rivals([EARLIER, OLD, "view-storage-conf"], ME, empty, EVERYBODY) == [OLD, EARLIER]


def test_nothing_is_listed_without_markers(writers: Writers) -> None:
    writers.check(G)
    Operations(writers.active).write(EARLIER, G)
    writers.check(G)
    assert writers.active.load().get(EARLIER, Action.DELTA_COMMIT)
