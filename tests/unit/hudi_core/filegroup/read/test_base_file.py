"""Base files of every format; what is in the Parquet files of real tables is in tests/golden."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.arrow import arrow_schema, spark_schema
from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.errors import CorruptFileError, FormatError, StorageNotFoundError, UnsupportedError
from hudi_core.filegroup.read.base_file import open_base_file, open_replaced_file, read_base_file
from hudi_core.view.file_group import DataFile
from tests.support.log_files import FULL
from tests.support.memory_storage import MemoryStorage

STAMP = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.timezone.utc)
NESTED = pa.struct([("at", pa.timestamp("ns")), ("n", pa.int32())])
STORED = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("ns")),
        ("ats", pa.list_(pa.timestamp("ns"))),
        ("nested", NESTED),
        ("by_name", pa.map_(pa.string(), NESTED)),
        ("raw", pa.binary()),
    ]
)
NAIVE = STAMP.replace(tzinfo=None)
INNER = {"at": NAIVE, "n": 1}
ROW: dict[str, Any] = {
    "id": "a",
    "n": 7,
    "price": Decimal("1.25"),
    "day": dt.date(2026, 1, 2),
    "at": NAIVE,
    "ats": [NAIVE, None],
    "nested": INNER,
    "by_name": [("k", INNER)],
    "raw": b"\x00\xff",
}


def put(storage: MemoryStorage, name: str, content: bytes) -> DataFile:
    """Writes a base file into partition p."""
    storage.write(f"p/{name}", content)
    return DataFile("p", name, len(content))


def orc_file(storage: MemoryStorage, rows: list[dict[str, Any]], schema: pa.Schema = STORED) -> DataFile:
    """An ORC base file."""
    sink = pa.BufferOutputStream()
    orc.write_table(pa.Table.from_pylist(rows, schema=schema), sink)
    return put(storage, "f-0_0-1-2_001.orc", sink.getvalue().to_pybytes())


def test_orc_rows_have_the_types_of_the_table() -> None:
    storage = MemoryStorage()
    file = orc_file(storage, [ROW, dict.fromkeys(ROW)])
    micros = pa.timestamp("us", tz="UTC")
    inner = pa.struct([("at", micros), ("n", pa.int64())])
    requested = pa.schema(
        [
            ("n", pa.int64()),
            ("id", pa.string()),
            ("price", pa.decimal128(10, 2)),
            ("day", pa.date32()),
            ("at", micros),
            ("ats", pa.list_(pa.field("element", micros))),
            ("nested", inner),
            ("by_name", pa.map_(pa.string(), inner)),
            ("raw", pa.binary()),
            ("added", pa.float64()),
        ]
    )
    (batch,) = read_base_file(storage, file, requested, batch_rows=10)
    assert batch.schema == requested
    shifted = {"at": STAMP, "n": 1}
    first = {**ROW, "at": STAMP, "ats": [STAMP, None], "nested": shifted, "by_name": [("k", shifted)], "added": None}
    assert batch.to_pylist() == [{name: first[name] for name in requested.names}, dict.fromkeys(requested.names)]


def test_orc_without_a_requested_column_keeps_its_rows() -> None:
    storage = MemoryStorage()
    (batch,) = read_base_file(storage, orc_file(storage, [ROW] * 3), pa.schema([("added", pa.string())]), batch_rows=10)
    assert batch.to_pylist() == [{"added": None}] * 3


def test_orc_stripes_are_read_one_by_one() -> None:
    storage = MemoryStorage()
    sink = pa.BufferOutputStream()
    table = pa.table({"id": [f"{index:060d}" for index in range(20_000)]})
    orc.write_table(table, sink, stripe_size=64 << 10, batch_size=1024)
    file = put(storage, "f-0_0-1-2_001.orc", sink.getvalue().to_pybytes())
    batches = list(read_base_file(storage, file, table.schema, batch_rows=10))
    assert len(batches) > 1
    assert pa.Table.from_batches(batches) == table


@pytest.mark.parametrize("damage", [b"", b"x" * 100, "cut"])
def test_broken_orc_is_corrupt_and_named(damage: bytes | str) -> None:
    storage = MemoryStorage()
    whole = storage.read(orc_file(storage, [ROW]).path)
    file = put(storage, "f-0_0-1-2_001.orc", whole[: len(whole) // 2] if isinstance(damage, str) else damage)
    with pytest.raises(CorruptFileError, match=r"f-0_0-1-2_001\.orc"):
        list(read_base_file(storage, file, STORED, batch_rows=10))


def test_hfile_rows() -> None:
    storage = MemoryStorage()
    codec = DatumCodec(FULL)
    rows = [
        {"_hoodie_record_key": f"k{index:03d}", "id": f"k{index:03d}", "ts": index, "text": None}
        for index in range(100)
    ]
    cells = [(str(row["id"]).encode(), codec.encode(row)) for row in rows]
    file = put(storage, "f-0_0-1-2_001.hfile", write_hfile(cells, schema=json.dumps(FULL), block_size=512))
    requested = pa.schema([("ts", pa.float64()), ("_hoodie_record_key", pa.string())])
    batches = list(read_base_file(storage, file, requested, batch_rows=30))
    assert [batch.num_rows for batch in batches] == [30, 30, 30, 10]
    assert [row for batch in batches for row in batch.to_pylist()] == [
        {"ts": row["ts"], "_hoodie_record_key": row["id"]} for row in rows
    ]


def test_hfile_without_schema_is_corrupt() -> None:
    storage = MemoryStorage()
    content = write_hfile([(b"a", b"b")], schema="SCHEMA").replace(b"schema", b"schemb")
    file = put(storage, "f-0_0-1-2_001.hfile", content)
    with pytest.raises(FormatError, match=r"f-0_0-1-2_001\.hfile"):
        list(read_base_file(storage, file, arrow_schema(FULL), batch_rows=10))


@pytest.mark.parametrize("extension", ["orc", "hfile"])
def test_services_refuse_what_they_cannot_write(extension: str) -> None:
    path = f"p/f-0_0-1-2_001.{extension}"
    with pytest.raises(UnsupportedError, match=extension), open_base_file(MemoryStorage(), path):
        pass
    with pytest.raises(StorageNotFoundError):
        list(read_base_file(MemoryStorage(), DataFile("p", f"f-0_0-1-2_001.{extension}", 10_000), STORED, batch_rows=1))


def test_files_of_a_bootstrap_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="bootstrap"):
        list(
            read_base_file(MemoryStorage(), DataFile("p", "f-0_0-1-2_00000000000001.parquet", 1), STORED, batch_rows=1)
        )


def test_files_of_a_bootstrap_are_not_replaced() -> None:
    """A bootstrap by full records writes whole files, which are named after the next instant."""
    refused, whole = (f"p/f-0_0-1-2_0000000000000{number}.parquet" for number in (1, 2))
    with pytest.raises(UnsupportedError, match="bootstrap") as caught, open_replaced_file(MemoryStorage(), refused):
        pass
    assert caught.value.path == refused
    with pytest.raises(StorageNotFoundError), open_replaced_file(MemoryStorage(), whole):
        pass


def test_every_type_of_a_parquet_file_is_read_as_the_table_has_it() -> None:
    kinds: list[tuple[str, Any, pa.DataType, Any]] = [
        ("boolean", "boolean", pa.bool_(), True),
        ("bytes", "bytes", pa.binary(), b"\x00"),
        ("date", {"type": "int", "logicalType": "date"}, pa.date32(), dt.date(1, 1, 1)),
        ("time_ms", {"type": "int", "logicalType": "time-millis"}, pa.time32("ms"), dt.time(23, 59, 59, 999000)),
        ("time_us", {"type": "long", "logicalType": "time-micros"}, pa.time64("us"), dt.time(23, 59, 59, 999999)),
        (
            "at_ms",
            {"type": "long", "logicalType": "timestamp-millis"},
            pa.timestamp("ms", tz="UTC"),
            STAMP.replace(microsecond=678000),
        ),
        ("at_us", {"type": "long", "logicalType": "timestamp-micros"}, pa.timestamp("us", tz="UTC"), STAMP),
        (
            "local_ms",
            {"type": "long", "logicalType": "local-timestamp-millis"},
            pa.timestamp("ms"),
            NAIVE.replace(microsecond=678000),
        ),
        ("local_us", {"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us"), NAIVE),
        (
            "decimal",
            {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10},
            pa.decimal128(38, 10),
            Decimal("-1.5000000000"),
        ),
        ("fixed", {"type": "fixed", "name": "f", "size": 3}, pa.binary(3), b"abc"),
        ("uuid", {"type": "string", "logicalType": "uuid"}, pa.string(), "6f0c1d0e-0000-0000-0000-000000000000"),
        ("enum", {"type": "enum", "name": "e", "symbols": ["A", "B"]}, pa.string(), "B"),
    ]
    avro = {
        "type": "record",
        "name": "r",
        "fields": [{"name": name, "type": ["null", kind], "default": None} for name, kind, _, _ in kinds],
    }
    table = pa.table({name: pa.array([value, None], kind) for name, _, kind, value in kinds})
    sink = io.BytesIO()
    pq.write_table(table, sink, store_schema=False)
    storage = MemoryStorage()
    schema = spark_schema(arrow_schema(avro))
    (batch,) = read_base_file(storage, put(storage, "f-0_0-1-2_001.parquet", sink.getvalue()), schema, batch_rows=10)
    assert batch.schema == schema
    assert batch.to_pylist() == [{name: value for name, _, _, value in kinds}, dict.fromkeys(table.column_names)]
