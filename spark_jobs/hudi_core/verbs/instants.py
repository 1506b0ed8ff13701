"""The verbs of single instants: rollback, restore, savepoint create and delete, takeover and unschedule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_core.request.results import Result
from hudi_core.verbs.request import WHAT, InstantRequest, OptionalInstantRequest, Work

if TYPE_CHECKING:
    from hudi_core.services.context import TableContext
    from hudi_core.transaction.owner import Owner


@dataclass(frozen=True, slots=True)
class RollbackRequest(OptionalInstantRequest):
    """Rolls back the write at `instant`, or the next failed one. `unless_completed` keeps a completed write."""

    verb = "rollback"
    dry_run: bool = False
    unless_completed: bool = False

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_core.services.rollback.verb import rollback

        done = rollback(context, self.instant, owner, dry_run=True, unless_completed=self.unless_completed)
        if done.reason is None or done.target is not None or done.removed.instants:
            return None
        return Result(document=done.to_dict())

    def run(self, work: Work) -> Result:
        from hudi_core.services.rollback.verb import rollback

        done = rollback(
            work.context, self.instant, work.owner, dry_run=self.dry_run, unless_completed=self.unless_completed
        )
        return Result(document=done.to_dict())


@dataclass(frozen=True, slots=True)
class RestoreRequest(OptionalInstantRequest):
    """Restores the table to the commit at `instant`; a dry run without one lists what can be restored."""

    verb = "restore"
    dry_run: bool = False

    def check_fields(self) -> None:
        OptionalInstantRequest.check_fields(self)
        if self.instant is None and not self.dry_run:
            raise ConfigError(
                f"{WHAT}: {self.verb} needs an instant",
                remedy=(
                    "name one in `instant`, of hudictl by --instant; a dry run without it lists the commits that the "
                    "table can be restored to"
                ),
            )

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_core.services.restore.verb import nothing_to_restore, restore

        if self.instant is None:
            return None
        if self.dry_run:
            return Result(document=restore(context, self.instant, owner, dry_run=True).to_dict())
        before = nothing_to_restore(context, self.instant, owner)
        return None if before is None else Result(document=before.to_dict())

    def run(self, work: Work) -> Result:
        from hudi_core.services.restore.candidates import restorable_instants
        from hudi_core.services.restore.verb import RestoreResult, restore

        if self.instant is None:
            done = RestoreResult(None, None, restorable=tuple(restorable_instants(work.context)))
        else:
            done = restore(work.context, self.instant, work.owner, dry_run=self.dry_run)
        return Result(document=done.to_dict())


@dataclass(frozen=True, slots=True)
class SavepointCreateRequest(OptionalInstantRequest):
    """Keeps the files of the commit at `instant`, or of the newest one; `comment` is kept in the savepoint."""

    verb = "savepoint_create"
    comment: str = ""

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_core.services.restore.savepoint import existing_savepoint

        existing = existing_savepoint(context, self.instant)
        return None if existing is None else Result(document=existing.to_dict())

    def run(self, work: Work) -> Result:
        from hudi_core.services.restore.savepoint import savepoint_create

        kept = savepoint_create(work.context, self.instant, work.owner, comment=self.comment)
        return Result(document=kept.to_dict())


@dataclass(frozen=True, slots=True)
class SavepointDeleteRequest(InstantRequest):
    """Deletes the savepoint of the commit at `instant`."""

    verb = "savepoint_delete"

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_core.services.restore.savepoint import savepoint_to_delete

        savepoint_to_delete(context, self.instant)
        return None

    def run(self, work: Work) -> Result:
        from hudi_core.services.restore.savepoint import savepoint_delete

        return Result(document=savepoint_delete(work.context, self.instant, work.owner).to_dict())


@dataclass(frozen=True, slots=True)
class TakeoverRequest(InstantRequest):
    """Frees the pending `instant` of a dead owner."""

    verb = "takeover"

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_core.services.takeover import nothing_to_free

        free = nothing_to_free(context, self.instant)
        return None if free is None else Result(document=free.to_dict())

    def run(self, work: Work) -> Result:
        from hudi_core.services.takeover import takeover

        return Result(document=takeover(work.context, self.instant, work.owner).to_dict())


@dataclass(frozen=True, slots=True)
class UnscheduleRequest(InstantRequest):
    """Removes the pending plan at `instant`, with the files of attempts at it."""

    verb = "unschedule"
    dry_run: bool = False

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_core.services.unschedule import unschedule
        from hudi_core.transaction.claim_file import current_claim

        dropped = unschedule(context, self.instant, owner, dry_run=True)
        if dropped.action or current_claim(context.storage, self.instant) is not None:
            # The run deletes the claims of an instant that is gone.
            return None
        return Result(document=replace(dropped, dry_run=self.dry_run).to_dict())

    def run(self, work: Work) -> Result:
        from hudi_core.services.unschedule import unschedule

        dropped = unschedule(work.context, self.instant, work.owner, dry_run=self.dry_run)
        return Result(document=dropped.to_dict())
