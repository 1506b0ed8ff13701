"""Values of partition columns in a partition path (BaseHoodieTableFileIndex, Spark's PartitioningUtils).

The values of a path and of rows differ for empty values, which become `__HIVE_DEFAULT_PARTITION__` in the path and null
when it is read, and for key generators that derive the path from the column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import UnsupportedError

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(r"((?:%[0-9A-Fa-f]{2})+)")


def path_values(partition: str, names: Sequence[str], columns: Sequence[pa.Field]) -> dict[str, pa.Scalar]:
    """The values of `columns` in the path `partition`, whose levels are the partition columns `names`.

    Empty when the path's depth is not their number; one column alone may span several levels. Raises UnsupportedError
    naming the partition when a value is not of its column's type.
    """
    parts = [partition] if len(names) == 1 else partition.split("/")
    if not partition or len(parts) != len(names):
        return {}
    texts = {name: _text(part, name) for name, part in zip(names, parts, strict=True)}
    return {field.name: _value(texts[field.name], field.type, partition) for field in columns}


def as_text(column: pa.Array, *, path: str) -> pa.Array:
    """A partition column's stored values as text; raises UnsupportedError naming `path` for a type without one."""
    try:
        return pc.cast(column, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnsupportedError(f"a partition column of type {column.type} has no text", path=path) from error


def unescaped(text: str) -> str:
    """The text with its %XX escapes resolved, as Spark does whether or not the table's writer escaped."""
    return _ESCAPED.sub(lambda found: bytes.fromhex(found[1].replace("%", "")).decode("utf-8", "replace"), text)


def _text(part: str, name: str) -> str | None:
    prefix = f"{name}="
    text = unescaped(part[len(prefix) :] if part.startswith(prefix) else part)
    return None if text == DEFAULT_PARTITION else text


def _value(text: str | None, kind: pa.DataType, partition: str) -> pa.Scalar:
    if text is None:
        return pa.scalar(None, kind)
    value: Any = pa.scalar(text)
    try:
        return value.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnsupportedError(f"partition value {text!r} is not of type {kind}: {error}", path=partition) from error
