"""Runs insert_overwrite, insert_overwrite_table and delete_partition: new file groups, or none, replace all that some
partitions hold (RFC-18).

An exchange brings the rows of a partition together, so that a task has one file open at a time. The driver gets no
rows. Tasks read the rows at the address that was given, or in a folder where Spark has put them.

A second request of the same work has the same token, so that it is done once. verb.py says what it does.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from uuid import uuid4

from hudi_core.config.services.compaction_config import MAX_FILE_BYTES
from hudi_core.engine.protocol import Engine, FrameEngine
from hudi_core.errors import ConfigError, ConflictError, StorageNotFoundError
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.partition_type import RECORD_INDEX, is_row_level
from hudi_core.metadata_table.partitions.row_level import SliceChange
from hudi_core.metadata_table.write.staged_logs import forget_staged
from hudi_core.model.names import FileGroupId
from hudi_core.services.context import TableContext, provenance
from hudi_core.services.lifecycle import Completion, Run
from hudi_core.services.metadata.initialization import indexed_table
from hudi_core.services.overwrite.plan import (
    Overwrite,
    OverwritePlan,
    RowsFrom,
    check_no_plans,
    check_not_written,
    check_same_schema,
    plan_overwrite,
)
from hudi_core.services.overwrite.row_shards import (
    RowsUnit,
    expected_files,
    produce_combined,
    produce_rows,
    spread_of,
    write_combined,
)
from hudi_core.services.overwrite.shard_files import RowsTarget, Written, write_shard
from hudi_core.services.overwrite.source import CountedRows, Source
from hudi_core.services.rewriting.job import Attempt, RewriteJob, commit_metadata, moved_to
from hudi_core.services.rewriting.new_file_groups import NewFiles, prove_files
from hudi_core.services.rewriting.other_writers import check_early
from hudi_core.services.rewriting.proof import Rewritten
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.replacecommit import TOKEN_KEY, encode_inflight_overwrite, requested_extra
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.claim_file import current_claim, is_decided, is_live

log = logging.getLogger(__name__)

STAGED: Final = ".hoodie/.airflow_hudi/staged"
"""Folder in the table for rows of queries and DataFrames."""
LEFT_SECONDS: Final = 7 * 24 * 3600
"""Age from which the next run deletes rows that a killed run left."""


class OverwriteJob(RewriteJob[OverwritePlan]):
    """The job of an overwrite. An attempt that dies is rolled back with its instant, like a failed write."""

    action = Action.REPLACE_COMMIT
    conflicts_as = Action.REPLACE_COMMIT
    changes_rows = True

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
        """Makes the instant inflight. Raises ConflictError where an earlier attempt did, and must be rolled back."""
        held.check()
        if held.epoch > 1:
            forget_staged(self.storage, self.instant, up_to=held.epoch)
        check_early(self.context, self.active.load(), self.instant, self.file_groups(plan))
        if not self.active.to_inflight(self.instant, self.action, self.inflight_content(plan)):
            raise ConflictError(
                f"an earlier attempt at {self.action} {self.instant} died",
                path=self.active.folder,
                remedy=f"roll it back: hudictl rollback TABLE --instant {self.instant}",
            )

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
            adds_partitions = bool(plan.new_partitions) and self._has_partitioned_index(timeline)
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
            adds_partitions=adds_partitions,
            # Whatever the options compare: no other write was there, and the table still has its schema.
            preconditions=(
                partial(check_not_written, context, instant=self.instant, plan=plan),
                partial(check_no_plans, context, partitions=plan.partitions),
                partial(
                    check_same_schema,
                    context,
                    instant=self.instant,
                    schema=schema if rows is None else rows.found_schema,
                ),
            ),
        )

    def _has_partitioned_index(self, timeline: Timeline) -> bool:
        if RECORD_INDEX not in self.context.config.metadata_partitions:
            return False
        definition = indexed_table(self.context, timeline).definitions.get(RECORD_INDEX)
        return definition is not None and definition.is_partitioned

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


def write_rows(run: Run, rows: CountedRows, requirements: StatisticsRequirements | None, held: Claim) -> list[Written]:
    """Writes the rows by an exchange. Raises as produce_rows, write_shard, produce_combined, write_combined."""
    context = run.context
    file_bytes = MAX_FILE_BYTES.read(context.options)
    spread = spread_of(rows, file_bytes)
    if not spread.shards:
        return []
    # A bucket is one file, whatever its size. Other files may be a tenth larger than expected, so that rows that are a
    # little larger leave no small file behind (HoodieBaseParquetWriter, compression ratio).
    target_bytes = file_bytes + file_bytes // 10 if rows.rows.buckets is None else sys.maxsize
    files = NewFiles.of(context, run.instant, rows.rows.schema, target_bytes, requirements)
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


@contextmanager
def source_of(context: TableContext, rows: RowsFrom, engine: Engine, *, dry_run: bool = False) -> Iterator[Source]:
    """Yields the rows as files. Deletes the files of a query or a DataFrame in the end.

    Raises ConfigError for an engine without queries and DataFrames or an invalid one; ExecutionError.
    """
    if rows.source:
        yield Source(rows.source)
        return
    if not isinstance(engine, FrameEngine):
        raise ConfigError(
            f"the engine {engine.name} answers no query and has no DataFrames",
            remedy="use --engine spark, or give a source",
        )
    if not dry_run:
        _delete_left(context)
    folder = f"{STAGED}/{uuid4().hex}"
    address = f"{context.uri}/{folder}"
    try:
        if rows.query:
            names = engine.stage_query(rows.query, address, context.storage_options)
        else:
            names = engine.stage_dataframe(rows.dataframe, rows.dataframe_args, address, context.storage_options)
        log.info("the rows of the overwrite are in %s", address)
        yield Source(address, names)
    finally:
        context.storage.delete_folder(folder)


def _delete_left(context: TableContext) -> None:
    for folder in context.storage.list_folders(STAGED):
        files = context.storage.list_files(folder)
        if files and max(info.modified for info in files) < time.time() - LEFT_SECONDS:
            context.storage.delete_folder(folder)


@dataclass(frozen=True, slots=True)
class Found:
    """The instant of a token. `metadata` is set where the instant is completed."""

    instant: Instant
    metadata: CommitMetadata | None = None


def find_token(context: TableContext, timeline: Timeline, token: str | None, *, archived: bool = True) -> Found | None:
    """Returns the newest replacecommit with `token`, on the timeline, then in the archive. Raises CorruptFileError."""
    if token is None:
        return None
    active = context.active
    for item in reversed(timeline.of_actions(Action.REPLACE_COMMIT).instants):
        try:
            if item.is_completed:
                metadata = active.read_commit(item)
                if metadata.extra_metadata.get(TOKEN_KEY) == token:
                    return Found(item, metadata)
                continue
            path = active.path(item.requested_time, Action.REPLACE_COMMIT, State.REQUESTED)
            data = active.read_requested(item.requested_time, Action.REPLACE_COMMIT)
            if requested_extra(data, path=path).get(TOKEN_KEY) == token:
                return Found(item)
        except StorageNotFoundError:
            continue  # rolled back or archived since the listing
    if not archived:
        return None
    history = context.history()
    replacing = history.timeline().of_actions(Action.REPLACE_COMMIT)
    for item, metadata in history.commits(replacing):
        if metadata.extra_metadata.get(TOKEN_KEY) == token:
            return Found(item, metadata)
    return None


def what_comes_first(context: TableContext, token: str | None) -> str:
    """Returns text for the reason of a dry run: what a run would do before its own work; else empty. Only reads: the
    age of a heartbeat is by this machine's clock. Raises ConflictError while an owner runs the instant.
    """
    earlier = find_token(context, context.active.load(), token, archived=False)
    if earlier is None or earlier.metadata is not None:
        return ""
    instant = earlier.instant.requested_time
    claim = current_claim(context.storage, instant)
    if claim is not None and is_live(context.storage, instant, claim.epoch, now=time.time):
        raise ConflictError(
            f"instant {instant}, which has the token, is run by {claim.owner.describe()}",
            path=claim.path,
            remedy="wait for it",
        )
    attempt = f"{earlier.instant.action} {instant}, an attempt with the token that died"
    if is_decided(context.storage, instant):
        return f"; {attempt} once it had decided to complete, would be completed instead"
    return f"; {attempt}, would be rolled back first"
