from __future__ import annotations

import hashlib
import io
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.dictionaries import dictionary_columns
from hudi_core.codec.parquet.file import BaseFileWriter

ROWS = 12_000
RANDOM = random.Random(3)
TABLE = pa.table(
    {
        "_hoodie_commit_time": ["20260101000000000"] * ROWS,
        "_hoodie_record_key": [f"key-{index:012d}" for index in range(ROWS)],
        "noise": pa.array([RANDOM.getrandbits(62) for _ in range(ROWS)]),
        "few": [f"name-{index % 20}" for index in range(ROWS)],
        "price": pa.array([Decimal(index % 100).scaleb(-2) for index in range(ROWS)], pa.decimal128(12, 2)),
        "hash": [hashlib.sha1(str(index).encode()).hexdigest() for index in range(ROWS)],
        "words": [
            " ".join(RANDOM.choices(["compaction", "clustering", "timeline", "instant", "marker"], k=6))
            for _ in range(ROWS)
        ],
        "flag": [RANDOM.random() < 0.5 for _ in range(ROWS)],
        "nothing": pa.nulls(ROWS, pa.int32()),
        "tags": [["a", None], None, []] * (ROWS // 3),
    }
)
FEW = ["_hoodie_commit_time", "few", "price", "tags.list.element"]


def written(codec: str, level: int | None = None) -> bytes:
    file = io.BytesIO()
    writer = BaseFileWriter(file, TABLE.schema, path="f.parquet", codec=codec, level=level)
    writer.write(TABLE)
    writer.close({})
    return file.getvalue()


def test_a_dictionary_goes_to_columns_of_few_values() -> None:
    assert dictionary_columns(TABLE) == FEW
    group = pq.ParquetFile(io.BytesIO(written("snappy"))).metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    assert [column.path_in_schema for column in columns if "RLE_DICTIONARY" in column.encodings] == FEW


@pytest.mark.parametrize("codec", ["GZIP", "SNAPPY", "ZSTD", "UNCOMPRESSED"])
def test_every_column_has_the_codec_of_the_file(codec: str) -> None:
    group = pq.ParquetFile(io.BytesIO(written(codec))).metadata.row_group(0)
    assert {group.column(index).compression for index in range(group.num_columns)} == {codec}


def test_gzip_is_written_at_level_6_unless_told_otherwise() -> None:
    assert written("GZIP") == written("GZIP", level=6)
    assert len(written("GZIP")) < len(written("GZIP", level=1))
