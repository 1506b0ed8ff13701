"""Base files in ORC, read stripe by stripe (AvroOrcUtils says how Hudi stores Avro types in ORC)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc

from hudi_core.codec.orc.time_zone import writer_zones
from hudi_core.errors import CorruptFileError, StorageError, UnsupportedError

_UTC = frozenset({"", "UTC", "GMT", "Z", "Etc/UTC"})


class OrcBaseFile:
    """An open ORC file. `file` is seekable and stays the caller's to close; `path` names it in errors.

    Errors: CorruptFileError when it is no ORC file, is cut or does not decode; UnsupportedError for what Arrow does not
    read; StorageError when the storage fails.
    """

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.path = path
        self._source = file
        try:
            self._file = orc.ORCFile(pa.PythonFile(file, mode="r"))
            self.schema: pa.Schema = self._file.schema.remove_metadata()
        except (pa.ArrowException, OSError) as error:
            raise self._failure(error) from error

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
            try:
                batch = self._file.read_stripe(stripe, columns=names)
            except (pa.ArrowException, OSError) as error:
                raise self._failure(error) from error
            if timed:
                zone = zones[stripe] if stripe < len(zones) else ""
                batch = pa.RecordBatch.from_arrays(
                    [self._moments(array, zone) for array in batch.columns], names=batch.schema.names
                )
            yield batch

    def _moments(self, array: pa.Array, zone: str) -> pa.Array:
        try:
            return _micros(array, "UTC" if zone in _UTC else zone)
        except pa.ArrowInvalid as error:
            raise UnsupportedError(f"timestamps of the zone {zone!r}: {error}", path=self.path) from error

    def _failure(self, error: Exception) -> Exception:
        if isinstance(error, pa.ArrowNotImplementedError) or "ime zone" in str(error):
            return UnsupportedError(f"cannot read this ORC file: {error}", path=self.path)
        if isinstance(error, OSError) and error.errno is not None:
            return StorageError(f"cannot read the file: {error}", path=self.path)
        remedy = "the file is cut or damaged; restore it, or roll back the commit that wrote it"
        return CorruptFileError(f"cannot read this ORC file: {error}", path=self.path, remedy=remedy)


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
    if array.offset:
        array = pa.concat_arrays([array])
    if pa.types.is_struct(kind):
        children = [_micros(array.field(index), zone) for index in range(kind.num_fields)]
        fields = [kind.field(index).with_type(child.type) for index, child in enumerate(children)]
        return pa.Array.from_buffers(pa.struct(fields), len(array), array.buffers()[:1], children=children)
    values = _micros(array.values, zone)
    if pa.types.is_map(kind):
        made: pa.DataType = pa.map_(values.type.field(0).type, values.type.field(1))
    else:
        made = pa.list_(kind.value_field.with_type(values.type))
    return pa.Array.from_buffers(made, len(array), array.buffers()[:2], children=[values])
