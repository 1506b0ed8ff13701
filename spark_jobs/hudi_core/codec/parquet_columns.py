"""What a Parquet writer chooses per column, by a sample of the first row group: dictionary, codec, level."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

CODECS = {"UNCOMPRESSED": "none", "SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "LZ4": "lz4", "LZ4_RAW": "lz4", "BROTLI": "brotli"}
"""Parquet's codec names and Arrow's."""
GZIP_LEVEL = 6
"""Java's default, and the highest used. pyarrow's own is 9, which takes four times as long for 2 % less."""
_LOWER_LEVELS = (1, 3)
_LEVELS = {"gzip": GZIP_LEVEL, "zstd": 1}
_MUCH_BIGGER = 1.03
"""A lower level is taken when the column's sample grows by no more than this against level 6."""
_WORTHLESS = 0.92
"""A column whose sample compresses to more than this share is stored uncompressed."""
_FEW_VALUES = 0.5
"""A dictionary pays when at most this share of the sampled values are distinct."""
_SPREAD_ROWS = 20_000
_RUN_ROWS = 8192
_RUN_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Arguments of ParquetWriter: dotted leaf names with a dictionary, and codec and level for all or by leaf name."""

    dictionary: list[str]
    codecs: str | dict[str, str]
    levels: int | dict[str, int] | None


def choose(table: pa.Table, codec: str, level: int | None) -> ColumnChoice:
    """What to use for files whose rows are like those of `table`, their first row group. `codec` is Arrow's name.

    The first leaf column always has the codec, since it stands for the file's. A given `level` holds for every compressed column; columns
    that compression does not shrink are stored as they are in any case.
    """
    paths = _leaf_paths(table.schema)
    dictionary = _dictionary(table, paths)
    if codec == "none" or not table.num_rows:
        return ColumnChoice(dictionary, codec, None)
    top = level if level is not None else _LEVELS.get(codec)
    rows = max(1, min(_RUN_ROWS, _RUN_BYTES * table.num_rows // max(1, table.nbytes)))
    # A run of rows from the middle: compression lives on what stands close together.
    run = table.slice((table.num_rows - min(rows, table.num_rows)) // 2, rows)
    best = _sizes(run, codec, top, dictionary)
    plain = {path for path in paths[1:] if best[path][0] > _WORTHLESS * best[path][1]}
    codecs: str | dict[str, str] = {path: "none" if path in plain else codec for path in paths} if plain else codec
    if top is None:
        return ColumnChoice(dictionary, codecs, None)
    levels = {path: top for path in paths if path not in plain}
    if level is None and codec == "gzip":
        for lower in reversed(_LOWER_LEVELS):
            sizes = _sizes(run, codec, lower, dictionary)
            levels.update({path: lower for path in levels if sizes[path][0] <= _MUCH_BIGGER * best[path][0]})
    return ColumnChoice(dictionary, codecs, levels)


def _dictionary(table: pa.Table, paths: list[str]) -> list[str]:
    """Leaves that get a dictionary. Those of nested columns always do: Parquet gives it up by itself when it grows beyond a page."""
    flat = {field.name: field.type for field in table.schema if not pa.types.is_nested(field.type)}
    return [path for path in paths if path not in flat or (not pa.types.is_boolean(flat[path]) and _few_values(table.column(path)))]


def _few_values(column: pa.ChunkedArray) -> bool:
    step = max(1, len(column) // _SPREAD_ROWS)
    # Spread over the column, since equal values may stand together.
    sample = column.take(pa.array(range(0, len(column), step), pa.int64())).drop_null()
    return bool(len(sample) and pc.count_distinct(sample).as_py() <= len(sample) * _FEW_VALUES)


def _leaf_paths(schema: pa.Schema) -> list[str]:
    """The dotted names that Parquet gives the leaf columns, which Arrow's per-column options go by."""
    buffer = io.BytesIO()
    pq.write_table(schema.empty_table(), buffer, store_schema=False)
    parquet = pq.ParquetFile(buffer).schema
    return [parquet.column(index).path for index in range(len(parquet))]


def _sizes(run: pa.Table, codec: str, level: Any, dictionary: list[str]) -> dict[str, tuple[int, int]]:
    """Bytes of each leaf column when `run` is written: compressed and not."""
    buffer = io.BytesIO()
    pq.write_table(run, buffer, compression=codec, compression_level=level, use_dictionary=dictionary or False, store_schema=False)
    group = pq.ParquetFile(buffer).metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    return {column.path_in_schema: (column.total_compressed_size, column.total_uncompressed_size) for column in columns}
