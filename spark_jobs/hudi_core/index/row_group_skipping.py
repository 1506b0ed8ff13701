"""Reads the ranges of row groups from a base file's footer; says which base files cannot hold some keys, by the key
range and the bloom filter in the footer. page_skipping.py says which rows are read, skipping.py which partitions and
files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hudi_core.codec.avro.arrow_types import field_at, type_meant
from hudi_core.codec.bloom import MAX_KEY, MIN_KEY, BloomFilter, filter_in_footer
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.footer import schema_of
from hudi_core.codec.parquet.statistics import ChunkRanges, chunk_ranges, hybrid_columns, leaf_columns, leaf_path
from hudi_core.expr.bind import kind_of
from hudi_core.expr.bound import Bound
from hudi_core.expr.ranges import ColumnRange, operands_of
from hudi_core.expr.tree import Column, Operand
from hudi_core.filegroup.read.base_file import RowChoice
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.storage.base import Storage
from hudi_core.timeline.schemas import renamed_columns
from hudi_core.view.file_group import DataFile, FileSlice

MAX_BLOOM_KEYS: Final = 1000
"""With more keys a filter is not tested: each key costs some microseconds per file, and one of many is likely in it."""
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNITS = ("s", "ms", "us", "ns")
Blooms = Callable[[str, list[str]], Mapping[str, BloomFilter]]
"""Returns the filters of base files that have one, by the partition and the names of the files."""


def columns_not_in_files(spec: ReaderSpec) -> frozenset[str]:
    """Returns the columns that are read from paths, or that older files may hold under another name, or not at all."""
    return renamed_columns(spec.history).union(spec.output.rule.from_path)


def flat_columns(bound: Bound, hidden: Collection[str]) -> dict[Column, pa.DataType]:
    """Returns the predicate's columns, each with its type, without `hidden` ones and structs, lists and maps."""
    columns = [
        operand for operand in operands_of(bound.node) if isinstance(operand, Column) and operand.path[0] not in hidden
    ]
    kinds = {column: kind_of(column, bound) for column in sorted(columns, key=lambda column: column.path)}
    return {column: kind for column, kind in kinds.items() if not pa.types.is_nested(kind)}


def footer_ranges(
    metadata: pq.FileMetaData, kinds: dict[Column, pa.DataType], rows: pa.Schema
) -> dict[Operand, ColumnRange]:
    """Returns the ranges of columns, in the query's types, per row group. Omits columns without statistics."""
    leaves = leaf_columns(metadata)
    schema = schema_of(metadata).to_arrow_schema()
    # Their numbers mean other dates: reads of them are refused, and they rule nothing out.
    hybrid = hybrid_columns(metadata, schema)
    ranges: dict[Operand, ColumnRange] = {}
    for column, kind in kinds.items():
        path = leaf_path(leaves, column.path)
        if path is None or path[0] in hybrid:
            continue
        chunks = chunk_ranges(metadata, leaves[path], type_at(schema, path))
        in_query = None if chunks is None else column_range(chunks, column, kind, rows)
        if in_query is not None:
            ranges[column] = in_query
    return ranges


def column_range(chunks: ChunkRanges, column: Column, kind: pa.DataType, rows: pa.Schema) -> ColumnRange | None:
    """Returns the ranges in the query's type `kind`; None where their order may be another. `rows` are the query's."""
    meant = type_meant(chunks.minimum.type, field_at(rows, column.path))
    lower, upper = (in_order_of(ends.view(meant), kind) for ends in (chunks.minimum, chunks.maximum))
    return None if lower is None or upper is None else ColumnRange(lower, upper, chunks.null_count, chunks.value_count)


def type_at(schema: pa.Schema, path: tuple[str, ...]) -> pa.DataType:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return kind


def footer_may_match(storage: Storage, base: DataFile, choice: RowChoice | None, keys: Collection[str] | None) -> bool:
    """Whether the base file may hold a matching row, by row-group statistics and, unless None, by its `keys`. Opens the
    file. Raises StorageNotFoundError, or CorruptFileError for a file or filter that is broken.
    """
    with storage.open_input(base.path) as stream, ParquetBaseFile(stream, base.path, storage.limits) as file:
        if choice is not None and choice.row_groups(file.metadata) == []:
            return False
        return keys is None or _may_hold(file.footer, keys, base.path)


def _may_hold(footer: dict[str, str], keys: Collection[str], path: str) -> bool:
    possible = list(keys)
    if MIN_KEY in footer and MAX_KEY in footer:
        possible = [key for key in possible if _between(key, footer[MIN_KEY], footer[MAX_KEY])]
    filter_text = filter_in_footer(footer)
    if filter_text is None or not possible:
        return bool(possible)
    type_code, text = filter_text
    return any_may_be_in(BloomFilter.parse(text, type_code, path=path), possible)


def _between(key: str, low: str, high: str) -> bool:
    """Whether a key is in a range, by the order of Java's strings or Spark's: a Hudi writer may use either."""
    first, tested, last = (text.encode("utf-16-be", "surrogatepass") for text in (low, key, high))
    return first <= tested <= last or low <= key <= high


def any_may_be_in(bloom: BloomFilter, keys: Collection[str]) -> bool:
    """Whether one of the keys may be in the filter. True without a test of more than MAX_BLOOM_KEYS."""
    return len(keys) > MAX_BLOOM_KEYS or bloom.lacking(pa.array(keys, pa.string())) < len(keys)


def filter_mask(slices: Sequence[FileSlice], values: Collection[str], filters: Blooms) -> NDArray[np.bool_]:
    """Returns which slices may hold a value, by filters. Log files and files without a filter may hold any."""
    mask = np.ones(len(slices), dtype=np.bool_)
    by_partition: dict[str, dict[str, int]] = defaultdict(dict)
    for number, file_slice in enumerate(slices):
        if file_slice.base_file is not None and not file_slice.log_files:
            by_partition[file_slice.file_group.partition][file_slice.base_file.name] = number
    for partition, names in by_partition.items():
        for name, bloom in filters(partition, list(names)).items():
            mask[names[name]] = any_may_be_in(bloom, values)
    return mask


def in_order_of(bounds: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Returns the bounds as type `kind`; None unless values of `kind` made from such values have the same order. Values
    of a column that was widened (numbers, decimals, timestamps) have it; values of one that became text do not.
    """
    have = bounds.type
    if have == kind:
        return bounds
    if not _keeps_order(have, kind):
        return None
    if pa.types.is_float32(have):
        # Rows are read by the float's text (codec.avro.arrow_conform): 1.1, not 1.10000002384.
        return pc.cast(pc.cast(bounds, pa.string()), kind)
    return pc.cast(bounds, kind, safe=not pa.types.is_floating(kind))


def _keeps_order(have: pa.DataType, kind: pa.DataType) -> bool:
    if have in _INTEGERS:
        return pa.types.is_floating(kind) or (kind in _INTEGERS and _INTEGERS.index(have) < _INTEGERS.index(kind))
    if pa.types.is_float32(have):
        return bool(pa.types.is_float64(kind))
    if pa.types.is_decimal(have) and pa.types.is_decimal(kind):
        return bool(kind.scale >= have.scale and kind.precision - kind.scale >= have.precision - have.scale)
    if pa.types.is_timestamp(have) and pa.types.is_timestamp(kind):
        # A column without a zone is read as UTC (codec.avro.arrow_conform).
        zones = have.tz == kind.tz or (have.tz is None and kind.tz == "UTC")
        return zones and _UNITS.index(have.unit) <= _UNITS.index(kind.unit) and kind.unit != "ns"
    texts = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return have in texts and kind in texts
