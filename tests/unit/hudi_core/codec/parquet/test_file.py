from __future__ import annotations

import io
import os
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.arrow_conform import conform_batch
from hudi_core.codec.avro.schema import parse_schema
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from hudi_core.errors import CorruptFileError, StorageError, UnsupportedError
from tests.support.golden_data import GoldenCase

ROWS = 3000
TABLE = pa.table(
    {
        "_hoodie_commit_time": ["20260101000000000"] * ROWS,
        "_hoodie_record_key": [f"key-{index:012d}" for index in range(ROWS)],
        "noise": pa.array([int.from_bytes(os.urandom(7), "big") for _ in range(ROWS)]),
        "few": [f"name-{index % 20}" for index in range(ROWS)],
        "price": pa.array([Decimal(index % 100).scaleb(-2) for index in range(ROWS)], pa.decimal128(12, 2)),
        "flag": [index % 2 == 0 for index in range(ROWS)],
        "nothing": pa.nulls(ROWS, pa.int32()),
        "tags": [["a", None], None, []] * (ROWS // 3),
        "at": pa.array(range(ROWS), pa.timestamp("us", tz="UTC")),
    }
)


def written(table: pa.Table = TABLE, footer: dict[str, str] | None = None, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    writer = BaseFileWriter(file, table.schema, path="f.parquet", style=ParquetStyle(**options))
    for batch in table.to_batches(max_chunksize=700):
        writer.write(batch)
    writer.close(footer or {})
    assert writer.num_rows == table.num_rows
    return file


def test_rows_and_footer_come_back() -> None:
    with ParquetBaseFile(written(footer={"hoodie_min_record_key": "kéy"}), "f.parquet") as file:
        assert file.footer == {"hoodie_min_record_key": "kéy"}
        assert (file.num_rows, file.compression) == (ROWS, "GZIP")
        assert file.schema.names == TABLE.schema.names
        batches = list(file.batches(batch_rows=1000))
        assert [batch.num_rows for batch in batches] == [1000, 1000, 1000]
        assert pa.Table.from_batches(batches).equals(TABLE)


def test_so_many_rows_as_memory_is_for() -> None:
    """By the values before compression; a text that is repeated takes up its length in memory, not that of its code."""
    wide = pa.table({"text": [os.urandom(500).hex() for _ in range(400)]})
    same = pa.table({"text": ["x" * 1000] * 400})
    for table in (wide, same):
        file = ParquetBaseFile(written(table), "f.parquet")
        assert all(50 <= batch.num_rows <= 100 for batch in list(file.batches(batch_bytes=100_000))[:-1])
        assert [batch.num_rows for batch in file.batches(None, 50)] == [50] * 8
        assert next(file.batches(batch_bytes=1)).num_rows == 1
    assert list(ParquetBaseFile(written(wide.slice(0, 0)), "f.parquet").batches(batch_bytes=1)) == []


def test_columns_of_no_text_count_what_they_take_up_in_memory() -> None:
    """Columns of nulls, and numbers of a dictionary, are next to nothing in the file."""
    table = pa.table(
        {f"c{at}": pa.nulls(20_000, kind) for at, kind in enumerate([pa.string(), pa.int64(), pa.decimal128(38, 2)])}
        | {"same": pa.repeat(pa.scalar(7, pa.int64()), 20_000)}
    )
    for batch in ParquetBaseFile(written(table), "f.parquet").batches(batch_bytes=100_000):
        assert batch.nbytes < 110_000


def test_columns_are_read_by_name_in_file_order() -> None:
    file = ParquetBaseFile(written(), "f.parquet")
    (batch,) = file.batches(columns=["price", "absent", "few"], batch_rows=ROWS)
    assert batch.schema.names == ["few", "price"]
    assert batch.column("price").equals(TABLE.column("price").combine_chunks())


def test_a_file_without_rows_has_a_footer_and_no_codec() -> None:
    file = ParquetBaseFile(written(TABLE.slice(0, 0), footer={"k": "v"}), "f.parquet")
    assert (file.num_rows, file.compression, file.footer) == (0, None, {"k": "v"})
    assert list(file.batches()) == []


@pytest.mark.parametrize("keep", [0, 3, 4, 100, -1, -9])
def test_a_cut_file_is_corrupt(keep: int) -> None:
    data = written().getvalue()
    with pytest.raises(CorruptFileError, match=r"f\.parquet: cannot read") as caught:
        list(ParquetBaseFile(io.BytesIO(data[:keep]), "f.parquet").batches())
    assert caught.value.remedy


def test_damaged_pages_raise_nothing_but_typed_errors() -> None:
    data = bytearray(written(TABLE.slice(0, 500)).getvalue())
    seen: Counter[str] = Counter()
    for offset in range(8, len(data), len(data) // 120):
        broken = bytes(data[:offset]) + bytes([data[offset] ^ 0x55]) + bytes(data[offset + 1 :])
        try:
            list(ParquetBaseFile(io.BytesIO(broken), "f.parquet").batches())
        except (CorruptFileError, UnsupportedError, StorageError) as error:
            seen[type(error).__name__] += 1
    assert seen["CorruptFileError"] > 10


def test_a_footer_that_is_no_text_is_corrupt() -> None:
    file = io.BytesIO()
    with pq.ParquetWriter(file, pa.schema([("a", pa.int64())])) as writer:
        writer.add_key_value_metadata({b"k": b"\xff"})
    with pytest.raises(CorruptFileError, match="not UTF-8"):
        _ = ParquetBaseFile(file, "f.parquet").footer


def test_int96_timestamps_are_read_as_microseconds() -> None:
    file = io.BytesIO()
    pq.write_table(
        pa.table({"t": pa.array([253_402_300_799_000_000], pa.timestamp("us"))}),
        file,
        use_deprecated_int96_timestamps=True,
    )
    (batch,) = ParquetBaseFile(file, "f.parquet").batches()
    assert batch.schema.field("t").type == pa.timestamp("us")
    assert batch.column(0).cast(pa.int64()).to_pylist() == [253_402_300_799_000_000]


@pytest.mark.parametrize(
    "name",
    [
        "types_mor",
        "types_3level_lists_cow",
        "types_timestamp_millis",
        "schema_evolution_cow",
        "mor_compacted",
        "bulk_insert_multi_groups",
    ],
)
def test_golden_base_files_are_read_with_the_types_of_their_avro_schema(golden: Any, name: str) -> None:
    case: GoldenCase = golden("6", name)
    rows: dict[str, dict[str, Any]] = {}
    for path in sorted(case.table.rglob("*.parquet")):
        with path.open("rb") as opened, ParquetBaseFile(opened, path.name) as file:
            assert file.compression == "GZIP"
            table = pa.Table.from_batches(file.batches(), file.schema)
            assert table.num_rows == file.num_rows
            # Spark's row writer (bulk_insert) leaves the Avro schema out.
            text = file.footer.get("parquet.avro.schema")
            schema = arrow_schema(parse_schema(text, path=path.name)) if text else file.schema
            made = pa.Table.from_batches(
                [conform_batch(part, schema, path=path.name) for part in table.to_batches()], schema
            )
            made.validate(full=True)
            assert made.to_pylist() == table.to_pylist()
            assert [file.footer[key] for key in ("hoodie_min_record_key", "hoodie_max_record_key")]
            rows.update({row["_hoodie_commit_seqno"]: row for row in made.to_pylist()})
    if name.startswith(("types", "bulk")):
        check_against_hudi(case, rows)


def check_against_hudi(case: GoldenCase, rows: dict[str, dict[str, Any]]) -> None:
    """Every row that real Hudi reads from a base file is among ours, value by value."""
    compared = 0
    for requested in pq.read_table(case.expected / "snapshot.parquet").to_pylist():
        found = rows.get(requested["_hoodie_commit_seqno"])
        if found is not None and requested["_hoodie_file_name"].endswith(".parquet"):
            assert {key: found[key] for key in requested} == requested
            compared += 1
    assert compared
