"""takeover and unschedule: a pending instant is freed, or dropped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hudi_core.request.results import Result
from hudi_core.verbs.request import InstantRequest, Work

if TYPE_CHECKING:
    from hudi_core.services.context import TableContext
    from hudi_core.transaction.owner import Owner


@dataclass(frozen=True, slots=True)
class TakeoverRequest(InstantRequest):
    """Frees the pending `instant` of a dead owner."""

    verb = "takeover"

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_core.services.repair.takeover import nothing_to_free

        free = nothing_to_free(context, self.instant)
        return None if free is None else Result(document=free.to_dict())

    def run(self, work: Work) -> Result:
        from hudi_core.services.repair.takeover import takeover

        return Result(document=takeover(work.context, self.instant, work.owner).to_dict())


@dataclass(frozen=True, slots=True)
class UnscheduleRequest(InstantRequest):
    """Removes the pending plan at `instant`, with the files of attempts at it."""

    verb = "unschedule"
    dry_run: bool = False

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_core.services.repair.unschedule import unschedule
        from hudi_core.transaction.claim_file import current_claim

        dropped = unschedule(context, self.instant, owner, dry_run=True)
        if dropped.action or current_claim(context.storage, self.instant) is not None:
            # The run removes the claims of an instant that is gone.
            return None
        return Result(document=replace(dropped, dry_run=self.dry_run).to_dict())

    def run(self, work: Work) -> Result:
        from hudi_core.services.repair.unschedule import unschedule

        dropped = unschedule(work.context, self.instant, work.owner, dry_run=self.dry_run)
        return Result(document=dropped.to_dict())
