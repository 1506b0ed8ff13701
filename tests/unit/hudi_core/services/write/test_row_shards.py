"""How rows are spread over shards."""

from __future__ import annotations

from dataclasses import replace

from hudi_core.config.rows_config import WriteConfig
from hudi_core.filegroup.write.key_generator import KeyGenerator
from hudi_core.services.source.files import CountedRows, SourcePart, SourceRows
from hudi_core.services.write.row_shards import expected_files, spread_of


def counted(size: int, **rows: int) -> CountedRows:
    keys = KeyGenerator(("id",), False, ("day",), frozenset(), None, False, False)
    return CountedRows(SourceRows("/s", {}, {}, keys, WriteConfig()), (SourcePart("f", size),), rows)


def test_a_large_partition_has_a_shard_for_each_file() -> None:
    spread = spread_of(counted(1000, large=900, small=99, least=1), 300)
    assert spread.large == {"large": (2, 3)}
    assert (spread.shared, spread.shards) == (2, 5)
    assert expected_files(counted(1000, large=900, small=99, least=1), {"hoodie.parquet.max.file.size": "300"}) == 5


def test_files_are_counted_by_what_a_row_takes_in_the_table() -> None:
    """Not by what it takes in the source."""
    rows = counted(12_000, large=900, small=99, least=1)
    assert spread_of(rows, 300).large["large"] == (1, 36)
    spread = spread_of(replace(rows, row_bytes=1.0), 300)
    assert spread.large == {"large": (2, 3)}
    assert (spread.shared, spread.shards) == (2, 5)
    assert spread_of(replace(rows, row_bytes=0.01), 300).large == {}


def test_small_partitions_share_shards() -> None:
    many = counted(1000, **{f"p{number}": 1 for number in range(1000)})
    assert spread_of(many, 10**9).shards == 8
    assert spread_of(many, 10).shards == 100
    assert spread_of(counted(10), 100).shards == 0
    assert expected_files(None, {}) == 0
