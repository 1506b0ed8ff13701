"""Finds the keys of the rows that a predicate selects, for a delete by predicate. Tasks stage them as Parquet files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.engine.protocol import Engine, TaskAttempt
from hudi_core.errors import ExecutionError
from hudi_core.frozen import dataclass
from hudi_core.model.partition import join
from hudi_core.query.plan import plan_read
from hudi_core.query.read_plan import read_split
from hudi_core.query.request import ReadRequest
from hudi_core.services.context import TableContext
from hudi_core.storage.arrow_store import open_data_storage

_EMPTY: Final = "none.parquet"


@dataclass(frozen=True, slots=True)
class SplitUnit:
    """One split of a query, as JSON (query.read_plan). Its rows go to a file in `folder` of the table."""

    uri: str
    storage_options: Mapping[str, str]
    folder: str
    common: str
    split: str


@dataclass(frozen=True, slots=True)
class StagedKeys:
    """The file with the rows of a split; "" where there are none."""

    name: str


def stage_selected(
    context: TableContext, where: str, columns: tuple[str, ...], engine: Engine, folder: str
) -> frozenset[str]:
    """Writes the `columns` of the rows that `where` selects into `folder`, and returns the names of the files. The
    predicate is SQL of Spark's dialect. Raises the errors of plan_read and read_split.
    """
    plan = plan_read(context, ReadRequest(columns=columns, where=where))
    uri, options = context.uri, dict(context.storage_options)
    units = [SplitUnit(uri, options, folder, json.dumps(plan.common), json.dumps(split)) for split in plan.splits]
    staged = engine.run(stage_split, units, run_epoch=0) if units else []
    names = frozenset(item.name for item in staged if item.name)
    if names:
        return names
    with open_data_storage(uri, options).open_output(join(folder, _EMPTY)) as file:
        pq.write_table(plan.schema.empty_table(), file)
    return frozenset({_EMPTY})


def stage_split(unit: SplitUnit, attempt: TaskAttempt) -> StagedKeys:
    """Writes the rows of a split (UnitTask). Raises the errors of read_split, and ExecutionError."""
    storage = open_data_storage(unit.uri, unit.storage_options)
    name = f"{attempt.partition_id}-{attempt.attempt_id}.parquet"
    batches = (
        batch for batch in read_split(json.loads(unit.common), json.loads(unit.split), storage) if batch.num_rows
    )
    first = next(batches, None)
    if first is None:
        return StagedKeys("")
    try:
        with (
            storage.open_output(join(unit.folder, name)) as file,
            pq.ParquetWriter(file, first.schema) as writer,
        ):
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)
    except (pa.ArrowException, MemoryError) as error:
        raise ExecutionError(f"staging the keys of a delete failed: {error!r}", path=unit.uri) from error
    return StagedKeys(name)
