"""What each column of a table takes with each encoding that it may have, alone in a file, by the default codec."""

from __future__ import annotations

import statistics
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.parquet_files import DELTA as WITH_DELTA
from benchmarks.parquet_files import (
    Rows,
    check,
    default_codec,
    default_encodings,
    read_cost,
    write_by_arrow,
    write_cost,
)
from hudi_core.codec.parquet import writer

PLAIN, DICTIONARY, DELTA = "PLAIN", "DICTIONARY", "DELTA_BINARY_PACKED"
DELTA_TEXT, DELTA_LENGTHS = "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"
_MATTERS: Final = 0.001
"""A larger column is named where it makes the file larger by more than this share."""


def columns(rows: Rows, folder: Path, runs: int) -> dict[str, Any]:
    """The figures of each column, and what the choice that files get takes beside the smallest of each column."""
    chosen = chosen_encodings(rows.groups[0])
    found = {name: _column(rows.column(name), folder, runs) for name in chosen}
    return summary(chosen, found)


def summary(chosen: dict[str, str], found: dict[str, dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Totals over the columns, and those whose choice is larger than another encoding."""
    smallest = {name: min(ways, key=lambda way: ways[way]["mb"]) for name, ways in found.items()}
    as_chosen = sum(ways[chosen[name]]["mb"] for name, ways in found.items())
    larger = {
        name: f"{chosen[name]}, {ways[chosen[name]]['mb']} MB; {smallest[name]}, {ways[smallest[name]]['mb']} MB"
        for name, ways in found.items()
        if ways[chosen[name]]["mb"] - ways[smallest[name]]["mb"] > _MATTERS * as_chosen
    }
    return {
        "mb_as_chosen": round(as_chosen, 3),
        "mb_of_smallest": round(sum(ways[smallest[name]]["mb"] for name, ways in found.items()), 3),
        "larger_than_smallest": larger,
        "each": {name: {"chosen": chosen[name], **ways} for name, ways in found.items()},
    }


def chosen_encodings(first: pa.Table) -> dict[str, str]:
    """What a file whose first row group is `first` gets for each column."""
    dictionaries, others = writer.chosen_encodings(first, delta=default_encodings() == WITH_DELTA)
    return {name: DICTIONARY if name in dictionaries else others.get(name, PLAIN) for name in first.schema.names}


def possible_encodings(kind: pa.DataType) -> tuple[str, ...]:
    """Those that Arrow writes for a type and that Spark 3.5's vectorised reader reads."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return PLAIN, DICTIONARY, DELTA_TEXT, DELTA_LENGTHS
    if pa.types.is_signed_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return PLAIN, DICTIONARY, DELTA
    return PLAIN, DICTIONARY


def _column(rows: Rows, folder: Path, runs: int) -> dict[str, dict[str, float]]:
    """CPU seconds and MB of a table of one column, by encoding."""
    name, path, codec = rows.table.schema.names[0], folder / "column.parquet", default_codec()
    found = {}
    for encoding in possible_encodings(rows.table.schema.types[0]):
        dictionaries = [name] if encoding == DICTIONARY else []
        others = {name: encoding} if encoding not in (PLAIN, DICTIONARY) else {}
        write = partial(write_by_arrow, groups=rows.groups, codec=codec, encodings=(dictionaries, others))
        writes, reads = [], []
        for _ in range(runs):
            writes.append(write_cost(path, write))
            check(path, rows, codec)
            reads.append(read_cost(path))
        found[encoding] = {
            "write_cpu": round(statistics.median(writes), 4),
            "mb": _stored_megabytes(path),
            "read_cpu": round(statistics.median(reads), 4),
        }
    return found


def _stored_megabytes(path: Path) -> float:
    """The column's chunks, without the footer."""
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return round(sum(int(group.column(0).total_compressed_size) for group in groups) / 1e6, 4)
