"""Copies the base files of a plan. What it does not say, services.rewrite and services.lifecycle do."""

from __future__ import annotations

from hudi_core.engine.protocol import Json, TaskAttempt, UnitTask
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.write.markers import MarkerType, create_marker
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.model.ids import FileGroupId, WriteToken
from hudi_core.model.names import BaseFileName, parse_base_file
from hudi_core.model.partition import join
from hudi_core.model.stats import WriteStat
from hudi_core.services.compaction.commit_metadata import compaction_metadata, encode_metadata
from hudi_core.services.rewrite import RewriteJob, Rewritten, Stats
from hudi_core.storage.data_registry import open_data_storage
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.compaction import CompactionPlan
from hudi_core.timeline.actions.write_stats import stat_from_json, stat_to_json
from hudi_core.timeline.instant import Action
from hudi_core.timeline.table_schema import schema_of
from hudi_core.timeline.timeline import Timeline


class CopyJob(RewriteJob[CompactionPlan]):
    """See RewriteJob."""

    action = Action.COMPACTION
    operation = Operation.COMPACT

    @property
    def task(self) -> UnitTask:
        return copy_base_file

    def plan(self, timeline: Timeline) -> CompactionPlan:
        return self.active.read_plan(self.instant)

    def partitions(self, plan: CompactionPlan) -> frozenset[str]:
        return frozenset(operation.partition for operation in plan.operations)

    def file_groups(self, plan: CompactionPlan) -> frozenset[FileGroupId]:
        return frozenset(operation.file_group for operation in plan.operations)

    def units(
        self, plan: CompactionPlan, timeline: Timeline, requirements: StatisticsRequirements | None
    ) -> list[Json]:
        return [
            {
                "uri": self.context.uri,
                "storage_options": dict(self.context.storage_options),
                "instant": self.instant,
                "partition": operation.partition,
                "name": operation.base_file,
                "requirements": None if requirements is None else requirements.to_json(),
            }
            for operation in plan.operations
        ]

    def prove(self, plan: CompactionPlan, results: list[Json], *, with_statistics: bool) -> Rewritten:
        if [result["copied"] for result in results] != [operation.base_file for operation in plan.operations]:
            raise ExecutionError("the results are not those of the plan", remedy="run it again")
        stats = [stat_from_json(result["stat"], path="result") for result in results]
        statistics = [FileStatistics.from_json(result["statistics"]) for result in results if with_statistics]
        return Rewritten([_file_of(stat) for stat in stats], stats, statistics)

    def metadata(self, plan: CompactionPlan, stats: Stats, timeline: Timeline) -> CommitMetadata:
        schema = schema_of(timeline, self.active.read_details, create_schema=None, path_of=self.active.path_of)
        return compaction_metadata(stats, schema, {}, self.owner)

    def encode(self, metadata: CommitMetadata) -> bytes:
        return encode_metadata(metadata, self.context.config.features)


def copy_base_file(unit: Json, attempt: TaskAttempt) -> Json:
    """Writes the file's bytes under a name of this attempt, behind a marker."""
    storage, partition = open_data_storage(unit["uri"], unit["storage_options"]), unit["partition"]
    source = parse_base_file(unit["name"])
    token = WriteToken(attempt.partition_id, attempt.stage_id, attempt.attempt_id)
    name = str(BaseFileName(source.file_id, token, unit["instant"], source.extension))
    create_marker(storage, unit["instant"], partition, name, MarkerType.MERGE)
    with storage.open_input(join(partition, unit["name"])) as reader:
        data = reader.read()
    with storage.open_output(join(partition, name)) as writer:
        writer.write(data)
    with open_base_file(storage, join(partition, name)) as copied:
        rows = copied.num_rows
    stat = WriteStat(
        source.file_id, join(partition, name), partition, source.instant, rows, 0, 0, 0, len(data), len(data)
    )
    statistics = None
    if unit["requirements"] is not None:
        requirements = StatisticsRequirements.from_json(unit["requirements"])
        statistics = read_file_statistics(storage, _file_of(stat), requirements).to_json()
    return {"copied": unit["name"], "stat": stat_to_json(stat), "statistics": statistics}


def _file_of(stat: WriteStat) -> DataFileRef:
    return DataFileRef(stat.partition_path, stat.path.rpartition("/")[2], stat.file_size_in_bytes, is_base=True)
