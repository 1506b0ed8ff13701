"""Reads base files in ORC stripe by stripe. AvroOrcUtils says how Hudi stores Avro types in ORC."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc

from hudi_core.codec.binary import Reader, read_fields
from hudi_core.codec.columns import leaf_types, unsliced, with_children
from hudi_core.codec.parquet.file import arrow_errors
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.model.size_limits import NO_OPTIONS, Limit, SizeLimits

_UTC = frozenset({"", "UTC", "GMT", "Z", "Etc/UTC"})


class OrcBaseFile:
    """An open ORC file. The caller closes `file`; `path` names it in errors. Raises CorruptFileError when it is no ORC
    file, is cut or does not decode; UnsupportedError for what Arrow does not read; StorageError.
    """

    def __init__(self, file: BinaryIO, path: str, limits: SizeLimits = NO_OPTIONS) -> None:
        """Reads the tail and the schema. `batches` compares each stripe with `limits`, by the tail's claims, before it
        reads the stripe, and raises SizeLimitError.
        """
        self.path = path
        self._source = file
        self._limits = limits
        self._tail = read_tail(file, path)
        with arrow_errors(path, form="ORC"):
            self._file = orc.ORCFile(pa.PythonFile(file, mode="r"))
            self.schema: pa.Schema = self._file.schema.remove_metadata()

    @property
    def num_rows(self) -> int:
        return int(self._file.nrows)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yields the rows in file order, one batch per stripe, with all columns or the named top-level ones; names that
        the file lacks are ignored. Timestamps are moments in microseconds, as Hudi's are; ORC keeps the local time of
        the writer's zone.
        """
        chosen = set(self.schema.names if columns is None else columns)
        # At least one column is read, since a batch without columns has no rows.
        names = [name for name in self.schema.names if name in chosen] or self.schema.names[:1]
        timed = any(_has_timestamps(self.schema.field(name).type) for name in names)
        zones = writer_zones(self._source, self.path, self._tail) if timed else []
        leaves = sum(_leaves(self.schema.field(name).type) for name in names)
        for stripe, claimed in enumerate(self._tail.stripes):
            size = max(claimed.length, 8 * claimed.rows * leaves, self._tail.block * leaves)
            self._limits.check(Limit.ORC_STRIPE, size, self.path, what="a stripe of the ORC file")
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


def _leaves(kind: pa.DataType) -> int:
    return 1 + sum(_leaves(kind.field(index).type) for index in range(kind.num_fields))


def _has_timestamps(kind: pa.DataType) -> bool:
    return any(map(pa.types.is_timestamp, leaf_types(kind)))


def _micros(array: pa.Array, zone: str) -> pa.Array:
    """Returns the array with its timestamps, local times of `zone` in nanoseconds, as microseconds of UTC."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        wall = pc.cast(array, pa.timestamp("us"), safe=False)
        if zone != "UTC":
            moments = pc.assume_timezone(wall, zone, ambiguous="earliest", nonexistent="earliest")
            wall = pc.cast(moments, pa.timestamp("us", tz="UTC"))
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
"""The head of an LZ4 frame without checksums, in blocks of at most 4 MiB."""
_MAX_TAIL = 64 << 20
"""The most bytes of a footer or of one of its chunks. Hudi's schemas make some kilobytes."""


@dataclass(frozen=True, slots=True)
class Stripe:
    start: int
    length: int
    footer_length: int
    rows: int


@dataclass(frozen=True, slots=True)
class Tail:
    """The tail of an ORC file: the compression, the most bytes of a compressed chunk, and the stripes."""

    codec: int
    block: int
    stripes: tuple[Stripe, ...]


def read_tail(file: BinaryIO, path: str) -> Tail:
    """Reads the tail (ORC specification, "File Tail"). Raises CorruptFileError or UnsupportedError naming `path`."""
    size = file.seek(0, 2)
    tail = _read(file, max(0, size - 256), min(size, 256), path)
    length = tail[-1] if tail else 0
    if length + 1 > len(tail):
        raise CorruptFileError(f"an ORC file of {size} bytes has no room for its postscript", path=path)
    postscript = _numbers(tail[-1 - length : -1], path)
    codec, block = postscript.get(2, _NONE), postscript.get(3, 256 << 10)
    if block < 1:  # zlib takes a limit of 0 bytes for no limit
        raise CorruptFileError(f"an ORC postscript names compressed chunks of {block} bytes", path=path)
    start = size - 1 - length - postscript.get(1, 0)
    footer = _plain(_read(file, start, postscript.get(1, 0), path), codec, min(block, _MAX_TAIL), path)
    stripes = []
    for number, value in read_fields(Reader(footer, path)):
        if number == 3 and isinstance(value, bytes):
            said = _numbers(value, path)
            stripes.append(Stripe(said.get(1, 0), said.get(2, 0) + said.get(3, 0), said.get(4, 0), said.get(5, 0)))
    return Tail(codec, block, tuple(stripes))


def writer_zones(file: BinaryIO, path: str, tail: Tail) -> list[str]:
    """Returns the writer's time zone of each stripe, or `""`, from the stripe's footer (ORC specification)."""
    most = min(tail.block, _MAX_TAIL)
    footers = (_read(file, stripe.start + stripe.length, stripe.footer_length, path) for stripe in tail.stripes)
    return [_zone(_plain(footer, tail.codec, most, path), path) for footer in footers]


def _zone(stripe_footer: bytes, path: str) -> str:
    for number, value in read_fields(Reader(stripe_footer, path)):
        if number == 3 and isinstance(value, bytes):
            return Reader(value, path).utf8(len(value))
    return ""


def _numbers(message: bytes, path: str) -> dict[int, int]:
    return {number: value for number, value in read_fields(Reader(message, path)) if isinstance(value, int)}


def _read(file: BinaryIO, start: int, length: int, path: str) -> bytes:
    if start < 0 or not 0 <= length <= _MAX_TAIL:
        raise CorruptFileError(f"the ORC file's tail points to {length} bytes at {start}", path=path)
    file.seek(start)
    data = file.read(length)
    if len(data) != length:
        message = f"read {len(data)} bytes at byte {start} of the ORC file where {length} should be"
        raise CorruptFileError(message, path=path)
    return data


def _plain(data: bytes, codec: int, most: int, path: str) -> bytes:
    """Returns a section, decompressed. A chunk's head has three bytes: the length, and whether it is compressed."""
    if codec == _NONE:
        return data
    source, parts, room = Reader(data, path), [], _MAX_TAIL
    while not source.at_end():
        head = int.from_bytes(source.bytes(3), "little")
        chunk = source.bytes(head >> 1)
        parts.append(chunk if head & 1 else _inflate(chunk, codec, most, path))
        room -= len(parts[-1])
        if room < 0:
            raise CorruptFileError(f"a part of the ORC file's tail has more than {_MAX_TAIL} bytes", path=path)
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
