"""Column statistics by column, partition and file, typed by the table's schema, for data skipping."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby, islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.avro.arrow import arrow_schema, spark_schema
from hudi_core.codec.avro.column_walk import ColumnWalk, Encoded, Leaf, Path, Positions
from hudi_core.codec.avro.resolve import AvroType, resolve
from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.keys import ID_LENGTH, PARTITION_STATISTICS, column_id, column_stats_key, partition_id
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.group_reader import GroupReader, Query, of_keys, of_prefixes, rebuild_as_remedy
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.record import MetadataCodec
from hudi_core.metadata_table.records.bounds import (
    WRAPPERS,
    Bound,
    bound_type,
    decode_bound,
    nan_for_infinity,
    to_arrow,
)
from hudi_core.metadata_table.records.column_stats import (
    STATISTICS_TYPES,
    ColumnStats,
    ColumnStatsRules,
    live,
    statistics_table,
)
from hudi_core.model.names import META_FIELDS, OPERATION
from hudi_core.model.partition import NON_PARTITIONED, check_file_name, check_file_names

_LEAST_RUN: Final = 64
"""Below so many records, to decode one after the other is as fast."""
_BODY: Final = "ColumnStatsMetadata"
_TYPE: Final[Path] = ("type",)
_NAME, _COLUMN = (_BODY, "fileName"), (_BODY, "columnName")
_NULLS, _VALUES = (_BODY, "nullCount"), (_BODY, "valueCount")
_SIZE: Final[Path] = (_BODY, "totalUncompressedSize")
_DELETED, _TIGHT = (_BODY, "isDeleted"), (_BODY, "isTightBound")
_ORDINAL, _INFO = (_BODY, "valueType", "typeOrdinal"), (_BODY, "valueType", "additionalInfo")
_BOUNDS: Final = {
    end: {wrapper: (_BODY, end, wrapper, "value") for wrapper in WRAPPERS} for end in ("minValue", "maxValue")
}
_REQUESTED: Final[frozenset[Path]] = frozenset(
    (_TYPE, _NAME, _COLUMN, _NULLS, _VALUES, _SIZE, _DELETED, _TIGHT, _ORDINAL, _INFO)
).union(*(paths.values() for paths in _BOUNDS.values()))
_TEXT: Final = {"StringWrapper": pa.string(), "BytesWrapper": pa.binary(), "DecimalWrapper": pa.binary()}


@dataclass(frozen=True, slots=True)
class StatColumns:
    """Makes Arrow columns of the statistics of one column, with its type and the unit of its plain longs."""

    arrow_type: pa.DataType
    long_unit: str

    def of_cells(self, schema: str, keys: Sequence[bytes], values: Sequence[bytes], *, path: str) -> pa.Table:
        """Returns the records of cells whose values `schema` encodes, in order, without deletions. Columns: `key`,
        `file`: string; `min`, `max`: `arrow_type`; `null_count`, `value_count` and `uncompressed_size`: int64;
        `is_tight`: bool. Raises CorruptFileError with `path`.
        """
        found = self._bulk(schema, keys, values) if len(values) >= _LEAST_RUN else None
        if found is not None:
            return found
        codec, rules = MetadataCodec(schema, path=path), ColumnStatsRules()
        decoded = (codec.decode(key, value) for key, value in zip(keys, values, strict=True))
        return self.of_records([(name, rules.decode(name, datum, path=path)) for name, datum in decoded])

    def of_records(self, records: Sequence[tuple[str, ColumnStats]]) -> pa.Table:
        """Returns decoded records, given with their keys, as a table like of_cells."""
        found = live(records)
        table = statistics_table(found, self.arrow_type, long_unit=self.long_unit)
        return table.rename_columns(["key", *table.column_names[1:]])

    def _bulk(self, schema: str, keys: Sequence[bytes], values: Sequence[bytes]) -> pa.Table | None:
        """Returns the cells' records, decoded at once; None for damaged or rare content: the record rules decode it."""
        walk = _walk_of(schema)
        if walk is None:
            return None
        data = Encoded.of(values)
        leaves = walk.read(data)
        count = len(data)
        if leaves is None or any(
            path not in leaves or len(leaves[path].rows) != count for path in (_TYPE, _NAME, _COLUMN, _DELETED)
        ):
            return None
        if not set(np.unique(leaves[_TYPE].values).tolist()) <= STATISTICS_TYPES:
            return None
        try:
            names = data.texts(leaves[_NAME], pa.string())
            named = pa.array(keys, pa.binary()).cast(pa.string())
            least, greatest = (self._bound_column(data, leaves, end) for end in ("minValue", "maxValue"))
        except (pa.ArrowException, CorruptFileError):
            # The error is not lost: the record rules read the records again, and name the wrong record.
            return None
        columns = {
            "key": named,
            "file": pc.if_else(pc.equal(names, NON_PARTITIONED), "", names),
            "min": least,
            "max": greatest,
            "null_count": pa.array(_column(leaves.get(_NULLS), count, 0)),
            "value_count": pa.array(_column(leaves.get(_VALUES), count, 0)),
            "uncompressed_size": pa.array(_column(leaves.get(_SIZE), count, 0)),
            "is_tight": pa.array(_column(leaves.get(_TIGHT), count, False)),
        }
        return pa.table(columns).filter(pa.array(~leaves[_DELETED].values))

    def _bound_column(self, data: Encoded, leaves: Mapping[Path, Leaf], end: str) -> pa.Array:
        count = len(data)
        if pa.types.is_null(self.arrow_type):
            return pa.nulls(count)
        ordinals = _column(leaves.get(_ORDINAL), count, -1)
        pieces, places = [], []
        for wrapper, path in _BOUNDS[end].items():
            for leaf, ordinal in _by_ordinal(leaves.get(path), ordinals):
                pieces.append(self._piece(data, leaves, wrapper, leaf, ordinal, upper=end == "maxValue"))
                places.append(leaf.rows)
        if len(pieces) == 1 and len(places[0]) == count:
            return pieces[0]
        if not pieces:
            return pa.nulls(count, self.arrow_type)
        rows = np.concatenate(places)
        at = _dense(rows, np.arange(len(rows)), count, -1)
        return pa.concat_arrays(pieces).take(pa.array(at, mask=at < 0))

    def _piece(
        self, data: Encoded, leaves: Mapping[Path, Leaf], wrapper: str, leaf: Leaf, ordinal: int, *, upper: bool
    ) -> pa.Array:
        """Returns the bounds of one wrapper and one value type (-1: version 1), which all have one type."""
        if _is_plain(wrapper, bound_type(wrapper, ordinal), leaf, self.arrow_type, self.long_unit):
            values = data.texts(leaf, pa.string()) if leaf.lengths is not None else pa.array(leaf.values)
            if pa.types.is_date32(self.arrow_type):
                values = values.cast(pa.int32())
            found = values.cast(self.arrow_type)
            return nan_for_infinity(found) if upper else found
        values = pa.array(leaf.values) if leaf.lengths is None else data.texts(leaf, _TEXT[wrapper])
        infos = _infos(data, leaves, leaf.rows)
        known: dict[Any, Bound | None] = {}

        def bound(value: Any, info: str | None) -> Bound | None:
            if (value, info) not in known:
                value_type = None if ordinal < 0 else {"typeOrdinal": ordinal, "additionalInfo": info}
                known[value, info] = decode_bound((wrapper, {"value": value}), value_type, path="column statistics")
            return known[value, info]

        bounds = [bound(value, info) for value, info in zip(values.to_pylist(), infos, strict=True)]
        return to_arrow(bounds, self.arrow_type, long_unit=self.long_unit, upper=upper)


_PLAIN: Final = {
    "boolean": (pa.bool_(),),
    "int": (pa.int32(), pa.date32()),
    "long": (pa.int64(),),
    "float": (pa.float32(),),
    "double": (pa.float64(),),
    "string": (pa.string(),),
    "date": (pa.date32(),),
}
"""The column types whose values need no conversion (bounds.to_arrow), by the type of the bound."""
_PHYSICAL: Final = {"boolean": "bool", "float": "float32", "double": "float64"}


def _is_plain(wrapper: str, logical: str, leaf: Leaf, column: pa.DataType, long_unit: str) -> bool:
    if logical == "string" or leaf.lengths is not None:
        return wrapper == "StringWrapper" and logical == "string" and pa.types.is_string(column)
    if str(leaf.values.dtype) != _PHYSICAL.get(logical, "int64"):
        return False
    if pa.types.is_timestamp(column):
        return logical in ("timestamp_micros", "long") and long_unit == "us"
    return column in _PLAIN.get(logical, ())


def _by_ordinal(leaf: Leaf | None, ordinals: Positions) -> Iterator[tuple[Leaf, int]]:
    if leaf is None:
        return
    mine = ordinals[leaf.rows]
    for ordinal in np.unique(mine).tolist():
        some = mine == ordinal
        yield Leaf(leaf.rows[some], leaf.values[some], None if leaf.lengths is None else leaf.lengths[some]), ordinal


def _infos(data: Encoded, leaves: Mapping[Path, Leaf], rows: Positions) -> list[str | None]:
    """Returns the `additionalInfo` ("precision,scale") of some records' value types."""
    leaf = leaves.get(_INFO)
    if leaf is None:
        return [None] * len(rows)
    at = _dense(leaf.rows, np.arange(len(leaf.rows)), len(data), -1)[rows]
    found: list[str | None] = data.texts(leaf, pa.string()).take(pa.array(at, mask=at < 0)).to_pylist()
    return found


def _column(leaf: Leaf | None, count: int, absent: int | bool) -> NDArray[Any]:
    return np.full(count, absent) if leaf is None else _dense(leaf.rows, leaf.values, count, absent)


def _dense(rows: Positions, values: NDArray[Any], count: int, absent: int | bool) -> NDArray[Any]:
    """Returns one value for each of `count` records: `values` for the records `rows`, else `absent`."""
    found = np.full(count, absent)
    found[rows] = values
    return found


@lru_cache(maxsize=16)
def _walk_of(schema: str) -> ColumnWalk | None:
    """Returns the walk over data of a schema; None for a schema that MetadataCodec refuses."""
    try:
        return ColumnWalk(json.loads(schema), _REQUESTED)
    except (ValueError, RecursionError, FormatError):
        return None


RUN: Final = 1 << 15
"""The records that are decoded in one step: some 6 MB, and five times that during the step."""
Partitions = Callable[[], Iterable[str]]
"""Returns all partition paths of the table: keys have only the hash of a partition."""


class ColumnTypes:
    """The Arrow types of a table's columns, by dotted name, as Spark reports them."""

    def __init__(self, schema: AvroSchema) -> None:
        self._record = resolve(schema, path="table schema")
        self._arrow = spark_schema(arrow_schema(schema))

    def of(self, column: str) -> tuple[pa.DataType, str]:
        """Returns a column's type (null type if unknown or nested) and the unit of its plain longs (`ms` or `us`)."""
        if column in META_FIELDS or column == OPERATION:
            return pa.string(), "us"
        steps = column.split(".")
        avro = _nested(self._record, steps)
        if avro is None or avro.fields or avro.item is not None:
            return pa.null(), "us"
        arrow_type = self._arrow.field(steps[0]).type
        for step in steps[1:]:
            arrow_type = arrow_type.field(step).type
        return arrow_type, "ms" if avro.logical.endswith("timestamp-millis") else "us"


def _nested(record: AvroType, steps: Sequence[str]) -> AvroType | None:
    found: AvroType | None = record
    for step in steps:
        fields = () if found is None else found.fields
        found = next((child.type for child in fields if child.name == step), None)
    return found


def column_stats(
    index: MetadataPartition[ColumnStats],
    columns: Sequence[str],
    types: ColumnTypes,
    known: Partitions,
    partitions: Iterable[str] | None,
    files: Mapping[str, Iterable[str]] | None,
) -> dict[str, pa.Table]:
    """Returns MetadataTable.column_stats. Memory: the result, RUN records at a time, and all records of log files."""
    by_id = {column_id(column): (column, StatColumns(*types.of(column))) for column in columns}
    found: dict[str, list[pa.Table]] = {column: [] for column in columns}
    if files is not None:
        places = {
            column_stats_key(column, path, name): path
            for column in columns
            for path, names in files.items()
            for name in names
        }
        keys = {partition_id(path): path for path in files}
        answers = index.of_keys(places, partial(_stat_tables, of_keys, by_id))
    else:
        keys = {partition_id(path): path for path in (known() if partitions is None else partitions)}
        prefixes = [start + key for start in by_id for key in keys] if partitions is not None else list(by_id)
        query = partial(_stat_tables, of_prefixes, by_id)
        answers = index.of_all_groups(prefixes, query) if prefixes else iter(())
    for answer in answers:
        for column, table in answer:
            found[column].append(table)
    return {column: _placed(found[column], keys, stats) for column, stats in by_id.values()}


def _stat_tables(
    query: Callable[[Sequence[bytes]], Query],
    columns: Mapping[str, tuple[str, StatColumns]],
    group: GroupReader[ColumnStats],
    requested: list[str],
) -> list[tuple[str, pa.Table]]:
    """Returns a file group's records of the requested keys or prefixes, each table with its column."""
    found = []
    split = group.split(query(sorted(key.encode("utf-8") for key in requested)))
    merged: dict[str, list[tuple[str, ColumnStats]]] = defaultdict(list)
    for encoded, stats in split.merged.items():
        key = encoded.decode("utf-8")
        merged[key[:ID_LENGTH]].append((key, stats))
    for start, records in merged.items():
        column, how = columns[start]
        found.append((column, how.of_records(records)))
    if split.base is not None:
        for first, cells in groupby(split.cells, key=lambda cell: cell[0][:ID_LENGTH]):
            column, how = columns[first.decode("ascii")]
            while run := list(islice(cells, RUN)):
                keys, values = zip(*run, strict=True)
                with rebuild_as_remedy():
                    table = how.of_cells(split.base.schema, keys, values, path=split.base.path)
                found.append((column, table))
    return found


def _placed(tables: list[pa.Table], paths: Mapping[str, str], how: StatColumns) -> pa.Table:
    """Returns the rows of all file groups, sorted, with partitions (`paths` by id), less rows of other partitions."""
    whole = pa.concat_tables([*tables, how.of_records([])])
    place = pc.index_in(
        pc.utf8_slice_codeunits(whole["key"], ID_LENGTH, 2 * ID_LENGTH), value_set=pa.array(list(paths), pa.string())
    )
    whole = whole.set_column(0, "partition", pa.array(list(paths.values()), pa.string()).take(place)).filter(
        pc.is_valid(place)
    )
    check_file_names(whole["file"].to_pylist(), source=ROOT)
    return whole.sort_by([("partition", "ascending"), ("file", "ascending")]).combine_chunks()


def partition_stats(
    index: MetadataPartition[ColumnStats], columns: Sequence[str], types: ColumnTypes
) -> dict[str, pa.Table]:
    tables = {}
    for column in columns:
        arrow_type, unit = types.of(column)
        rows = [(stats.name, stats) for _, stats in live(index.with_prefixes([column_id(column)]))]
        tables[column] = statistics_table(rows, arrow_type, long_unit=unit, with_files=False)
    return tables


def expression_stats(index: MetadataPartition[ColumnStats], known: Partitions) -> pa.Table:
    by_id = {partition_id(path): path for path in known()}
    skipped = partition_id(PARTITION_STATISTICS)
    rows = []
    for key, stats in live(index.all()):
        place = key[ID_LENGTH : 2 * ID_LENGTH]
        if place in by_id and place != skipped:
            check_file_name(stats.name, source=by_id[place])
            rows.append((by_id[place], stats))
    return statistics_table(sorted(rows, key=lambda row: (row[0], row[1].name)), None)
