"""The one place that imports fastavro: the installed one, or the pure-Python copy that travels in the job zip.

An executor may lack the wheel. The zip then brings fastavro's Python files below `_vendor`, beside the `hudi_core`
package; they decode the same bytes at about a tenth of the speed, so plans and metadata work everywhere and `IS_PURE`
lets a probe warn about the data path.
"""

from __future__ import annotations

import importlib.util
import sys


def _find() -> None:
    """Puts the vendored copy on the path when no fastavro is installed.

    A missing copy leaves the ImportError to the import below.
    """
    if importlib.util.find_spec("fastavro") is None:
        sys.path.append(__file__.rsplit("hudi_core", 1)[0] + "_vendor")


_find()

from fastavro import parse_schema, schemaless_reader, schemaless_writer  # noqa: E402
from fastavro.schema import SchemaParseException, UnknownType  # noqa: E402

IS_PURE: bool = importlib.util.find_spec("fastavro._read") is None
"""Whether decoding runs in pure Python, because fastavro's compiled part is not there."""

__all__ = ["IS_PURE", "SchemaParseException", "UnknownType", "parse_schema", "schemaless_reader", "schemaless_writer"]
