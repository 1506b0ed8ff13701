"""savepoint create and delete: the files of a commit are kept until its savepoint is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudi_core.request.results import Result
from hudi_core.verbs.request import InstantRequest, OptionalInstantRequest, Work

if TYPE_CHECKING:
    from hudi_core.services.context import TableContext
    from hudi_core.transaction.owner import Owner


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
