"""Missing files of the metadata table that the metadata timeline names.

A missing log file causes no error in a scan: its records would be absent, and rows with them. In layout 2 the name of a
file carries the instant that wrote it, so that a listing shows the commits without files; only their commit metadata is
read, for most tables none. Hudi does not check this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.metadata_table.instants import is_solo
from hudi_core.metadata_table.read.file_group import ROOT, MergedSlice, data_files
from hudi_core.model.names import BaseFileName
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.write_stats import WrittenFile
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline

DAMAGED: Final = (
    "restore the file from a copy, or read the table without its metadata table (`--metadata off`); to rebuild it: "
    "`hudictl metadata drop TABLE`, then `hudictl metadata create TABLE`, or Hudi's next write"
)

_EMPTY_LOG: Final = 128
"""Bytes: a file group is initialized with a log file of 80; one with records has a schema of thousands."""

StatsOf = Callable[[Instant], Iterable[WrittenFile]]
"""The write stats of a commit of the metadata table. Raises StorageNotFoundError for one that was archived
meanwhile.
"""


def refuse_missing(
    folder: str,
    files: Sequence[FileInfo],
    slices: Sequence[MergedSlice],
    timeline: Timeline,
    pending: Collection[str],
    stats_of: StatsOf,
) -> None:
    """Raises CorruptFileError naming a file that readers of a partition need and that is not in `files`, the listing of
    its `folder`.

    `slices` are what a reader merges, `timeline` is the metadata table's, of layout 2. What is `pending` on the data
    timeline is not looked for: no reader counts it, and after its rollback a writer that was taken for dead may have
    completed it here. It does say when an index was made that is listed already, and whose indexing is still pending.
    Found are a base file, and a log file of a commit that left the partition no other file: always so in `files`, which
    has one file group; of the several logs that a commit writes into an index, a single missing one is not found.
    Archived commits are not read: the metadata table archives what it has compacted.
    """
    present = {info.name for info in files}
    instants = {name.instant for _, name in data_files(files)}
    starts = _starts(slices, timeline, _makers(files))
    counted = timeline.filter(lambda instant: instant.requested_time not in pending)
    for commit in _suspects(slices, counted, instants, min(starts.values(), default="")):
        try:
            stats = list(stats_of(commit))
        except StorageNotFoundError:
            continue
        for stat in stats:
            partition, _, file = stat.path.rpartition("/")
            if (
                f"{ROOT}/{partition}" == folder
                and file not in present
                and commit.completed_at >= starts.get(stat.file_id, "")
            ):
                raise CorruptFileError(
                    f"the metadata table's {commit.action} {commit.requested_time} wrote this file, but it is "
                    "not there",
                    path=f"{folder}/{file}",
                    remedy=DAMAGED,
                )


def _makers(files: Sequence[FileInfo]) -> Mapping[str, Collection[str]]:
    """By file group, the instants of its base files and of its first, empty log files: among them that under which the
    group was made.
    """
    found: dict[str, set[str]] = {}
    for info, name in data_files(files):
        if isinstance(name, BaseFileName) or info.size <= _EMPTY_LOG or is_solo(name.instant):
            found.setdefault(name.file_id, set()).add(name.instant)
    return found


def _starts(slices: Sequence[MergedSlice], timeline: Timeline, makers: Mapping[str, Collection[str]]) -> dict[str, str]:
    """By file group, the completion time from which on a commit's files belong to what is read of it.

    That is the instant of the base file, as a compaction merges what completed before it was requested. A group without
    compaction starts at its creation: with its partition, or later, as those of new data partitions in a partitioned
    record index. Of several creations the latest counts: an index that an indexing action rebuilt lost the older log
    files; those written during the build are not required. Where the creation was archived, the latest compaction came
    after it and found nothing to merge, or the base file would be of that compaction.
    """
    commits = timeline.commits()
    made = {item.requested_time: item.completed_at for item in commits if item.action == Action.DELTA_COMMIT}
    compaction = max((item.requested_time for item in commits if item.action == Action.COMMIT), default="")
    found: dict[str, str] = {}
    for item in slices:
        base = item.base_instant
        if base in made or is_solo(base) or not base:
            found[item.file_id] = max(
                (made[time] for time in makers.get(item.file_id, ()) if time in made), default=compaction
            )
        else:
            found[item.file_id] = base
    return found


def _suspects(slices: Sequence[MergedSlice], timeline: Timeline, instants: set[str], since: str) -> Iterator[Instant]:
    """The commits to read: compactions and initializations first, as other missing files may follow from theirs."""
    bases = [item.base_instant for item in slices]
    commits = [item for item in timeline.commits() if item.completed_at >= since and not item.is_legacy]
    logs: list[Instant] = []
    for item in reversed(commits):
        time = item.requested_time
        if item.action == Action.COMMIT:
            if any(base < time for base in bases):
                yield item
        elif is_solo(time):
            if time in instants and not all(bases):
                yield item
        elif time not in instants:
            logs.append(item)
    yield from logs
