"""Compaction as a service: runs the plans that writers left."""

from __future__ import annotations

from hudi_core.model.engine import Engine
from hudi_core.request.model import InstantResult
from hudi_core.services.compaction.run import CompactionRun
from hudi_core.services.context import TableContext
from hudi_core.services.service import UnitProgress
from hudi_core.timeline.query import Timeline
from hudi_core.transaction.owner import Owner


class CompactionService:
    """See service.Service."""

    name = "compaction"

    def pending(self, context: TableContext, timeline: Timeline) -> list[str]:
        """The compactions that are requested or inflight, oldest first."""
        return [instant.requested_time for instant in timeline.pending_compactions()]

    def run(self, context: TableContext, instant: str, engine: Engine, owner: Owner, progress: UnitProgress | None) -> InstantResult:
        """See compaction.run.CompactionRun."""
        return CompactionRun(context, instant, engine, owner, progress).run()
