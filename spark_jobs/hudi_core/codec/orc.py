"""Base files in ORC, read stripe by stripe (AvroOrcUtils says how Hudi stores Avro types in ORC)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc

from hudi_core.codec.binary import Reader, read_fields
from hudi_core.codec.buffers import unsliced, with_children
from hudi_core.codec.parquet.file import arrow_errors
from hudi_core.errors import CorruptFileError, UnsupportedError

_UTC = frozenset({"", "UTC", "GMT", "Z", "Etc/UTC"})


class OrcBaseFile:
    """An open ORC file. `file` is seekable and stays the caller's to close; `path` names it in errors.

    Errors: CorruptFileError when it is no ORC file, is cut or does not decode; UnsupportedError for what Arrow does not
    read; StorageError when the storage fails.
    """

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.path = path
        self._source = file
        with arrow_errors(path, form="ORC"):
            self._file = orc.ORCFile(pa.PythonFile(file, mode="r"))
            self.schema: pa.Schema = self._file.schema.remove_metadata()

    @property
    def num_rows(self) -> int:
        """Rows in the file."""
        return int(self._file.nrows)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in file order, a stripe each, with all columns or the top-level ones named.

        Names that the file lacks are ignored. Timestamps come as moments in microseconds, which is what Hudi stores:
        ORC keeps the local time of the writer's zone.
        """
        # At least one column is read, since a batch without columns has no rows.
        names = (
            self.schema.names
            if columns is None
            else [name for name in self.schema.names if name in set(columns)] or self.schema.names[:1]
        )
        timed = any(_has_timestamps(self.schema.field(name).type) for name in names)
        zones = writer_zones(self._source, self.path) if timed else []
        for stripe in range(self._file.nstripes):
            with arrow_errors(self.path, form="ORC"):
                batch = self._file.read_stripe(stripe, columns=names)
            if timed:
                zone = zones[stripe] if stripe < len(zones) else ""
                try:
                    moments = [_micros(array, "UTC" if zone in _UTC else zone) for array in batch.columns]
                except pa.ArrowInvalid as error:
                    raise UnsupportedError(f"timestamps of the zone {zone!r}: {error}", path=self.path) from error
                batch = pa.RecordBatch.from_arrays(moments, names=batch.schema.names)
            yield batch


def _has_timestamps(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) or any(
        _has_timestamps(kind.field(index).type) for index in range(kind.num_fields)
    )


def _micros(array: pa.Array, zone: str) -> pa.Array:
    """The array with its timestamps, local time of `zone` in nanoseconds, as moments in microseconds of UTC."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        wall = pc.cast(array, pa.timestamp("us"), safe=False)
        if zone != "UTC":
            wall = pc.cast(
                pc.assume_timezone(wall, zone, ambiguous="earliest", nonexistent="earliest"),
                pa.timestamp("us", tz="UTC"),
            )
        return pc.cast(wall, pa.timestamp("us", tz="UTC"))
    if not _has_timestamps(kind):
        return array
    array = unsliced(array)
    if pa.types.is_struct(kind):
        children = [_micros(array.field(index), zone) for index in range(kind.num_fields)]
        fields = [kind.field(index).with_type(child.type) for index, child in enumerate(children)]
        return with_children(array, pa.struct(fields), children)
    values = _micros(array.values, zone)
    if pa.types.is_map(kind):
        made: pa.DataType = pa.map_(values.type.field(0).type, values.type.field(1))
    else:
        made = pa.list_(kind.value_field.with_type(values.type))
    return with_children(array, made, [values])


_NONE, _ZLIB, _SNAPPY, _LZ4, _ZSTD = 0, 1, 2, 4, 5
_LZ4_FRAME = bytes.fromhex("04224d18607073")
"""The head of an LZ4 frame without checksums, in blocks of 4 MiB at most."""
_MAX_TAIL = 64 << 20
"""Of a footer or a chunk of one; Hudi's schemas make some kilobytes."""


def writer_zones(file: BinaryIO, path: str) -> list[str]:
    """The name of the writer's time zone for each stripe; empty where the writer gave none.

    ORC stores a timestamp as the local time of its writer. Arrow gives that local time without the zone, which is in
    the stripes' footers (ORC specification, "File Tail" and "Stripe Footer").

    Raises CorruptFileError or UnsupportedError naming `path`.
    """
    size = file.seek(0, 2)
    tail = _read(file, max(0, size - 256), min(size, 256), path)
    length = tail[-1] if tail else 0
    if length + 1 > len(tail):
        raise CorruptFileError(f"an ORC file of {size} bytes has no room for its postscript", path=path)
    postscript = _numbers(tail[-1 - length : -1], path)
    codec, most = postscript.get(2, _NONE), min(postscript.get(3, 256 << 10), _MAX_TAIL)
    start = size - 1 - length - postscript.get(1, 0)
    footer = _plain(_read(file, start, postscript.get(1, 0), path), codec, most, path)
    zones = []
    for number, value in read_fields(Reader(footer, path)):
        if number == 3 and isinstance(value, bytes):
            stripe = _numbers(value, path)
            at = stripe.get(1, 0) + stripe.get(2, 0) + stripe.get(3, 0)
            body = _plain(_read(file, at, stripe.get(4, 0), path), codec, most, path)
            zones.append(_zone(body, path))
    return zones


def _zone(stripe_footer: bytes, path: str) -> str:
    for number, value in read_fields(Reader(stripe_footer, path)):
        if number == 3 and isinstance(value, bytes):
            return Reader(value, path).utf8(len(value))
    return ""


def _numbers(message: bytes, path: str) -> dict[int, int]:
    """The integers of a protobuf message by field number."""
    return {number: value for number, value in read_fields(Reader(message, path)) if isinstance(value, int)}


def _read(file: BinaryIO, start: int, length: int, path: str) -> bytes:
    if start < 0 or not 0 <= length <= _MAX_TAIL:
        raise CorruptFileError(f"the ORC file's tail points to {length} bytes at {start}", path=path)
    file.seek(start)
    data = file.read(length)
    if len(data) != length:
        raise CorruptFileError(
            f"read {len(data)} bytes at byte {start} of the ORC file where {length} should be", path=path
        )
    return data


def _plain(data: bytes, codec: int, most: int, path: str) -> bytes:
    """A section, decompressed: chunks of a three-byte head and their bytes.

    The head has the length and whether the chunk is compressed.
    """
    if codec == _NONE:
        return data
    source, parts = Reader(data, path), []
    while not source.at_end():
        head = int.from_bytes(source.bytes(3), "little")
        chunk = source.bytes(head >> 1)
        parts.append(chunk if head & 1 else _inflate(chunk, codec, most, path))
    return b"".join(parts)


def _inflate(chunk: bytes, codec: int, most: int, path: str) -> bytes:
    try:
        if codec == _ZLIB:
            return zlib.decompressobj(-15).decompress(chunk, most)
        if codec == _ZSTD:
            with pa.input_stream(pa.BufferReader(chunk), compression="zstd") as stream:
                return bytes(stream.read(most))
        if codec == _SNAPPY:
            # The chunk starts with the size that it decompresses to.
            size = min(Reader(chunk, path).varint(), most)
            return bytes(pa.decompress(chunk, decompressed_size=size, codec="snappy", asbytes=True))
        if codec == _LZ4:
            # Arrow decompresses a bare block only to a size known beforehand, so the block is put into a frame.
            frame = _LZ4_FRAME + len(chunk).to_bytes(4, "little") + chunk + bytes(4)
            with pa.input_stream(pa.BufferReader(frame), compression="lz4") as stream:
                return bytes(stream.read(most))
    except (zlib.error, pa.ArrowException, OSError) as error:
        raise CorruptFileError(f"a part of the ORC file's tail does not decompress: {error}", path=path) from error
    raise UnsupportedError(f"ORC compression of kind {codec}", path=path)
