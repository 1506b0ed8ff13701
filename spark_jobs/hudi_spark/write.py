"""write and insert_overwrite by the rows of a DataFrame, for users' own Spark jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hudi_core.table import HudiTable
from hudi_core.verbs.request import Request
from hudi_core.verbs.write import InsertOverwriteRequest, WriteRequest
from hudi_spark.engine import SessionEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write(
    frame: DataFrame,
    table: str,
    *,
    operation: str,
    token: str | None = None,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Writes the rows on the DataFrame's session: `operation` is bulk_insert, insert, upsert or delete.

    The arguments and the result are those of `hudictl write`. If a commit already has the `token`, nothing is done, and
    the DataFrame is not evaluated. Otherwise it is evaluated once. Raises the errors of hudictl.
    """
    return _run(frame, partial(WriteRequest, table, operation=operation, token=token), options, storage_options)


def insert_overwrite(
    frame: DataFrame,
    table: str,
    *,
    partitions: Sequence[str] = (),
    whole_table: bool = False,
    token: str | None = None,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Replaces the partitions of the rows, `partitions`, or all, on the DataFrame's session.

    The arguments and the result are those of `hudictl insert-overwrite`; the rest is as in `write`.
    """
    request = partial(InsertOverwriteRequest, table, partitions=tuple(partitions), whole_table=whole_table, token=token)
    return _run(frame, request, options, storage_options)


def _run(
    frame: DataFrame,
    request_of: Callable[..., Request],
    options: Mapping[str, str] | None,
    storage_options: Mapping[str, str] | None,
) -> dict[str, Any]:
    """Runs the request that asks for the rows by a query of a view, which is dropped in the end."""
    spark = frame.sparkSession
    name = f"hudi_rows_{uuid4().hex}"
    frame.createTempView(name)
    try:
        request = request_of(
            query=f"SELECT * FROM {name}", options=dict(options or {}), storage_options=dict(storage_options or {})
        )
        opened = HudiTable.open(request.table, request.storage_options, request.options)
        engine = SessionEngine(lambda: spark, lambda _: None)
        return opened.run(engine.with_zone(request), engine).to_dict()
    finally:
        spark.catalog.dropTempView(name)
