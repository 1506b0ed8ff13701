"""What of the metadata table's timeline is archived, and that readers need none of it."""

from __future__ import annotations

import pytest

from hudi_core.history.archiving import archive_writer
from hudi_core.metadata_table.services.table_services import archive, to_archive
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from tests.support.metadata_services import (
    SMALL,
    VERSIONS,
    Golden,
    delta_commits,
    many_slices,
    metadata_timeline_of,
)
from tests.support.tiers import tiered
from tests.unit.hudi_core.metadata_table.services.test_compaction import compaction, held


def cleans_in(found: str | list[Instant]) -> int:
    assert isinstance(found, list)
    return sum(1 for item in found if item.action == Action.CLEAN)


def test_what_may_be_archived() -> None:
    data = Timeline([Instant("8", Action.COMMIT, State.COMPLETED, "9", Action.COMMIT)])
    commits = delta_commits(9)
    kept = to_archive(Timeline(commits), data, 2, 3, counts_cleans=False)
    assert isinstance(kept, str)
    assert "never compacted" in kept
    compacted = Instant(f"{7:017d}1", Action.COMMIT, State.COMPLETED, f"{7:017d}2", Action.COMPACTION)
    metadata_timeline = Timeline([*commits, compacted])
    assert to_archive(metadata_timeline, data, 2, 3, counts_cleans=False) == commits[:6]
    assert to_archive(metadata_timeline, data, 6, 8, counts_cleans=False) == commits[:3]
    few = to_archive(metadata_timeline, data, 8, 9, counts_cleans=False)
    assert isinstance(few, str)
    late = Instant(f"{3:017d}", Action.DELTA_COMMIT, State.COMPLETED, f"{8:017d}", Action.DELTA_COMMIT)
    out_of_order = Timeline(
        [item if item.requested_time != late.requested_time else late for item in metadata_timeline]
    )
    assert to_archive(out_of_order, data, 2, 3, counts_cleans=False) == commits[:2], "it is not in the compaction"
    active = Timeline([Instant(f"{4:017d}", Action.COMMIT, State.COMPLETED, "9", Action.COMMIT)])
    assert to_archive(metadata_timeline, active, 2, 3, counts_cleans=False) == commits[:3], (
        "the data table's timeline begins there"
    )
    pending = Instant(f"{2:017d}", Action.CLEAN, State.REQUESTED, None, Action.CLEAN)
    assert to_archive(Timeline([*metadata_timeline, pending]), data, 2, 3, counts_cleans=False) == commits[:1]
    cleans = [Instant(f"{number:017d}", Action.CLEAN, State.COMPLETED, "9", Action.CLEAN) for number in range(1, 7)]
    with_cleans = Timeline([*metadata_timeline, *cleans])
    assert cleans_in(to_archive(with_cleans, data, 2, 3, counts_cleans=False)) == 5
    assert cleans_in(to_archive(with_cleans, data, 2, 3, counts_cleans=True)) == 3


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_an_archival_leaves_what_is_read(golden: Golden, version: str) -> None:
    table = many_slices(golden, version)
    compaction(table).run(trigger=1)
    before, instants = held(table), list(table.metadata_timeline.load())
    gone = [item for item in table.data.load() if item.is_completed][:2]
    table.data.forget(gone)
    metadata_timeline = metadata_timeline_of(table)
    done = archive(metadata_timeline, table.data.load(), SMALL, lambda: None)
    assert len(done.instants) > 2, done.reason
    left = {item.requested_time for item in table.metadata_timeline.load()}
    assert left.isdisjoint(done.instants)
    assert left | set(done.instants) == {item.requested_time for item in instants}
    archived = [item for item in instants if item.requested_time in done.instants]
    features, folder = metadata_timeline.features, metadata_timeline.history_folder
    writer = archive_writer(table.storage, features, folder, SMALL, lambda: None)
    assert writer.held(archived) or version != "6"
    assert list((table.path / metadata_timeline.history_folder).glob("*"))
    assert held(table) == before
    assert archive(metadata_timeline, table.data.load(), SMALL, lambda: None).instants == ()


def test_what_completed_after_the_compaction_was_requested_is_not_in_it() -> None:
    data = Timeline([Instant("8", Action.COMMIT, State.COMPLETED, "9", Action.COMMIT)])
    commits = delta_commits(9)
    compacted = Instant(f"{7:017d}1", Action.COMMIT, State.COMPLETED, f"{7:017d}2", Action.COMPACTION)
    late = Instant(
        commits[2].requested_time, Action.DELTA_COMMIT, State.COMPLETED, compacted.requested_time, Action.DELTA_COMMIT
    )
    metadata_timeline = Timeline([*commits[:2], late, *commits[3:], compacted])
    assert to_archive(metadata_timeline, data, 2, 3, counts_cleans=False) == commits[:2]
