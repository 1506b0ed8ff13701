"""Where the rows of an overwrite are read: the address that was given, or a folder that a query's rows are put into."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

from hudi_core.engine.protocol import Engine, QueryEngine
from hudi_core.errors import ConfigError
from hudi_core.request.overwrites import InsertOverwriteRequest
from hudi_core.services.context import TableContext

log = logging.getLogger(__name__)

STAGED: Final = ".hoodie/.airflow_hudi/staged"
"""Folder in the table for rows of queries."""
LEFT_SECONDS: Final = 7 * 24 * 3600
"""Age from which rows that a killed run left are deleted by the next one."""


@contextmanager
def source_of(context: TableContext, request: InsertOverwriteRequest, engine: Engine) -> Iterator[str]:
    """The address of the rows of a request; those of a query are deleted in the end.

    Raises ConfigError for a query where the engine answers none, and for one that is not valid; ExecutionError.
    """
    if not request.query:
        yield request.source
        return
    if not isinstance(engine, QueryEngine):
        raise ConfigError(f"the engine {engine.name} answers no query", remedy="use --engine spark, or give a source")
    _delete_left(context)
    folder = f"{STAGED}/{uuid4().hex}"
    address = f"{context.uri}/{folder}"
    try:
        engine.stage_query(request.query, address, context.storage_options)
        log.info("the rows of the query are in %s", address)
        yield address
    finally:
        context.storage.delete_folder(folder)


def _delete_left(context: TableContext) -> None:
    for folder in context.storage.list_folders(STAGED):
        files = context.storage.list_files(folder)
        if files and max(info.modified for info in files) < time.time() - LEFT_SECONDS:
            context.storage.delete_folder(folder)
