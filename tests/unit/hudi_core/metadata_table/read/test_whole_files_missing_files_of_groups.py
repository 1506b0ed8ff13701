"""A file group starts when it was created itself, not with another group of its partition, and no earlier life of the
partition is required.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.read.file_group import merged_slices
from hudi_core.metadata_table.read.whole_files import refuse_missing
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.write_stats import WrittenFile
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline

FOLDER = ".hoodie/metadata/record_index"
FIRST, SECOND = "00000000000000000", "00000000000000001"
T1, T2, T3, T4 = (f"2026010100000000{number}" + "0" for number in (1, 2, 3, 4))
OLD, NEW = "record-index-a-0000-0", "record-index-b-0000-0"


def done(time: str, completed: str, action: str = Action.DELTA_COMMIT) -> Instant:
    return Instant(time, action, State.COMPLETED, completed, action)


def log(file_id: str, time: str) -> str:
    return f".{file_id}_{time}.log.1_0-0-0"


def base(file_id: str, time: str) -> str:
    return f"{file_id}_0-0-0_{time}.hfile"


def check(
    files: Mapping[str, int],
    timeline: list[Instant],
    written: Mapping[str, list[str]],
    pending: Collection[str] = (),
) -> None:
    """`files` by name with their sizes; `written` are the files of the commits, `pending` those of the data table."""

    def stats_of(commit: Instant) -> list[WrittenFile]:
        names = written.get(commit.requested_time, [])
        ids = [next(group for group in (OLD, NEW) if group in name) for name in names]
        pairs = zip(ids, names, strict=True)
        return [WrittenFile(group, f"record_index/{name}", 0) for group, name in pairs]

    listed = [FileInfo(f"{FOLDER}/{name}", size, 1.0) for name, size in files.items()]
    whole = Timeline(timeline)
    refuse_missing(FOLDER, listed, merged_slices(FOLDER, listed, whole, 2), whole, pending, stats_of)


def test_a_lost_log_of_a_group_that_is_older_than_the_newest_one() -> None:
    """As where a data partition of a partitioned record index is new: its group begins under an instant of its own."""
    timeline = [done(FIRST, T1), done(SECOND, T3), done(T1, T2), done(T3, T4)]
    written = {T1: [log(OLD, T1)], T3: [log(NEW, T3)]}
    files = {log(OLD, FIRST): 80, log(NEW, SECOND): 80, log(NEW, T3): 9000}
    check({**files, log(OLD, T1): 9000}, timeline, written)
    with pytest.raises(CorruptFileError) as caught:
        check(files, timeline, written)
    assert caught.value.path == f"{FOLDER}/{log(OLD, T1)}"


def test_an_earlier_life_of_the_partition_whose_making_was_archived() -> None:
    """Instants of makers sort first, and so go first: what the partition held before it was dropped is on the timeline
    still.
    """
    compacted = done(T3, T4, Action.COMMIT)
    written = {T1: [log(OLD, T1)], T4: [log(OLD, T4)]}
    files = {log(OLD, FIRST): 80, base(OLD, FIRST): 9000, base(NEW, T3): 9000}
    check(files, [done(T1, T2), compacted], written)
    with pytest.raises(CorruptFileError) as caught:
        check(files, [done(T1, T2), compacted, done(T4, f"{T4[:-1]}5")], written)
    assert caught.value.path == f"{FOLDER}/{log(OLD, T4)}"


def test_an_earlier_life_of_an_index_whose_indexing_is_pending_still() -> None:
    """It is listed before its action completes, and its instant is before the latest write."""
    timeline = [done(T2, T3), done(T1, T4)]
    written = {T2: [log(OLD, T2)]}
    files = {log(OLD, T1): 80, base(OLD, T1): 9000}
    check(files, timeline, written, pending={T1})
    check(files, timeline, written)
