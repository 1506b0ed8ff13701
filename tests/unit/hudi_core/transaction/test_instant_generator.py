"""Times that no other writer gets: later than everything on the timeline, and later than every clock within the
skew.
"""

from __future__ import annotations

import multiprocessing
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import TimelineError
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction import instant_generator
from hudi_core.transaction.instant_generator import SKEW_MS, InstantClock, times_pass_at_end
from hudi_core.transaction.locks.filesystem import FileSystemLock
from hudi_core.transaction.owner import Owner
from tests.support.inflight_compactions import Layout

NOW = datetime(2026, 11, 20, 21, 49, 5, 4999, tzinfo=timezone.utc)
TIMES = st.text("0123456789", min_size=17, max_size=20)


def clock(now: datetime = NOW, **options: Any) -> InstantClock:
    return InstantClock("UTC", 0, now=lambda: now, **options)


def done(requested: str, completed: str | None = None) -> Instant:
    return Instant(requested, Action.COMMIT, State.COMPLETED, completed)


def test_the_clocks_time_in_the_tables_zone() -> None:
    assert clock().next(Timeline()) == "20261120214905004"
    assert InstantClock("Asia/Tokyo", 0, now=lambda: NOW).next(Timeline()) == "20261121064905004"


@pytest.mark.parametrize(
    ("timeline", "minimum"),
    [
        (Timeline([done("20261120214905004")]), ""),
        (Timeline([done("20261120000000000", "20261120214905004")]), ""),
        (Timeline([done("20261120000000000", "20261120214905003"), done("20261120214905004", None)]), ""),
        (Timeline([done("20261120214905003001")]), "20261120214905004"),
        (Timeline(), "20261120214905004"),
    ],
)
def test_later_than_requested_and_completion_times_and_the_minimum(timeline: Timeline, minimum: str) -> None:
    assert clock().next(timeline, minimum=minimum) == "20261120214905005"


@given(st.lists(st.tuples(TIMES, st.none() | TIMES), max_size=8), TIMES)
def test_always_larger_than_everything_or_an_error(times: list[tuple[str, str | None]], minimum: str) -> None:
    timeline = Timeline(done(*pair) for pair in times)
    drawing = clock()
    try:
        first, second = (drawing.next(timeline, minimum=minimum) for _ in range(2))
    except TimelineError:
        return  # a time ahead of the clock that is no date
    assert max([minimum, *(text for pair in times for text in pair if text)]) < first < second
    assert len(first) == 17


def test_what_was_given_out_is_not_given_again_although_it_is_not_on_the_timeline() -> None:
    """A completion time may have been used although nothing shows it yet."""
    drawing = clock()
    given_out = [drawing.next(Timeline()) for _ in range(3)]
    assert given_out == ["20261120214905004", "20261120214905005", "20261120214905006"]


def test_two_clocks_of_a_process_never_read_the_same_millisecond() -> None:
    drawn: list[str] = []
    barrier = threading.Barrier(8)

    def draw() -> None:
        barrier.wait()
        drawn.extend(InstantClock("UTC", 0).next(Timeline()) for _ in range(50))

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 400


def test_the_skew_is_waited_after_the_time_was_drawn() -> None:
    slept: list[float] = []
    drawing = InstantClock("UTC", now=lambda: NOW + timedelta(seconds=sum(slept)), sleep=slept.append)
    assert drawing.next(Timeline()) == "20261120214905004"
    assert slept == [SKEW_MS / 1000] == [0.2]
    assert drawing.next(Timeline()) == "20261120214905204"


def test_a_timeline_ahead_of_the_clock_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    assert clock().next(Timeline([done("20261120214905900")])) == "20261120214905901"
    assert not caplog.records
    assert clock().next(Timeline([done("20261120224905004")])) == "20261120224905005"
    assert "ahead of this machine's clock" in caplog.text


def _draw(number: int, barrier: Any, root: str, behind_ms: float, skew_ms: int, rounds: int) -> None:
    """One of several machines: its clock is behind by `behind_ms`."""
    storage = LocalStorage(root)
    active = ActiveTimeline(storage, Layout(2), zone="UTC")
    drawing = InstantClock("UTC", skew_ms, now=lambda: datetime.now(timezone.utc) - timedelta(milliseconds=behind_ms))
    barrier.wait(60)
    for _ in range(rounds):
        with FileSystemLock(storage, Owner.current(f"machine {number}"), wait_ms=60_000):
            instant = drawing.next(active.load() if skew_ms == 0 else Timeline())
            active.create_requested(instant, Action.DELTA_COMMIT)
            storage.write(f"order/{len(storage.list_files('order')):06d}-{instant}", b"")


def drawn_by_machines(root: Path, skew_ms: int) -> list[str]:
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(4)
    machines = [
        fork.Process(target=_draw, args=(number, barrier, str(root), 5.0 * number, skew_ms, 10)) for number in range(4)
    ]
    for machine in machines:
        machine.start()
    for machine in machines:
        machine.join(120)
    assert [machine.exitcode for machine in machines] == [0] * 4
    return [info.name.split("-")[1] for info in LocalStorage(root).list_files("order")]


def test_machines_whose_clocks_differ_draw_rising_times_by_the_timeline_alone(tmp_path: Path) -> None:
    drawn = drawn_by_machines(tmp_path, 0)
    assert len(set(drawn)) == 40
    assert drawn == sorted(drawn)


def test_and_by_the_wait_alone_when_the_skew_is_within_it(tmp_path: Path) -> None:
    """A time that was drawn and is on no timeline yet, a completion time say, is kept from others by the wait."""
    drawn = drawn_by_machines(tmp_path, 25)
    assert len(set(drawn)) == 40
    assert drawn == sorted(drawn)


def test_a_time_before_an_instant_is_within_a_second_and_after_the_one_before_it() -> None:
    timeline = Timeline([done("20261120214800000"), done("20261120214905004")])
    assert clock().before("20261120214905004", timeline) == "20261120214904999"
    assert clock(NOW + timedelta(milliseconds=7)).before("20261120214905004", timeline) == "20261120214904992"
    near = Timeline([done("20261120214905001"), done("20261120214905004")])
    found = {clock(NOW + timedelta(milliseconds=ms)).before("20261120214905004", near) for ms in range(9)}
    assert found == {"20261120214905002", "20261120214905003"}


def test_a_time_before_an_instant_is_free() -> None:
    timeline = Timeline([done("20261120214905003"), done("20261120214905004")])
    assert clock().before("20261120214905004", timeline, {"20261120214905002"}) == "20261120214905001"
    at_the_second = clock(NOW.replace(microsecond=999_000))
    assert at_the_second.before("20261120214905004", Timeline()) == "20261120214904004"
    assert at_the_second.before("20261120214905004", Timeline(), {"20261120214904004"}) == "20261120214905003"
    assert clock().before("20261120214905", Timeline([done("20261120214905")])) < "20261120214905", "of 14 digits"
    with pytest.raises(TimelineError, match="no date"):
        clock().before("00000000000000010", Timeline([done("00000000000000010")]))


def test_within_a_block_the_times_pass_while_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    passed = [100.0]
    monkeypatch.setattr(instant_generator.time, "monotonic", lambda: passed[0])
    drawing = InstantClock("UTC", now=lambda: NOW, sleep=slept.append)
    with times_pass_at_end():
        first = drawing.next(Timeline())
        passed[0] += 0.15
        assert drawing.next(Timeline()) > first
        assert slept == []
        passed[0] += 0.06
    assert slept == [pytest.approx(0.14)], "the first has passed, the second has not"
    drawing.next(Timeline())
    assert slept[1:] == [0.2]


@pytest.mark.parametrize(
    ("others", "own", "waits"),
    [
        ([], "001", False),
        ([Instant("001", Action.COMPACTION, State.INFLIGHT)], "001", False),
        ([Instant("002", Action.COMPACTION, State.REQUESTED), done("003")], "001", False),
        ([Instant("002", Action.DELTA_COMMIT, State.INFLIGHT)], "001", True),
        ([Instant("002", Action.DELTA_COMMIT, State.INFLIGHT)], "", True),
    ],
)
def test_beside_an_inflight_instant_a_time_has_passed_when_it_is_used(
    others: list[Instant], own: str, waits: bool
) -> None:
    """A writer without the lock may have drawn an earlier completion time, and shows it as late as it waits."""
    slept: list[float] = []
    with times_pass_at_end():
        InstantClock("UTC", now=lambda: NOW, sleep=slept.append).next(Timeline(others), minimum=own)
        assert slept == ([0.2] if waits else [])


def test_the_times_pass_also_where_the_block_fails() -> None:
    slept: list[float] = []

    def fails() -> None:
        with times_pass_at_end():
            InstantClock("UTC", now=lambda: NOW, sleep=slept.append).next(Timeline())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert slept == [pytest.approx(0.2, abs=0.1)]
