"""The full proof of a rewrite: every row that readers saw before is there after it, and no other.

The reader of queries reads each slice of the plan and each new file once more, and the rows' hashes are added up. Sums
do not depend on the order of rows, nor on which file has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hudi_core.codec.columns import octets
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.read.planned_slices import PlannedSlice
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partitions.row_level import ChangeReader
from hudi_core.metadata_table.records.file_statistics import DataFileRef
from hudi_core.model.names import FILE_NAME, parse_base_file, parse_log_file
from hudi_core.model.partition import join
from hudi_core.query.context import reader_spec
from hudi_core.query.json_text import AVRO, json_rows
from hudi_core.services.rewriting.proof import unproved
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.view.file_group import DataFile, FileSlice, check_slice, slice_of_base

if TYPE_CHECKING:
    from hudi_core.engine.protocol import TaskAttempt
    from hudi_core.metadata_table.write.staged_logs import Workers
    from hudi_core.services.context import TableContext
    from hudi_core.storage.base import Storage
    from hudi_core.timeline.timeline import Timeline

_FACTOR: Final = 0x9E3779B97F4A7C15
_MASK: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class SumUnit:
    """A planned slice, or a new base file. `reader` is a ReaderSpec as text, `ignored` are columns that may differ."""

    uri: str
    storage_options: Mapping[str, str]
    reader: str
    instant: str
    ignored: tuple[str, ...]
    planned: PlannedSlice | None = None
    written: DataFileRef | None = None


@dataclass(frozen=True, slots=True)
class RowSum:
    """How many rows there are, and their hashes added up modulo 2^64."""

    rows: int
    total: int

    def plus(self, other: RowSum) -> RowSum:
        return RowSum(self.rows + other.rows, (self.total + other.total) & _MASK)


def check_all_rows(
    context: TableContext,
    workers: Workers,
    timeline: Timeline,
    instant: str,
    planned: Sequence[PlannedSlice],
    written: Sequence[DataFileRef],
    ignored: Iterable[str] = (),
) -> None:
    """Raises ExecutionError unless the new files of `instant` hold, partition by partition, the rows of the planned
    slices, except for the file's name and the columns `ignored`. Raises the errors of SliceReader.read. Memory of a
    task: that of a reader, and some 20 bytes for each byte of a batch's rows as text.
    """
    schema = table_schema(context.storage, context.config, timeline)
    spec = to_text(reader_spec(context, schema, timeline, merge_logs=True))
    common = (context.uri, dict(context.storage_options), spec, instant, (FILE_NAME, *sorted(ignored)))
    units = [SumUnit(*common, planned=item) for item in planned] + [SumUnit(*common, written=file) for file in written]
    sums = workers.engine.run(sum_rows, units, run_epoch=workers.epoch)
    places = [item.file_group.partition for item in planned]
    before = _by_partition(zip(places, sums, strict=False))
    after = _by_partition(zip((file.partition for file in written), sums[len(places) :], strict=True))
    for partition in sorted({*before, *after}):
        old, new = before.get(partition, RowSum(0, 0)), after.get(partition, RowSum(0, 0))
        if old != new:
            raise unproved(
                f"the {old.rows} rows of {partition!r} before and the {new.rows} rows after it are not the same",
                partition,
            )


def _by_partition(sums: Iterable[tuple[str, RowSum]]) -> dict[str, RowSum]:
    by_partition: dict[str, RowSum] = {}
    for partition, item in sums:
        by_partition[partition] = by_partition.get(partition, RowSum(0, 0)).plus(item)
    return by_partition


def sum_rows(unit: SumUnit, attempt: TaskAttempt) -> RowSum:
    """Adds up the rows of a unit (its UnitTask). Raises the errors of SliceReader.read."""
    if unit.planned is None and unit.written is None:
        raise ExecutionError("a unit names neither a slice nor a file")
    storage, spec = open_data_storage(unit.uri, unit.storage_options), _spec(unit.reader)
    readers = ChangeReader(storage, spec, unit.instant)
    if unit.written is not None:
        file = DataFile(unit.written.partition, unit.written.name, unit.written.size)
        reader, item = readers.after, slice_of_base(file)
    elif unit.planned is not None:
        reader, item = readers.before, _slice_of(storage, unit.planned)
    columns = [name for name in spec.output.all.names if name not in unit.ignored]
    rows = total = 0
    for batch in reader.read(check_slice(item), columns):
        rows += batch.num_rows
        total += int(row_hashes(batch).sum(dtype=np.uint64))
    return RowSum(rows, total & _MASK)


def row_hashes(batch: pa.RecordBatch) -> NDArray[np.uint64]:
    """Returns a hash of each row's text and nulls: a polynomial over the bytes, whose bits are mixed at the end."""
    offsets, data = octets(json_rows(batch, AVRO).cast(pa.binary()))
    lengths = np.diff(offsets)
    places = np.arange(len(data)) - np.repeat(offsets[:-1], lengths)
    # Some more powers than are needed, so that few tables are made.
    powers = _powers(1 << max(6, int(lengths.max(initial=0)).bit_length()))
    weighted = (data.astype(np.uint64) + np.uint64(1)) * powers[places]
    sums: NDArray[np.uint64] = np.zeros(len(lengths), np.uint64)
    if len(lengths):
        sums = np.add.reduceat(weighted, offsets[:-1])
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        sums = (sums ^ (sums >> np.uint64(shift))) * np.uint64(factor)
    return sums


@lru_cache(maxsize=4)
def _powers(count: int) -> NDArray[np.uint64]:
    return np.cumprod(np.full(count, _FACTOR, np.uint64), dtype=np.uint64)


@lru_cache(maxsize=8)
def _spec(text: str) -> ReaderSpec:
    return from_text(ReaderSpec, text)


def _slice_of(storage: Storage, planned: PlannedSlice) -> FileSlice:
    group = planned.file_group
    names = sorted(planned.log_files, key=lambda name: parse_log_file(name).scan_order)
    base = planned.base_file

    def of(name: str) -> DataFile:
        return DataFile(group.partition, name, storage.stat(join(group.partition, name)).size)

    instant = parse_log_file(names[0]).instant if base is None else parse_base_file(base).instant
    return FileSlice(group, instant, None if base is None else of(base), tuple(map(of, names)))
