"""Cleans up behind failed writes: every rollback that died is finished, every write that died is rolled back (rollbackFailedWrites)."""

from __future__ import annotations

from hudi_core.services.context import TableContext
from hudi_core.services.rollback.failed import dead_rollbacks, failed_writes
from hudi_core.services.rollback.result import RollbackResult
from hudi_core.services.rollback.run import rollback
from hudi_core.transaction.owner import Owner


def clean_failed_writes(context: TableContext, owner: Owner, *, eager: bool = False, dry_run: bool = False) -> list[RollbackResult]:
    """Finishes the pending rollbacks that nobody is at, then rolls the failed writes back, newest first; the results in that order.

    A write failed when its heartbeat expired, or by the table's policy (`hoodie.cleaner.policy.failed.writes`). `eager` takes all pending
    writes for failed: right only where nobody else writes. One that completes meanwhile is kept; its result has a reason. With `dry_run`
    nothing is written. Errors as services.rollback.run.rollback; what was done before stands.
    """
    timeline = context.active.load()
    pending = dead_rollbacks(context, timeline, eager=eager, dry_run=dry_run)
    results = [rollback(context, instant, owner, dry_run=dry_run) for instant in pending]
    done = {result.target for result in results}
    failed = [instant.requested_time for instant in failed_writes(context, context.active.load(), eager=eager, dry_run=dry_run)]
    results += [rollback(context, instant, owner, dry_run=dry_run, unless_completed=True) for instant in failed if instant not in done]
    return results
