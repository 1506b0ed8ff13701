"""Archival as a service: moves old instants from the active timeline to the archive."""

from __future__ import annotations

from collections import Counter

from hudi_core.config.archive_config import ArchiveConfig
from hudi_core.errors import OrphanFilesError
from hudi_core.request.model import RunResult
from hudi_core.services.archive.run import ArchiveRun, look, refuse_orphans
from hudi_core.services.context import TableContext
from hudi_core.services.service import Scheduled, UnitProgress
from hudi_core.transaction.owner import Owner


class ArchiveService:
    """See service.ImmediateService. Table versions 6, 8 and 9."""

    name = "archive"

    def preview(self, context: TableContext) -> Scheduled:
        """What `run_now` would archive, and what holds back the rest.

        Raises ConfigError for options, FormatError for a file of the timeline that is damaged.
        """
        config = ArchiveConfig.of(context.options)
        plan, findings = look(context, config)
        try:
            refuse_orphans(findings, config)
        except OrphanFilesError as error:
            return Scheduled(None, None, str(error))
        if not plan.instants:
            return Scheduled(None, None, plan.reason)
        counts = Counter(item.action for item in plan.instants)
        instants = [{"instant": item.requested_time, "action": item.action} for item in plan.instants]
        return Scheduled(None, {"instants": instants, "by_action": dict(sorted(counts.items())), "held_by": plan.reason})

    def run_now(self, context: TableContext, owner: Owner, progress: UnitProgress | None) -> RunResult:
        """See run.ArchiveRun."""
        return ArchiveRun(context, owner, progress).run()
