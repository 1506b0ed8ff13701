"""The rules on base files and log files. Base files may have lost bytes, contain rows of another file group, or label
timestamps otherwise than the table's schema; a bucket may have several file groups. Log files may have corrupt blocks,
or may be no log files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Final, TypeVar

import pyarrow as pa

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.arrow_types import has_doubtful_times, mislabelled
from hudi_core.codec.log.blocks import CorruptBlock
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.statistics import chunk_ranges, leaf_columns
from hudi_core.config.rows_config import COMBINE_INSERTS, INDEX_TYPE, NUM_BUCKETS
from hudi_core.errors import FormatError, MetadataUnavailableError, StorageNotFoundError, UnsupportedError
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.read.log_scan import (
    CommittedInstants,
    ScanCounts,
    ScanResult,
    latest_read_instant,
    scan_log_files,
)
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.read.torn_tails import CompletedWrites
from hudi_core.filegroup.write.buckets import are_buckets, bucket_of
from hudi_core.model.names import FILE_NAME, BaseFileName, parse_base_file, parse_data_file
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage
from hudi_core.view.file_group import DataFile, FileSlice
from hudi_core.view.listing import REMEDY
from hudi_health.doctor.findings import KEPT, Counted, DataFiles, Finding, each_of

R = TypeVar("R")

_THREADS: Final = 16
_LOOKED_AT: Final = 256
"""The most base files that are opened for their labels. The oldest come first, because they may have wrong labels."""
_LOST: Final = (
    "restore the file from a copy, or write the rows again. A compaction refuses the file slice; `hudictl run "
    "compaction --allow-corrupt-log-blocks` compacts it without the block"
)
_TORN: Final = (
    "no row of a completed commit is in it: `hudictl run compaction --schedule` merges the file slice without it"
)
_UNREADABLE: Final = "restore the file from a copy; queries and compactions of its file slice fail"


def cut_files(files: DataFiles) -> Iterator[Finding]:
    """Reports base files that have fewer bytes than their commit wrote. Reports nothing if a commit cannot be read."""
    cut: Counted[Finding] = Counted()
    try:
        for info in chain.from_iterable(files.by_partition.values()):
            what = files.sizes.cut(info) if isinstance(parse_data_file(info.name), BaseFileName) else None
            if what is not None:
                why = f"{what}: queries fail on it, or miss its rows"
                cut.add(Finding("base_file_cut", "error", why, REMEDY, path=info.path))
    except (FormatError, StorageNotFoundError):
        return
    yield from each_of(cut, "more base files lost bytes", REMEDY)


def copied_files(files: DataFiles) -> Iterator[Finding]:
    """Reports base files whose rows name a file of another file group, unless that file group was replaced."""
    view = files.view
    if view is None:
        return
    copied: Counted[str] = Counted()
    by_size: dict[int, set[str]] = defaultdict(set)
    latest: list[DataFile] = []
    for partition in view.partitions():
        latest += view.latest_base_files(partition)
        for file in view.all_base_files(partition):
            by_size[file.size].add(parse_base_file(file.name).file_id)
    read = frozenset().union(*by_size.values())
    suspects = [file for file in latest if len(by_size[file.size]) > 1]
    first = None
    for file, original in _of_footers(files.storage, suspects, _named_in_rows):
        named = parse_data_file(original or "")
        if named is not None and named.file_id in read - {parse_base_file(file.name).file_id}:
            first = first or file.path
            copied.add(f"{file.path} of {named}")
    if first is not None:
        what = f"copies of base files under other file ids: {copied.named()}; Hudi and we read their rows twice"
        fix = "stop the writers; delete a copy that no commit names (`hudictl show TABLE INSTANT`)"
        yield Finding("file_by_two_names", "error", what, fix, path=first)


def _of_footers(
    storage: Storage, files: Sequence[DataFile], look_at: Callable[[ParquetBaseFile], R]
) -> Iterable[tuple[DataFile, R | None]]:
    """Returns each file with the result of `look_at`, or None for a file that is gone or cannot be read."""

    def read(file: DataFile) -> R | None:
        with (
            suppress(FormatError, StorageNotFoundError, UnsupportedError),
            open_base_file(storage, file.path) as opened,
        ):
            return look_at(opened)
        return None

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="base-files") as pool:
        return zip(files, pool.map(read, files), strict=True)


def _named_in_rows(file: ParquetBaseFile) -> str | None:
    """Returns the least file name in the rows of the first row group, from the footer; None if the footer has none."""
    column = leaf_columns(file.metadata).get((FILE_NAME,))
    ranges = None if column is None else chunk_ranges(file.metadata, column, pa.string())
    if ranges is None or not len(ranges.minimum):
        return None
    name: str | None = ranges.minimum[0].as_py()
    return name


def mislabelled_files(files: DataFiles) -> Iterator[Finding]:
    """Reports base files that label a timestamp otherwise than the table's schema does (codec.avro.arrow_types)."""
    try:
        schema = arrow_schema(table_schema(files.storage, files.context.config, files.timeline))
    except (FormatError, StorageNotFoundError):
        return
    if not has_doubtful_times(schema) or files.view is None:
        return
    latest = [file for partition in files.view.partitions() for file in files.view.latest_base_files(partition)]
    oldest = sorted(latest, key=lambda file: (parse_base_file(file.name).instant, file.path))[:_LOOKED_AT]
    paths: Counted[str] = Counted()
    columns: set[str] = set()
    for file, names in _of_footers(files.storage, oldest, lambda opened: mislabelled(opened.schema, schema)):
        if names:
            paths.add(file.path)
            columns.update(names if paths.count <= KEPT else ())
    if paths.count:
        yield Finding(
            "time_label",
            "warning",
            f"{paths.named()} label {', '.join(sorted(columns))} otherwise than the table's schema does. Queries here "
            "and by Hudi 1.1 and later read them by the schema; Hudi before 1.1 reads 1970, and filters of Hudi 1.2 "
            "lose their rows by column_stats",
            "rewrite them by a clustering or a compaction, which labels them right; until then read with Hudi 1.1 or "
            "later and hoodie.enable.data.skipping=false",
            path=paths.first[0],
        )


def shared_buckets(files: DataFiles) -> Iterator[Finding]:
    """Reports buckets with several file groups; Hudi looks up keys in only one of them. Causes are a task that ran
    twice (hudi#11527), two writers (hudi#7838), or a second `bulk_insert` (hudi#10894). Another rule reports a list
    that cannot be read.
    """
    shared: Counted[str] = Counted()
    with suppress(FormatError, MetadataUnavailableError, StorageNotFoundError):
        for path in _shared_buckets(files):
            shared.add(path)
    if shared.count:
        uri = files.context.uri
        yield Finding(
            "bucket_of_several_groups",
            "error",
            f"several file groups of one partition are the same bucket: {shared.named('file group')}; queries read the "
            "rows of all of them, and Hudi's writers refuse to write there (`Find multiple files at partition path`)",
            f"stop the writers, and write each of these partitions again: hudictl read {uri} --where … "
            f"--output rows.parquet; then: hudictl insert-overwrite {uri} --source rows.parquet --option "
            f"{INDEX_TYPE.name}=BUCKET --option {NUM_BUCKETS.name}=… --option {COMBINE_INSERTS.name}=true. Give "
            "the writers' number of buckets; of several rows of a key the one with the greatest ordering value stays",
            path=shared.first[0],
        )


def _shared_buckets(files: DataFiles) -> Iterator[str]:
    committed = files.timeline.commits()
    has_metadata = files.context.metadata_table("auto", files.timeline) is not None
    view = files.context.view(files.timeline, listing=files.metadata if has_metadata else files)
    for partition in view.partitions():
        ids = [
            item.file_group.file_id
            for item in view.latest_merged_slices(partition)
            if committed.contains_or_before_start(item.base_instant)
        ]
        by_bucket: defaultdict[int, list[str]] = defaultdict(list)
        for file_id in ids if are_buckets(ids) else ():
            by_bucket[bucket_of(file_id)].append(file_id)
        for sharing in by_bucket.values():
            if len(sharing) > 1:
                yield from (join(partition, file_id) for file_id in sharing)


def damaged_logs(files: DataFiles) -> Iterator[Finding]:
    """Reports corrupt log blocks, and torn ends of log files, in the file slices of a snapshot query. It scans the log
    files in the same way as the query.
    """
    if not files.context.config.is_merge_on_read or files.view is None:
        return
    damaged: Counted[Finding] = Counted()
    torn: Counted[Finding] = Counted()
    scan = partial(_scan, files, CommittedInstants.of(files.timeline), latest_read_instant(files.timeline))
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="log-files") as pool:
        for partition in files.view.partitions():
            slices = [item for item in files.view.latest_merged_slices(partition) if item.log_files]
            for scanned in pool.map(scan, slices):
                for finding in [scanned] if isinstance(scanned, Finding) else _judged_blocks(scanned, files.writes):
                    (torn if finding.severity == "info" else damaged).add(finding)
    yield from each_of(damaged, "more log blocks are corrupt", _LOST)
    yield from each_of(torn, "more log files have a torn end", _TORN)


def _scan(files: DataFiles, committed: CommittedInstants, latest: str | None, item: FileSlice) -> ScanResult | Finding:
    stop = not files.context.config.features.completion_time_in_name
    try:
        return scan_log_files(files.storage, item.log_files, committed, latest_instant=latest, stop_at_newer=stop)
    except StorageNotFoundError:  # Removed since the listing. Another rule reports listed files that are gone.
        return ScanResult((), (), ScanCounts())
    except FormatError as error:
        path = error.path or item.log_files[0].path
        return Finding("corrupt_log_block", "error", str(error), _UNREADABLE, path=path)


def _judged_blocks(scan: ScanResult, writes: CompletedWrites) -> Iterator[Finding]:
    for block in scan.corrupt:
        yield _judged(block, writes.why_lost(block))
    for block in scan.corrupt_removed:
        covered = writes.why_lost(block, is_removed=True)
        if covered is not None:
            yield _judged(block, covered)


def _judged(block: CorruptBlock, covered: str | None) -> Finding:
    place = f"{block.path}: corrupt log block of {block.length} bytes at byte {block.offset}"
    if covered is None:
        return Finding("torn_log_tail", "info", f"{place} is the torn end of a write that died", _TORN, path=block.path)
    what = f"{place} is skipped, rows are missing: {block.reason}; {covered}"
    return Finding("corrupt_log_block", "error", what, _LOST, path=block.path)
