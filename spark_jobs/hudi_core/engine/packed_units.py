"""The units of one run in the form in which they cross an engine, and what their results are. The text of one value:
serializer.py.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from hudi_core.engine.serializer import field_names, fields_from_text, fields_to_text

U = TypeVar("U")
R = TypeVar("R")


@dataclass(frozen=True)
class PackedUnits(Generic[U]):
    """As text: the fields that all units share once, the others by unit. Values are not to be changed."""

    unit_type: type[U]
    shared: bytes
    separate: tuple[bytes, ...]
    compressed: bool

    def unit(self, index: int) -> U:
        """The unit at `index`, equal to the one that was packed; errors as serializer.from_text."""
        unit_type: Any = self.unit_type
        shared = _shared_values(unit_type, self.shared, self.compressed)
        return self.unit_type(**shared, **_values(self.unit_type, self.separate[index], self.compressed))

    def only(self, index: int) -> PackedUnits[U]:
        """The unit at `index` alone, as the first one: what another process needs of it."""
        return PackedUnits(self.unit_type, self.shared, (self.separate[index],), self.compressed)


@lru_cache(maxsize=2)
def _shared_values(unit_type: type[Any], text: bytes, compressed: bool) -> dict[str, Any]:
    """Kept for the next unit of this process, where each comes with the text of its own."""
    return _values(unit_type, text, compressed)


def _values(unit_type: type[Any], text: bytes, compressed: bool) -> dict[str, Any]:
    return fields_from_text(unit_type, zlib.decompress(text) if compressed else text)


def pack_units(units: Sequence[U], *, compress: bool = False) -> PackedUnits[U]:
    """Packs units of one class. A field is shared where all units hold the very same object (table, schema, timeline).
    `compress` is for an engine that sends all units to every task. Raises TypeError for a unit of another class or that
    cannot cross.
    """
    first = units[0]
    unit_type = type(first)
    if any(type(unit) is not unit_type for unit in units):
        raise TypeError(f"not all units are of the class {unit_type.__name__}")
    names = list(field_names(unit_type))
    shared = [name for name in names if all(getattr(unit, name) is getattr(first, name) for unit in units)]
    separate = [name for name in names if name not in shared]

    def pack(unit: U, fields: Sequence[str]) -> bytes:
        text = fields_to_text(unit, fields).encode("ascii")
        return zlib.compress(text, level=1) if compress else text

    return PackedUnits(unit_type, pack(first, shared), tuple(pack(unit, separate) for unit in units), compress)


def result_type(task: Callable[..., R]) -> type[R]:
    """The class of a task's results, by its annotation. Raises TypeError where the function names none."""
    function: Any = task
    while isinstance(function, partial):
        function = function.func
    kind = function.__annotations__.get("return")
    if isinstance(kind, str):
        kind = eval(kind, function.__globals__)
    if not isinstance(kind, type):
        raise TypeError(f"{function.__name__} names no class of results")
    return kind
