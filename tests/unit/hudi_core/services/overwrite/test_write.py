"""How rows are spread over shards and files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.write_config import WriteConfig
from hudi_core.engine import exchange
from hudi_core.filegroup.write.key_generator import KeyGenerator
from hudi_core.services.overwrite import write
from hudi_core.services.overwrite.source import CountedRows, SourcePart, SourceRows
from hudi_core.services.overwrite.write import expected_files, put_partition_metadata, spread_of
from hudi_core.storage.local import LocalStorage
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import commit_of, overwrite, own_rows, places, put_source
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows

Golden = Callable[[str, str], GoldenCase]


def counted(size: int, **rows: int) -> CountedRows:
    keys = KeyGenerator(("id",), False, ("day",), frozenset(), None, False, False)
    return CountedRows(SourceRows("/s", {}, {}, keys, WriteConfig()), (SourcePart("f", size),), rows)


def test_a_large_partition_has_a_shard_for_each_file() -> None:
    spread = spread_of(counted(1000, large=900, small=99, least=1), 300)
    assert spread.large == {"large": (2, 3)}
    assert (spread.shared, spread.shards) == (2, 5)
    assert expected_files(counted(1000, large=900, small=99, least=1), {"hoodie.parquet.max.file.size": "300"}) == 5


def test_small_partitions_share_shards() -> None:
    many = counted(1000, **{f"p{number}": 1 for number in range(1000)})
    assert spread_of(many, 10**9).shards == 8
    assert spread_of(many, 10).shards == 100
    assert spread_of(counted(10), 100).shards == 0
    assert expected_files(None, {}) == 0


def test_thousands_of_partitions_open_a_file_at_a_time(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = golden("9", "cow_basic").table
    rows = own_rows(table, read_rows(table))
    one = rows.slice(0, 1).to_pylist()[0]
    many = pa.Table.from_pylist(
        [{**one, "id": f"k{at}", "dt": f"p{at % 300:03}"} for at in range(900)], schema=rows.schema
    )
    begun, most = 0, 0
    entered, left = write.FileGroupWriter.__enter__, write.FileGroupWriter.__exit__

    def enter(self: write.FileGroupWriter) -> write.FileGroupWriter:
        nonlocal begun, most
        begun += 1
        most = max(most, begun)
        return entered(self)

    def leave(self: write.FileGroupWriter, *error: object) -> None:
        nonlocal begun
        begun -= 1
        left(self, *error)  # type: ignore[arg-type]

    monkeypatch.setattr(write.FileGroupWriter, "__enter__", enter)
    monkeypatch.setattr(write.FileGroupWriter, "__exit__", leave)
    monkeypatch.setattr(exchange, "_SENT_PIECE_BYTES", 4 << 10)
    result = overwrite(table, put_source(many, tmp_path, files=3), whole_table=True)
    assert (result.files_written, result.records, most) == (300, 900, 1)
    after = read_rows(table)
    assert len(set(after.column("_hoodie_commit_seqno").to_pylist())) == 900
    assert_metadata_true(table)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_partition_becomes_files_of_the_size_that_is_asked_for(golden: Golden, tmp_path: Path, version: str) -> None:
    table = golden(version, "cow_basic").table
    before = read_rows(table)
    given = put_source(own_rows(table, before), tmp_path, files=2)
    size = sum(path.stat().st_size for path in given.iterdir())
    options = {"hoodie.parquet.max.file.size": str(size // 12)}
    result = overwrite(table, given, options, whole_table=True)
    assert result.files_written >= 6
    after = read_rows(table)
    assert places(after) == places(before)
    own = [name for name in before.schema.names if not name.startswith("_hoodie_")]
    assert_same_rows(after.select(own), before.select(own), ignore=())
    stats = list(commit_of(table, result.instant).write_stats())
    assert len({stat.file_id for stat in stats}) == len(stats)
    for stat in stats:
        assert pq.read_metadata(table / stat.path).num_rows == stat.num_writes > 0


def test_equal_keys_are_all_written(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    rows = own_rows(table, read_rows(table)).slice(0, 3)
    assert overwrite(table, put_source(pa.concat_tables([rows, rows]), tmp_path), whole_table=True).records == 6
    assert read_rows(table).num_rows == 6


def test_a_partition_that_is_known_keeps_its_file(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    for instant in ("1", "2"):
        put_partition_metadata(storage, "a/b", instant)
        put_partition_metadata(storage, "", instant)
    assert (tmp_path / "a" / "b" / ".hoodie_partition_metadata").read_text().splitlines()[1:] == [
        "commitTime=1",
        "partitionDepth=2",
    ]
    assert "partitionDepth=0" in (tmp_path / ".hoodie_partition_metadata").read_text()
