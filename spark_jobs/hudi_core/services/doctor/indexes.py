"""What Hudi's writers left out of the indexes of the metadata table (docs/decisions/0018)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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
from hudi_core.services.doctor.findings import DataFiles, Finding
from hudi_core.services.metadata.catch_up import doubts_of
from hudi_core.services.metadata.initialization import indexed_table

_SHOWN: Final = 5
_THREADS: Final = 16


def indexes(files: DataFiles, *, ranges: bool) -> Iterator[Finding]:
    """Indexes by which readers lose rows; with `ranges`, doubtful ranges of partitions are compared with those of their
    files, and the files of indexes are looked at. Memory: the statistics of the files in one partition.
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
    unrecorded = metadata.unrecorded_writes()
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
    """Of indexes whose files are whole: what Hudi's writers left out of them."""
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
    """By index, its first file that is gone, too short, or without the end of an HFile. One request a base file."""
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
    remaining = RemainingFiles(files.storage, context.config, "", nothing_in(metadata.list_partitions()))
    table = indexed_table(context, files.timeline)
    narrow = {}
    for name in sorted(names):
        # An expression that this release, or a run without the zone of Spark's sessions, does not keep has no range.
        with suppress(*(() if name == PARTITION_STATS else (UnsupportedError,))):
            narrow[name] = widening(table, [name], "", remaining).partitions
    return {name: partitions for name, partitions in narrow.items() if partitions}
