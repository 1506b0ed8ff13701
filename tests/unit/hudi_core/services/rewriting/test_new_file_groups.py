"""New base files end where they have their size, are announced by markers, and go where an error comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.rows_config import WriteConfig
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import ConflictError, ExecutionError
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.write.base_file_writer import rows_schema
from hudi_core.filegroup.write.markers import list_markers
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.model.names import CLAIMS, ClaimFolder, FileGroupId
from hudi_core.services.rewriting.new_file_groups import (
    FileGroupWriter,
    NewFile,
    NewFiles,
    prove_files,
)
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.write_stats import NULL_COMMIT, WriteStat
from tests.support.running_attempts import let_run

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "long"}],
}
INSTANT = "20260101000000000"
ROWS = rows_schema(SCHEMA, path="t")


def batch(count: int, start: int = 0) -> pa.RecordBatch:
    keys = [f"k{row:07d}" for row in range(start, start + count)]
    columns = {
        "_hoodie_commit_time": ["2025"] * count,
        "_hoodie_commit_seqno": [f"2025_0_{row}" for row in range(count)],
        "_hoodie_record_key": keys,
        "_hoodie_partition_path": ["p"] * count,
        "id": keys,
        "n": list(range(count)),
    }
    return pa.RecordBatch.from_arrays([pa.array(columns[f.name], f.type) for f in ROWS], schema=ROWS)


def writer(base: Path, target: int = 1 << 30, **changes: Any) -> FileGroupWriter:
    config = WriteConfig(bloom_entries=100, bloom_max_entries=100, row_group_rows=100)
    files = NewFiles(INSTANT, SCHEMA, config, target, as_hudi_1=True, **changes)
    storage = LocalStorage(base)
    let_run(storage, INSTANT, 2)
    return FileGroupWriter(storage, files, "p", "abc", "ZSTD", TaskAttempt(3, 2, 1))


def test_a_file_ends_where_it_has_its_size(tmp_path: Path) -> None:
    with writer(tmp_path, target=2000) as out:
        for start in range(0, 1000, 100):
            out.write(batch(100, start))
        files = out.close()
    assert len(files) > 2
    assert [file.stat.file_id for file in files] == [f"abc-{number}" for number in range(len(files))]
    assert sum(file.stat.num_writes for file in files) == 1000
    keys: list[str] = []
    for file in files:
        stat = file.stat
        path = tmp_path / stat.path
        assert stat.name == f"{stat.file_id}_3-2-1_{INSTANT}.parquet"
        assert stat.file_size_in_bytes == stat.total_write_bytes == path.stat().st_size
        assert (stat.prev_commit, stat.num_inserts, stat.num_deletes) == ("null", stat.num_writes, 0)
        rows = pq.ParquetFile(path).read()
        assert set(rows.column("_hoodie_file_name").to_pylist()) == {stat.name}
        keys += rows.column("_hoodie_record_key").to_pylist()
    assert keys == [f"k{row:07d}" for row in range(1000)]
    markers = list_markers(LocalStorage(tmp_path), INSTANT)
    assert [(marker.file_name, marker.kind) for marker in markers] == [(file.stat.name, "CREATE") for file in files]


def test_no_row_makes_no_file(tmp_path: Path) -> None:
    with writer(tmp_path) as out:
        out.write(batch(0))
        assert out.close() == ()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and CLAIMS not in str(path)]


def test_rows_keep_their_times_or_get_those_of_the_instant(tmp_path: Path) -> None:
    for stamps in (False, True):
        with writer(tmp_path / str(stamps), stamps_rows=stamps) as out:
            out.write(batch(2))
            out.write(batch(2, 2))
            (file,) = out.close()
        rows = pq.ParquetFile(tmp_path / str(stamps) / file.stat.path).read()
        numbers = rows.column("_hoodie_commit_seqno").to_pylist()
        times = set(rows.column("_hoodie_commit_time").to_pylist())
        if stamps:
            assert times == {INSTANT}
            assert numbers == [f"{INSTANT}_3_{row}" for row in range(4)]
        else:
            assert times == {"2025"}
            assert numbers == ["2025_0_0", "2025_0_1"] * 2


def test_statistics_come_with_the_file(tmp_path: Path) -> None:
    schema = {**SCHEMA, "fields": SCHEMA["fields"]}
    requirements = StatisticsRequirements(schema=schema, columns=("n",), version=1)
    with writer(tmp_path, requirements=requirements) as out:
        out.write(batch(5))
        (file,) = out.close()
    assert file.statistics is not None
    assert (file.statistics.file.name, file.statistics.file.size) == (file.stat.name, file.stat.file_size_in_bytes)


def test_an_error_removes_the_file_that_was_begun(tmp_path: Path) -> None:
    def fail() -> None:
        with writer(tmp_path, target=2000) as out:
            out.write(batch(300))
            assert len(out.done) == 1
            out.write(batch(10))
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert [path.name.partition("_")[0] for path in (tmp_path / "p").glob("*.parquet")] == ["abc-0"]


@pytest.mark.parametrize("moment", ["opened", "closed"])
def test_a_run_that_is_over_leaves_no_file_behind_its_last_one(tmp_path: Path, moment: str) -> None:
    def outlive() -> None:
        with writer(tmp_path, target=2000) as out:
            out.write(batch(300))
            assert len(out.done) == 1
            if moment == "closed":
                out.write(batch(10))
            LocalStorage(tmp_path).delete(ClaimFolder(INSTANT).claim(2))
            out.write(batch(10))
            out.close()

    with pytest.raises(ConflictError, match=f"run 2 of instant {INSTANT} has ended"):
        outlive()
    assert [path.name.partition("_")[0] for path in (tmp_path / "p").glob("*.parquet")] == ["abc-0"]
    assert [marker.file_name.partition("_")[0] for marker in list_markers(LocalStorage(tmp_path), INSTANT)] == ["abc-0"]


@pytest.mark.parametrize(("room", "joined"), [(100, True), (0, False)])
def test_keys_are_joined_where_the_file_has_room(tmp_path: Path, room: int, joined: bool) -> None:
    with writer(tmp_path / "from") as out:
        out.write(batch(200))
        (made,) = out.close()
    source = LocalStorage(tmp_path / "from")
    with (
        open_base_file(source, made.stat.path) as base,
        writer(tmp_path / "to", target=base.size + room) as out,
    ):
        with out.joining(base) as found:
            out.write(batch(100))
            out.write(batch(100, 100))
        assert found is joined
        (copy,) = out.close()
    paths = (tmp_path / "from" / made.stat.path, tmp_path / "to" / copy.stat.path)
    before, after = (pq.read_metadata(path).metadata for path in paths)
    assert before == after


def new_file(file_id: str = "a-0", rows: int = 3, partition: str = "p") -> NewFile:
    path = f"{partition}/{file_id}_0-1-0_{INSTANT}.parquet"
    return NewFile(WriteStat(file_id, path, partition, NULL_COMMIT, rows, 0, 0, rows, 10, 10))


def prove(*files: NewFile, rows: dict[str, int] | None = None, with_statistics: bool = False) -> Any:
    replaced = [FileGroupId("p", "old-0")]
    counted = {"p": 3} if rows is None else rows
    return prove_files(files, counted, INSTANT, replaced, with_statistics=with_statistics)


def test_files_with_the_rows_that_were_read_are_published() -> None:
    found = prove(new_file("a-0", 1), new_file("a-1", 2))
    assert [file.name for file in found.files] == [stat.name for stat in found.stats]
    assert found.statistics == []
    assert prove(rows={}).stats == []


@pytest.mark.parametrize(
    ("files", "rows"),
    [
        ((new_file(rows=2),), None),
        ((), None),
        ((new_file(), new_file()), {"p": 6}),
        ((new_file("old-0"),), None),
        ((new_file(partition="q"),), None),
        ((new_file(rows=0),), {"p": 0}),
    ],
)
def test_any_others_are_not(files: tuple[NewFile, ...], rows: dict[str, int] | None) -> None:
    with pytest.raises(ExecutionError, match=r"rows were read|the engine returned|of one file group"):
        prove(*files, rows=rows)


@pytest.mark.parametrize(
    "change",
    [
        lambda stat: replace(stat, path="p/elsewhere.parquet"),
        lambda stat: replace(stat, path=stat.path.replace(INSTANT, "20250101000000000")),
        lambda stat: replace(stat, file_id="b-0"),
        lambda stat: replace(stat, file_size_in_bytes=0),
    ],
)
def test_a_file_is_what_its_name_says(change: Callable[[WriteStat], WriteStat]) -> None:
    with pytest.raises(ExecutionError, match="the engine returned"):
        prove(NewFile(change(new_file().stat)))


def test_statistics_are_those_of_the_file() -> None:
    file = new_file()
    with pytest.raises(ExecutionError, match="the statistics of p/"):
        prove(file, with_statistics=True)
    known = FileStatistics(DataFileRef("p", file.stat.name, 10, is_base=True))
    assert prove(replace(file, statistics=known), with_statistics=True).statistics == [known]
