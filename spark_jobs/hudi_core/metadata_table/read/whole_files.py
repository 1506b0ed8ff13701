"""Finds files of the metadata table that are missing or shorter than its commits say. Hudi does not check this.

A log file that is gone, or lost its end at a block's boundary, causes no error in a scan: rows would be absent. Each
commit of the metadata table records the size of every file after its write. So no file may have fewer bytes than the
newest commit recorded that wrote into it. A file may have more bytes: in layout 1 a later commit, a writer that died,
or a rollback's command appends to the same log file.

refuse_short reads the commits on the active metadata timeline that wrote into the file slices of a partition, once for
all partitions. In layout 2 the names of the files say which commits; in layout 1 these are the commits since the base
file. The metadata table archives only what it has compacted, so archived commits are not needed. In layout 2 the
listing also shows the commits without files. refuse_missing reads only their metadata; most tables have no such commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.metadata_table.instants import initialized_by_downgrade, is_early, is_solo
from hudi_core.metadata_table.read.file_group import ROOT, MergedSlice, data_files
from hudi_core.model.names import BaseFileName, LogFileName, parse_data_file
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.write_stats import WrittenFile
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline

StatsOfAll = Callable[[Sequence[Instant]], Mapping[Instant, Iterable[WrittenFile]]]
"""Returns the write stats of commits of the metadata table, without commits that were archived meanwhile."""
StatsOf = Callable[[Instant], Iterable[WrittenFile]]
"""Returns the write stats of one commit. Raises StorageNotFoundError for a commit that was archived meanwhile."""

DAMAGED: Final = (
    "restore the file from a copy, or read the table without its metadata table (`--metadata off`); to rebuild it: "
    "`hudictl metadata drop TABLE`, then `hudictl metadata create TABLE`, or Hudi's next write"
)

_EMPTY_LOG: Final = 128
"""A log file of at most so many bytes has no records: a first log file has 80, a schema in others has thousands."""


def refuse_short(
    folder: str,
    files: Sequence[FileInfo],
    slices: Sequence[MergedSlice],
    timeline: Timeline,
    stats_of: StatsOfAll,
    attempts_of: StatsOf,
    *,
    named_by_writer: bool,
) -> None:
    """Raises CorruptFileError with a file of `slices` that has fewer bytes than the metadata table's commits say.
    `files` lists the partition's `folder`; `timeline` lacks the instants that readers do not count. `named_by_writer`
    means that log files are named after the instant that wrote them (layout 2); without it, this function also finds
    missing files. A writer that was taken for dead may have completed the commit beside its successor. Then the file
    may be of either of them, and where it is shorter, `attempts_of` returns the stats of both. An index that was built
    beside writers in version 6 is not checked until it is compacted: another build has the same names.
    """
    checked = [item for item in slices if not is_early(_start(item))]
    commits = _writers(checked, timeline, named_by_writer=named_by_writer)
    recorded: dict[str, tuple[Instant, WrittenFile]] = {}
    for commit, stats in stats_of(commits).items():
        recorded.update(
            (stat.path, (commit, stat)) for stat in stats if f"{ROOT}/{stat.path.rpartition('/')[0]}" == folder
        )
    there = {info.name for info in files}
    used = {info.name: info for item in checked for info in item.files}
    by_id = {item.file_id: item for item in checked}
    compactions = timeline.pending().of_actions(Action.COMPACTION).requested_times
    for commit, stat in recorded.values():
        info = used.get(_name(stat))
        wrote = f"the metadata table's {commit.action} {commit.requested_time} wrote"
        if (
            info is not None
            and info.size < stat.file_size_in_bytes
            and all(info.size < other.file_size_in_bytes for other in attempts_of(commit) if other.path == stat.path)
        ):
            message = f"{wrote} this file with {stat.file_size_in_bytes} bytes, but it has {info.size}"
            raise CorruptFileError(message, path=info.path, remedy=DAMAGED)
        if not named_by_writer and _name(stat) not in there and _is_needed(stat, by_id, compactions):
            message = f"{wrote} this file with {stat.file_size_in_bytes} bytes, but it is not there"
            raise CorruptFileError(message, path=f"{folder}/{_name(stat)}", remedy=DAMAGED)


def _start(item: MergedSlice) -> str:
    """Returns the base instant of a file slice; without a base file, the earliest instant of its log files."""
    return item.base_instant or min((name.instant for _, name in data_files(item.logs)), default="")


def _name(stat: WrittenFile) -> str:
    return stat.path.rpartition("/")[2]


def _writers(slices: Sequence[MergedSlice], timeline: Timeline, *, named_by_writer: bool) -> list[Instant]:
    """Returns the commits that wrote or may have written into the file slices, oldest first."""
    commits = [item for item in timeline.commits() if not (named_by_writer and item.is_legacy)]
    if not slices:
        return []
    if named_by_writer:
        times = {name.instant for item in slices for _, name in data_files(item.files)}
        return [item for item in commits if item.requested_time in times]
    start = min(map(_start, slices))
    return [item for item in commits if item.requested_time >= start]


def _is_needed(stat: WrittenFile, slices: Mapping[str, MergedSlice], compactions: frozenset[str]) -> bool:
    """Returns whether a file of layout 1 belongs to the file slices (by file id), by the base instant in its name: for
    a log file that of the slice or of a pending one of `compactions`; for a base file a newer one.
    """
    name = parse_data_file(_name(stat))
    if name is None or name.file_id not in slices:
        return False
    merged = slices[name.file_id]
    if isinstance(name, LogFileName):
        named = {log.instant for _, log in data_files(merged.logs)}
        return name.instant in {merged.base_instant, *compactions, *named}
    return name.instant > merged.base_instant and not initialized_by_downgrade(_start(merged), name.instant)


def refuse_missing(
    folder: str,
    files: Sequence[FileInfo],
    slices: Sequence[MergedSlice],
    timeline: Timeline,
    pending: Collection[str],
    stats_of: StatsOf,
) -> None:
    """Raises CorruptFileError with a file that readers of a partition need and that is not in `files`; for layout 2,
    arguments as in refuse_short. It does not look for files of instants that are `pending` on the data timeline. Such
    an instant only shows when an index was made that is listed while its indexing is pending. The function finds a
    base file, and a log file of a commit that left no other file in the partition; in `files`, which has one file
    group, this holds for every log file. Archived commits are not read.
    """
    present = {info.name for info in files}
    instants = {name.instant for _, name in data_files(files)}
    # The instants of base files and of first, empty log files, by file group: one of them made the file group.
    makers: dict[str, set[str]] = {}
    for info, name in data_files(files):
        if isinstance(name, BaseFileName) or info.size <= _EMPTY_LOG or is_solo(name.instant):
            makers.setdefault(name.file_id, set()).add(name.instant)
    starts = _starts(slices, timeline, makers)
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
                message = (
                    f"the metadata table's {commit.action} {commit.requested_time} wrote this file, but it is not there"
                )
                raise CorruptFileError(message, path=f"{folder}/{file}", remedy=DAMAGED)


def _starts(slices: Sequence[MergedSlice], timeline: Timeline, makers: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Returns, by file group, the completion time from which on a commit's files belong to the file slice that is read.
    For a file group with a compacted base file it is the base file's instant, since a compaction merges what completed
    before its request. Else it is the latest creation of the file group: an index that an indexing action rebuilt lost
    the older log files, and log files written during the build are not required. Where the creation was archived, it is
    the latest compaction, which came after the creation and found nothing to merge.
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
    """Yields the commits to read; compactions and initializations first: other files may be missing through them."""
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
