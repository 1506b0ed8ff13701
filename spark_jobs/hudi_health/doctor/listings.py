"""Compares the files in the storage with the timeline and with the metadata table's list of files. Also finds what
Hudi's writers omitted from the indexes (docs/decisions/0018). docs/use/doctor.md describes the rules. Readers treat an
instant as committed if it is older than the timeline's first commit (HoodieTimeline.containsOrBeforeTimelineStarts).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from hudi_core.config.metadata_config import REBUILD_ROW_INDEXES
from hudi_core.errors import (
    ConflictError,
    FormatError,
    MetadataUnavailableError,
    StorageNotFoundError,
    UnsupportedError,
)
from hudi_core.metadata_table.partition_type import FILES_PARTITION, PARTITION_STATS, RECORD_INDEX
from hudi_core.metadata_table.read.group_reader import check_base_file
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.write.commit_updates import nothing_in, widening
from hudi_core.metadata_table.write.remaining_files import RemainingFiles
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.model.partition import join
from hudi_core.services.archive.listing import Search, is_wrong_size, search
from hudi_core.services.archive.planner import start_after
from hudi_core.services.metadata.catch_up import doubts_of
from hudi_core.services.metadata.initialization import indexed_table
from hudi_core.storage.one_look import look_again
from hudi_core.timeline.instant import REPLACING_ACTIONS
from hudi_health.doctor.findings import Counted, DataFiles, Finding
from hudi_health.validate.registry import deletions_at_work

_REBUILD: Final = (
    "stop the writers, drop the metadata table with Hudi (hoodie.metadata.enable=false), and let the next "
    "write rebuild it"
)


def orphans(files: DataFiles) -> Iterator[Finding]:
    """Reports files of instants that never completed. Instants that are older than the archive count as committed,
    because the archive may be truncated. Raises FormatError for a damaged archive or log file.
    """
    timeline = files.timeline
    start = start_after(timeline, frozenset())
    if start is None:
        return
    archived = files.history().timeline()
    known = timeline.commits().requested_times | timeline.pending().requested_times | archived.commits().requested_times
    resized = (
        timeline.of_actions(*REPLACING_ACTIONS).requested_times
        | archived.of_actions(*REPLACING_ACTIONS).requested_times
    )
    later = Search(start, None, known, written=files.written, clusterings=resized)
    earlier = replace(later, begin=min(archived.requested_times, default=start), end=start)
    hidden, visible = (search(files.storage, files.by_partition.items(), scope).orphans for scope in (later, earlier))
    look_again(files.storage)
    new = files.context.active.load().requested_times  # Instants may have started or completed during the listing.
    for instant, paths in sorted(visible.items()):
        yield Finding(
            "orphan_visible",
            "error",
            f"{_named(paths)} of instant {instant}, which never completed and is older than the timeline: readers take "
            "them for committed",
            "delete them when no writer is at work on that instant; a late upload after a rollback leaves such "
            "files (hudi#18783)",
            instant,
            min(paths),
        )
    for instant, paths in sorted(hidden.items()):
        if instant not in new:
            yield Finding(
                "orphan_hidden",
                "warning",
                f"{_named(paths)} of instant {instant}, which is neither completed nor pending: hidden until the "
                "commits before it are archived",
                "delete them when no writer is at work on that instant; our archival refuses to go past them",
                instant,
                min(paths),
            )


def _named(paths: Iterable[str]) -> str:
    ordered = sorted(set(paths))
    return Counted(ordered, len(ordered)).named()


def listings(files: DataFiles) -> Iterator[Finding]:
    """Reports wrong entries of the metadata table: entries without a file, base files of commits without an entry,
    entries with another size, and a list that cannot be read. Reports nothing while a clean, rollback or restore is
    inflight, because both lists may be right then. Raises FormatError for a damaged commit or rollback of a
    merge-on-read table of version 6.
    """
    if not files.context.has_metadata_table or deletions_at_work(files.timeline):
        return
    written = files.written
    try:
        yield from list(_differences(files, written))
    except (FormatError, MetadataUnavailableError, StorageNotFoundError) as error:
        what = f"the metadata table's list of files cannot be read: {error}"
        yield Finding("metadata_unreadable", "error", what, _REBUILD)


def _differences(files: DataFiles, written: Mapping[str, int] | None) -> Iterator[Finding]:
    metadata, committed = files.metadata, files.timeline.commits().requested_times
    missing, unlisted, hidden, wrong_size = Counted[str](), Counted[str](), Counted[str](), Counted[str]()
    wrong: list[str] = []
    of_commits: list[str] = []
    not_walked = set(metadata.partitions())
    for partition, infos in files.by_partition.items():
        not_walked.discard(partition)
        listed, there = metadata.list_files(partition), {info.name: info for info in infos}
        missing.add(*(join(partition, name) for name in sorted(listed.keys() - there.keys())))
        for name in sorted(there.keys() - listed.keys()):
            parsed = parse_data_file(name)
            if isinstance(parsed, BaseFileName) and parsed.instant in committed:
                of_commits.append(join(partition, name))
        for name in sorted(there.keys() & listed.keys()):
            info = there[name]
            if listed[name] != info.size and is_wrong_size(listed[name], info, written):
                wrong.append(info.path)
                wrong_size.add(f"{info.path}: {listed[name]} bytes listed, {info.size} there")
    for partition in sorted(not_walked):
        names = {info.name for info in files.storage.list_files(partition)}
        for name in sorted(metadata.list_files(partition)):
            (hidden if name in names else missing).add(join(partition, name))
    unlisted.add(*_named_by_commits(files, of_commits))
    if unlisted.count:
        yield Finding(
            "metadata_unlisted",
            "error",
            f"the metadata table does not list {unlisted.named()} of completed commits: readers that use it miss rows",
            _REBUILD,
            path=unlisted.first[0],
        )
    if hidden.count:
        yield Finding(
            "partition_below_another",
            "error",
            f"{hidden.named()} in partitions that lie below other ones, or have lost their .hoodie_partition_metadata: "
            "readers without the metadata table miss their rows, and it cannot be rebuilt",
            "write the rows to partitions of other names, and keep the metadata table until then",
            path=hidden.first[0],
        )
    if missing.count:
        what = f"the metadata table lists {missing.named()} not in the storage: readers that use it may fail"
        yield Finding("metadata_missing_file", "warning", what, _REBUILD, path=missing.first[0])
    if wrong_size.count:
        what = f"the metadata table has the wrong size of {wrong_size.named()}: readers that use it fail, or miss rows"
        fix = f"a file that was cut short has to come back from a copy; where the files are whole, {_REBUILD}"
        yield Finding("metadata_wrong_size", "error", what, fix, path=wrong[0])


def _named_by_commits(files: DataFiles, paths: list[str]) -> list[str]:
    """Returns the paths that commits name, without failed attempts' files; all paths if a commit is unreadable."""
    try:
        return [path for path in paths if files.sizes.names(path)]
    except (FormatError, StorageNotFoundError):
        return paths


_SHOWN: Final = 5
_THREADS: Final = 16


def indexes(files: DataFiles, *, ranges: bool) -> Iterator[Finding]:
    """Reports indexes that make readers lose rows. With `ranges` it compares doubtful ranges of partitions with the
    ranges of their files, and checks the files of indexes. Memory: the statistics of the files in one partition.
    """
    if not files.context.has_metadata_table:
        return
    try:
        yield from list(_indexes(files, files.context.uri, ranges))
    except (FormatError, MetadataUnavailableError, StorageNotFoundError, UnsupportedError, ConflictError) as error:
        what = f"the indexes could not be compared with the files: {error}"
        fix = f"hudictl metadata validate {files.context.uri}"
        yield Finding("index_unreadable", "warning", what, fix)


def _indexes(files: DataFiles, uri: str, ranges: bool) -> Iterator[Finding]:
    metadata = files.metadata
    unrecorded = metadata.completeness.unrecorded_writes
    if unrecorded:
        first = unrecorded[0].requested_time
        yield Finding(
            "metadata_behind",
            "error",
            f"the metadata table lacks {len(unrecorded)} completed write(s), from {first} on: "
            "Hudi's reads by it lose their rows, and so do the compactions that it plans. A writer of table version 6 "
            "that has an index to begin while an operation is pending leaves it so",
            f"hudictl metadata update {uri}",
            instant=first,
        )
    listed = sorted(metadata.partition_types - {FILES_PARTITION})
    empty = [name for name in listed if not metadata.has_index(name)]
    damaged = _damaged(files, set(listed).difference(empty)) if ranges else {}
    for name, error in damaged.items():
        yield Finding(
            "index_damaged",
            "error",
            f"{name} has a damaged file: {error.message}; queries and writes that use the index fail, Hudi's and ours",
            f"while no writer is at work: hudictl metadata drop {uri} --partition {name}; then: "
            f"hudictl metadata create {uri} --partition {name}",
            path=error.path,
        )
    for name in empty:
        yield Finding(
            "index_empty",
            "warning",
            f"{name} is listed in hoodie.properties and has no files; queries here do not use it. Hudi 0.15 leaves one "
            "so that it has to begin when it restores the table",
            f"hudictl metadata drop {uri} --partition {name}",
            path=f".hoodie/metadata/{name}",
        )
    if not damaged:
        yield from _doubts(files, uri, ranges)


def _doubts(files: DataFiles, uri: str, ranges: bool) -> Iterator[Finding]:
    """Reports what Hudi's writers omitted from indexes whose files are undamaged."""
    doubts = dict(doubts_of(files.metadata))
    doubtful_keys = doubts.pop(RECORD_INDEX, frozenset()) != frozenset()
    for name, partitions in _narrow(files).items() if ranges else ():
        shown = ", ".join(partitions[:_SHOWN]) + (" …" if len(partitions) > _SHOWN else "")
        yield Finding(
            "partition_stats_narrow",
            "error",
            f"{name} lacks values of {len(partitions)} partition(s) ({shown}): Hudi's filtered reads pass over them "
            "and lose rows; Hudi 1.0 leaves out the files of a pending compaction",
            f"hudictl metadata update {uri}",
        )
    rebuild = f"hudictl metadata update {uri} --option {REBUILD_ROW_INDEXES.name}=true"
    if doubtful_keys:
        yield Finding(
            "record_index_doubtful",
            "info",
            "record_index may lack keys that were deleted and written again, which a writer that tags by base files "
            "does not record, or have wrong places of keys behind a restore. Queries here allow for it, Hudi's lose "
            "such rows. If it is wrong, drop the index and create it again",
            f"hudictl metadata validate {uri}",
            path=f".hoodie/metadata/{RECORD_INDEX}",
        )
    for name in (name for name, groups in doubts.items() if groups):
        yield Finding(
            "secondary_index_incomplete",
            "error",
            f"{name} has no record of a commit that wrote new rows, as bulk_insert by Hudi 1.1 and later leaves it: "
            "Hudi's lookups by it lose rows",
            rebuild,
            path=f".hoodie/metadata/{name}",
        )
    for name in (name for name, groups in doubts.items() if groups is None):
        what = f"whether {name} holds every row cannot be told any more: queries do not use it here"
        fix = f"{rebuild}; afterwards run `metadata update` before the commits since the last one are archived"
        yield Finding("secondary_index_unproven", "info", what, fix, path=f".hoodie/metadata/{name}")


def _damaged(files: DataFiles, names: Collection[str]) -> dict[str, FormatError]:
    """Returns, by index, the error of a file that is gone, short, or lacks an HFile's end. One request per file."""
    snapshot = MetadataTableSnapshot(files.storage, files.context.config, files.timeline)
    damaged: dict[str, FormatError] = {}
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="index-files") as pool:
        for name in sorted(names):
            try:
                bases = (item.base_file for item in snapshot.checked_slices(name))
                check = partial(check_base_file, files.storage)
                list(pool.map(check, [info for info in bases if info is not None]))
            except FormatError as error:
                damaged[name] = error
    return damaged


def _narrow(files: DataFiles) -> dict[str, tuple[str, ...]]:
    metadata, context = files.metadata, files.context
    names = set(metadata.indexes_in_doubt)
    if metadata.has_index(PARTITION_STATS) and metadata.may_have_narrow_ranges:
        names.add(PARTITION_STATS)
    if not names:
        return {}
    remaining = RemainingFiles(files.storage, context.config, "", nothing_in(metadata.partitions()))
    table = indexed_table(context, files.timeline)
    narrow = {}
    for name in sorted(names):
        # An expression has no range if this release, or a run without the zone of Spark's sessions, cannot maintain it.
        with suppress(*(() if name == PARTITION_STATS else (UnsupportedError,))):
            narrow[name] = widening(table, [name], "", remaining).partitions
    return {name: partitions for name, partitions in narrow.items() if partitions}
