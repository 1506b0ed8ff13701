"""8 or 16 writers that complete one instant, many rounds, on both timeline layouts: once, and all get the same answer.

Also where each takes the others for dead and nothing but the claims keeps them apart. And the same on a storage that
must fail. S3 is moto behind one lock, where the rounds are few, as one completion is two dozen requests; or the server
that AIRFLOW_HUDI_S3_SERVER names (`make soak`: versitygw), with all of them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import cast

import pytest

from hudi_core.errors import HudiError
from hudi_core.storage.base import Storage
from hudi_core.storage.local import LocalStorage
from hudi_core.storage.registry import open_storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.transaction.claim import Claim, claim
from hudi_core.transaction.commit import Completer
from hudi_core.transaction.locks.filesystem import FileSystemLock
from hudi_core.transaction.owner import Owner
from tests.contract.racing import CheckThenPut, race
from tests.contract.racing_servers import CHOICE, RacingServer
from tests.support.inflight_compactions import Layout, OpenLock, quiet_clock

pytestmark = pytest.mark.slow
ROUNDS = 60
QUICK_ROUNDS = 20
CONTROL_ROUNDS = 12
MOTO_ROUNDS = 2
FIRST = 20260101000000000
_tables = itertools.count()


def races_of(
    quick: Collection[tuple[str, int, int, int]], races: Sequence[tuple[str, int, int]]
) -> pytest.MarkDecorator:
    """Races by place, writers and rounds on either timeline layout; those that are not `quick` are left to `make
    soak`.
    """
    found = [(*race, layout) for race in races for layout in (1, 2)]
    marked = [pytest.param(*race, marks=() if race in quick else pytest.mark.conformance) for race in found]
    return pytest.mark.parametrize(("where", "writers", "rounds", "layout"), marked)


@pytest.fixture
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Storage]:
    def make(where: str) -> Storage:
        if where == "local":
            return LocalStorage(tmp_path)
        server: RacingServer = request.getfixturevalue("s3")
        return open_storage(f"s3://bucket/completions/t{next(_tables)}", server.options)

    return make


def rounds_of(where: str, rounds: int) -> int:
    return MOTO_ROUNDS if where == "s3" and os.environ.get(CHOICE, "moto") == "moto" else rounds


def races(storage: Storage, layout: int, writers: int, rounds: int, *, all_dead: bool) -> list[str]:
    """What went wrong: rounds that did not complete once, and writers that got other bytes than those on the
    timeline.

    `all_dead`: each claims over the others, and the table lock is open. Each completes with JSON, as all that is not
    looks cut short, and is read again for a second.
    """
    active = ActiveTimeline(storage, Layout(layout), zone="UTC")
    for number in range(rounds):
        active.create_requested(str(FIRST + number), Action.COMPACTION, b"plan")
        active.to_inflight(str(FIRST + number), Action.COMPACTION)
    reported: list[tuple[int, bytes]] = []

    def attempt(writer: int) -> Callable[[int], bool]:
        owner = Owner.current(f"writer {writer}")

        def complete(number: int) -> bool:
            instant = str(FIRST + number)
            try:
                with claim(storage, instant, owner, now=(lambda: 2.0**40) if all_dead else None) as held:
                    lock = OpenLock if all_dead else lambda: FileSystemLock(storage, owner, wait_ms=60_000)
                    completer = Completer(active, held, lock, quiet_clock())
                    done = completer.finish_decided(instant) or completer.complete(
                        instant, Action.COMPACTION, b'{"writer": %d}' % writer
                    )
                    reported.append((number, active.read_details(done)))
            except HudiError:
                return False
            return True

        return complete

    race([attempt(writer) for writer in range(writers)], rounds)
    wrong = []
    for number in range(rounds):
        contents = [storage.read(path) for path in active.completed_paths(str(FIRST + number), Action.COMPACTION)]
        heard = {content for round_number, content in reported if round_number == number}
        if len(contents) > 1 or not heard <= set(contents) or (not contents and not all_dead):
            wrong.append(f"round {number}: completed with {contents}, answered {sorted(heard)}")
    return wrong


@races_of(
    {("local", 16, QUICK_ROUNDS, 2), ("s3", 8, ROUNDS, 1)},
    [("local", 8, ROUNDS), ("local", 16, QUICK_ROUNDS), ("local", 16, ROUNDS), ("s3", 8, ROUNDS), ("s3", 16, ROUNDS)],
)
def test_racing_writers_complete_each_instant_once(
    table: Callable[[str], Storage], where: str, writers: int, rounds: int, layout: int
) -> None:
    assert races(table(where), layout, writers, rounds_of(where, rounds), all_dead=False) == []


@races_of(
    {("local", 8, QUICK_ROUNDS, 1), ("s3", 8, ROUNDS, 2)},
    [("local", 8, QUICK_ROUNDS), ("local", 8, ROUNDS), ("local", 16, CONTROL_ROUNDS), ("s3", 8, ROUNDS)],
)
def test_writers_that_take_each_other_for_dead_complete_no_instant_twice(
    table: Callable[[str], Storage], where: str, writers: int, rounds: int, layout: int
) -> None:
    assert races(table(where), layout, writers, rounds_of(where, rounds), all_dead=True) == []


@pytest.mark.parametrize("where", ["local", pytest.param("s3", marks=pytest.mark.conformance)])
def test_the_race_finds_a_storage_that_checks_then_puts(
    table: Callable[[str], Storage], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no owner reads its claim back, which finds out about most of these on its own."""
    monkeypatch.setattr(Claim, "_is_on_record", lambda self: True)
    # A look at an object store is one request: the pause is as long as several.
    storage = cast(Storage, CheckThenPut(table(where), 0.05 if where == "s3" else 0.002))
    assert races(storage, 2, 8, rounds_of(where, CONTROL_ROUNDS), all_dead=True), (
        "a race test that passes here is too weak"
    )
