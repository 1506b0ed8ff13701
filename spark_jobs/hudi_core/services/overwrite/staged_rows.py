"""Where the rows of an overwrite are read: the address that was given, or a folder that Spark's rows are put into. How
they become files of the table: shard_files.py.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

from hudi_core.engine.protocol import Engine, FrameEngine
from hudi_core.errors import ConfigError
from hudi_core.services.context import TableContext
from hudi_core.services.overwrite.plan import RowsFrom
from hudi_core.services.overwrite.source import Source

log = logging.getLogger(__name__)

STAGED: Final = ".hoodie/.airflow_hudi/staged"
"""Folder in the table for rows of queries and DataFrames."""
LEFT_SECONDS: Final = 7 * 24 * 3600
"""Age from which rows that a killed run left are deleted by the next one."""


@contextmanager
def source_of(context: TableContext, rows: RowsFrom, engine: Engine, *, dry_run: bool = False) -> Iterator[Source]:
    """The rows as files; those of a query or a DataFrame are deleted in the end.

    Raises ConfigError for those where the engine has none, and for one that is not valid; ExecutionError.
    """
    if rows.source:
        yield Source(rows.source)
        return
    if not isinstance(engine, FrameEngine):
        raise ConfigError(
            f"the engine {engine.name} answers no query and has no DataFrames",
            remedy="use --engine spark, or give a source",
        )
    if not dry_run:
        _delete_left(context)
    folder = f"{STAGED}/{uuid4().hex}"
    address = f"{context.uri}/{folder}"
    try:
        if rows.query:
            names = engine.stage_query(rows.query, address, context.storage_options)
        else:
            names = engine.stage_dataframe(rows.dataframe, rows.dataframe_args, address, context.storage_options)
        log.info("the rows of the overwrite are in %s", address)
        yield Source(address, names)
    finally:
        context.storage.delete_folder(folder)


def _delete_left(context: TableContext) -> None:
    for folder in context.storage.list_folders(STAGED):
        files = context.storage.list_files(folder)
        if files and max(info.modified for info in files) < time.time() - LEFT_SECONDS:
            context.storage.delete_folder(folder)
