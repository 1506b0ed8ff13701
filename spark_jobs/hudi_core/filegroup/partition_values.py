"""Partition columns as a reader of base files sees them: from the partition path (BaseHoodieTableFileIndex, Spark's PartitioningUtils).

Real Hudi reads a table's base files through Spark's own Parquet source, which takes the values of partition columns from the path, not
from the file; a merge of base and log files takes them from the rows. The two differ for empty values, which become
`__HIVE_DEFAULT_PARTITION__` in the path and null in the row, and for key generators that derive the path from the column.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_core.errors import UnsupportedError

if TYPE_CHECKING:
    from hudi_core.config.table_config import TableConfig

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
KEYGENERATOR = "hoodie.table.keygenerator.class"
_TIMESTAMP_KEYGENERATORS = ("TimestampBasedKeyGenerator", "TimestampBasedAvroKeyGenerator")
_ESCAPED = re.compile(r"((?:%[0-9A-Fa-f]{2})+)")


def path_columns(config: TableConfig, schema: pa.Schema) -> list[pa.Field]:
    """The table's partition columns with the types in which path values are read.

    That is the column's type in `schema`, but text for a column that the table does not store and for a timestamp key generator.
    """
    is_text = config.raw.get(KEYGENERATOR, "").rsplit(".", 1)[-1] in _TIMESTAMP_KEYGENERATORS
    return [pa.field(name, pa.string()) if is_text or name not in schema.names else schema.field(name) for name in config.partition_fields]


def path_values(partition: str, columns: list[pa.Field]) -> dict[str, pa.Scalar]:
    """The values of `columns` in the path `partition`; empty when the path's depth is not that of the partition columns.

    Raises UnsupportedError naming the partition when a value is not of its column's type.
    """
    parts = [partition] if len(columns) == 1 else partition.split("/")
    if not partition or len(parts) != len(columns):
        return {}
    return {field.name: _value(_text(part, field.name), field.type, partition) for field, part in zip(columns, parts, strict=True)}


def with_values(batch: pa.RecordBatch, values: dict[str, pa.Scalar], schema: pa.Schema) -> pa.RecordBatch:
    """The batch in `schema`, with each column named in `values` replaced by that constant."""
    columns = [
        pa.repeat(values[field.name], batch.num_rows) if field.name in values else batch.column(batch.schema.get_field_index(field.name))
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _text(part: str, name: str) -> str | None:
    prefix = f"{name}="
    text = part[len(prefix) :] if part.startswith(prefix) else part
    # Spark unescapes whether or not the table's writer escaped.
    text = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].replace("%", "")).decode("utf-8", "replace"), text)
    return None if text == DEFAULT_PARTITION else text


def _value(text: str | None, kind: pa.DataType, partition: str) -> pa.Scalar:
    if text is None:
        return pa.scalar(None, kind)
    value: Any = pa.scalar(text)
    try:
        return value.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnsupportedError(f"partition value {text!r} is not of type {kind}: {error}", path=partition) from error
