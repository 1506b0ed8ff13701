"""Random Arrow tables and ways to write them, from a seed: all types of Hudi's tables, nested, null and empty."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Maker = Callable[[Random, int], Any]
_START = datetime(2026, 1, 1, tzinfo=timezone.utc)
FLAT: list[tuple[pa.DataType, Maker]] = [
    (pa.bool_(), lambda random, _: random.random() < 0.5),
    (pa.int32(), lambda random, _: random.randrange(-(2**31), 2**31)),
    (pa.int64(), lambda random, place: place * 7 + random.randrange(3)),
    (pa.int64(), lambda random, _: random.getrandbits(63) - 2**62),
    (pa.float32(), lambda random, _: random.choice([0.0, -0.0, float("inf"), 1.5, random.random()])),
    (pa.float64(), lambda random, _: random.gauss(0, 1)),
    (pa.string(), lambda random, place: f"key-{place:09}"),
    (pa.string(), lambda random, _: random.choice(["", "a", "é€😀", "x" * 300])),
    (pa.string(), lambda random, _: random.randbytes(random.randrange(30)).hex()),
    (pa.binary(), lambda random, _: random.randbytes(random.randrange(20))),
    (pa.binary(5), lambda random, _: random.randbytes(5)),
    (pa.decimal128(20, 4), lambda random, _: Decimal(random.randrange(-(10**18), 10**18)).scaleb(-4)),
    (pa.date32(), lambda random, _: date(1970, 1, 1) + timedelta(random.randrange(-9000, 30000))),
    (pa.timestamp("us", tz="UTC"), lambda random, place: _START + timedelta(microseconds=place * 13)),
    (pa.timestamp("ms"), lambda random, place: datetime(2026, 1, 1) + timedelta(milliseconds=random.randrange(10**9))),
]


def _kind(random: Random, depth: int = 0) -> tuple[pa.DataType, Maker]:
    """A type and what makes its values."""
    if depth > 2 or random.random() < 0.75:
        return random.choice(FLAT)
    inner, make = _kind(random, depth + 1)
    shape = random.randrange(3)
    if shape == 0:
        return pa.list_(inner), lambda r, place: [_or_null(make, r, place) for _ in range(r.randrange(4))]
    if shape == 1:
        return (
            pa.map_(pa.string(), inner),
            lambda r, place: [(str(number), _or_null(make, r, place)) for number in range(r.randrange(3))],
        )
    other, other_make = _kind(random, depth + 1)
    return (
        pa.struct([("a", inner), ("b", other)]),
        lambda r, place: {"a": _or_null(make, r, place), "b": _or_null(other_make, r, place)},
    )


def _or_null(make: Maker, random: Random, place: int) -> Any:
    return None if random.random() < 0.1 else make(random, place)


def random_table(random: Random, rows: int | None = None) -> pa.Table:
    """One to eight columns, none to some hundred rows."""
    if rows is None:
        rows = random.choice([0, 1, 2, random.randrange(30), random.randrange(400)])
    columns = {}
    for number in range(random.randrange(1, 9)):
        kind, make = _kind(random)
        nulls = random.choice([0.0, 0.0, 0.2, 1.0])
        values = [None if random.random() < nulls else make(random, place) for place in range(rows)]
        columns[f"c{number}"] = pa.array(values, kind)
    return pa.table(columns)


def random_options(random: Random, table: pa.Table) -> dict[str, Any]:
    """Options of a ParquetWriter: pages, encodings, statistics, checksums."""
    flat = {field.name: field.type for field in table.schema if not pa.types.is_nested(field.type)}
    encodings = {}
    for name, kind in flat.items():
        if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            encodings[name] = random.choice(["PLAIN", "DELTA_BINARY_PACKED"])
        elif pa.types.is_string(kind) or kind == pa.binary():
            encodings[name] = random.choice(["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
        elif pa.types.is_boolean(kind):
            encodings[name] = random.choice(["PLAIN", "RLE"])
    plain = random.random() < 0.6
    return {
        "use_dictionary": not plain,
        "column_encoding": encodings if plain and encodings else None,
        "data_page_version": random.choice(["1.0", "2.0"]),
        "data_page_size": random.choice([64, 1000, 1 << 20]),
        "write_batch_size": random.choice([7, 1024]),
        "write_statistics": random.random() < 0.8,
        "write_page_index": random.random() < 0.5,
        "write_page_checksum": random.random() < 0.7,
        "store_schema": random.random() < 0.5,
    }


def write(table: pa.Table, file: Any, random: Random, **options: Any) -> pq.ParquetWriter:
    """Writes the rows in some row groups, whole or buffered; the caller closes the writer."""
    writer = pq.ParquetWriter(file, table.schema, **options)
    start = 0
    while start < table.num_rows:
        rows = random.randrange(1, table.num_rows + 1)
        writer.write_table(table.slice(start, rows), row_group_size=max(1, rows // random.randrange(1, 4)))
        start += rows
    return writer


def random_file(random: Random, table: pa.Table, **options: Any) -> bytes:
    """The table as a file."""
    file = io.BytesIO()
    chosen = {**random_options(random, table), **options}
    write(table, file, random, **chosen).close()
    return file.getvalue()
