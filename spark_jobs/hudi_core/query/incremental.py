"""Plans incremental queries: the rows that the commits of a range wrote, as the last of them left each. commit_range.py
finds those commits.

Works like IncrementalRelation and MergeOnReadIncrementalRelation of 0.15, and HoodieIncrementalFileIndex of 1.x. The
query reads the file groups that the commits wrote, and of these only rows whose `_hoodie_commit_time` is one of the
range. In table versions 6 and 9 a slice is made of the files that the commits name. In version 8, and where log blocks
hold partial rows, which need the rows below, it is made of all its files. File groups that a commit of the range
replaced are omitted. Where a file is missing, Hudi's option decides between an error and a scan of the latest snapshot.
Such a scan shows a row only if no later commit wrote it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

import pyarrow as pa

from hudi_core.codec.log.blocks import LogBlock
from hudi_core.config.rows_config import END_SCHEMA, FULL_SCAN, REPORT_REPLACED
from hudi_core.engine.serializer import from_text
from hudi_core.errors import ConfigError, StorageNotFoundError
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.model.names import IS_DELETED, FileGroupId, LogFileName, parse_data_file
from hudi_core.model.partition import join
from hudi_core.query.commit_range import CommitRange, commits_in_range, slice_before_replacement
from hudi_core.query.context import ReadContext, reader_spec
from hudi_core.query.read_plan import REPLACED_BY, ReadPlan
from hudi_core.query.request import ReadRequest
from hudi_core.query.slices_plan import SlicesPlanner
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.commit import Operation, replaced_file_groups
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import FileSystemView, PendingWork
from hudi_core.view.listing import FileListing
from hudi_core.view.slicing import slicing_for

_READERS: Final = 8
"""How many slices are examined at once, waiting for storage. Each holds two windows of a log file, 128 KiB."""


def plan_incremental(context: ReadContext, request: ReadRequest) -> ReadPlan:
    """Returns the plan of an incremental query. Raises the errors of plan.plan_read."""
    if not context.config.populate_meta_fields:
        message = "an incremental query needs the _hoodie_ columns, which this table's rows lack"
        raise ConfigError(message, path=context.config.path, remedy="read a snapshot")
    timeline = context.active.load()
    commits = commits_in_range(context, timeline, request)
    schema_end = commits.last if END_SCHEMA.read(context.options) else None
    schema = table_schema(context.storage, context.config, timeline, schema_end)
    metadata = context.metadata_table(request.metadata, timeline, schema)
    listing = context.listing(metadata)
    seen, slices = _slices(context, timeline, commits, listing)
    schemas = timeline if schema_end is None else timeline.up_to(schema_end)
    spec = reader_spec(context, schema, seen, merge_logs=True, commit_times=commits.requested_times, schemas=schemas)
    report_replaced = REPORT_REPLACED.read(context.options)
    if report_replaced and request.columns is not None:
        columns = [name for name in request.columns if name != IS_DELETED]
        flag = [IS_DELETED] if IS_DELETED in spec.output.all.names else []
        request = replace(request, columns=(*columns, *flag))
    planner = SlicesPlanner(context, request, spec, metadata, current=False)
    written = _of_partitions(planner, slices)
    if not report_replaced:
        return written
    before, instants = _replaced(context, timeline, commits, listing)
    return _combined(written, _of_partitions(planner, before), instants)


def _of_partitions(planner: SlicesPlanner, slices: list[FileSlice]) -> ReadPlan:
    requested = frozenset(planner.partitions(sorted({item.file_group.partition for item in slices})))
    return planner.plan([item for item in slices if item.file_group.partition in requested])


def _combined(written: ReadPlan, replaced: ReadPlan, instants: Mapping[FileGroupId, str]) -> ReadPlan:
    """Returns one plan of written and replaced rows. Splits of replaced rows name their instant."""
    fields = [field for field in written.schema if field.name != IS_DELETED]
    splits = [{**split, REPLACED_BY: None} for split in written.splits]
    for split in replaced.splits:
        group = from_text(FileSlice, split["part"]).file_group
        splits.append({**split, REPLACED_BY: instants[group]})
    return replace(
        written,
        schema=pa.schema([*fields, pa.field(IS_DELETED, pa.bool_())]),
        common={**written.common, REPLACED_BY: True},
        splits=tuple(splits),
        files_read=written.files_read + replaced.files_read,
        files_pruned=written.files_pruned + replaced.files_pruned,
    )


def _replaced(
    context: ReadContext, timeline: Timeline, commits: CommitRange, listing: FileListing
) -> tuple[list[FileSlice], dict[FileGroupId, str]]:
    """Returns the slices that overwrites and partition deletes of the range replaced, and by which instant."""
    view = context.view(timeline, listing=listing)
    slices, instants = [], {}
    for instant, commit in commits.metadata.items():
        for group in () if commit.operation_type == Operation.CLUSTER else commit.replaced_file_groups():
            item = slice_before_replacement(view, group, instant)
            if item is None:
                message = f"the file group that the replacecommit {instant.requested_time} replaced was cleaned since"
                remedy = f"begin later, or omit {REPORT_REPLACED.name}"
                raise StorageNotFoundError(message, path=join(group.partition, group.file_id), remedy=remedy)
            slices.append(item)
            instants[group] = instant.requested_time
    return slices, instants


def _slices(
    context: ReadContext, timeline: Timeline, commits: CommitRange, listing: FileListing
) -> tuple[Timeline, list[FileSlice]]:
    """Returns the timeline by which log blocks count, and the slices to read."""
    pending = timeline.pending_compactions()
    if context.config.features.layout == 1:
        # A timeline that started with an older plan would take file slices between it and the range for uncommitted.
        pending = pending.filter(lambda item: item.requested_time > commits.begin)
    of_range = Timeline([*commits.metadata, *pending])
    if commits.last is None:
        return of_range, []
    full_scan = FULL_SCAN.read(context.options)
    if full_scan is None:
        full_scan = context.config.features.incremental_full_scan
    written = _written_slices(context, of_range, commits, listing)
    missing = _missing(written, listing)
    if full_scan and missing is not None:
        return timeline, _merged(context.view(timeline, listing=listing))
    if missing is not None:
        message = f"the range {commits.begin} to {commits.end or 'now'} needs a file that was cleaned since"
        remedy = f"begin later, or set {FULL_SCAN.name}=true to read what the latest snapshot still has of it"
        raise StorageNotFoundError(message, path=missing, remedy=remedy)
    whole = _whole_groups(context, written)
    if not whole:
        return of_range, written
    # The file groups as they were when the last commit of the range completed. Instants that were archived since the
    # range began are added: otherwise they would count as older than the timeline.
    whole_timeline = Timeline([*commits.archived, *timeline])
    then = as_of_completion(whole_timeline, max(instant.completed_at for instant in commits.metadata))
    view = context.view(then, listing=listing)
    partitions = sorted({group.partition for group in whole})
    slices = [item for name in partitions for item in view.latest_merged_slices(name) if item.file_group in whole]
    slices += [item for item in written if item.file_group not in whole]
    return then, sorted(slices, key=lambda item: item.file_group)


def _merged(view: FileSystemView, as_of: str | None = None) -> list[FileSlice]:
    return [item for partition in view.partitions() for item in view.latest_merged_slices(partition, as_of)]


def _written_slices(
    context: ReadContext, of_range: Timeline, commits: CommitRange, listing: FileListing
) -> list[FileSlice]:
    """Returns the newest slices of the file groups that the commits wrote, made only of the files that they wrote. A
    compaction that was planned while a commit ran may begin the slice of its log files (Hudi's queries omit them).
    """
    replaced = replaced_file_groups(of_range, lambda instant: commits.metadata[instant])
    completions = {instant.requested_time: instant.completed_at for instant in commits.metadata}
    files, plans = CommitListing(commits, listing), context.active.read_plans(of_range)
    if context.config.features.layout == 1:
        later = _later_slices(files, after=max(instant.requested_time for instant in of_range))
        plans.update(later)
        of_range = Timeline([*of_range, *(Instant(time, Action.COMPACTION, State.REQUESTED) for time in later)])
    slicing = slicing_for(context.config.layout_version, of_range, completions.get)
    view = FileSystemView(files, of_range, PendingWork(plans), replaced, slicing)
    return _merged(view, max(instant.requested_time for instant in of_range))


def _later_slices(files: CommitListing, after: str) -> dict[str, CompactionPlan]:
    """Returns, as pending compactions, the slices of layout 1 that began after the range though its log files lie in
    them: their base files are not of the range.
    """
    operations: dict[str, set[CompactionOperation]] = {}
    for partition in files.partitions():
        for info in files.files(partition):
            log = parse_data_file(info.name)
            if isinstance(log, LogFileName) and log.instant > after:
                operation = CompactionOperation(partition, log.file_id, log.instant, None, ())
                operations.setdefault(log.instant, set()).add(operation)
    return {instant: CompactionPlan(tuple(of_instant)) for instant, of_instant in operations.items()}


class CommitListing:
    """The files that commits record, as a view.listing.FileListing. Sizes are the listing's, else the commit's."""

    def __init__(self, commits: CommitRange, listing: FileListing) -> None:
        self._sizes: dict[str, dict[str, int]] = {}
        self._listing = listing
        for commit in commits.metadata.values():
            for partition, stats in commit.partition_to_write_stats.items():
                sizes = self._sizes.setdefault(partition, {})
                for stat in stats:
                    name = stat.path.rsplit("/", 1)[-1]
                    if parse_data_file(name) is not None:
                        sizes[name] = stat.file_size_in_bytes

    def partitions(self) -> list[str]:
        return sorted(self._sizes)

    def files(self, partition: str) -> list[FileInfo]:
        written = self._sizes.get(partition, {})
        present = {info.name: info.size for info in self._listing.files(partition)} if written else {}
        return [FileInfo(join(partition, name), present.get(name, written[name]), 0.0) for name in sorted(written)]


def _missing(slices: list[FileSlice], listing: FileListing) -> str | None:
    """Returns the path of a file of `slices` that the table no longer has."""
    present: dict[str, set[str]] = {}
    for item in slices:
        partition = item.file_group.partition
        if partition not in present:
            present[partition] = {info.name for info in listing.files(partition)}
        for file in item.data_files:
            if file.name not in present[partition]:
                return file.path
    return None


def _whole_groups(context: ReadContext, written: list[FileSlice]) -> frozenset[FileGroupId]:
    """Returns the file groups of `written` that are read with the files below those of the range. Hudi 1.2.0, the
    reference for version 9, reads none so, and fails (ClassCastException) on partial rows without whole ones.
    """
    features = context.config.features
    if features.incremental_whole_groups:
        return frozenset(item.file_group for item in written)
    if features.hudi_1_log_headers and context.config.is_merge_on_read:
        return partial_groups(context.storage, written)
    return frozenset()


def partial_groups(storage: Storage, slices: Sequence[FileSlice]) -> frozenset[FileGroupId]:
    """Returns the file groups of those `slices` that have a partial-update block. Makes one or two ranged reads for
    every log block up to the first such. Raises StorageNotFoundError, CorruptFileError and UnsupportedError.
    """

    def is_partial(item: FileSlice) -> bool:
        return any(isinstance(block, LogBlock) and block.is_partial for block in log_blocks(storage, item.log_files))

    logged = [item for item in slices if item.log_files]
    with ThreadPoolExecutor(max_workers=_READERS, thread_name_prefix="headers") as pool:
        partial_flags = pool.map(is_partial, logged)
        return frozenset(item.file_group for item, partial in zip(logged, partial_flags, strict=True) if partial)


def as_of_completion(timeline: Timeline, end: str) -> Timeline:
    """Returns the timeline when `end` was the last completion. What completed later was pending then."""
    return Timeline(
        instant
        if not instant.is_completed or instant.completed_at <= end
        else replace(instant, state=State.INFLIGHT, completion_time=None)
        for instant in timeline
    )
