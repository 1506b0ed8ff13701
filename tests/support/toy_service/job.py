"""Copies the base files of a plan. What it does not say, services.rewrite and services.lifecycle do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.read.planned_slices import PlannedSlice
from hudi_core.filegroup.write.markers import MarkerType, check_attempt, create_marker
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.model.names import BaseFileName, FileGroupId, WriteToken, parse_base_file
from hudi_core.model.partition import join
from hudi_core.services.compaction.job import compaction_metadata
from hudi_core.services.rewriting.job import RewriteJob, Rewritten, Stats
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.compaction import CompactionPlan
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Action
from hudi_core.timeline.schemas import schema_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim


@dataclass(frozen=True, slots=True)
class CopyUnit:
    """A base file to copy; `requirements` are what the metadata table must know of the copy."""

    uri: str
    storage_options: Mapping[str, str]
    instant: str
    partition: str
    name: str
    requirements: StatisticsRequirements | None


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """The name of the file that was copied, and the copy."""

    copied: str
    stat: WriteStat
    statistics: FileStatistics | None


class CopyJob(RewriteJob[CompactionPlan, CopiedFile]):
    """See RewriteJob."""

    action = Action.COMPACTION
    operation = Operation.COMPACT
    conflicts_as = Action.COMPACTION

    def plan(self, timeline: Timeline) -> CompactionPlan:
        return self.active.read_plan(self.instant)

    def planned(self, plan: CompactionPlan) -> list[PlannedSlice]:
        return [PlannedSlice(item.file_group, item.base_file, item.log_files) for item in plan.operations]

    def file_groups(self, plan: CompactionPlan) -> frozenset[FileGroupId]:
        return frozenset(operation.file_group for operation in plan.operations)

    def rewrite(
        self, plan: CompactionPlan, timeline: Timeline, requirements: StatisticsRequirements | None, held: Claim
    ) -> list[CopiedFile]:
        uri, options = self.context.uri, self.context.storage_options
        units = [
            CopyUnit(uri, options, self.instant, operation.partition, operation.base_file or "", requirements)
            for operation in plan.operations
        ]
        return self.run.engine.run(copy_base_file, units, run_epoch=held.epoch, progress=self.run.progress)

    def prove(self, plan: CompactionPlan, results: list[CopiedFile], *, with_statistics: bool) -> Rewritten:
        if [result.copied for result in results] != [operation.base_file for operation in plan.operations]:
            raise ExecutionError("the results are not those of the plan", remedy="run it again")
        stats = [result.stat for result in results]
        statistics = [result.statistics for result in results if result.statistics is not None and with_statistics]
        return Rewritten([_file_of(stat) for stat in stats], stats, statistics)

    def metadata(self, plan: CompactionPlan, stats: Stats, timeline: Timeline) -> CommitMetadata:
        schema = schema_of(timeline, self.active.read_details, create_schema=None, path_of=self.active.path_of)
        return compaction_metadata(stats, schema, {}, self.owner)


def copy_base_file(unit: CopyUnit, attempt: TaskAttempt) -> CopiedFile:
    """Writes the file's bytes under a name of this attempt, behind a marker."""
    storage = open_data_storage(unit.uri, unit.storage_options)
    source = parse_base_file(unit.name)
    token = WriteToken(attempt.partition_id, attempt.stage_id, attempt.attempt_id)
    name = str(BaseFileName(source.file_id, token, unit.instant, source.extension))
    marker = create_marker(storage, unit.instant, unit.partition, name, MarkerType.MERGE)
    check_attempt(storage, unit.instant, attempt.stage_id, marker)
    with storage.open_input(join(unit.partition, unit.name)) as reader:
        data = reader.read()
    path = join(unit.partition, name)
    with storage.open_output(path) as writer:
        writer.write(data)
    check_attempt(storage, unit.instant, attempt.stage_id, marker)
    with open_base_file(storage, path) as copied:
        rows = copied.num_rows
    stat = WriteStat(source.file_id, path, unit.partition, source.instant, rows, 0, 0, 0, len(data), len(data))
    required = unit.requirements
    statistics = None if required is None else read_file_statistics(storage, _file_of(stat), required)
    return CopiedFile(unit.name, stat, statistics)


def _file_of(stat: WriteStat) -> DataFileRef:
    return DataFileRef(stat.partition_path, stat.path.rpartition("/")[2], stat.file_size_in_bytes, is_base=True)
