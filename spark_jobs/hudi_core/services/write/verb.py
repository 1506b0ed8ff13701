"""Overwrites and writes of rows: plans, requests and runs an instant, or finds that an earlier run did the work
(tokens.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from hudi_core.config.concurrency_config import CONCURRENCY_MODE
from hudi_core.engine.protocol import Engine
from hudi_core.errors import (
    ConfigError,
    ConflictError,
    CorruptFileError,
    HudiError,
    StorageNotFoundError,
    TimelineError,
)
from hudi_core.history.archived import begin_of_writes
from hudi_core.metadata_table.indexed_table import define_added_columns
from hudi_core.request.results import Progress
from hudi_core.services.concurrent_changes import Seen
from hudi_core.services.context import TableContext
from hudi_core.services.lifecycle import Run, run_instant
from hudi_core.services.metadata.initialization import indexed_table
from hudi_core.services.rewriting.job import RewriteJob
from hudi_core.services.rewriting.other_writers import live_writer, may_be_eager
from hudi_core.services.rollback.failed_writes import pending_rollback_or_restore, pending_rollbacks
from hudi_core.services.rollback.verb import RollbackResult, clean_failed_writes, rollback
from hudi_core.services.source.count import counted_rows
from hudi_core.services.source.files import find_source
from hudi_core.services.source.staged_rows import source_of
from hudi_core.services.write.tokens import find_token, what_comes_first
from hudi_core.services.write.work import Extent, Work, WriteResult
from hudi_core.storage.one_look import look_again
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.instant import Action, Instant
from hudi_core.transaction.claim_file import current_claim
from hudi_core.transaction.owner import Owner
from hudi_core.transaction.writer_heartbeats import process_of

log = logging.getLogger(__name__)

W = TypeVar("W", bound=Work)
JobOf = Callable[[Run, W], RewriteJob[Any]]
"""Makes the job of a run."""
_ATTEMPTS = 3
"""How often a run looks for the instant of a token again, after it rolled an earlier attempt back."""


def run_write(
    context: TableContext,
    work: W,
    job_of: JobOf[W],
    engine: Engine,
    owner: Owner,
    progress: Progress | None = None,
    *,
    dry_run: bool = False,
) -> WriteResult:
    """Writes the rows of `work`, or replaces partitions by them. `job_of` makes the job of a run. A dry run leaves the
    table as it is, whatever the token.

    Raises errors for bad input before anything is written: those of count_file for the source, of Work.extent for the
    table. Raises ConflictError where a table service is planned on what is written, a writer is at work, another run
    does the token's work, or the rows to replace were changed while Spark evaluated the new ones.
    """
    begin = begin_of_writes(context.active.load())
    done = _done_before(context, work, job_of, owner, dry_run=dry_run)
    if done is not None:
        return done
    rows = work.rows_from
    if rows is None:
        return _write(context, work, job_of, engine, owner, progress, begin, dry_run=dry_run)
    if not rows.source:
        work = replace(work, seen=Seen.of(context.active.load()))
    with source_of(context, rows, engine, dry_run=dry_run) as source:
        work = replace(work, rows=counted_rows(context, source, engine, work.needs()))
        look_again(context.storage)  # the rows took a while
        reason = work.nothing()
        if reason is not None:
            return WriteResult(None, work.operation, 0, 0, 0, 0, reason=reason)
        return _write(context, work, job_of, engine, owner, progress, begin, dry_run=dry_run)


def nothing_to_write(context: TableContext, work: Work) -> WriteResult | None:
    """Returns the result of the run that did the token's work, where nothing of that run is left; None where there is
    something to do. Writes nothing. Raises the errors of the run for bad input, as far as they show without rows.
    """
    before = find_token(context, context.active.load(), work)
    if before is None:
        if work.rows_from is None:
            work.extent(context, context.active.load())
        elif work.rows_from.source:
            find_source(work.rows_from.source, context.storage_options)
        return None
    if before.metadata is None or current_claim(context.storage, before.instant.requested_time) is not None:
        return None
    _check_same_work(context, before.instant, before.metadata, work)
    return _repeated(before.instant.requested_time, before.metadata)


def _check_same_work(context: TableContext, instant: Instant, metadata: CommitMetadata, work: Work) -> None:
    """Raises ConfigError where the commit of the token did not do `work`. Compares the operation, and the partitions
    where the request names them: a commit has all that were named, also those without file groups.
    """
    others = work.other_partitions(metadata)
    if metadata.operation_type == work.operation and not others:
        return
    differ = f", whose partitions are others: {min(others)!r} is among those of one of the two" if others else ""
    raise ConfigError(
        f"the token is that of {metadata.operation_type} {instant.requested_time}{differ}",
        path=context.active.folder,
        remedy="give each piece of work a token of its own",
    )


def _write(
    context: TableContext,
    work: W,
    job_of: JobOf[W],
    engine: Engine,
    owner: Owner,
    progress: Progress | None,
    begin: str | None,
    *,
    dry_run: bool,
) -> WriteResult:
    """`begin` was that of the active timeline (begin_of_writes) before the archive was searched for the token."""
    extent = work.extent(context, context.active.load())
    if dry_run:
        return _preview(context, work, extent, engine, owner)
    _roll_failed_writes_back(context, owner)
    for _ in range(_ATTEMPTS):
        # An archival takes the oldest writes first, and so changes the begin before it takes the token's.
        now = begin_of_writes(context.active.load())
        done = _done_before(context, work, job_of, owner, archived=now != begin)
        if done is not None:
            return done
        begin = now
        requested = _request(context, work, extent, owner, begin)
        if requested is not None:
            instant, searched = requested
            return _run(context, instant, replace(work, searched=searched), job_of, engine, owner, progress)
    raise ConflictError(f"other runs with the token {work.token!r}, or archivals, are at work", remedy="run it again")


def _roll_failed_writes_back(context: TableContext, owner: Owner, *, dry_run: bool = False) -> list[RollbackResult]:
    """Rolls failed writes back, as a writer of Hudi does before each write (BaseHoodieWriteClient.startCommit). An
    EAGER writer with a failed write before this commit would fail after it
    (BaseRollbackActionExecutor.validateRollbackCommitSequence). Beside writers that are not EAGER, rolls back only
    failed writes of this engine, such as an earlier attempt at this one.
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
    context: TableContext, work: W, job_of: JobOf[W], owner: Owner, *, dry_run: bool = False, archived: bool = True
) -> WriteResult | None:
    """Returns the result of an earlier run with the token; None where there is none. Rolls the earlier attempt back
    where it died before it had decided to complete. With `dry_run`, only looks. `archived`: in the archive, too.
    """
    found = find_token(context, context.active.load(), work, archived=archived)
    if found is not None and found.metadata is None and not dry_run:
        instant = found.instant.requested_time
        # This also completes an attempt that had decided to complete.
        with _unless_archived(context, instant):
            _roll_back(context, work, instant, owner)
        archived = archived or not context.active.load().contains(instant)
        found = find_token(context, context.active.load(), work, archived=archived)
    if found is None or found.metadata is None:
        return None
    _check_same_work(context, found.instant, found.metadata, work)
    instant = found.instant.requested_time
    if not dry_run and context.active.load().contains(instant):
        with _unless_archived(context, instant):
            run_instant(job_of(Run(context, instant, owner), work))  # only cleans up behind it
    return _repeated(instant, found.metadata)


@contextmanager
def _unless_archived(context: TableContext, instant: str) -> Iterator[None]:
    """Passes over errors if the instant has left the timeline: an archival took it meanwhile, or a rollback."""
    try:
        yield
    except HudiError as error:
        look_again(context.storage)
        if context.active.load().contains(instant):
            raise
        log.warning("instant %s is gone: %s", instant, error)


def _request(
    context: TableContext, work: Work, extent: Extent, owner: Owner, begin: str | None
) -> tuple[str, frozenset[str]] | None:
    """Requests an instant. Returns it with the commits that do not have the token. Returns None where another run has
    requested an instant with the token meanwhile, or may have, before an archival. `begin` is as in _write.
    """
    action, content = work.action(context), work.requested(context, process_of(owner))
    with context.lock(owner) as lock:
        timeline = context.active.load()
        # The archive may take longer than the lock is kept: it is searched without the lock.
        if work.token is not None and begin_of_writes(timeline) != begin:
            return None
        if find_token(context, timeline, work, archived=False) is not None:
            return None
        found = pending_rollback_or_restore(context.active, timeline)
        if found is not None:
            pending, way_out = found
            raise ConflictError(
                f"{pending.action} {pending.requested_time} is pending, and may roll back what would be replaced",
                path=context.active.path_of(pending),
                remedy=way_out,
            )
        writer = live_writer(context, timeline, action)
        if writer is not None:
            raise ConflictError(
                f"{writer.action} {writer.requested_time} is pending, and what it writes to the same file groups would "
                "be lost",
                path=context.active.path_of(writer),
                remedy=(
                    f"wait for it, roll it back, or set {CONCURRENCY_MODE.name}=optimistic_concurrency_control where "
                    "every writer has it"
                ),
            )
        work.check_plans(context, timeline, extent)
        instant = context.new_instant(timeline)
        lock.check()
        rows = None if work.rows is None else work.rows.rows
        if rows is not None and rows.evolved_from is not None:
            new = replace(indexed_table(context, timeline), schema=rows.schema)
            define_added_columns(context.storage, new, rows.evolved_from)
        context.active.create_requested(instant, action, content)
    log.info("%s %s requested", work.operation, instant)
    return instant, timeline.commits().requested_times


def _run(
    context: TableContext,
    instant: str,
    work: W,
    job_of: JobOf[W],
    engine: Engine,
    owner: Owner,
    progress: Progress | None,
) -> WriteResult:
    shown = None if progress is None else partial(progress, instant)
    try:
        run_instant(job_of(Run(context.reloaded(), instant, owner, engine, shown), work))
    except HudiError:
        look_again(context.storage)
        # No plan outlives the attempt: nobody would run it again.
        if not _roll_back_failed(context, work, instant, owner):
            raise
    return replace(WriteResult.of(instant, _committed(context, instant, work)), engine=engine.name)


def _committed(context: TableContext, instant: str, work: Work) -> CommitMetadata:
    """Returns the metadata of the commit, also if an archival has taken it already."""
    found = context.active.load().find(instant, work.action(context))
    with suppress(StorageNotFoundError):
        if found is not None:
            return context.active.read_commit(found)
    archived = context.history().commit(instant)
    if archived is None:
        message = f"commit {instant} was completed, and is gone from the timeline and the archive"
        raise TimelineError(message, path=context.active.folder, remedy="look whether another process rolled it back")
    return archived


def _roll_back_failed(context: TableContext, work: Work, instant: str, owner: Owner) -> bool:
    """Rolls a failed attempt back. Returns whether it had decided to complete, and so is completed now."""
    try:
        _roll_back(context, work, instant, owner)
    except HudiError as error:
        log.warning("%s %s was not rolled back: %s", work.action(context), instant, error)
    return _is_completed(context, work, instant)


def _roll_back(context: TableContext, work: Work, instant: str, owner: Owner) -> None:
    """Rolls an attempt back, or completes it where it had decided to complete. Raises ConflictError while its owner is
    alive: a rollback that is requested then would stop the owner. Reads the properties again, for new indexes.
    """
    try:
        rollback(context.reloaded(), instant, owner, unless_completed=True)
    except ConflictError:
        if not _is_completed(context, work, instant):
            raise


def _is_completed(context: TableContext, work: Work, instant: str) -> bool:
    found = context.active.load().find(instant, work.action(context))
    return found is not None and found.is_completed


def _preview(context: TableContext, work: Work, extent: Extent, engine: Engine, owner: Owner) -> WriteResult:
    records = sum(work.row_counts.values())
    first = what_comes_first(context, work)
    for result in _roll_failed_writes_back(context, owner, dry_run=True):
        if result.target is not None and result.target not in first:
            first += f"; {result.reason or f'the failed write {result.target} would be rolled back first'}"
    partitions, replaced, reason = len(extent.partitions), extent.replaced_file_groups, f"a dry run{first}"
    return WriteResult(None, work.operation, partitions, replaced, 0, records, reason=reason, engine=engine.name)


def _repeated(instant: str, metadata: CommitMetadata) -> WriteResult:
    reason = f"an earlier run with the same token did it, as instant {instant}"
    return replace(WriteResult.of(instant, metadata), repeated=True, reason=reason)
