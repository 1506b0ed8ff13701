"""rollback and restore: writes go, one by one or all behind a commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudi_core.errors import ConfigError
from hudi_core.request.results import Result
from hudi_core.verbs.request import WHAT, OptionalInstantRequest, Work

if TYPE_CHECKING:
    from hudi_core.services.context import TableContext
    from hudi_core.transaction.owner import Owner


@dataclass(frozen=True, slots=True)
class RollbackRequest(OptionalInstantRequest):
    """Rolls back the write at `instant`, or the next failed one; `unless_completed` keeps one that is completed now."""

    verb = "rollback"
    dry_run: bool = False
    unless_completed: bool = False

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_core.services.rollback.verb import rollback

        undone = rollback(context, self.instant, owner, dry_run=True, unless_completed=self.unless_completed)
        if undone.reason is None or undone.target is not None or undone.removed.instants:
            return None
        return Result(document=undone.to_dict())

    def run(self, work: Work) -> Result:
        from hudi_core.services.rollback.verb import rollback

        undone = rollback(
            work.context, self.instant, work.owner, dry_run=self.dry_run, unless_completed=self.unless_completed
        )
        return Result(document=undone.to_dict())


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
