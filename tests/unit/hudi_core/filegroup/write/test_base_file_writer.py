from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.bloom import DYNAMIC, BloomFilter
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.splice import RowGroupSource, WholeRowGroup
from hudi_core.config.rows_config import WriteConfig
from hudi_core.filegroup.write.base_file_writer import BaseFileHandle, FileKeys
from tests.support.bloom_filters import might_contain
from tests.support.memory_storage import MemoryStorage

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
PATH = "day/f-0_0-1-2_001.parquet"


def handle(storage: MemoryStorage, *, has_keys: bool = True) -> BaseFileHandle:
    return BaseFileHandle(storage, PATH, SCHEMA, WriteConfig.of({}), codec="GZIP", has_keys=has_keys)


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
    assert [might_contain(bloom, key.encode()) for key in ("a", "b", "d", "ä", "c")] == [True] * 4 + [False]


def test_a_file_without_rows_has_no_range_of_keys() -> None:
    storage = MemoryStorage()
    with handle(storage) as file:
        file.close()
    footer = pq.read_metadata(io.BytesIO(storage.read(PATH))).metadata
    assert b"hoodie_min_record_key" not in footer
    assert b"parquet.avro.schema" in footer


def test_a_file_of_rows_without_keys_tells_nothing_of_them() -> None:
    """As Hudi writes it where hoodie.populate.meta.fields=false: the columns are there, and the file's name is."""
    storage = MemoryStorage()
    with handle(storage, has_keys=False) as file:
        empty = dict.fromkeys(file.rows_schema.names)
        file.write(pa.RecordBatch.from_pylist([{**empty, "id": 1}, {**empty, "id": 2}], schema=file.rows_schema))
        assert file.keys.join(base_of(MemoryStorage(), "a")), "there is nothing to add"
        file.close()
    table = pq.read_table(io.BytesIO(storage.read(PATH)))
    assert table.select(table.column_names[:4]).column(2).null_count == 2
    assert set(table["_hoodie_file_name"].to_pylist()) == {"f-0_0-1-2_001.parquet"}
    footer = pq.read_metadata(io.BytesIO(storage.read(PATH))).metadata
    assert not [key for key in footer if key.startswith((b"hoodie_", b"org.apache.hudi"))]


def base_of(storage: MemoryStorage, *keys: str) -> ParquetBaseFile:
    """A base file with these keys."""
    with handle(storage) as file:
        file.write(rows(file.rows_schema, *keys))
        file.close()
    return ParquetBaseFile(io.BytesIO(storage.read(PATH)), PATH)


def test_the_keys_of_a_base_file_are_taken_from_its_footer() -> None:
    """Filter and range are those of a look at every key."""
    joined, added = FileKeys(WriteConfig.of({})), FileKeys(WriteConfig.of({}))
    assert joined.join(base_of(MemoryStorage(), "b", "ä", "c"))
    for keys in (joined, added):
        keys.add(pa.array([], pa.string()))
        keys.add(pa.array(["a", "d"] if keys is joined else ["b", "ä", "c", "a", "d"]))
    assert joined.footer() == added.footer()
    assert (joined.footer()["hoodie_min_record_key"], joined.footer()["hoodie_max_record_key"]) == ("a", "ä")


def test_the_keys_of_several_files_are_joined() -> None:
    keys = FileKeys(WriteConfig.of({}))
    for some in (["k", "m"], ["a"], ["z", "b"]):
        assert keys.join(base_of(MemoryStorage(), *some))
    footer = keys.footer()
    assert (footer["hoodie_min_record_key"], footer["hoodie_max_record_key"]) == ("a", "z")
    bloom = BloomFilter.parse(footer["org.apache.hudi.bloomfilter"], DYNAMIC, path="x")
    assert [might_contain(bloom, key.encode()) for key in ("a", "b", "k", "m", "z", "c")] == [True] * 5 + [False]


@pytest.mark.parametrize(
    "keys", [(), ("",), ("a", "\uffff"), ("a", "\U0001f600")], ids=["none", "an empty one", "U+FFFF", "U+1F600"]
)
def test_a_range_that_depends_on_the_order_of_strings_is_not_taken(keys: tuple[str, ...]) -> None:
    """Hudi's writers order keys as Java does."""
    fresh = FileKeys(WriteConfig.of({}))
    assert not fresh.join(base_of(MemoryStorage(), *keys))
    assert fresh.footer() == FileKeys(WriteConfig.of({})).footer()


@pytest.mark.parametrize(
    "batches",
    [
        [["\uff21", "\U0001f600"]],
        [["\uff21"], ["\U0001f600"]],
        [["k"], ["\U0001f600", "\uff21"]],
        [["a\U0001f600", "a\uff21", "a\ue000b", "a\ud7ff"], ["a", "a\U0010ffff"]],
    ],
)
def test_the_range_of_keys_is_in_the_order_of_java(batches: list[list[str]]) -> None:
    """Of UTF-16 units, in which a character beyond U+FFFF comes before U+E000: Hudi looks up no key outside."""
    keys = FileKeys(WriteConfig.of({}))
    for batch in batches:
        keys.add(pa.array(["\uffff", *batch, "\U0010ffff"]).slice(1, len(batch)))
    footer = keys.footer()
    in_order = sorted((key for batch in batches for key in batch), key=lambda key: key.encode("utf-16-be"))
    assert (footer["hoodie_min_record_key"], footer["hoodie_max_record_key"]) == (in_order[0], in_order[-1])


def test_a_file_says_that_it_is_in_the_proleptic_calendar() -> None:
    for version in ("3.5.1", None):
        storage = MemoryStorage()
        made = BaseFileHandle(storage, PATH, SCHEMA, WriteConfig.of({}), codec="GZIP", spark_version=version)
        with made as file:
            file.close()
        assert base_footer(storage).get("org.apache.spark.version") == version


def base_footer(storage: MemoryStorage) -> dict[str, str]:
    return ParquetBaseFile(io.BytesIO(storage.read(PATH)), PATH).footer


def test_a_row_group_is_copied_under_the_name_of_the_file() -> None:
    storage = MemoryStorage()
    base = base_of(storage, "b", "a")
    with BaseFileHandle(storage, "day/f-0_0-2-3_002.parquet", SCHEMA, WriteConfig.of({}), codec="GZIP") as file:
        assert file.keys.join(base)
        file.copy(WholeRowGroup(RowGroupSource(base), 0))
        file.write(rows(file.rows_schema, "c"))
        file.close()
    assert file.rows == 3
    table = pq.read_table(io.BytesIO(storage.read("day/f-0_0-2-3_002.parquet")))
    assert table["_hoodie_record_key"].to_pylist() == ["b", "a", "c"]
    assert table["_hoodie_file_name"].to_pylist() == ["f-0_0-2-3_002.parquet"] * 3


def test_an_error_removes_what_was_written() -> None:
    storage = MemoryStorage()
    file = handle(storage)
    file.write(rows(file.rows_schema, "a"))
    with pytest.raises(ValueError, match="stop"), file:
        raise ValueError("stop")
    assert not storage.exists(PATH)
