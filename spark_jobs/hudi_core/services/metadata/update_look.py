"""Whether an update of the metadata table would change anything: it is run until it writes, on a view of the table that
refuses changes. What it would log as done, or wait for, is asked before.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NoReturn

from hudi_core.engine.protocol import Engine
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.catch_up import missing_actions
from hudi_core.services.metadata.index_drop import planned_rebuild
from hudi_core.services.metadata.maintain import Updated, update_metadata
from hudi_core.storage.one_look import OneLookStorage, one_look
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.transaction.locks.base import LockHolder, TableLock
from hudi_core.transaction.owner import Owner


class _ChangeError(Exception):
    """The update came upon something to write, or to run on an engine. Not for others: no HudiError."""


def updated_already(context: TableContext, owner: Owner) -> Updated | None:
    """What an update comes to that changes nothing; None where it would. Nothing is written and no lock is taken.
    Raises as update_metadata.
    """
    if context.has_metadata_table and (
        planned_rebuild(context) or missing_actions(context, MetadataTimeline(context.storage, context.config))
    ):
        return None
    storage = _ReadOnlyStorage(context.storage)
    values = {item.name: getattr(context, item.name) for item in fields(context)}
    active = ActiveTimeline(storage, context.config, zone=context.zone)
    try:
        with one_look(storage):
            return update_metadata(_View(**{**values, "storage": storage, "active": active}), _NoEngine(), owner)
    except _ChangeError:
        return None


def _refuse(*_: object, **__: object) -> Any:
    raise _ChangeError


class _NoEngine(Engine):
    name = "none"
    is_remote = False
    run = staticmethod(_refuse)
    exchange = staticmethod(_refuse)


class _NoLock(TableLock):
    def acquire(self) -> None:
        pass

    def release(self) -> bool:
        return True

    def check(self) -> None:
        pass

    def holder(self) -> LockHolder | None:
        return None

    def how_to_break(self, holder: LockHolder) -> str:
        return ""


class _View(TableContext):
    def lock(self, owner: Owner) -> TableLock:
        return _NoLock(self.uri, owner, 0)


class _ReadOnlyStorage(OneLookStorage):
    """A deletion of what is not there is none, and asks for none: another process may just have put it there."""

    def _changing(self, path: str, *, is_there: bool = True) -> NoReturn:
        raise _ChangeError

    def delete(self, path: str) -> bool:
        if self.exists(path):
            raise _ChangeError
        return False

    def delete_folder(self, folder: str) -> list[str]:
        if self.list_files(folder) or self.list_folders(folder):
            raise _ChangeError
        return []
