"""Hides pandas from pyarrow, which imports it with the first list that becomes an array: 0.2 CPU seconds and 35 MiB of
each process. The engine needs no pandas. Only processes that run nothing but the engine hide it: pyarrow does not look
for it again, so that a function of a user could not turn a frame of pandas into columns. Spark's driver may run such
functions, and so may its workers, unless the session was opened for requests without them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

_NAME = "pandas"


class _HiddenFinder(Loader):
    """Finds pandas, whose import then fails. `importlib.util.find_spec` finds it, installed or not."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, cls()) if name == _NAME else None

    def exec_module(self, module: ModuleType) -> None:
        raise ModuleNotFoundError(f"{_NAME} is hidden", name=_NAME)


def hide_pandas() -> None:
    """Lets each import of pandas fail from now on."""
    if _HiddenFinder not in sys.meta_path:
        sys.meta_path.insert(0, _HiddenFinder)


def show_pandas() -> None:
    """Ends what hide_pandas began. Comes before the import of pyarrow."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not _HiddenFinder]
