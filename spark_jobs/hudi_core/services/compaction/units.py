"""A stored plan as units for an engine, and the proof that the results are those of the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.config.write_config import WriteConfig
from hudi_core.errors import FormatError
from hudi_core.filegroup.merge.merge_mode import reads_as_hudi_1
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.records.file_statistics import FileStatistics
from hudi_core.model.names import parse_base_file
from hudi_core.model.partition import join
from hudi_core.services.compaction.merge_slice import CompactedSlice, CompactionUnit
from hudi_core.services.context import TableContext
from hudi_core.services.new_file_groups import base_file_of
from hudi_core.services.rewrite import Rewritten
from hudi_core.services.row_sums import unproved
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.timeline import Timeline


def build_units(
    context: TableContext,
    instant: str,
    plan: CompactionPlan,
    schema: AvroSchema,
    timeline: Timeline,
    requirements: StatisticsRequirements | None,
    listed: Mapping[str, Sequence[FileInfo]],
) -> list[CompactionUnit]:
    """One unit per operation, in the plan's order. `timeline` decides which log blocks count; `schema` is the table's,
    without meta fields. `requirements`: see CompactionUnit. `listed` are the files of the plan's partitions.
    """
    committed = CommittedInstants.of(timeline)
    config, as_hudi_1 = WriteConfig.of(context.options), reads_as_hudi_1(context.config)
    policy = MergePolicy.for_table(context.config, context.options)
    # In layout 1 a writer may append to a log file until its write completes: there its task asks for the size.
    grow = not context.config.features.completion_time_in_name
    sizes = {info.path: info.size for files in listed.values() for info in files}
    return [
        CompactionUnit(
            operation,
            uri=context.uri,
            storage_options=context.storage_options,
            instant=instant,
            committed=committed,
            schema=schema,
            policy=policy,
            config=config,
            as_hudi_1=as_hudi_1,
            requirements=requirements,
            sizes=() if grow else tuple(sizes[join(operation.partition, name)] for name in operation.log_files),
        )
        for operation in plan.operations
    ]


def prove(plan: CompactionPlan, results: Sequence[CompactedSlice], instant: str, *, with_statistics: bool) -> Rewritten:
    """The new files of the results, once they are shown to cover the plan's operations exactly and to lose or double no
    row.

    Raises ExecutionError otherwise. An operation whose log blocks were all rolled back and that has no base file has no
    result file.
    """
    if len(results) != len(plan.operations):
        what = f"the plan has {len(plan.operations)} operations, the engine returned {len(results)} results"
        raise unproved(what)
    stats: list[WriteStat] = []
    statistics: list[FileStatistics] = []
    for operation, result in zip(plan.operations, results, strict=True):
        stat = _prove_one(operation, result, instant)
        if stat is not None:
            stats.append(stat)
            if with_statistics:
                statistics.append(_statistics_of(stat, result))
    return Rewritten(list(map(base_file_of, stats)), stats, statistics)


def _statistics_of(stat: WriteStat, result: CompactedSlice) -> FileStatistics:
    source = f"result of {join(stat.partition_path, stat.file_id)}"
    statistics = result.statistics
    if statistics is None:
        raise unproved("the result has no statistics of the file for the metadata table", source)
    expected = base_file_of(stat)
    if statistics.file != expected:
        raise unproved(f"the engine wrote {expected}, and read {statistics.file}", source)
    return statistics


def _prove_one(operation: CompactionOperation, result: CompactedSlice, instant: str) -> WriteStat | None:
    source = f"result of {join(operation.partition, operation.file_id)}"
    stat = result.stat
    if stat is None:
        if operation.base_file is not None:
            raise unproved("the operation has a base file, but the engine wrote none", source)
        return None
    _check_identity(operation, stat, instant, source)
    _check_counts(operation, stat, result, source)
    return stat


def _check_identity(operation: CompactionOperation, stat: WriteStat, instant: str, source: str) -> None:
    partition, _, name = stat.path.rpartition("/")
    try:
        parsed = parse_base_file(name)
    except FormatError as error:
        raise unproved(f"the engine returned {stat.path!r}: {error.message}", source) from error
    expected = (operation.partition, operation.partition, operation.file_id, operation.file_id, instant)
    if (
        partition,
        stat.partition_path,
        parsed.file_id,
        stat.file_id,
        parsed.instant,
    ) != expected or stat.file_size_in_bytes <= 0:
        raise unproved(f"the engine returned {stat.path!r} of {stat.file_size_in_bytes} bytes", source)


def _check_counts(operation: CompactionOperation, stat: WriteStat, result: CompactedSlice, source: str) -> None:
    counts = result.records
    base, deleted, inserted, written = counts.base, counts.deleted, counts.inserted, result.written
    merged = counts.updated + counts.kept + deleted + inserted + counts.missed_deletes
    if min(base, counts.updated, counts.kept, deleted, inserted, counts.missed_deletes, written) < 0:
        raise unproved(f"the result's row counts are not counts: {counts}", source)
    if not written == base + inserted - deleted == stat.num_writes or (operation.base_file is None and base):
        what = f"{base} base rows, {inserted} inserted and {deleted} deleted do not make the {stat.num_writes} rows "
        raise unproved(f"{what}written", source)
    # A key that the base holds twice is met twice, hence no equality.
    if merged < stat.total_updated_records_compacted:
        what = f"the logs hold {stat.total_updated_records_compacted} keys, of which {merged} were merged"
        raise unproved(what, source)
