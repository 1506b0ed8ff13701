"""Encodes rows as Avro data, a column at a time. arrow.py decodes them.

The data of a row are pieces that follow each other: a branch and a length, the bytes of a text, a number. The values
of a column become one or a few Arrow arrays of such pieces, and Arrow joins those of each row. A text's own array is a
piece as it is, so that texts are copied once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.avro.arrow_types import logical_type
from hudi_core.codec.avro.resolve import AvroType, resolve
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.columns import octets, running_sums
from hudi_core.errors import FormatError, UnsupportedError
from hudi_core.frozen import dataclass

Octets = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]

RUN_BYTES: Final = 8 << 20
"""Rows are encoded in runs of at most so many bytes, or one row. Counted are the bytes in Arrow and _VALUE_BYTES for
each value, since the pieces of a boolean take as much as those of a number. A column of a run takes some 50 µs.
"""
_VALUE_BYTES: Final = 8
_MAX_BYTES = (1 << 31) - 1
_DECIMAL_BYTES: Final = 16
_KEY: Final = AvroType("string")


def encode_rows(batch: pa.RecordBatch, schema: AvroSchema, *, path: str) -> tuple[Octets, Numbers]:
    """Returns the Avro data of the rows, one after the other, each as a record of `schema`, and where each begins and
    the last ends. The bytes are those of Avro's BinaryEncoder: arrays and maps are one block without its size, and a
    decimal of bytes has the fewest that hold it (BigInteger.toByteArray).

    The batch has the columns of `schema` in its order and the types of arrow.arrow_schema. Memory: the data, twice at
    the end, and up to seven times RUN_BYTES. Raises FormatError for other columns or types, a null where the schema has
    none, text that is no UTF-8, a decimal that its type cannot hold, and a value of an enum that is no symbol of it;
    UnsupportedError for a union of several types and for a row of 2 GiB. All name `path`. The data are not to be
    changed: those of a single column may be the batch's own.
    """
    runs = [rows.joined() for rows in _encoded(batch, schema, path)]
    data = runs[0][0] if len(runs) == 1 else np.concatenate([run for run, _ in runs])
    return data, running_sums(np.concatenate([np.diff(ends) for _, ends in runs]))


def encode_records(batch: pa.RecordBatch, schema: AvroSchema, *, path: str) -> bytes:
    """Returns the rows as an AVRO_DATA block has them after its head: of each, the length and the datum
    (HoodieAvroDataBlock.serializeRecords). Memory and errors are those of encode_rows.
    """
    return b"".join(rows.with_lengths().joined()[0].data for rows in _encoded(batch, schema, path))


def _encoded(batch: pa.RecordBatch, schema: AvroSchema, path: str) -> Iterator[_Rows]:
    record = resolve(schema, path=path)
    if record.kind != "record" or record.nullable or record.lone_union:
        raise FormatError(f"the schema's type is {schema.get('type')!r}, not a record", path=path)
    for have, want in zip_longest(batch.schema.names, (child.name for child in record.fields)):
        if have != want:
            raise FormatError(f"the rows have the column {have!r} where the schema has {want!r}", path=path)
    for run in _runs(batch):
        rows = _Rows(run.num_rows, path)
        for array, child in zip(run.columns, record.fields, strict=True):
            rows.add(array, child.type, child.name)
        yield rows


def _runs(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yields the rows in halves of halves: sizes of rows may differ, so that no number of rows bounds a run's bytes."""
    half = batch.num_rows // 2
    if not half or batch.nbytes + _VALUE_BYTES * sum(map(_values, batch.columns)) <= RUN_BYTES:
        yield batch
    else:
        yield from _runs(batch.slice(0, half))
        yield from _runs(batch.slice(half))


def _values(array: pa.Array) -> int:
    """Returns how many values an array has, with those in its structs, lists and maps."""
    inner: list[pa.Array] = []
    if pa.types.is_struct(array.type):
        inner = [array.field(at) for at in range(array.type.num_fields)]
    elif (pa.types.is_list(array.type) or pa.types.is_map(array.type)) and len(array):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        inner = [array.values.slice(first, last - first)]
    return len(array) + sum(map(_values, inner))


@dataclass(frozen=True, slots=True)
class _Cells:
    """Which rows have a value in a column. `branches` are the branches of its union as they are written, None without a
    union. `alive` are the rows that have the struct around the column, `present` those that have the value, too; None
    means all.
    """

    alive: Mask | None
    present: Mask | None
    branches: Octets | None


class _Rows:
    """The data of some rows, as pieces: binary arrays with an item for each row. A null has no bytes."""

    def __init__(self, count: int, path: str) -> None:
        self._count = count
        self._path = path
        self._sizes = np.zeros(count, dtype=np.int64)
        self._pieces: list[pa.Array] = []

    def joined(self) -> tuple[Octets, Numbers]:
        """Returns the data, one after the other, and where each begins and the last ends."""
        ends = running_sums(self._sizes)
        if ends[-1] > _MAX_BYTES:
            message = f"rows of {ends[-1]} bytes in Avro; a record can have {_MAX_BYTES} at most"
            raise UnsupportedError(message, path=self._path)
        if not self._pieces:
            return np.zeros(0, dtype=np.uint8), ends
        whole = self._pieces[0]
        if len(self._pieces) > 1:
            nothing = pa.scalar(b"", pa.binary())
            whole = pc.binary_join_element_wise(*self._pieces, nothing, null_handling="replace", null_replacement="")
        return octets(whole)[1], ends

    def with_lengths(self) -> _Rows:
        """Returns the rows with the length before each, which does not count itself."""
        pieces, self._pieces = self._pieces, []
        heads = np.ascontiguousarray(self._sizes, dtype=">i4").view(np.uint8)
        self._append(heads, np.full(self._count, 4, dtype=np.int64))
        self._pieces += pieces
        return self

    def add(self, array: pa.Array, avro: AvroType, column: str, alive: Mask | None = None) -> None:
        """Adds the values of a column. Below a struct, the array is null where the struct is, and `alive` is false."""
        self._check_type(array.type, avro, column)
        if avro.kind == "null":
            return
        cells = self._cells(array, avro, column, alive)
        if avro.kind == "record":
            self._put(np.zeros((self._count, 0), dtype=np.uint8), cells)
            for child, values in zip(avro.fields, array.flatten(), strict=True):
                self.add(values, child.type, f"{column}.{child.name}", cells.present)
        elif avro.item is not None:
            self._put_items(array, avro.item, column, cells)
        elif avro.logical == "decimal":
            self._put_decimals(array, avro, column, cells)
        elif avro.kind in ("string", "bytes"):
            self._put_texts(array, column, cells)
        elif avro.kind == "enum":
            self._put_numbers(self._symbols(array, avro, column), cells)
        elif avro.kind in ("int", "long"):
            width = 4 if avro.kind == "int" else 8
            numbers = _cell_octets(array, width).view(f"<i{width}")[:, 0]
            self._put_numbers(numbers.astype(np.int64, copy=False), cells)
        elif avro.kind == "boolean":
            self._put(pc.fill_null(array, False).cast(pa.uint8()).to_numpy().reshape(-1, 1), cells)
        else:
            self._put(_cell_octets(array, avro.size or (4 if avro.kind == "float" else 8)), cells)

    def _check_type(self, kind: pa.DataType, avro: AvroType, column: str) -> None:
        if avro.kind == "record":
            names = [kind.field(at).name for at in range(kind.num_fields)] if pa.types.is_struct(kind) else None
            fits = names == [child.name for child in avro.fields]
        elif avro.item is not None:
            fits = pa.types.is_map(kind) if avro.kind == "map" else pa.types.is_list(kind)
        else:
            fits = kind == logical_type(avro, path=self._path)
        if not fits:
            raise self._bad(column, f"is of the type {kind}, which is not that of {avro.describe()}")

    def _cells(self, array: pa.Array, avro: AvroType, column: str, alive: Mask | None) -> _Cells:
        present: Mask | None = None
        if array.null_count:
            present = array.is_valid().to_numpy(zero_copy_only=False)
            if avro.null_at < 0 and not (present if alive is None else present | ~alive).all():
                raise self._bad(column, "has a null, which its type does not allow")
        if avro.null_at < 0 and not avro.lone_union:
            return _Cells(alive, present, None)
        value, null = (2, 0) if avro.null_at == 0 else (0, 2)
        branches = np.full(self._count, value, dtype=np.uint8)
        if present is not None:
            branches[~present] = null
        return _Cells(alive, present, branches)

    def _put(self, body: Octets, cells: _Cells, sizes: Numbers | None = None, *, at_end: bool = False) -> None:
        """Adds the branches, and the bytes of values: of each row of the matrix the first ones, as many as `sizes`
        says, or all. With `at_end`, the last ones; then there are no branches.
        """
        if sizes is None:
            sizes = np.full(self._count, body.shape[1], dtype=np.int64)
        if cells.present is not None:
            sizes = np.where(cells.present, sizes, 0)
        if cells.branches is not None:
            whole = np.empty((self._count, 1 + body.shape[1]), dtype=np.uint8)
            whole[:, 0] = cells.branches
            whole[:, 1:] = body
            body, sizes = whole, sizes + (1 if cells.alive is None else cells.alive)
        width = body.shape[1]
        if (sizes == width).all():
            data = body.reshape(-1)
        else:
            # Small integers, because there is one for each byte.
            kind = np.min_scalar_type(width)
            places, counts = np.arange(width, dtype=kind), sizes.astype(kind)[:, None]
            data = body[places >= width - counts if at_end else places < counts]
        self._append(data, sizes)

    def _append(self, data: Octets, sizes: Numbers) -> None:
        if not len(data):
            return
        # Offsets beyond 31 bits are wrong here, and `joined` refuses such rows before it reads them.
        offsets = running_sums(sizes).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
        self._pieces.append(pa.Array.from_buffers(pa.binary(), self._count, buffers))
        self._sizes += sizes

    def _put_numbers(self, numbers: Numbers, cells: _Cells) -> None:
        body, sizes = _varints(numbers)
        self._put(body, cells, sizes)

    def _put_texts(self, array: pa.Array, column: str, cells: _Cells) -> None:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise self._bad(column, f"has a text that is not UTF-8: {error}") from error
        sizes = np.diff(octets(array)[0])
        if cells.present is not None:
            sizes = np.where(cells.present, sizes, 0)
        self._put_numbers(sizes, cells)
        self._pieces.append(array.view(pa.binary()))
        self._sizes += sizes

    def _put_items(self, array: pa.Array, item: AvroType, column: str, cells: _Cells) -> None:
        """Adds arrays and maps: the count, the items, and a zero. An empty one is the zero alone."""
        is_map = pa.types.is_map(array.type)
        lists = array.cast(pa.list_(array.type.field(0).type)) if is_map else array
        counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
        self._put_numbers(counts, cells)
        # Leaves out the items below a null.
        items = lists.flatten()
        rows = _Rows(len(items), self._path)
        if is_map:
            keys, items = items.flatten()
            rows.add(keys, _KEY, f"{column}.key")
        rows.add(items, item, f"{column}.{'value' if is_map else 'element'}")
        data, ends = rows.joined()
        self._append(data, np.diff(ends[running_sums(counts)]))
        is_filled = counts > 0
        self._append(np.zeros(np.count_nonzero(is_filled), dtype=np.uint8), is_filled.astype(np.int64))

    def _put_decimals(self, array: pa.Array, avro: AvroType, column: str, cells: _Cells) -> None:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise self._bad(column, f"has a value that does not fit {avro.describe()}: {error}") from error
        body, sizes = _decimals(array, cells.present)
        if avro.kind == "bytes":
            self._put_numbers(sizes, cells)
            widest = int(sizes.max(initial=1))
            self._put(body[:, _DECIMAL_BYTES - widest :], replace(cells, branches=None), sizes, at_end=True)
            return
        if sizes.max(initial=1) > avro.size:
            raise self._bad(column, f"has a {avro.describe()} that does not fit its {avro.size} bytes")
        spare = avro.size - _DECIMAL_BYTES
        if spare > 0:
            signs = np.where(body[:, :1] >= 128, 255, 0).astype(np.uint8)
            body = np.hstack((np.repeat(signs, spare, axis=1), body))
        self._put(body[:, max(0, -spare) :], cells)

    def _symbols(self, array: pa.Array, avro: AvroType, column: str) -> Numbers:
        numbers = pc.index_in(array, value_set=pa.array(avro.symbols, pa.string()))
        if numbers.null_count > array.null_count:
            unknown = array.filter(pc.and_(array.is_valid(), numbers.is_null())).view(pa.binary())[0].as_py()
            raise self._bad(column, f"has {unknown.decode(errors='backslashreplace')!r}, no symbol of its enum")
        found: Numbers = pc.fill_null(numbers, 0).to_numpy().astype(np.int64)
        return found

    def _bad(self, column: str, message: str) -> FormatError:
        return FormatError(f"the column {column!r} {message}", path=self._path)


def _cell_octets(array: pa.Array, width: int) -> Octets:
    """Returns the bytes of the values, a row each. Those of a null may be any."""
    if not len(array):
        return np.zeros((0, width), dtype=np.uint8)
    cells = np.frombuffer(array.buffers()[1], np.uint8, len(array) * width, array.offset * width)
    return cells.reshape(-1, width)


def _varints(numbers: Numbers) -> tuple[Octets, Numbers]:
    """Returns the numbers as zigzag varints, a row each, and how many bytes of the row each takes."""
    zigzag = numbers << 1
    zigzag ^= numbers >> 63
    rest = zigzag.view(np.uint64)
    widest = max(1, (int(rest.max(initial=0)).bit_length() + 6) // 7)
    body = np.empty((len(numbers), widest), dtype=np.uint8)
    sizes = np.ones(len(numbers), dtype=np.int64)
    for at in range(widest):
        is_longer = rest > np.uint64(0x7F)
        body[:, at] = (rest.astype(np.uint8) & np.uint8(0x7F)) | (is_longer.view(np.uint8) << np.uint8(7))
        sizes += is_longer
        rest >>= np.uint64(7)
    return body, sizes


def _decimals(array: pa.Array, present: Mask | None) -> tuple[Octets, Numbers]:
    """Returns the unscaled numbers, 16 bytes each with the highest first, and how many of the last hold each."""
    words = _cell_octets(array, _DECIMAL_BYTES).view("<u8")
    if present is not None:
        words = np.where(present[:, None], words, 0).astype(np.uint64)
    # Of a negative number the complement: the bits after the sign say how many bytes it needs.
    signs = (words[:, 1].view(np.int64) >> 63).view(np.uint64)
    low, high = words[:, 0] ^ signs, words[:, 1] ^ signs
    sizes = np.where(high > 0, 1 + _DECIMAL_BYTES // 2, 1)
    digits = np.where(high > 0, high, low)
    for bits in range(7, 64, 8):
        sizes += digits >= np.uint64(1 << bits)
    return np.ascontiguousarray(words).view(np.uint8)[:, ::-1], sizes
