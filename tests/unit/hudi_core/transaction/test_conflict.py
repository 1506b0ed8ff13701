"""Who conflicts with whom, by scenario: each of Hudi's strategies, as the releases of the three table versions have
them.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.config.concurrency_config import CONFLICT_STRATEGY, Strategy
from hudi_core.errors import ConfigError, ConflictError, FormatError
from hudi_core.model.names import FileGroupId
from hudi_core.timeline.instant import COMMIT_ACTIONS, Action, Instant, State
from hudi_core.transaction.conflict import (
    RULES,
    ConcurrentOperation,
    OperationStart,
    Other,
    candidates,
    is_compared,
    judge,
    refuse,
)

ME = "20260105000000000"
EARLIER, LATER, LATEST = "20260104000000000", "20260106000000000", "20260107000000000"
G, H = FileGroupId("p", "f-0"), FileGroupId("p", "g-0")
RELEASES = pytest.mark.parametrize("release", sorted(RULES))
OPTIMISTIC = pytest.mark.parametrize("strategy", [Strategy.SIMPLE, Strategy.BUCKET])


def me(action: str = Action.DELTA_COMMIT, *groups: FileGroupId, kind: str | None = "UPSERT") -> ConcurrentOperation:
    return ConcurrentOperation(ME, action, State.INFLIGHT, kind, frozenset(groups or {G}))


def instant(
    time: str,
    action: str,
    state: State = State.COMPLETED,
    completed: str | None = None,
    *,
    clustering: bool = False,
    alive: bool = False,
) -> Other:
    return Other(Instant(time, action, state, completed), completed, clustering, alive)


def chosen(
    this: ConcurrentOperation,
    other: Other,
    strategy: Strategy,
    release: str,
    operation_start: OperationStart | None = None,
    *,
    mor: bool = True,
) -> bool:
    return candidates(
        this, [other], operation_start or OperationStart(), strategy, RULES[release], merge_on_read=mor
    ) == [other]


@OPTIMISTIC
@RELEASES
def test_what_completed_since_the_last_commit_that_was_seen_counts_by_its_requested_time(
    release: str, strategy: Strategy
) -> None:
    seen = OperationStart(EARLIER)
    for action in (Action.DELTA_COMMIT, Action.REPLACE_COMMIT):
        assert chosen(me(), instant(LATER, action), strategy, release, seen)
        assert chosen(me(), instant("20260104000000001", action), strategy, release, seen)
        assert not chosen(me(), instant(EARLIER, action), strategy, release, seen)
        assert chosen(me(), instant(EARLIER, action), strategy, release, OperationStart())
    for action in (Action.CLEAN, Action.ROLLBACK, Action.SAVEPOINT, Action.RESTORE, Action.INDEXING):
        assert not chosen(me(), instant(LATER, action), strategy, release, seen)


@pytest.mark.parametrize("strategy", list(Strategy))
@RELEASES
def test_what_was_pending_at_the_start_and_completed_since_counts_whenever_it_was_requested(
    release: str, strategy: Strategy
) -> None:
    operation_start = OperationStart(LATEST, frozenset({"20260101000000000"}))
    old = instant("20260101000000000", Action.DELTA_COMMIT, completed="20260101000000001")
    assert chosen(me(), old, strategy, release, operation_start)
    assert not chosen(me(), old, strategy, release, OperationStart(LATEST))
    assert not chosen(
        me(), instant("20260101000000000", Action.DELTA_COMMIT, State.INFLIGHT), strategy, release, operation_start
    )


@OPTIMISTIC
@pytest.mark.parametrize(("release", "expected"), [("0.15", True), ("1.0", True), ("1.2", False)])
def test_a_compaction_that_completed_meanwhile_is_passed_over_from_1_2_on_where_slices_merge_on_read(
    release: str, strategy: Strategy, expected: bool
) -> None:
    compaction = instant(LATER, Action.COMMIT)
    assert chosen(me(), compaction, strategy, release) is expected
    assert chosen(me(), compaction, strategy, release, mor=False)


@OPTIMISTIC
@pytest.mark.parametrize(
    ("release", "action", "clustering", "time", "expected"),
    [
        ("0.15", Action.COMPACTION, False, LATER, True),
        ("0.15", Action.COMPACTION, False, EARLIER, False),
        ("0.15", Action.REPLACE_COMMIT, True, LATER, True),
        ("0.15", Action.REPLACE_COMMIT, True, EARLIER, False),
        ("0.15", Action.REPLACE_COMMIT, False, LATER, True),
        ("0.15", Action.REPLACE_COMMIT, False, EARLIER, False),
        ("1.0", Action.COMPACTION, False, LATER, True),
        ("1.0", Action.CLUSTERING, True, LATER, True),
        ("1.0", Action.CLUSTERING, True, EARLIER, False),
        ("1.0", Action.REPLACE_COMMIT, False, LATER, False),
        ("1.2", Action.COMPACTION, False, LATER, False),
        ("1.2", Action.CLUSTERING, True, LATER, True),
        ("1.2", Action.CLUSTERING, True, EARLIER, True),
        ("1.2", Action.REPLACE_COMMIT, False, LATER, True),
        ("1.2", Action.REPLACE_COMMIT, False, EARLIER, False),
    ],
)
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_which_pending_services_count_against_a_writer(
    release: str, action: str, clustering: bool, time: str, expected: bool, state: State, strategy: Strategy
) -> None:
    assert chosen(me(), instant(time, action, state, clustering=clustering), strategy, release) is expected


@OPTIMISTIC
@RELEASES
def test_pending_writes_do_not_count_the_first_to_commit_wins(release: str, strategy: Strategy) -> None:
    for action in (Action.COMMIT, Action.DELTA_COMMIT, Action.LOG_COMPACTION, Action.CLEAN):
        assert not chosen(me(), instant(LATER, action, State.INFLIGHT), strategy, release)


@RELEASES
def test_preferred_writers_look_at_what_completed_after_they_began_whenever_it_was_requested(release: str) -> None:
    for action in sorted(COMMIT_ACTIONS):
        assert chosen(
            me(), instant(EARLIER, action, completed=LATER), Strategy.PREFER_WRITER, release, OperationStart(LATEST)
        )
        assert not chosen(me(), instant(EARLIER, action, completed=ME), Strategy.PREFER_WRITER, release)
    for action in (Action.COMPACTION, Action.REPLACE_COMMIT, Action.DELTA_COMMIT):
        assert not chosen(me(), instant(LATER, action, State.INFLIGHT), Strategy.PREFER_WRITER, release)


@RELEASES
@pytest.mark.parametrize("action", [Action.COMPACTION, Action.CLUSTERING])
def test_a_service_gives_way_to_writers_that_have_not_committed(release: str, action: str) -> None:
    service = me(action)
    assert chosen(service, instant(EARLIER, Action.DELTA_COMMIT, completed=LATER), Strategy.PREFER_WRITER, release)
    assert not chosen(
        service, instant(EARLIER, Action.DELTA_COMMIT, completed=EARLIER), Strategy.PREFER_WRITER, release
    )
    for time in (EARLIER, LATER):
        assert chosen(service, instant(time, Action.DELTA_COMMIT, State.INFLIGHT), Strategy.PREFER_WRITER, release)
        assert chosen(
            service, instant(time, Action.REPLACE_COMMIT, State.INFLIGHT), Strategy.PREFER_WRITER, release
        ) is (release == "1.2")
        assert not chosen(service, instant(time, Action.DELTA_COMMIT, State.REQUESTED), Strategy.PREFER_WRITER, release)
        assert chosen(
            service, instant(time, Action.DELTA_COMMIT, State.REQUESTED, alive=True), Strategy.PREFER_WRITER, release
        )
        assert not chosen(
            service, instant(time, Action.CLUSTERING, State.INFLIGHT, clustering=True), Strategy.PREFER_WRITER, release
        )
        assert not chosen(
            service,
            instant(time, Action.REPLACE_COMMIT, State.INFLIGHT, clustering=True),
            Strategy.PREFER_WRITER,
            release,
        )
        assert not chosen(service, instant(time, Action.COMPACTION, State.INFLIGHT), Strategy.PREFER_WRITER, release)


@pytest.mark.parametrize(("release", "expected"), [("0.15", False), ("1.0", False), ("1.2", True)])
def test_a_pending_rollback_is_seen_by_preferred_writers_from_1_2_on(release: str, expected: bool) -> None:
    for state in (State.REQUESTED, State.INFLIGHT):
        assert chosen(me(), instant(LATER, Action.ROLLBACK, state), Strategy.PREFER_WRITER, release) is expected
        assert not chosen(me(), instant(EARLIER, Action.ROLLBACK, state), Strategy.PREFER_WRITER, release)
        assert not chosen(
            me(Action.COMPACTION), instant(LATER, Action.ROLLBACK, state), Strategy.PREFER_WRITER, release
        )
    assert not chosen(me(), instant(LATER, Action.ROLLBACK), Strategy.PREFER_WRITER, release)


@pytest.mark.parametrize("strategy", list(Strategy))
@RELEASES
def test_an_operation_does_not_conflict_with_itself(release: str, strategy: Strategy) -> None:
    for state in State:
        for action in (Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLUSTERING):
            assert not chosen(
                me(action),
                instant(ME, action, state, LATER),
                strategy,
                release,
                OperationStart(EARLIER, frozenset({ME})),
            )


def other(
    *groups: FileGroupId,
    time: str = LATER,
    action: str = Action.DELTA_COMMIT,
    kind: str | None = "UPSERT",
    state: State = State.COMPLETED,
) -> ConcurrentOperation:
    return ConcurrentOperation(time, action, state, kind, frozenset(groups))


def test_two_that_changed_one_file_group_conflict_and_the_error_names_it() -> None:
    conflicts = judge(me(), (other(H), other(G, H)))
    assert [found for found, _ in conflicts] == [other(G, H)]
    with pytest.raises(ConflictError, match=f"completed deltacommit {LATER} changes .* p/f-0") as caught:
        refuse(conflicts)
    assert caught.value.exit_code == 3
    assert "hoodie.write.lock.conflict.resolution.strategy" in str(caught.value.remedy)
    refuse(judge(me(), (other(H), other(FileGroupId("q", "f-0")))))


def test_many_shared_groups_are_counted_and_not_listed() -> None:
    groups = [FileGroupId("p", f"{number:04d}") for number in range(50)]
    ((_, text),) = judge(me(Action.DELTA_COMMIT, *groups), (other(*groups),))
    assert text.endswith("p/0000, p/0001, p/0002 and 47 more")


def test_an_earlier_compaction_is_no_conflict_and_a_later_one_is() -> None:
    for state in State:
        assert not judge(me(), (other(G, time=EARLIER, kind="COMPACT", state=state),))
        assert judge(me(), (other(G, time=LATER, kind="COMPACT", state=state),))


def test_a_log_compaction_commits_beside_writers_but_not_before_a_compaction_that_is_later() -> None:
    log_compaction = me(Action.LOG_COMPACTION, kind="LOG_COMPACT")
    assert not judge(log_compaction, (other(G), other(G, action=Action.REPLACE_COMMIT, kind="CLUSTER")))
    assert not judge(log_compaction, (other(G, time=EARLIER, kind="COMPACT"),))
    assert judge(log_compaction, (other(G, time=LATER, kind="COMPACT"),))


def test_a_rollback_conflicts_with_what_it_rolls_back_alone() -> None:
    rollback = ConcurrentOperation(LATER, Action.ROLLBACK, State.REQUESTED, None, frozenset(), ME)
    ((_, text),) = judge(me(), (rollback,))
    assert text == f"requested rollback {LATER} rolls it back"
    assert not judge(me(), (ConcurrentOperation(LATER, Action.ROLLBACK, State.REQUESTED, None, frozenset(), EARLIER),))


def test_buckets_conflict_by_their_number_whatever_the_rest_of_the_file_id() -> None:
    mine, same, next_bucket = (
        FileGroupId("p", f"{text}-0") for text in ("00000003-aaaa", "00000003-bbbb", "00000004-aaaa")
    )
    concurrent = (me(Action.DELTA_COMMIT, mine), (other(same), other(next_bucket)), Strategy.BUCKET)
    assert [found for found, _ in judge(*concurrent)] == [other(same)]
    assert not judge(me(Action.DELTA_COMMIT, mine), (other(same),), Strategy.SIMPLE)
    with pytest.raises(FormatError, match="names no bucket"):
        judge(me(), (other(H),), Strategy.BUCKET)


def test_a_clustering_may_wait_for_live_writers_that_have_not_recorded_what_they_write() -> None:
    requested = other(state=State.REQUESTED, kind=None)
    clustering = me(Action.CLUSTERING, kind="CLUSTER")
    assert not judge(clustering, (requested,), Strategy.PREFER_WRITER)
    assert judge(clustering, (requested,), Strategy.PREFER_WRITER, blocks_on_requested=True)
    assert not judge(me(Action.COMPACTION), (requested,), Strategy.PREFER_WRITER, blocks_on_requested=True)


@pytest.mark.parametrize(
    ("action", "kind", "mode", "strategy", "expected"),
    [
        (Action.DELTA_COMMIT, "UPSERT", None, Strategy.SIMPLE, True),
        (Action.DELTA_COMMIT, "UPSERT", "OPTIMISTIC_CONCURRENCY_CONTROL", Strategy.BUCKET, True),
        (Action.DELTA_COMMIT, "UPSERT", "SINGLE_WRITER", Strategy.SIMPLE, False),
        (Action.DELTA_COMMIT, "UPSERT", "NON_BLOCKING_CONCURRENCY_CONTROL", Strategy.SIMPLE, False),
        (Action.DELTA_COMMIT, "BULK_INSERT", "NON_BLOCKING_CONCURRENCY_CONTROL", Strategy.SIMPLE, True),
        (Action.LOG_COMPACTION, "LOG_COMPACT", None, Strategy.SIMPLE, True),
        (Action.COMPACTION, "COMPACT", None, Strategy.SIMPLE, False),
        (Action.COMPACTION, "COMPACT", None, Strategy.PREFER_WRITER, False),
        (Action.CLUSTERING, "CLUSTER", None, Strategy.SIMPLE, False),
        (Action.CLUSTERING, "CLUSTER", None, Strategy.PREFER_WRITER, True),
    ],
)
def test_who_is_compared_at_all(action: str, kind: str, mode: str | None, strategy: Strategy, expected: bool) -> None:
    assert is_compared(action, kind, mode, strategy) is expected


def test_strategies_are_known_by_name_and_no_other_class_is() -> None:
    for strategy in Strategy:
        for name in (strategy.value, f"org.apache.hudi.client.transaction.{strategy.value}"):
            assert CONFLICT_STRATEGY.read({CONFLICT_STRATEGY.name: name}) is strategy
    assert CONFLICT_STRATEGY.read({}) is Strategy.SIMPLE
    for name in (
        "com.example.Simple",
        "os.system",
        "",
        "org.apache.hudi.client.transaction.IngestionPrimaryWriterBasedConflictResolutionStrategy",
    ):
        with pytest.raises(ConfigError, match="PreferWriterConflictResolutionStrategy"):
            CONFLICT_STRATEGY.read({CONFLICT_STRATEGY.name: name})


_groups = st.frozensets(
    st.sampled_from([FileGroupId(partition, f"0000000{number}-x") for partition in "pq" for number in range(3)]),
    max_size=4,
)
_operations = st.builds(
    ConcurrentOperation,
    st.sampled_from([EARLIER, LATER]),
    st.sampled_from([Action.DELTA_COMMIT, Action.COMPACTION, Action.LOG_COMPACTION]),
    st.just(State.COMPLETED),
    st.sampled_from(["UPSERT", "COMPACT", "CLUSTER"]),
    _groups,
)


@given(_groups, st.lists(_operations, max_size=6))
def test_conflicts_need_a_shared_group_and_the_bucket_rule_is_never_milder(
    groups: frozenset[FileGroupId], others: list[ConcurrentOperation]
) -> None:
    this = ConcurrentOperation(ME, Action.DELTA_COMMIT, State.INFLIGHT, "UPSERT", groups)
    simple = judge(this, tuple(others))
    buckets = judge(this, tuple(others), Strategy.BUCKET)
    assert all(found.groups & groups for found, _ in simple)
    assert {found for found, _ in simple} <= {found for found, _ in buckets}
    expected = [item for item in others if item.groups & groups and not (item.kind == "COMPACT" and item.instant < ME)]
    assert [found for found, _ in simple] == expected
