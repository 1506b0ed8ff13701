"""Keeps the rows of a query or a DataFrame as files in the table's folder until they are written."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

from hudi_core.engine.protocol import Engine, FrameEngine
from hudi_core.errors import ConfigError, StorageError, UnsupportedError
from hudi_core.filegroup.read.partition_values import not_in_path
from hudi_core.services.context import TableContext
from hudi_core.services.source.files import RowsFrom, Source
from hudi_core.storage.base import Storage

log = logging.getLogger(__name__)

STAGED: Final = ".hoodie/.airflow_hudi/staged"
"""Folder in the table for rows of queries and DataFrames."""
LEFT_SECONDS: Final = 7 * 24 * 3600
"""Age from which the next run deletes rows that a killed run left."""


@contextmanager
def source_of(context: TableContext, rows: RowsFrom, engine: Engine, *, dry_run: bool = False) -> Iterator[Source]:
    """Yields the rows as files. Deletes the files of a query, a DataFrame or a predicate in the end.

    Raises ConfigError for an engine without queries and DataFrames or an invalid one, UnsupportedError for a predicate
    on a table whose partition columns it cannot read as stored; ExecutionError.
    """
    if rows.source:
        yield Source(rows.source)
        return
    frames = None if rows.where else _frames(engine)
    if rows.where and not_in_path(context.config):
        raise UnsupportedError(
            "a delete by predicate, where paths do not give the values of the partition columns",
            path=context.config.path,
            remedy="delete by a source with the columns of keys and partitions as they are stored",
        )
    if not dry_run:
        _delete_left(context)
    folder = f"{STAGED}/{uuid4().hex}"
    address = f"{context.uri}/{folder}"
    try:
        if frames is None:
            # A predicate's parser is a tenth of what a process needs to start: only those with a predicate import it.
            from hudi_core.services.source.predicate import stage_selected

            columns = dict.fromkeys((*context.config.record_key_fields, *context.config.partition_fields))
            names = stage_selected(context, rows.where, tuple(columns), engine, folder)
        elif rows.query:
            names = frames.stage_query(rows.query, address, context.storage_options)
        else:
            names = frames.stage_dataframe(rows.dataframe, rows.dataframe_args, address, context.storage_options)
        log.info("the rows of the write are in %s", address)
        yield Source(address, names)
    finally:
        delete_staged(context.storage, folder)


def _frames(engine: Engine) -> FrameEngine:
    if isinstance(engine, FrameEngine):
        return engine
    raise ConfigError(
        f"the engine {engine.name} answers no query and has no DataFrames",
        remedy="use --engine spark, or give a source",
    )


def _delete_left(context: TableContext) -> None:
    for folder in context.storage.list_folders(STAGED):
        files = context.storage.list_files(folder)
        if files and max(info.modified for info in files) < time.time() - LEFT_SECONDS:
            delete_staged(context.storage, folder)


def delete_staged(storage: Storage, folder: str) -> None:
    """Deletes a folder of STAGED. What fails is logged: it must not hide the result of a write, which would be run
    again. A later run deletes the rows (_delete_left, WriteJob.begin).
    """
    try:
        storage.delete_folder(folder)
    except StorageError as error:
        log.warning("the rows in %s are left for a later run: %s", folder, error)
