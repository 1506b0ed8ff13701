"""Runs insert_overwrite, insert_overwrite_table and delete_partition: new file groups, or none, replace all that some
partitions hold (RFC-18).

An exchange brings the rows of a partition together, so that a task has one file open at a time. The driver gets no
rows. Tasks read the rows at the address that was given, or in a folder where Spark has put them.

write/verb.py says how a write is done once.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.metadata_table.partition_type import is_row_level
from hudi_core.metadata_table.partitions.row_level import SliceChange
from hudi_core.metadata_table.write.staged_logs import forget_staged
from hudi_core.model.names import FileGroupId
from hudi_core.services.context import provenance
from hudi_core.services.lifecycle import Completion, Run
from hudi_core.services.overwrite.plan import (
    Overwrite,
    OverwritePlan,
    check_no_plans,
    check_not_written,
    plan_overwrite,
)
from hudi_core.services.rewriting.job import Attempt, RewriteJob, commit_metadata, moved_to
from hudi_core.services.rewriting.new_file_groups import prove_files
from hudi_core.services.rewriting.other_writers import check_early
from hudi_core.services.rewriting.proof import Rewritten
from hudi_core.services.write.checks import check_same_schema
from hudi_core.services.write.new_rows import write_rows
from hudi_core.services.write.row_shards import expected_files
from hudi_core.services.write.shard_files import Written
from hudi_core.services.write.tokens import check_only_one
from hudi_core.timeline.actions.replacecommit import TOKEN_KEY, encode_inflight_overwrite
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim

log = logging.getLogger(__name__)


class OverwriteJob(RewriteJob[OverwritePlan]):
    """The job of an overwrite. An attempt that dies is rolled back with its instant, like a failed write."""

    action = Action.REPLACE_COMMIT
    conflicts_as = Action.REPLACE_COMMIT
    changes_rows = requests_itself = True

    def __init__(self, run: Run, work: Overwrite) -> None:
        super().__init__(run)
        self.operation = work.operation
        self._work = work

    def plan(self, timeline: Timeline) -> OverwritePlan:
        """Returns the plan for the table as it is now. Raises ConflictError where a commit with a later instant has
        already written to the partitions: its ranges in the metadata table would hide ours beneath them.
        """
        with_slices = any(map(is_row_level, self.context.config.metadata_partitions))
        plan = plan_overwrite(self.context, timeline, self._work, with_slices=with_slices)
        earlier = frozenset(time for time in plan.known if time < self.instant)
        check_not_written(self.context, timeline, self.instant, replace(plan, known=earlier))
        return plan

    def file_groups(self, plan: OverwritePlan) -> frozenset[FileGroupId]:
        return plan.file_groups()

    def inflight_content(self, plan: OverwritePlan) -> bytes:
        """Returns the content of the inflight file: how many rows come to each partition."""
        return encode_inflight_overwrite(self.operation, self._work.row_counts, layout=self.active.layout)

    def claimed(self, claim: Claim) -> None:
        """Does nothing: no attempt at the instant of an overwrite is continued."""

    def begin(self, plan: OverwritePlan, held: Claim) -> None:
        """Makes the instant inflight. Raises ConflictError as to_inflight_once."""
        held.check()
        if held.epoch > 1:
            forget_staged(self.storage, self.instant, up_to=held.epoch)
        check_early(self.context, self.active.load(), self.instant, self.file_groups(plan))
        self.to_inflight_once(plan)

    def execute(self, plan: OverwritePlan, held: Claim) -> Completion[Rewritten]:
        """Writes the rows. Raises ConflictError where another write has changed the schema since they were counted."""
        context, timeline, work = self.context, self.active.load(), self._work
        rows = None if work.rows is None else work.rows.rows
        if rows is not None:
            check_same_schema(context, timeline, self.instant, rows.found_schema)
        attempt = Attempt(
            self,
            plan.file_groups(),
            held,
            timeline,
            expected_files=expected_files(work.rows, context.options),
            new_schema=None if rows is None or rows.evolved_from is None else rows.schema,
        )
        with attempt.writing():
            # Not the table's newest schema: tasks read the source by the schema of the count.
            schema = table_schema(self.storage, context.config, timeline) if rows is None else rows.schema
            results = [] if work.rows is None else write_rows(self.run, work.rows, attempt.requirements, held)
        rewritten = self._prove(plan, results, with_statistics=attempt.with_statistics)
        attempt.keep(rewritten)
        token = {} if work.token is None else {TOKEN_KEY: work.token}
        extra = {**provenance(self.owner), **token}
        return attempt.completion(
            rewritten,
            commit_metadata(self, rewritten.stats, schema, extra, replaced_file_ids=plan.replaced),
            moved=[
                *(SliceChange(item, None, self.instant) for item in plan.slices),
                *moved_to(rewritten.files, self.instant),
            ],
            new_partitions=plan.new_partitions,
            # Whatever the options compare: no other write was there, and the table still has its schema.
            preconditions=(
                partial(check_not_written, context, instant=self.instant, plan=plan),
                partial(check_only_one, context, instant=self.instant, work=work),
                partial(check_no_plans, context, partitions=plan.partitions),
                partial(
                    check_same_schema,
                    context,
                    instant=self.instant,
                    schema=schema if rows is None else rows.found_schema,
                    evolves=rows is not None and rows.evolved_from is not None,
                ),
            ),
        )

    def _prove(self, plan: OverwritePlan, results: Sequence[Written], *, with_statistics: bool) -> Rewritten:
        """Proves that each partition has the counted rows, without deleted ones and older ones of the same key."""
        files = [file for result in results for file in result.files]
        dropped = Counter[str]()
        for result in results:
            dropped.update(result.dropped)
        if dropped:
            log.info("%d rows of the source are marked as deleted, or have a newer row of their key", dropped.total())
        rows = {partition: count - dropped[partition] for partition, count in self._work.row_counts.items()}
        return prove_files(files, rows, self.instant, plan.file_groups(), with_statistics=with_statistics)
