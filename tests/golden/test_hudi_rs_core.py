"""The single files that Hudi-rs tests its codecs with: HFiles by HBase's own writer, log files, commit metadata, small
timelines.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.arrow import arrow_schema, decode_records
from hudi_core.codec.avro.schema import parse_schema
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.log.blocks import BlockType, LogBlock, walk
from hudi_core.codec.log.content import avro_block_records, decode_delete_block
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.commit import decode_commit
from tests.support.hfiles import lookup
from tests.support.hudi_rs_data import hudi_rs_root
from tests.support.tiers import tiered

CORE = hudi_rs_root() / "core"
HFILES = sorted((CORE / "hfile").glob("*.hfile"))
COUNT = re.compile(r"_(\d+)(?:_(\d+)_non_unique|_large_keys.*|_fake_first_key)?$")
"""The file names end with the number of keys; of the one with repeated keys, how many more values each key has comes
behind it.
"""


def count_in(name: str) -> tuple[int, int]:
    """How many keys and how many cells a file's name promises."""
    match = COUNT.search(name)
    keys = int(match[1]) if match else 0
    return keys, keys * (1 + int(match[2] or 0)) if match else 0


@pytest.mark.parametrize(
    "path",
    tiered(
        HFILES,
        [
            CORE / "hfile" / f"{name}.hfile"
            for name in (
                "hudi_1_0_hbase_2_4_13_16KB_GZ_20000_fake_first_key",
                "hudi_1_0_hbase_2_4_13_1KB_GZ_10000_large_keys_deep_index",
                "hudi_1_0_hbase_2_4_9_16KB_GZ_200_20_non_unique",
                "hudi_1_0_hbase_2_4_9_16KB_NONE_5000",
                "hudi_1_0_hbase_2_4_9_no_entry",
            )
        ],
    ),
    ids=lambda path: path.stem,
)
def test_hfile(path: Path) -> None:
    reads: list[int] = []
    data = path.read_bytes()

    def read(offset: int, length: int) -> bytes:
        reads.append(length)
        return data[offset : offset + length]

    reader = HFileReader(read, len(data), path.name)
    keys, cells = count_in(path.stem)
    items = list(reader.items())
    numbers = [int(key.split(b"-abc")[0].rsplit(b"-", 1)[1]) for key, _ in items]
    assert (len({key for key, _ in items}), len(items), reader.trailer.entry_count) == (keys, cells, cells)
    assert numbers == [number for number in range(keys) for _ in range(cells // keys)]
    assert all(value.startswith(b"hudi-value-%09d" % number) for number, (_, value) in zip(numbers, items, strict=True))
    distinct = sorted({key for key, _ in items})
    assert list(dict(reader.lookup_many(distinct))) == distinct
    assert list(reader.lookup_many(distinct, unique=False)) == items
    for missing in (b"", b"hudi-key-", b"hudi-key-000000000~", b"hudi-kez", b"\xff"):
        assert lookup(reader, missing) is None
    if keys:
        reads.clear()
        fresh = HFileReader(read, len(data), path.name)
        assert lookup(fresh, items[cells // 2][0]) is not None
        assert len(reads) <= 2 + fresh.trailer.data_index_levels


def test_the_hfiles_have_indexes_of_one_and_of_several_levels() -> None:
    levels = {HFileReader.of_bytes(path.read_bytes(), path.name).trailer.data_index_levels for path in HFILES}
    assert (len(HFILES), levels) == (9, {1, 2, 3} & levels | {1})
    assert max(levels) > 1


def blocks_of(folder: str) -> list[tuple[LogBlock, bytes]]:
    (path,) = (CORE / "log_files" / folder).glob(".*.log.*")
    data = path.read_bytes()
    blocks = list(walk(lambda offset, length: data[offset : offset + length], len(data), path.name))
    assert all(isinstance(block, LogBlock) for block in blocks)
    return [
        (block, data[block.content_offset :][: block.content_length]) for block in blocks if isinstance(block, LogBlock)
    ]


def test_log_with_avro_records() -> None:
    ((block, content),) = blocks_of("valid_log_avro_data")
    assert block.schema is not None
    schema = parse_schema(block.schema, path="log")
    count, records = avro_block_records(content, path="log")
    rows = decode_records(records, count, schema, arrow_schema(schema, path="log"), path="log")
    assert (block.type, rows.num_rows, set(rows["_hoodie_commit_time"].to_pylist())) == (
        BlockType.AVRO_DATA,
        1,
        {block.instant_time},
    )


def test_log_with_parquet_records() -> None:
    ((block, content),) = blocks_of("valid_log_parquet_data")
    with ParquetBaseFile(io.BytesIO(content), "log") as file:
        rows = pa.Table.from_batches(list(file.batches()))
    assert (block.type, rows.num_rows, set(rows["_hoodie_commit_time"].to_pylist())) == (
        BlockType.PARQUET_DATA,
        1,
        {block.instant_time},
    )


def test_log_with_deletes() -> None:
    ((block, content),) = blocks_of("valid_log_delete")
    deletes = decode_delete_block(content, path="log")
    assert block.type is BlockType.DELETE
    assert len(deletes) == 3  # datagen.sql: DELETE … WHERE rider IN ('rider-A', 'rider-C', 'rider-D')
    assert {delete.partition for delete in deletes} == {"city=san_francisco"}


def test_log_with_a_rollback() -> None:
    ((block, content),) = blocks_of("valid_log_rollback")
    assert (block.is_rollback, block.target_instant_time is not None, content) == (True, True, b"")


@pytest.mark.parametrize("name", ["v6_commit.json", "v8_deltacommit.avro"])
def test_commit_metadata(name: str) -> None:
    found = decode_commit((CORE / "commit_metadata" / name).read_bytes(), path=name)
    stats = [stat for stats in found.partition_to_write_stats.values() for stat in stats]
    assert stats
    assert all(stat.path.rsplit("/", 1)[-1].lstrip(".").startswith(stat.file_id) for stat in stats)


@pytest.mark.parametrize(
    ("name", "whole"),
    [("no_create_schema", True), ("valid_minimum", True), ("invalid", False), ("partial", False), ("valid", False)],
)
def test_table_properties(name: str, whole: bool) -> None:
    """The one that Hudi-rs calls valid has a checksum that its name does not have: Hudi-rs does not look at it, Hudi
    and we do.
    """
    data = (CORE / f"table_props_{name}" / ".hoodie" / "hoodie.properties").read_bytes()
    if whole:
        assert TableConfig.parse(data).version == 6
        return
    with pytest.raises(CorruptFileError):
        TableConfig.parse(data)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_schema_that_only_base_files_have(kind: str) -> None:
    """The fixture has no partition metadata, so no engine finds rows in it: hudi-rs's own test asks for the schema
    only.
    """
    path = CORE / "timeline" / f"commits_load_schema_from_base_file_{kind}"
    base_file = next(path.glob("city=*/*.parquet"))
    assert HudiTable.open(str(path)).read().schema.names == pq.read_schema(base_file).names
