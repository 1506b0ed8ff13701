"""Which columns get delta encodings, and that they pay."""

from __future__ import annotations

import io
from datetime import date, datetime, timedelta
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.writer import (
    DELTA_INTEGERS,
    DELTA_LENGTHS,
    DELTA_STRINGS,
    BaseFileWriter,
    ParquetStyle,
    chosen_encodings,
)

ROWS = 20_000
RANDOM = Random(5)
TABLE = pa.table(
    {
        "_hoodie_commit_seqno": [f"20260101000000000_3_{index}" for index in range(ROWS)],
        "_hoodie_record_key": [f"key-{index:012}" for index in range(ROWS)],
        "uuid": [RANDOM.randbytes(16).hex() for _ in range(ROWS)],
        "id": pa.array(range(10**12, 10**12 + ROWS), pa.int64()),
        "small": pa.array([RANDOM.randrange(10**6) for _ in range(ROWS)], pa.int64()),
        "noise": pa.array([RANDOM.getrandbits(62) for _ in range(ROWS)], pa.int64()),
        "wide": pa.array([RANDOM.randrange(-(2**31), 2**31) for _ in range(ROWS)], pa.int32()),
        "at": pa.array(
            [
                datetime(2026, 1, 1) + timedelta(seconds=index, microseconds=RANDOM.randrange(10**6))
                for index in range(ROWS)
            ],
            pa.timestamp("us"),
        ),
        "day": pa.array([date(2000, 1, 1) + timedelta(index) for index in range(ROWS)], pa.date32()),
        "few": ["a", "b"] * (ROWS // 2),
        "grouped": pa.array([index // 4 for index in range(ROWS)], pa.int32()),
        "constant": pa.array([7] * ROWS, pa.int32()),
        "codes": pa.array([RANDOM.randrange(50) for _ in range(ROWS)], pa.int32()),
        "nothing": pa.nulls(ROWS, pa.int64()),
        "holes": pa.array([None if index % 3 else index for index in range(ROWS)], pa.int64()),
        "one.two": pa.array(range(ROWS), pa.int64()),
        "list": pa.array([[index] for index in range(ROWS)], pa.list_(pa.int64())),
        "float": [index / 7 for index in range(ROWS)],
        "text": [" ".join(RANDOM.choices(["alpha", "beta", "gamma", "delta"], k=12)) for _ in range(ROWS)],
    }
)
DELTAS = {
    "_hoodie_commit_seqno": DELTA_STRINGS,
    "_hoodie_record_key": DELTA_STRINGS,
    "id": DELTA_INTEGERS,
    "small": DELTA_INTEGERS,
    "at": DELTA_INTEGERS,
    "day": DELTA_INTEGERS,
    "holes": DELTA_INTEGERS,
    "grouped": DELTA_INTEGERS,
    "uuid": DELTA_LENGTHS,
    "text": DELTA_LENGTHS,
}


def file_of(table: pa.Table, **style: object) -> bytes:
    file = io.BytesIO()
    writer = BaseFileWriter(file, table.schema, path="f.parquet", style=ParquetStyle(**style))  # type: ignore[arg-type]
    writer.write(table)
    writer.close({})
    return file.getvalue()


def test_deltas_go_to_columns_whose_neighbours_are_alike() -> None:
    dictionaries, encodings = chosen_encodings(TABLE)
    assert encodings == DELTAS
    assert dictionaries == ["few", "constant", "codes", "list.list.element"]
    group = pq.ParquetFile(io.BytesIO(file_of(TABLE))).metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    written = {
        column.path_in_schema: encoding for column in columns for encoding in column.encodings if "DELTA" in encoding
    }
    assert written == DELTAS


@pytest.mark.parametrize("codec", ["GZIP", "ZSTD", "SNAPPY", "UNCOMPRESSED"])
@pytest.mark.parametrize("column", [name for name in DELTAS if name not in ("small", "uuid")])
def test_each_makes_the_file_smaller(codec: str, column: str) -> None:
    one = TABLE.select([column])
    assert len(file_of(one, codec=codec)) < len(file_of(one, codec=codec, delta=False))


def test_rows_come_back() -> None:
    with ParquetBaseFile(io.BytesIO(file_of(TABLE)), "f.parquet") as file:
        assert pa.Table.from_batches(file.batches()).equals(TABLE)


@pytest.mark.parametrize("rows", [0, 1, 2, 33])
def test_small_tables(rows: int) -> None:
    table = TABLE.slice(5, rows)
    with ParquetBaseFile(io.BytesIO(file_of(table)), "f.parquet") as file:
        assert pa.Table.from_batches(file.batches(), table.schema).equals(table)


def test_extreme_numbers_come_back() -> None:
    """Differences beyond 64 bits wrap around in the encoding."""
    table = pa.table({"a": pa.array([-(2**63), 2**63 - 1] * 500, pa.int64()), "b": pa.array(range(1000), pa.int64())})
    assert chosen_encodings(table) == (["a"], {"b": DELTA_INTEGERS})
    with ParquetBaseFile(io.BytesIO(file_of(table)), "f.parquet") as file:
        assert pa.Table.from_batches(file.batches()).equals(table)


def test_no_delta_where_readers_are_old() -> None:
    group = pq.ParquetFile(io.BytesIO(file_of(TABLE, delta=False))).metadata.row_group(0)
    assert not [e for index in range(group.num_columns) for e in group.column(index).encodings if "DELTA" in e]
