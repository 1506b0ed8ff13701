"""In version 6 what is built beside writers begins under a base instant before every timeline, which says what the index holds all the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.begun import begun_since
from hudi_core.metadata_table.early_instant import begun_at, early_instant, is_early
from hudi_core.metadata_table.own import OwnTimeline
from hudi_core.metadata_table.restore_reach import reach_of
from hudi_core.metadata_table.validity import is_own
from hudi_core.model.names import parse_data_file
from hudi_core.timeline.instant import Action
from tests.golden_data import GoldenCase
from tests.unit.hudi_core.metadata_table.whole_table import Table
from tests.unit.hudi_core.services.indexing.test_run import differences, planned, run

Golden = Callable[[str, str], GoldenCase]
LAST = "20261120214905004"


def test_it_is_before_every_instant_of_a_metadata_table_of_version_6() -> None:
    assert early_instant(LAST, 3) == f"{'0' * 16}{LAST}003"
    assert early_instant(LAST, 1003) == early_instant(LAST, 3)
    assert early_instant(None, 999) < early_instant(LAST, 0) < early_instant(LAST, 999) < "00000000000000010" < f"{LAST}010"


def test_it_says_when_the_index_began() -> None:
    for epoch in (0, 12, 1012):
        assert [begun_at(early_instant(last, epoch)) for last in (LAST, LAST[:14], None)] == [f"{LAST}004", f"{LAST[:14]}004", "0" * 14]
    for other in ("00000000000000010", f"{LAST}004", LAST, "0" * 17, "0" * 19):
        assert (is_early(other), begun_at(other)) == (False, other)
    assert is_early(early_instant(None, 0))
    assert is_own(early_instant(LAST, 3)), "the empty block with which a file group begins"


def test_an_index_holds_what_had_completed_when_it_began(golden: Golden) -> None:
    """A commit before it cannot be rolled back without it, nor the table restored to one with it."""
    table = Table(golden("6", "indexing_requested").table)
    first, *_, last = table.data.load().commits().instants
    names = table.config.metadata_partitions
    assert run(table.path, planned(table.path)) == "completed"
    built = table.config.metadata_partitions - names
    files = [parse_data_file(info.name) for name in built for info in table.storage.list_files(f".hoodie/metadata/{name}")]
    assert {begun_at(item.instant) for item in files if item is not None} == {f"{last.requested_time}004"}
    assert all(is_early(item.instant) for item in files if item is not None)
    own = OwnTimeline(table.storage, table.config)
    assert all(built <= begun_since(table.storage, table.config, own, commit) for commit in (first, last))
    assert reach_of(table.storage, table.config, own, last.requested_time).late == built
    assert reach_of(table.storage, table.config, own, table.new_instant()).late == frozenset()
    assert differences(table.path) == []


def test_a_metadata_table_whose_timeline_begins_as_early_is_refused(golden: Golden) -> None:
    """As of a table that came down from version 8, which begins its metadata table at seventeen zeros: the files would not count."""
    table = Table(golden("6", "indexing_requested").table)
    content = table.storage.read(table.own.path_of(table.own.load().completed().instants[0]))
    table.own.create_requested("0" * 17, Action.DELTA_COMMIT)
    table.own.to_inflight("0" * 17, Action.DELTA_COMMIT)
    table.own.complete("0" * 17, Action.DELTA_COMMIT, content)
    folder = table.path / ".hoodie" / "metadata"
    before, listed = set(folder.rglob("*")), table.config.raw
    with pytest.raises(UnsupportedError, match="begins at 00000000000000000") as caught:
        run(table.path, planned(table.path))
    assert "hudictl metadata create" in str(caught.value)
    assert (set(folder.rglob("*")), table.config.raw) == (before, listed)
