"""Copies the base files of a plan. What it does not say, services.rewriting and services.lifecycle do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.write.markers import MarkerType, check_attempt, create_marker
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.model.names import BaseFileName, FileGroupId, WriteToken, parse_base_file
from hudi_core.model.partition import join
from hudi_core.services.compaction.job import compaction_metadata
from hudi_core.services.lifecycle import Completion
from hudi_core.services.rewriting.job import Attempt, RewriteJob
from hudi_core.services.rewriting.proof import Rewritten
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.timeline.actions.commit import Operation
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


class CopyJob(RewriteJob[CompactionPlan]):
    """See RewriteJob."""

    action = Action.COMPACTION
    operation = Operation.COMPACT
    conflicts_as = Action.COMPACTION

    def plan(self, timeline: Timeline) -> CompactionPlan:
        return self.active.read_plan(self.instant)

    def file_groups(self, plan: CompactionPlan) -> frozenset[FileGroupId]:
        return frozenset(operation.file_group for operation in plan.operations)

    def execute(self, plan: CompactionPlan, held: Claim) -> Completion[Rewritten]:
        timeline = self.active.load()
        attempt = Attempt(self, self.file_groups(plan), held, timeline)
        uri, options, requirements = self.context.uri, self.context.storage_options, attempt.requirements
        with attempt.writing():
            units = [
                CopyUnit(uri, options, self.instant, operation.partition, operation.base_file or "", requirements)
                for operation in plan.operations
            ]
            results = self.run.engine.run(copy_base_file, units, run_epoch=held.epoch, progress=self.run.progress)
        if [result.copied for result in results] != [operation.base_file for operation in plan.operations]:
            raise ExecutionError("the results are not those of the plan", remedy="run it again")
        stats = [result.stat for result in results]
        statistics = [result.statistics for result in results if result.statistics and attempt.with_statistics]
        rewritten = Rewritten([_file_of(stat) for stat in stats], stats, statistics)
        attempt.keep(rewritten)
        attempt.check_rows(rewritten, plan.operations)
        schema = schema_of(timeline, self.active.read_details, create_schema=None, path_of=self.active.path_of)
        return attempt.completion(rewritten, compaction_metadata(self, stats, schema, timeline))


def copy_base_file(unit: CopyUnit, attempt: TaskAttempt) -> CopiedFile:
    """Writes the file's bytes under a name of this attempt, behind a marker."""
    storage = open_data_storage(unit.uri, unit.storage_options)
    source = parse_base_file(unit.name)
    token = WriteToken(attempt.partition_id, attempt.stage_id, attempt.attempt_id)
    name = str(BaseFileName(source.file_id, token, unit.instant, source.extension))
    marker = create_marker(storage, unit.instant, unit.partition, name, MarkerType.MERGE)
    check_attempt(storage, unit.instant, attempt.stage_id, marker, closed=False)
    with storage.open_input(join(unit.partition, unit.name)) as reader:
        data = reader.read()
    path = join(unit.partition, name)
    with storage.open_output(path) as writer:
        writer.write(data)
    check_attempt(storage, unit.instant, attempt.stage_id, marker, closed=True)
    with open_base_file(storage, path) as copied:
        rows = copied.num_rows
    stat = WriteStat(source.file_id, path, unit.partition, source.instant, rows, 0, 0, 0, len(data), len(data))
    required = unit.requirements
    statistics = None if required is None else read_file_statistics(storage, _file_of(stat), required)
    return CopiedFile(unit.name, stat, statistics)


def _file_of(stat: WriteStat) -> DataFileRef:
    return DataFileRef(stat.partition_path, stat.path.rpartition("/")[2], stat.file_size_in_bytes, is_base=True)
