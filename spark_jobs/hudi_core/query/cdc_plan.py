"""Plans change-data queries: for each commit and each file group that it changed, where its changes can be read.
cdc_read.py makes the images of the rows.

Works like HoodieCDCExtractor. Change-data logs are used where the commit wrote them. Otherwise the slices before and
after the commit are compared, so that tables without change-data logs, and commits that wrote none, are answered too.
Hudi requires `hoodie.table.cdc.enabled`; this engine does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Final

from hudi_core.config.table_config import CHANGE_LOG_MODE, KEYS_ONLY, WHOLE_IMAGES
from hudi_core.engine.serializer import to_text
from hudi_core.errors import CorruptFileError, StorageNotFoundError, UnsupportedError
from hudi_core.filegroup.read.read_spec import of_predicate, select_columns
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.frozen import dataclass
from hudi_core.history.archived import CompletionTimes
from hudi_core.model.names import BaseFileName, FileGroupId, LogFileName, parse_data_file, parse_log_file
from hudi_core.model.partition import check_relative_path, join
from hudi_core.query.cdc_read import CDC_SCHEMA, Change, Image
from hudi_core.query.commit_range import commits_in_range, slice_before_replacement
from hudi_core.query.context import ReadContext, reader_spec
from hudi_core.query.read_plan import ChangeQuery, ReadPlan, split_of
from hudi_core.query.request import ReadRequest
from hudi_core.query.slices_plan import common_part, predicate_of
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile, FileSlice, slice_of_base
from hudi_core.view.file_system_view import FileSystemView

_NO_CHANGE: Final = frozenset({Operation.COMPACT, Operation.LOG_COMPACT, Operation.CLUSTER, Operation.INDEX})
"""Operations that rewrite rows without changing any (WriteOperationType.yieldChanges)."""
_NEW_GROUP: Final = "null"


def plan_cdc(context: ReadContext, request: ReadRequest) -> ReadPlan:
    """Returns the plan of a change-data query: one split for each commit and file group. Raises as plan.plan_read;
    StorageNotFoundError for a file cleaned since; UnsupportedError where changes must be computed without record keys.
    """
    timeline = context.active.load()
    commits = commits_in_range(context, timeline, request)
    output = select_columns(CDC_SCHEMA, request.columns)
    predicate = predicate_of(request)
    if predicate is not None:
        of_predicate(predicate, CDC_SCHEMA)  # refused here, not by a task
    metadata = context.metadata_table(request.metadata, timeline)
    view = context.view(timeline, listing=context.listing(metadata))
    finder = _ChangeFinder(context, timeline, view)
    changes = [change for instant, commit in commits.metadata.items() for change in finder.changes(instant, commit)]
    finder.check(changes)
    schema = table_schema(context.storage, context.config, timeline)
    common = common_part(context, reader_spec(context, schema, timeline, merge_logs=True))
    common["changes"] = to_text(ChangeQuery(tuple(output.names), predicate))
    files = sum(len(change.files()) for change in changes)
    return ReadPlan(output, common, tuple(map(split_of, changes)), files)


@dataclass(frozen=True)
class _ChangeFinder:
    context: ReadContext
    timeline: Timeline
    view: FileSystemView
    _names: dict[str, dict[str, int]] = field(default_factory=dict)

    def changes(self, instant: Instant, commit: CommitMetadata) -> Iterator[Change]:
        if commit.operation_type in _NO_CHANGE or commit.compacted:
            return
        for partition, stats in commit.partition_to_write_stats.items():
            logs: dict[str, list[str]] = {}
            for stat in stats:
                plain = stat.path.rsplit("/", 1)[-1]
                name = parse_data_file(plain)
                if isinstance(name, LogFileName):
                    logs.setdefault(name.file_id, []).append(plain)
                elif isinstance(name, BaseFileName):
                    yield self._of_base_file(instant.requested_time, partition, stat, name)
            for file_id, names in logs.items():
                yield self._of_logs(instant, FileGroupId(partition, file_id), frozenset(names))
        for group in commit.replaced_file_groups():
            item = slice_before_replacement(self.view, group, instant)
            if item is None:
                raise _cleaned(join(group.partition, group.file_id))
            yield Change(instant.requested_time, group.partition, before=Image(item))

    def check(self, changes: list[Change]) -> None:
        """Raises StorageNotFoundError for a missing file, UnsupportedError for changes that cannot be computed."""
        for change in changes:
            for file in change.files():
                if file.name not in self._present(file.partition):
                    raise _cleaned(file.path)
            if not self.context.config.populate_meta_fields and not (
                change.logs and change.before is None and change.after is None
            ):
                raise UnsupportedError(
                    f"the changes of commit {change.instant} in {change.partition or 'the table'} must be "
                    "computed, and rows lack _hoodie_ columns",
                    path=self.context.config.path,
                    remedy=f"write the table with {CHANGE_LOG_MODE.name}={WHOLE_IMAGES}",
                )

    def _of_base_file(self, requested: str, partition: str, stat: WriteStat, name: BaseFileName) -> Change:
        after = Image(slice_of_base(DataFile(partition, str(name), stat.file_size_in_bytes)))
        if stat.cdc_stats:
            logs = tuple(self._cdc_log(partition, path, size) for path, size in stat.cdc_stats)
            mode = CHANGE_LOG_MODE.read(self.context.config.raw, path=self.context.config.path)
            if mode == WHOLE_IMAGES:
                return Change(requested, partition, logs)
            before = self._previous(partition, stat) if mode == KEYS_ONLY else None
            return Change(requested, partition, logs, before, after)
        # As many writes as inserts: the file had no rows before, but only where nothing was deleted either.
        kept_none = stat.num_update_writes == stat.num_deletes == 0 and stat.num_writes == stat.num_inserts
        if stat.prev_commit == _NEW_GROUP or kept_none:
            return Change(requested, partition, after=after)
        emptied = stat.num_writes == 0 and stat.num_deletes
        return Change(requested, partition, before=self._previous(partition, stat), after=None if emptied else after)

    def _cdc_log(self, partition: str, path: str, size: int) -> DataFile:
        """Returns the change-data log of `size` bytes. A wrong size would repeat or lose changes."""
        source = f"{self.context.active.folder}: cdcStats"
        name = check_relative_path(path, source=source).rsplit("/", 1)[-1]
        parse_log_file(name)
        if name not in self._present(partition):
            raise _cleaned(join(partition, name))
        if self._present(partition)[name] != size:
            message = f"the change-data log has {self._present(partition)[name]} bytes, and {size} by its commit"
            remedy = "restore the file from a copy, or query a range without its commit"
            raise CorruptFileError(message, path=join(partition, name), remedy=remedy)
        return DataFile(partition, name, size)

    def _previous(self, partition: str, stat: WriteStat) -> Image:
        group = self.view.file_group(FileGroupId(partition, stat.file_id))
        for item in () if group is None else (*group.slices, *group.uncommitted):
            if item.base_instant == stat.prev_commit and item.base_file is not None:
                return Image(slice_of_base(item.base_file))
        raise _cleaned(join(partition, f"{stat.file_id}_*_{stat.prev_commit}"))

    def _of_logs(self, instant: Instant, group: FileGroupId, names: frozenset[str]) -> Change:
        """Returns the change of a deltacommit's logs: the slice without them and with them."""
        item = self._slice_with(group, names)
        if self.context.config.features.log_name_has_delta_commit:
            # In scan order the logs of commits that ran side by side may be interleaved.
            older = tuple(
                log for log in item.log_files if log.name not in names and self._completed_before(log, instant)
            )
            both = tuple(log for log in item.log_files if log.name in names or log in older)
            before, after = (Image(replace(item, log_files=logs, cdc_files=())) for logs in (older, both))
        else:
            # A file may hold blocks of several instants, so the scan is ended by their times.
            logs = item.log_files[: max(place for place, log in enumerate(item.log_files) if log.name in names) + 1]
            kept = replace(item, log_files=logs, cdc_files=())
            before, after = Image(kept, instant.requested_time, inclusive=False), Image(kept, instant.requested_time)
        first = before.file_slice.is_empty
        return Change(instant.requested_time, group.partition, before=None if first else before, after=after)

    def _slice_with(self, group: FileGroupId, names: frozenset[str]) -> FileSlice:
        """Returns the slice that the logs are in; with the one before it while its own base file is being compacted."""
        file_group = self.view.file_group(group)
        slices = () if file_group is None else file_group.slices
        for place, item in enumerate(slices):
            if any(log.name in names for log in item.log_files):
                compacting = item.base_file is None and self.view.pending.compaction_of(group) == item.base_instant
                return slices[place + 1].merged_with(item) if compacting and place + 1 < len(slices) else item
        raise _cleaned(join(group.partition, min(names)))

    def _completed_before(self, log: DataFile, instant: Instant) -> bool:
        """Whether the log's instant completed first; an instant in neither timeline is older than both."""
        completed = self._completions.of(parse_log_file(log.name).instant)
        return completed is None or completed < instant.completed_at

    @cached_property
    def _completions(self) -> CompletionTimes:
        return CompletionTimes(self.timeline, self.context.history)

    def _present(self, partition: str) -> Mapping[str, int]:
        if partition not in self._names:
            self._names[partition] = {info.name: info.size for info in self.view.files(partition)}
        return self._names[partition]


def _cleaned(path: str) -> StorageNotFoundError:
    message = "a file with the changes is missing: it was cleaned since"
    return StorageNotFoundError(message, path=path, remedy="begin later, or read a snapshot instead")
