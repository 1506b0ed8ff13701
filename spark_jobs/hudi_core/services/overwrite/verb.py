"""`insert-overwrite` and `delete-partition`: plans, requests and runs an instant, or finds that the work was done
before (job.py). plan.py says what an overwrite replaces.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from hudi_core.config.concurrency_config import CONCURRENCY_MODE
from hudi_core.engine.protocol import Engine
from hudi_core.errors import ConfigError, ConflictError, CorruptFileError, HudiError
from hudi_core.request.results import Progress
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Run, run_instant
from hudi_core.services.overwrite.count import counted_rows
from hudi_core.services.overwrite.job import OverwriteJob, find_token, source_of, what_comes_first
from hudi_core.services.overwrite.plan import Overwrite, OverwritePlan, check_no_plans, plan_overwrite
from hudi_core.services.overwrite.source import find_source
from hudi_core.services.rewriting.other_writers import live_writer, may_be_eager
from hudi_core.services.rollback.failed_writes import pending_rollback_or_restore, pending_rollbacks
from hudi_core.services.rollback.verb import RollbackResult, clean_failed_writes, rollback
from hudi_core.storage.one_look import look_again
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.replacecommit import encode_requested_overwrite
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.transaction.claim_file import current_claim
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.writer_heartbeats import process_of

log = logging.getLogger(__name__)

_NO_ROWS = (
    "the source has no rows, so no partition is replaced; name those to be emptied with --partition, or give "
    "--whole-table"
)
_ATTEMPTS = 3
"""How often a run looks for the instant of a token again, after it rolled an earlier attempt back."""


@dataclass(frozen=True, slots=True)
class OverwriteResult:
    """The result of an overwrite. `instant` is None in a dry run, and where there was nothing to do; `reason` says why.
    `repeated`: an earlier run with the same token did the work; the numbers are those of that run, also in a dry run.
    Else the numbers of a dry run are those to come, but for the files: only the rows show how many they become.
    """

    instant: str | None
    operation: str
    partitions: int
    replaced_file_groups: int
    files_written: int
    records: int
    repeated: bool = False
    reason: str | None = None
    engine: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl insert-overwrite --json`."""
        return asdict(self)


def replace_partitions(
    context: TableContext,
    work: Overwrite,
    engine: Engine,
    owner: Owner,
    progress: Progress | None = None,
    *,
    dry_run: bool = False,
) -> OverwriteResult:
    """Replaces partitions by the rows of `work`: the partitions of the rows, the named ones, or all of the table.
    Without rows the partitions become empty. A dry run leaves the table as it is, whatever the token.

    Raises errors for bad input before anything is written: those of count_file for the source, of plan_overwrite for
    the table. Raises ConflictError where a table service is planned on what is replaced, a writer is at work, another
    run does the token's work, or the rows to replace were changed while Spark evaluated the new ones.
    """
    done = _done_before(context, work, owner, dry_run=dry_run)
    if done is not None:
        return done
    rows = work.rows_from
    if rows is None:
        return _overwrite(context, work, engine, owner, progress, dry_run=dry_run)
    if not rows.source:
        work = replace(work, seen=context.active.load().commits().requested_times)
    with source_of(context, rows, engine, dry_run=dry_run) as source:
        work = replace(work, rows=counted_rows(context, source, engine))
        look_again(context.storage)  # the rows took a while
        if not work.row_counts and work.operation != Operation.INSERT_OVERWRITE_TABLE and not work.partitions:
            return OverwriteResult(None, work.operation, 0, 0, 0, 0, reason=_NO_ROWS)
        return _overwrite(context, work, engine, owner, progress, dry_run=dry_run)


def nothing_to_overwrite(context: TableContext, work: Overwrite) -> OverwriteResult | None:
    """Returns the result of the run that did the token's work, where nothing of that run is left; None where there is
    something to do. Writes nothing. Raises the errors of the run for bad input, as far as they show without rows.
    """
    before = find_token(context, context.active.load(), work.token)
    if before is None:
        if work.rows_from is not None and work.rows_from.source:
            find_source(work.rows_from.source, context.storage_options)
        elif work.operation == Operation.DELETE_PARTITION:
            plan_overwrite(context, context.active.load(), work, with_slices=False)
        return None
    if before.metadata is None or current_claim(context.storage, before.instant.requested_time) is not None:
        return None
    _check_same_work(context, before.instant, before.metadata, work)
    return _repeated(before.instant.requested_time, before.metadata)


def _check_same_work(context: TableContext, instant: Instant, metadata: CommitMetadata, work: Overwrite) -> None:
    """Raises ConfigError where the commit of the token did not do `work`. Compares the operation, and the partitions
    where the request names them: a commit has all that were named, also those without file groups.
    """
    others: frozenset[str] = frozenset()
    if work.partitions is not None:
        others = frozenset(work.partitions) ^ frozenset(metadata.replaced_file_ids or ())
    if metadata.operation_type == work.operation and not others:
        return
    differ = f", whose partitions are others: {min(others)!r} is among those of one of the two" if others else ""
    raise ConfigError(
        f"the token is that of {metadata.operation_type} {instant.requested_time}{differ}",
        path=context.active.folder,
        remedy="give each piece of work a token of its own",
    )


def _overwrite(
    context: TableContext, work: Overwrite, engine: Engine, owner: Owner, progress: Progress | None, *, dry_run: bool
) -> OverwriteResult:
    planned = plan_overwrite(context, context.active.load(), work, with_slices=False)
    if dry_run:
        return _preview(context, work, planned, engine, owner)
    _roll_failed_writes_back(context, owner)
    for _ in range(_ATTEMPTS):
        done = _done_before(context, work, owner)
        if done is not None:
            return done
        instant = _request(context, work, planned, owner)
        if instant is not None:
            return _run(context, instant, work, engine, owner, progress)
    raise ConflictError(f"other runs with the token {work.token!r} are at work", remedy="run it again")


def _roll_failed_writes_back(context: TableContext, owner: Owner, *, dry_run: bool = False) -> list[RollbackResult]:
    """Rolls failed writes back, as a writer of Hudi does before each write (BaseHoodieWriteClient.startCommit). An
    EAGER writer with a failed write before this commit would fail after it
    (BaseRollbackActionExecutor.validateRollbackCommitSequence). Beside writers that are not EAGER, rolls back only
    failed overwrites of this engine, such as an earlier attempt at this one.
    """
    timeline = context.active.load()
    pending = timeline.pending()
    if not pending.instants or pending.of_actions(Action.RESTORE).instants:
        return []  # a restore finishes its own rollbacks, and no write is requested beside it
    try:
        pending_rollbacks(context.active, timeline)
    except CorruptFileError:  # the plan may still be written, and nothing is requested beside it
        return []
    results = clean_failed_writes(context, owner, only_ours=not may_be_eager(context), dry_run=dry_run)
    for result in results:
        log.info("%s", result.outcome)
    return results


def _done_before(
    context: TableContext, work: Overwrite, owner: Owner, *, dry_run: bool = False
) -> OverwriteResult | None:
    """Returns the result of an earlier run with the token; None where there is none. Rolls the earlier attempt back
    where it died before it had decided to complete. With `dry_run`, only looks.
    """
    found = find_token(context, context.active.load(), work.token)
    if found is not None and found.metadata is None and not dry_run:
        # This also completes an attempt that had decided to complete.
        _roll_back(context, found.instant.requested_time, owner)
        found = find_token(context, context.active.load(), work.token)
    if found is None or found.metadata is None:
        return None
    _check_same_work(context, found.instant, found.metadata, work)
    if not dry_run and context.active.load().contains(found.instant.requested_time):
        run_instant(OverwriteJob(Run(context, found.instant.requested_time, owner), work))  # only cleans up behind it
    return _repeated(found.instant.requested_time, found.metadata)


def _request(context: TableContext, work: Overwrite, planned: OverwritePlan, owner: Owner) -> str | None:
    """Requests an instant and returns it. Returns None where another run has requested one with the token meanwhile."""
    release = context.config.features.conflict_release
    content = encode_requested_overwrite(
        work.operation,
        token=work.token,
        layout=context.active.layout,
        names_deletes=release == "1.2",
        process=process_of(owner),
    )
    with context.lock(owner) as lock:
        timeline = context.active.load()
        if find_token(context, timeline, work.token, archived=False) is not None:
            return None
        found = pending_rollback_or_restore(context.active, timeline)
        if found is not None:
            pending, way_out = found
            raise ConflictError(
                f"{pending.action} {pending.requested_time} is pending, and may roll back what would be replaced",
                path=context.active.path_of(pending),
                remedy=way_out,
            )
        writer = live_writer(context, timeline, Action.REPLACE_COMMIT)
        if writer is not None:
            raise ConflictError(
                f"{writer.action} {writer.requested_time} is pending, and what it writes to replaced file groups would "
                "be lost",
                path=context.active.path_of(writer),
                remedy=(
                    f"wait for it, roll it back, or set {CONCURRENCY_MODE.name}=optimistic_concurrency_control where "
                    "every writer has it"
                ),
            )
        check_no_plans(context, timeline, planned.partitions)
        instant = context.new_instant(timeline)
        lock.check()
        context.active.create_requested(instant, Action.REPLACE_COMMIT, content)
    log.info("%s %s requested", work.operation, instant)
    return instant


def _run(
    context: TableContext, instant: str, work: Overwrite, engine: Engine, owner: Owner, progress: Progress | None
) -> OverwriteResult:
    shown = None if progress is None else partial(progress, instant)
    try:
        run_instant(OverwriteJob(Run(context.reloaded(), instant, owner, engine, shown), work))
    except HudiError:
        look_again(context.storage)
        # No plan outlives the attempt: nobody would run it again.
        if not _roll_back_failed(context, instant, owner):
            raise
    found = context.active.load().get(instant, Action.REPLACE_COMMIT)
    return replace(_result(instant, context.active.read_commit(found)), engine=engine.name)


def _roll_back_failed(context: TableContext, instant: str, owner: Owner) -> bool:
    """Rolls a failed attempt back. Returns whether it had decided to complete, and so is completed now."""
    try:
        _roll_back(context, instant, owner)
    except HudiError as error:
        log.warning("replacecommit %s was not rolled back: %s", instant, error)
    found = context.active.load().find(instant, Action.REPLACE_COMMIT)
    return found is not None and found.is_completed


def _roll_back(context: TableContext, instant: str, owner: Owner) -> None:
    """Rolls an attempt back, or completes it where it had decided to complete. Raises ConflictError while its owner is
    alive: a rollback that is requested then would stop the owner. Reads the properties again, for new indexes.
    """
    try:
        rollback(context.reloaded(), instant, owner, unless_completed=True)
    except ConflictError:
        found = context.active.load().find(instant, Action.REPLACE_COMMIT)
        if found is None or found.state is not State.COMPLETED:
            raise


def _preview(
    context: TableContext, work: Overwrite, planned: OverwritePlan, engine: Engine, owner: Owner
) -> OverwriteResult:
    records = sum(work.row_counts.values())
    replaced = len(planned.file_groups())
    first = what_comes_first(context, work.token)
    for result in _roll_failed_writes_back(context, owner, dry_run=True):
        if result.target is not None and result.target not in first:
            first += f"; {result.reason or f'the failed write {result.target} would be rolled back first'}"
    reason = f"a dry run{first}"
    return OverwriteResult(
        None, work.operation, len(planned.partitions), replaced, 0, records, reason=reason, engine=engine.name
    )


def _repeated(instant: str, metadata: CommitMetadata) -> OverwriteResult:
    reason = f"an earlier run with the same token did it, as instant {instant}"
    return replace(_result(instant, metadata), repeated=True, reason=reason)


def _result(instant: str, metadata: CommitMetadata) -> OverwriteResult:
    stats = list(metadata.write_stats())
    replaced = metadata.replaced_file_ids or {}
    return OverwriteResult(
        instant,
        metadata.operation_type or "",
        len({*replaced, *metadata.partition_to_write_stats}),
        sum(map(len, replaced.values())),
        len(stats),
        sum(stat.num_writes for stat in stats),
    )
