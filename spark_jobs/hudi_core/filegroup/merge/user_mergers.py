"""Keeps merge functions of the user, in Python over Arrow batches, by their registered names.

The option `airflow_hudi.merge.function` chooses one; nothing in a table ever does. A function is registered in the
process that merges. On Spark, that is every executor's Python worker: register it when your module is imported, and
ship the module with the job.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hudi_core.errors import ConfigError

MergeFunction: TypeAlias = Callable[[pa.RecordBatch, pa.RecordBatch], "tuple[pa.RecordBatch, NDArray[np.bool_] | None]"]
"""Takes older and newer versions of the same keys, row by row. Returns merged rows, and which are deleted (None: none).
All have one schema and one length. It is called with many keys at once. For keys of three versions and more it is
called again, with its result as the older version.
"""

_OPTION = "airflow_hudi.merge.function"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,99}")
_functions: dict[str, MergeFunction] = {}


def register_merger(name: str, function: MergeFunction) -> None:
    """Registers `function` in this process. Raises ConfigError for a bad name, or one that another function has."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no name for a merge function", remedy="letters, digits, _, . and - make a name")
    if _functions.setdefault(name, function) is not function:
        remedy = "give each function a name of its own"
        raise ConfigError(f"a merge function {name!r} is registered already", remedy=remedy)


def merger_named(name: str) -> MergeFunction:
    """Returns the function of a name. Raises ConfigError when this process has none."""
    if name not in _functions:
        known = ", ".join(sorted(_functions)) or "none"
        remedy = "call register_merger in the module that the job imports"
        raise ConfigError(f"{_OPTION} is {name!r}; this process has {known}", remedy=remedy)
    return _functions[name]


def apply_merger(name: str, older: pa.RecordBatch, newer: pa.RecordBatch) -> tuple[pa.RecordBatch, NDArray[np.bool_]]:
    """Calls the function. Raises ConfigError naming it when its result has another schema or length."""
    result = merger_named(name)(older, newer)
    merged, deleted = result if isinstance(result, tuple) and len(result) == 2 else (None, None)
    if (
        not isinstance(merged, pa.RecordBatch)
        or not merged.schema.equals(older.schema)
        or merged.num_rows != older.num_rows
    ):
        raise ConfigError(
            f"merge function {name!r} did not return a record batch of {older.num_rows} rows with the schema that it "
            "was given",
            remedy="correct the function",
        )
    mask = np.zeros(older.num_rows, dtype=np.bool_) if deleted is None else np.asarray(deleted)
    if mask.dtype != np.bool_ or mask.shape != (older.num_rows,):
        message = f"merge function {name!r} returned a delete mask that is not {older.num_rows} booleans"
        raise ConfigError(message, remedy="correct the function")
    return merged, mask
