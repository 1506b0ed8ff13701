"""Reads fields of many Avro data of one schema at once: NumPy moves a cursor of each datum from field to field.

The module serves schemas with unions of several records, which codec.avro.arrow cannot read. A datum and field takes
0.5 µs when there are thousands of data; reading one datum after the other takes 35 µs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.columns import running_sums
from hudi_core.frozen import dataclass

Positions = NDArray[np.int64]
Path = tuple[str, ...]
"""The names of fields from the outermost record on, and after a union of records the present one's short name."""

PADDING: Final = 16
"""Bytes after the last datum: a number is read before its end is checked."""
_LENGTHS: Final = 32
"""With at most so many distinct lengths, texts of one length are copied at once."""
_VARINT_BITS: Final = 63
_SIZES: Final = {"float": ("<f4", 4), "double": ("<f8", 8)}


@dataclass(frozen=True, slots=True)
class Leaf:
    """The values of one field. `rows` are the data that have a value, ascending. For text and bytes, `values` are
    places and `lengths` their bytes.
    """

    rows: Positions
    values: NDArray[Any]
    lengths: Positions | None = None


@dataclass(frozen=True, slots=True)
class Encoded:
    """Data that follow each other: datum i is `octets[starts[i]:starts[i + 1]]`. Zeros follow the last datum."""

    octets: NDArray[np.uint8]
    starts: Positions

    @staticmethod
    def of(data: Sequence[bytes]) -> Encoded:
        lengths = np.fromiter(map(len, data), dtype=np.int64, count=len(data))
        return Encoded(np.frombuffer(b"".join((*data, bytes(PADDING))), dtype=np.uint8), running_sums(lengths))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def texts(self, leaf: Leaf, kind: pa.DataType) -> pa.Array:
        """Returns a leaf of text or bytes as an array. Raises pa.ArrowInvalid when text is not UTF-8."""
        lengths = leaf.lengths if leaf.lengths is not None else np.zeros(0, dtype=np.int64)
        distinct = np.unique(lengths)
        if len(distinct) > _LENGTHS:
            array = self._gathered(leaf.values, lengths, kind)
        else:
            # Names of files and times have few lengths: rows of one length are copied as a matrix, in a fifth of the
            # time.
            places = [np.flatnonzero(lengths == length) for length in distinct.tolist()]
            pieces = [
                self._of_length(leaf.values[at], length, kind)
                for at, length in zip(places, distinct.tolist(), strict=True)
            ]
            if len(pieces) == 1:
                array = pieces[0]
            else:
                order = np.empty(len(lengths), dtype=np.int64)
                if places:
                    order[np.concatenate(places)] = np.arange(len(lengths))
                array = pa.concat_arrays(pieces).take(pa.array(order)) if pieces else pa.array([], kind)
        array.validate(full=True)
        return array

    def _of_length(self, begins: Positions, length: int, kind: pa.DataType) -> pa.Array:
        offsets = np.arange(len(begins) + 1, dtype=np.int64) * length
        octets = sliding_window_view(self.octets, length)[begins].reshape(-1) if length else self.octets[:0]
        return _array(kind, offsets, octets)

    def _gathered(self, begins: Positions, lengths: Positions, kind: pa.DataType) -> pa.Array:
        offsets = running_sums(lengths)
        return _array(
            kind, offsets, self.octets[np.arange(int(offsets[-1])) + np.repeat(begins - offsets[:-1], lengths)]
        )


def _array(kind: pa.DataType, offsets: Positions, octets: NDArray[np.uint8]) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(octets))]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


class _Broken(Exception):
    """The data do not decode by the schema, or hold a type that this module does not read."""


def varints(octets: NDArray[np.uint8], at: Positions) -> tuple[Positions, Positions]:
    """Returns the numbers at `at`, each with ten bytes after it, and their ends. Raises ValueError beyond 64 bits."""
    first = octets[at]
    after = at + 1
    numbers = (first & 0x7F).astype(np.uint64)
    unfinished = np.flatnonzero(first & 0x80)
    shift = 7
    while len(unfinished):
        more = octets[after[unfinished]]
        if shift > _VARINT_BITS or (shift == _VARINT_BITS and (more > 1).any()):
            raise ValueError("varint is longer than 64 bits")
        numbers[unfinished] |= (more & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[unfinished] += 1
        unfinished = unfinished[more >= 0x80]
        shift += 7
    return (numbers >> np.uint64(1)).view(np.int64) ^ -(numbers & np.uint64(1)).view(np.int64), after


class ColumnWalk:
    """Reads the fields `requested` of data of one record schema. Safe to share between threads."""

    def __init__(self, schema: Any, requested: Collection[Path]) -> None:
        """`schema` is Avro JSON. Raises FormatError when it is not a valid schema."""
        self._names: dict[str, Any] = {}
        self._root = DatumCodec(schema, names=self._names).parsed
        self._requested = frozenset(requested)

    def read(self, data: Encoded) -> Mapping[Path, Leaf] | None:
        """Returns the leaves by path. None when the data do not decode, or need codec.avro.datum."""
        walk = _Walk(data, self._names, self._requested)
        try:
            at = walk.go(self._root, (), np.arange(len(data)), data.starts[:-1].copy())
        except (_Broken, ValueError, RecursionError):
            # Not swallowed: the caller reads the same bytes by the reference route.
            return None
        return walk.found if np.array_equal(at, data.starts[1:]) else None


class _Walk:
    def __init__(self, data: Encoded, names: Mapping[str, Any], requested: frozenset[Path]) -> None:
        self._names = names
        self._octets = data.octets
        self._ends = data.starts[1:]
        self._requested = requested
        self.found: dict[Path, Leaf] = {}

    def go(self, schema: Any, path: Path, rows: Positions, at: Positions) -> Positions:
        if isinstance(schema, list):
            return self._union(schema, path, rows, at)
        resolved = self._resolved(schema)
        kind = resolved["type"]
        if kind == "record":
            for field in resolved["fields"]:
                at = self.go(field["type"], (*path, field["name"]), rows, at)
            return at
        return at if kind == "null" else self._value(kind, path, rows, at)

    def _resolved(self, schema: Any) -> dict[str, Any]:
        return schema if isinstance(schema, dict) else self._names.get(schema) or {"type": schema}

    def _union(self, union: list[Any], path: Path, rows: Positions, at: Positions) -> Positions:
        branches, at = self._varints(rows, at)
        first = int(branches[0]) if len(branches) else 0
        if (branches == first).all():
            return self._branch(union, first, path, rows, at)
        at = at.copy()
        for branch in np.unique(branches).tolist():
            mine = np.flatnonzero(branches == branch)
            at[mine] = self._branch(union, branch, path, rows[mine], at[mine])
        return at

    def _branch(self, union: list[Any], branch: int, path: Path, rows: Positions, at: Positions) -> Positions:
        if not 0 <= branch < len(union):
            raise _Broken
        chosen = self._resolved(union[branch])
        if chosen["type"] == "record" and sum(self._resolved(part)["type"] == "record" for part in union) > 1:
            path = (*path, chosen["name"].rpartition(".")[2])
        return self.go(chosen, path, rows, at)

    def _value(self, kind: str, path: Path, rows: Positions, at: Positions) -> Positions:
        lengths = None
        values: NDArray[Any]
        if kind in ("int", "long"):
            values, after = self._varints(rows, at)
        elif kind in ("string", "bytes"):
            lengths, values = self._varints(rows, at)
            # A length beyond the data must not overflow in the sum.
            if (lengths < 0).any() or (lengths > len(self._octets)).any():
                raise _Broken
            after = values + lengths
        elif kind == "boolean":
            values, after = self._octets[at] != 0, at + 1
        elif kind in _SIZES:
            type_, size = _SIZES[kind]
            values, after = self._octets[at[:, None] + np.arange(size)].view(type_).reshape(-1), at + size
        else:
            raise _Broken
        self._check(rows, after)
        if path in self._requested:
            if path in self.found:
                # Several branches of a union without names: the second would take the place of the first.
                raise _Broken
            self.found[path] = Leaf(rows, values, lengths)
        return after

    def _varints(self, rows: Positions, at: Positions) -> tuple[Positions, Positions]:
        numbers, after = varints(self._octets, at)
        self._check(rows, after)
        return numbers, after

    def _check(self, rows: Positions, at: Positions) -> None:
        if (at > self._ends[rows]).any():
            raise _Broken
