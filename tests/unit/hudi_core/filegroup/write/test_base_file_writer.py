from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.bloom import DYNAMIC, BloomFilter
from hudi_core.config.write_config import WriteConfig
from hudi_core.filegroup.write.base_file_writer import BaseFileHandle
from tests.support.memory_storage import MemoryStorage

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
PATH = "day/f-0_0-1-2_001.parquet"


def handle(storage: MemoryStorage) -> BaseFileHandle:
    return BaseFileHandle(storage, PATH, SCHEMA, WriteConfig.of({}), codec="GZIP")


def rows(schema: pa.Schema, *keys: str) -> pa.RecordBatch:
    made = [{"_hoodie_record_key": key, "_hoodie_partition_path": "day", "id": at} for at, key in enumerate(keys)]
    return pa.RecordBatch.from_pylist(made, schema=schema)


def test_a_file_records_its_name_and_the_range_of_its_keys() -> None:
    storage = MemoryStorage()
    with handle(storage) as file:
        for keys in (["b", "d"], [], ["a", "ä"]):
            file.write(rows(file.rows_schema, *keys))
        size = file.close()
    data = storage.read(PATH)
    assert (len(data), file.rows) == (size, 4)
    table = pq.read_table(io.BytesIO(data))
    assert set(table["_hoodie_file_name"].to_pylist()) == {"f-0_0-1-2_001.parquet"}
    footer = pq.read_metadata(io.BytesIO(data)).metadata
    assert (footer[b"hoodie_min_record_key"], footer[b"hoodie_max_record_key"].decode()) == (b"a", "ä")
    assert footer[b"hoodie_bloom_filter_type_code"] == DYNAMIC.encode()
    bloom = BloomFilter.parse(footer[b"org.apache.hudi.bloomfilter"], DYNAMIC, path="x")
    assert [bloom.might_contain(key.encode()) for key in ("a", "b", "d", "ä", "c")] == [True] * 4 + [False]


def test_a_file_without_rows_has_no_range_of_keys() -> None:
    storage = MemoryStorage()
    with handle(storage) as file:
        file.close()
    footer = pq.read_metadata(io.BytesIO(storage.read(PATH))).metadata
    assert b"hoodie_min_record_key" not in footer
    assert b"parquet.avro.schema" in footer


def test_an_error_removes_what_was_written() -> None:
    storage = MemoryStorage()
    file = handle(storage)
    file.write(rows(file.rows_schema, "a"))
    with pytest.raises(ValueError, match="stop"), file:
        raise ValueError("stop")
    assert not storage.exists(PATH)
