"""insert_overwrite, insert_overwrite_table and delete_partition: new file groups, or none, replace all that some
partitions hold (RFC-18).

An exchange brings the rows of a partition together, so that a task has one file open at a time. Nothing of the rows
comes to the driver.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import uuid4

from hudi_core.codec.avro.schema import AvroSchema, without_fields
from hudi_core.config.services.compaction_config import MAX_FILE_BYTES
from hudi_core.config.write_config import WriteConfig
from hudi_core.errors import ConflictError
from hudi_core.filegroup.merge.merge_mode import reads_as_hudi_1
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.partition_type import RECORD_INDEX, is_row_level
from hudi_core.metadata_table.partitions.row_level import SliceChange
from hudi_core.metadata_table.records.file_statistics import DataFileRef
from hudi_core.metadata_table.write.staged_logs import forget_staged
from hudi_core.model.names import FileGroupId
from hudi_core.services.context import provenance
from hudi_core.services.lifecycle import Run
from hudi_core.services.metadata.initialization import indexed_table
from hudi_core.services.overwrite.combined_rows import produce_combined, write_combined
from hudi_core.services.overwrite.plan import (
    Overwrite,
    OverwritePlan,
    check_no_plans,
    check_not_written,
    check_same_schema,
    plan_overwrite,
)
from hudi_core.services.overwrite.row_shards import RowsUnit, expected_files, produce_rows, spread_of
from hudi_core.services.overwrite.shard_files import RowsTarget, Written, write_shard
from hudi_core.services.overwrite.source import CountedRows
from hudi_core.services.rewriting.job import RewriteJob, Rewritten, Stats
from hudi_core.services.rewriting.new_file_groups import NewFiles, by_partition, moved_to, prove_files
from hudi_core.services.rewriting.other_writers import check_early
from hudi_core.timeline.actions.commit import SCHEMA_KEY, CommitMetadata
from hudi_core.timeline.actions.replacecommit import TOKEN_KEY, encode_inflight_overwrite
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.commit import Precondition
from hudi_core.view.file_group import FileSlice

log = logging.getLogger(__name__)


class OverwriteJob(RewriteJob[OverwritePlan, Written]):
    """See Job. There is no plan on the timeline that outlives an attempt: one that dies is rolled back as a failed
    write is, with its instant.
    """

    action = Action.REPLACE_COMMIT
    conflicts_as = Action.REPLACE_COMMIT
    changes_rows = True

    def __init__(self, run: Run, work: Overwrite) -> None:
        super().__init__(run)
        self.operation = work.operation
        self._work = work
        self._schema: AvroSchema = {}
        self._slices: tuple[FileSlice, ...] = ()

    def plan(self, timeline: Timeline) -> OverwritePlan:
        """See plan_overwrite: from the table as it is, now that the instant is requested.

        Raises ConflictError where a commit with a later instant has written to the partitions already: the ranges that
        it recorded in the metadata table would hide ours, which merge beneath them.
        """
        with_slices = any(map(is_row_level, self.context.config.metadata_partitions))
        plan = plan_overwrite(self.context, timeline, self._work, with_slices=with_slices)
        earlier = frozenset(time for time in plan.known if time < self.instant)
        check_not_written(self.context, timeline, self.instant, replace(plan, known=earlier))
        return plan

    def file_groups(self, plan: OverwritePlan) -> frozenset[FileGroupId]:
        """See RewriteJob: those that are replaced."""
        return plan.file_groups()

    def expected_files(self, plan: OverwritePlan) -> int:
        """See RewriteJob: at least one for each partition that rows come to."""
        return expected_files(self._work.rows, self.context.options)

    def inflight_content(self, plan: OverwritePlan) -> bytes:
        """See RewriteJob: the rows that come to each partition."""
        return encode_inflight_overwrite(self.operation, self._work.row_counts, layout=self.active.layout)

    def begin(self, plan: OverwritePlan, held: Claim) -> None:
        """Makes the instant inflight. Raises ConflictError where an earlier attempt did: it has to be rolled back."""
        held.check()
        forget_staged(self.storage, self.instant, up_to=held.epoch)
        check_early(self.context, self.active.load(), self.instant, self.file_groups(plan))
        if not self.active.to_inflight(self.instant, self.action, self.inflight_content(plan)):
            raise ConflictError(
                f"an earlier attempt at {self.action} {self.instant} died",
                path=self.active.folder,
                remedy=f"roll it back: hudictl rollback TABLE --instant {self.instant}",
            )

    def new_schema(self, timeline: Timeline) -> AvroSchema | None:
        """See RewriteJob. Raises ConflictError where another write has changed it since the rows were counted."""
        rows = None if self._work.rows is None else self._work.rows.rows
        if rows is None:
            return None
        check_same_schema(self.context, timeline, self.instant, rows.found_schema)
        return None if rows.evolved_from is None else rows.schema

    def rewrite(
        self, plan: OverwritePlan, timeline: Timeline, requirements: StatisticsRequirements | None, held: Claim
    ) -> list[Written]:
        """See RewriteJob."""
        rows = self._work.rows
        # Not the table's newest, as tasks read the source by the schema of the count.
        self._schema = table_schema(self.storage, self.context.config, timeline) if rows is None else rows.rows.schema
        self._slices = plan.slices
        self.adds_partitions = bool(plan.new_partitions) and self._has_partitioned_index(timeline)
        return [] if rows is None else write_rows(self.run, rows, requirements, held)

    def _has_partitioned_index(self, timeline: Timeline) -> bool:
        if RECORD_INDEX not in self.context.config.metadata_partitions:
            return False
        definition = indexed_table(self.context, timeline).definitions.get(RECORD_INDEX)
        return definition is not None and definition.is_partitioned

    def prove(self, plan: OverwritePlan, results: list[Written], *, with_statistics: bool) -> Rewritten:
        """See RewriteJob: each partition has as many rows as were counted before, without those that are marked as
        deleted or have a newer row of their key.
        """
        files = [file for result in results for file in result.files]
        dropped = Counter[str]()
        for result in results:
            dropped.update(result.dropped)
        if dropped:
            log.info("%d rows of the source are marked as deleted, or have a newer row of their key", dropped.total())
        rows = {partition: count - dropped[partition] for partition, count in self._work.row_counts.items()}
        return prove_files(files, rows, self.instant, plan.file_groups(), with_statistics=with_statistics)

    def moved_rows(self, files: Sequence[DataFileRef]) -> list[SliceChange]:
        """See RewriteJob: the rows that go, and those that come."""
        return [SliceChange(item, None, self.instant) for item in self._slices] + moved_to(files, self.instant)

    def preconditions(self, plan: OverwritePlan, timeline: Timeline) -> tuple[Precondition, ...]:
        """See RewriteJob: whatever the options compare, nothing else has been written there, and
        the table has the schema that it had.
        """
        rows = self._work.rows
        schema = self._schema if rows is None else rows.rows.found_schema
        return (
            partial(check_not_written, self.context, instant=self.instant, plan=plan),
            partial(check_no_plans, self.context, partitions=plan.partitions),
            partial(check_same_schema, self.context, instant=self.instant, schema=schema),
        )

    def metadata(self, plan: OverwritePlan, stats: Stats, timeline: Timeline) -> CommitMetadata:
        """See RewriteJob."""
        schema = json.dumps(self._schema, separators=(",", ":"), ensure_ascii=False)
        token = {} if self._work.token is None else {TOKEN_KEY: self._work.token}
        return CommitMetadata(
            by_partition(stats),
            operation_type=self.operation,
            extra_metadata={SCHEMA_KEY: schema, **provenance(self.owner), **token},
            replaced_file_ids=plan.replaced,
        )


def write_rows(
    run: Run,
    rows: CountedRows,
    requirements: StatisticsRequirements | None,
    held: Claim,
) -> list[Written]:
    """Lets the engine write all rows; errors as produce_rows and write_shard, or as produce_combined and
    write_combined.
    """
    context = run.context
    config = WriteConfig.of(context.options)
    file_bytes = MAX_FILE_BYTES.read(context.options)
    spread = spread_of(rows, file_bytes)
    if not spread.shards:
        return []
    files = NewFiles(
        run.instant,
        without_fields(rows.rows.schema, context.config.dropped_columns),
        config,
        # A bucket is one file, whatever its size. Others get a tenth more than what they are expected to take, so that
        # rows that are a little larger leave no small file behind (HoodieBaseParquetWriter, compression ratio).
        file_bytes + file_bytes // 10 if rows.rows.buckets is None else sys.maxsize,
        as_hudi_1=reads_as_hudi_1(context.config),
        stamps_rows=context.config.populate_meta_fields,
        requirements=requirements,
        has_meta=context.config.populate_meta_fields,
    )
    target = RowsTarget(context.uri, dict(context.storage_options), files, str(uuid4()), rows.rows.policy)
    combines = rows.rows.combines
    return run.engine.exchange(
        produce_combined if combines else produce_rows,
        [RowsUnit(rows.rows, part, spread, number) for number, part in enumerate(rows.parts)],
        partial(write_combined if combines else write_shard, target),
        shards=spread.shards,
        run_epoch=held.epoch,
        progress=run.progress,
    )
