"""Checks that overwrites and writes of rows share: the table's schema, its buckets, nested partitions; and that readers
see the log files of a write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.log.blocks import LogBlock
from hudi_core.config.concurrency_config import CONCURRENCY_MODE
from hudi_core.config.rows_config import INDEX_TYPE, NUM_BUCKETS
from hudi_core.errors import ConfigError, ConflictError, FormatError, UnsupportedError
from hudi_core.filegroup.read.log_scan import latest_read_instant, log_blocks
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.write.buckets import BUCKET_ID, Buckets, Ring, are_buckets, bucket_of
from hudi_core.filegroup.write.hashing_metadata import folder_of, ids_of
from hudi_core.model.names import FileGroupId, LogFileName, parse_data_file, parse_log_file
from hudi_core.model.partition import one_below_another
from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile
from hudi_core.view.file_system_view import FileSystemView

_ENOUGH_IDS = 8
"""So many file ids do not all begin like buckets by chance."""


def check_same_schema(
    context: TableContext, now: Timeline, instant: str, schema: AvroSchema, *, evolves: bool = False
) -> None:
    """Raises ConflictError where the table's columns, or their types, are no longer those of `schema`: the commit would
    overwrite the change of another. The names of Avro records do not count, since engines give their own. A commit that
    `evolves` the schema must also be the newest: the table's schema is that of the newest instant.
    """
    path = context.config.path
    current = table_schema(context.storage, context.config, now)
    if arrow_schema(current, path=path) != arrow_schema(schema, path=path):
        raise ConflictError(
            f"the table's schema was changed since the work of {instant} began", path=context.uri, remedy="run it again"
        )
    later = now.commits().after(instant)
    if evolves and later.instants:
        raise ConflictError(
            f"commit {later.instants[0].requested_time} is newer than {instant}, and does not have its new columns",
            path=context.uri,
            remedy="run it again",
        )


def check_not_hidden(context: TableContext, now: Timeline, instant: str, stats: Sequence[WriteStat]) -> None:
    """Raises ConflictError where readers would not get to a log file of the write: in layout 1 they stop at a log block
    that is newer than the last commit. It is of a rollback that was requested after the write (apache/hudi#7828), or of
    a write that is pending.
    """
    last = max(instant, latest_read_instant(now) or "")
    if context.active.layout > 1 or not len(now.after(last)):
        return
    for stat in stats:
        if stat.log_version is None:
            continue
        ours = parse_log_file(stat.name)
        before = [
            DataFile(stat.partition_path, info.name, info.size)
            for info in context.storage.list_files(stat.partition_path)
            if isinstance(name := parse_data_file(info.name), LogFileName)
            and (name.file_id, name.instant) == (ours.file_id, ours.instant)
            and name.version < ours.version
        ]
        for block in log_blocks(context.storage, before):
            if isinstance(block, LogBlock) and (block.instant_time or "") > last:
                raise ConflictError(
                    f"{block.instant_time}, which began after {instant}, wrote before it, and would hide its rows",
                    path=block.path,
                    remedy="run it again",
                )


def check_not_nested(context: TableContext, new: Collection[str], known: Collection[str]) -> None:
    """Raises ConfigError for a new partition below or above another."""
    nested = one_below_another(new, known) if new else None
    if nested is not None:
        raise ConfigError(
            f"partition {nested[0]!r} would lie below partition {nested[1]!r}, and its rows be missed by all who list "
            "the storage",
            path=context.uri,
            remedy="give the rows another value in the partition columns, without the slash",
        )


def check_buckets_of(
    context: TableContext,
    timeline: Timeline,
    view: FileSystemView,
    written: Mapping[str, Collection[str]],
    buckets: Buckets | None,
) -> None:
    """Raises ConfigError where the table has other buckets. `written` are the file ids of the partitions of a write."""
    enough = 1 if buckets is not None else _ENOUGH_IDS
    check_bucket_ids(context, _first_ids(_file_ids(context, timeline, view, written), enough), buckets)


def check_rings(view: FileSystemView, file_ids: Mapping[str, Collection[str]], rings: Mapping[str, Ring]) -> None:
    """Raises FormatError where a file group of a partition is no bucket of its ring, so that its keys would be looked
    for elsewhere; UnsupportedError where a bucket was replaced: readers would not see its rows (apache/hudi#7634).
    """
    for partition, ids in file_ids.items():
        buckets = ids_of(rings[partition]) if partition in rings else ()
        stray_id = min({*ids}.difference(buckets), default=None)
        if stray_id is not None:
            raise FormatError(
                f"file group {stray_id} of partition {partition!r} is no bucket of the hashing metadata",
                path=folder_of(partition),
                remedy="have Hudi's clustering of the buckets completed, or restore the metadata from a copy",
            )
    for partition, ring in rings.items():
        for file_id in ids_of(ring):
            replaced_at = view.replaced_at(FileGroupId(partition, file_id))
            if replaced_at is not None:
                raise UnsupportedError(
                    f"bucket {file_id} of partition {partition!r} was replaced at {replaced_at}: new rows in it would "
                    "be lost",
                    path=folder_of(partition),
                    remedy="clean and archive the table until that instant is gone, then write again",
                )


def check_makes_no_bucket(context: TableContext, buckets: Buckets, new: Mapping[str, int]) -> None:
    """Raises UnsupportedError for `new` rows of buckets that a merge-on-read table does not have yet, by partition,
    beside writers without blocking. Hudi's give a new bucket log files of one id, the same for all of them
    (BucketIdentifier.newBucketFileIdForNBCC), and look for no other: the bucket would have two file groups.
    """
    partition = min((name for name, count in new.items() if count), default=None)
    is_shared = CONCURRENCY_MODE.read(context.options) == "NON_BLOCKING_CONCURRENCY_CONTROL"
    if partition is None or not is_shared or buckets.by_hash or not context.config.is_merge_on_read:
        return
    raise UnsupportedError(
        f"{new[partition]} rows of partition {partition!r} need a new bucket, which another writer may make meanwhile "
        f"as a second file group, since with {CONCURRENCY_MODE.name}=NON_BLOCKING_CONCURRENCY_CONTROL none looks",
        path=context.uri,
        remedy="write the first rows of the bucket with Hudi; or stop the other writers, and use another mode",
    )


def _first_ids(more_ids: Iterator[Collection[str]], enough: int) -> frozenset[str]:
    """Returns ids until one of them is no bucket's, or there are `enough`: a few may begin like buckets by chance."""
    ids: set[str] = set()
    while (not ids or (len(ids) < enough and are_buckets(ids))) and (more := next(more_ids, None)) is not None:
        ids.update(more)
    return frozenset(ids)


def _file_ids(
    context: TableContext, timeline: Timeline, view: FileSystemView, written: Mapping[str, Collection[str]]
) -> Iterator[list[str]]:
    """Yields file ids of what is `written`, of each partition, and of each commit's files, newest first."""
    yield [file_id for ids in written.values() for file_id in ids]
    for name in view.partitions():
        yield [item.file_group.file_id for item in view.latest_merged_slices(name)]
    for item in reversed(timeline.commits().instants):
        metadata = context.active.read_commit(item)
        of_commit = [stat.file_id for stat in metadata.write_stats()]
        yield of_commit + [group.file_id for group in metadata.replaced_file_groups()]


def check_bucket_ids(context: TableContext, ids: Collection[str], buckets: Buckets | None) -> None:
    """Raises ConfigError where the table has other buckets. Only ids of file groups show a table's buckets."""
    path = context.config.path
    remedy = f"give --option {NUM_BUCKETS.name}=NUMBER as the table's writers have it"
    if buckets is None:
        if are_buckets(ids):
            raise ConfigError(
                "the table has a bucket index, whose rows have their places by the hash of their keys",
                path=path,
                remedy=remedy,
            )
        return
    for file_id in sorted(ids):
        if BUCKET_ID.match(file_id) is None:
            raise ConfigError(
                f"file group {file_id} is no bucket",
                path=path,
                remedy=f"leave out {NUM_BUCKETS.name}, and {INDEX_TYPE.name}=BUCKET",
            )
        if bucket_of(file_id) >= buckets.count:
            raise ConfigError(f"file group {file_id} is none of {buckets.count} buckets", path=path, remedy=remedy)
