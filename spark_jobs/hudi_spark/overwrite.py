"""insert_overwrite by the rows of a DataFrame, for users' own Spark jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hudi_core.table import HudiTable
from hudi_core.verbs.overwrite import InsertOverwriteRequest
from hudi_spark.engine import SessionEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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

    The arguments and the result are those of `hudictl insert-overwrite`. If a commit already has the `token`, nothing
    is done, and the DataFrame is not evaluated. Otherwise it is evaluated once. Raises the errors of hudictl.
    """
    spark = frame.sparkSession
    name = f"hudi_rows_{uuid4().hex}"
    frame.createTempView(name)
    try:
        request = InsertOverwriteRequest(
            table,
            query=f"SELECT * FROM {name}",
            partitions=tuple(partitions),
            whole_table=whole_table,
            token=token,
            options=dict(options or {}),
            storage_options=dict(storage_options or {}),
        )
        opened = HudiTable.open(table, request.storage_options, request.options)
        engine = SessionEngine(lambda: spark, lambda _: None)
        return opened.run(engine.with_zone(request), engine).to_dict()
    finally:
        spark.catalog.dropTempView(name)
