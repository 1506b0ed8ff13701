"""Requests to a table whose context a test has made."""

from __future__ import annotations

from hudi_core.engine.protocol import Engine
from hudi_core.request.results import Progress, Result
from hudi_core.services.context import TableContext
from hudi_core.services.engine_choice import Choice
from hudi_core.storage.one_look import OneLookStorage
from hudi_core.table import HudiTable
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.request import Request, Work


def perform(
    context: TableContext, request: Request, engine: Engine, owner: Owner, progress: Progress | None = None
) -> Result:
    """Runs the request as it is: nothing is remembered between two requests to the storage."""
    return request.run(Work(context, engine, owner, progress))


def nothing_to_do(context: TableContext, request: Request) -> Result | None:
    """HudiTable.nothing_to_do over the context's storage."""
    return _table(context).nothing_to_do(request)


def choose_engine(context: TableContext, request: Request) -> Choice:
    """HudiTable.choose_engine over the context's storage."""
    return _table(context).choose_engine(request)


def _table(context: TableContext) -> HudiTable:
    storage = OneLookStorage(context.storage)
    return HudiTable(context.uri, storage, context.config, context.options, context.storage_options)
