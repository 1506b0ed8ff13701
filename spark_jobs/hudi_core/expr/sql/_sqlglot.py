"""The one place that imports sqlglot: the installed one, or the copy in the job zip.

A driver that runs from the zip alone may lack the wheel. The zip then has sqlglot, which is pure Python, below
`_vendor`, beside the `hudi_core` package; an installed one takes precedence.
"""

from __future__ import annotations

import importlib.util
import sys


def _find() -> None:
    """Puts the vendored copy on the path when no sqlglot is installed.

    A missing copy leaves the ImportError to the import below.
    """
    if importlib.util.find_spec("sqlglot") is None:
        sys.path.append(__file__.rsplit("hudi_core", 1)[0] + "_vendor")


_find()

from sqlglot import errors, exp  # noqa: E402
from sqlglot.dialects.dialect import Dialect  # noqa: E402

__all__ = ["Dialect", "errors", "exp"]
