"""Tasks that are repeated, lose rows, or find damaged files: nothing is published, and nothing is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.engine.exchange import SHARD_ROWS
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.errors import CorruptFileError, ExecutionError, HudiError, StorageNotFoundError
from hudi_core.model.names import parse_data_file
from hudi_core.services.rewriting.new_file_groups import FileGroupWriter
from hudi_core.services.rewriting.slice_rows import SliceRows
from hudi_core.services.write.route import produce_routed
from hudi_core.services.write.tagging import tag
from hudi_core.services.write.upsert import Upserted, UpsertTarget
from hudi_core.storage.local import LocalStorage
from tests.support.changed_tables import data_files, open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, put_source
from tests.support.running_attempts import let_run
from tests.support.table_invariants import assert_metadata_true, leftovers, read_rows
from tests.support.tiers import tiered
from tests.support.writes import Model, SeenEngine, base_files, changed, commit_of, like, own_columns, staged, write

Golden = Callable[[str, str], GoldenCase]


def source_of(table: Path, tmp_path: Path) -> tuple[Path, pa.Table]:
    """Rows that change some of a table, and new ones."""
    rows = own_columns(read_rows(table))
    new = like(rows, *({"id": f"new {at}", "dt": day} for at, day in enumerate(("2024-01-01", "2031-01-01") * 2)))
    source = pa.concat_tables([changed(rows.slice(0, 9), ts=lambda ts: ts + 1, qty=1), new])
    return put_source(source, tmp_path, files=2), source


def fails(table: Path, given: Path, kind: type[HudiError], match: str) -> None:
    """The upsert fails, and the table is as it was, but for a rollback and the metadata of a partition, as in Hudi."""
    rows, files = Model.of(table, event_time=True), data_files(table)
    with pytest.raises(kind, match=match):
        write(table, "upsert", given)
    rows.check(table)
    assert set(data_files(table)).difference(files) <= {"2031-01-01/.hoodie_partition_metadata"}
    assert list(open_context(table).active.load().pending()) == []
    assert leftovers(table, "") == []
    assert staged(table) == []
    assert_metadata_true(table)


class TwiceEngine(LocalEngine):
    """Each shard is written by two attempts, as by speculation; the second one counts."""

    def __init__(self) -> None:
        super().__init__(1)
        self.both: list[tuple[Any, Any]] = []

    def exchange(self, produce: Any, units: Any, consume: Any, **named: Any) -> list[Any]:
        """LocalEngine.exchange."""

        def twice(shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt) -> Any:
            held = [*batches]
            first = consume(shard, iter(held), replace(attempt, attempt_id=attempt.attempt_id + 500))
            second = consume(shard, iter(held), attempt)
            self.both.append((first, second))
            return second

        twice.__annotations__["return"] = Upserted if "write_routed" in str(consume) else tag.Tagged
        return super().exchange(produce, units, twice, **named)


@pytest.mark.parametrize(
    ("version", "case"),
    tiered(
        [(version, case) for version in ("6", "8", "9") for case in ("cow_basic", "mor_basic", "bucket_index_cow")],
        [("6", "mor_basic"), ("9", "cow_basic"), ("9", "bucket_index_cow")],
    ),
)
def test_hudi_8474_hudi_11527_a_task_that_is_repeated_writes_the_same_file_groups(
    golden: Golden, tmp_path: Path, version: str, case: str
) -> None:
    """And its files are those of one attempt. Tagging is repeated, too."""
    table = golden(version, case).table
    model = Model.of(table, event_time=version != "6")
    given, source = source_of(table, tmp_path)
    model.upsert(source)
    engine, options = TwiceEngine(), BUCKETS if "bucket" in case else {}
    known = set(data_files(table))
    result = write(table, "upsert", given, options, engine=engine)
    model.check(table)
    written = [(one, other) for one, other in engine.both if isinstance(one, Upserted)]
    assert written
    for one, other in written:
        assert [file.stat.file_id for file in one.files] == [file.stat.file_id for file in other.files]
        assert {file.stat.path for file in one.files}.isdisjoint(file.stat.path for file in other.files)
    stats = [*commit_of(table, result.instant).write_stats()]
    new = {path for path in set(data_files(table)) - known if parse_data_file(path.rpartition("/")[2]) is not None}
    assert new == {stat.path for stat in stats}
    assert leftovers(table, str(result.instant)) == []
    assert_metadata_true(table)


@pytest.mark.parametrize("loses", ["the writer", "the reader"])
def test_hudi_19763_a_base_file_that_lost_a_row_is_refused(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loses: str
) -> None:
    table = golden("9", "cow_basic").table
    given, _ = source_of(table, tmp_path)
    write_all, base_rows = FileGroupWriter.write, SliceRows.base_rows

    def without_the_first(self: SliceRows, *of: Any, **named: Any) -> Iterator[pa.RecordBatch]:
        return (batch.slice(1) for batch in base_rows(self, *of, **named))

    if loses == "the writer":
        monkeypatch.setattr(FileGroupWriter, "write", lambda self, batch: write_all(self, batch.slice(1)))
        match = r"wrote \d+ rows where \d+ are due"
    else:
        monkeypatch.setattr(SliceRows, "base_rows", without_the_first)
        match = r"read \d+ of \d+ base rows"
    fails(table, given, ExecutionError, match)


@pytest.mark.parametrize(("damage", "kind"), [("cut", CorruptFileError), ("gone", StorageNotFoundError)])
def test_a_base_file_that_is_damaged_is_named(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str, kind: type[HudiError]
) -> None:
    """Behind the look for keys."""
    table = golden("9", "cow_basic").table
    given, _ = source_of(table, tmp_path)
    (base,) = base_files(table, "2024-01-01")
    whole = base.read_bytes()

    class Damaging(SeenEngine):
        def exchange(self, produce: Any, units: Any, consume: Any, **named: Any) -> list[Any]:
            if produce is produce_routed:
                base.write_bytes(whole[:-100]) if damage == "cut" else base.unlink()
            return super().exchange(produce, units, consume, **named)

    with pytest.raises(kind, match=base.name):
        write(table, "upsert", given, engine=Damaging())
    base.write_bytes(whole)
    assert list(open_context(table).active.load().pending()) == []
    assert base_files(table, "2024-01-01") == [base]
    assert_metadata_true(table)


def target_of(engine: SeenEngine) -> UpsertTarget:
    """What the shards of an upsert were given."""
    target: UpsertTarget = engine.consumers[-1].args[0]
    return target


@pytest.mark.parametrize("case", ["cow_basic", "mor_basic"])
@pytest.mark.parametrize("place", ["a file group of the table", "a new one"])
def test_pieces_that_are_no_rows_are_an_error(golden: Golden, tmp_path: Path, case: str, place: str) -> None:
    table = golden("9", case).table
    given, _ = source_of(table, tmp_path)
    engine = SeenEngine()
    result = write(table, "upsert", given, engine=engine)
    touched = len(target_of(engine).routes.touched)
    let_run(LocalStorage(table), str(result.instant), 1)
    before = data_files(table)
    piece = pa.RecordBatch.from_arrays([pa.array([b"2024-01-01"]), pa.array([b"no rows"])], schema=SHARD_ROWS)
    shard = 0 if place.startswith("a file group") else touched
    with pytest.raises(ExecutionError, match="writing the rows of a write failed"):
        engine.consumers[-1](shard, iter([piece]), TaskAttempt(shard, 1, 900))
    assert data_files(table) == before


def test_a_file_group_without_a_base_file_is_not_merged(golden: Golden, tmp_path: Path) -> None:
    """The rows of its logs would be lost."""
    table = golden("9", "cow_basic").table
    given, _ = source_of(table, tmp_path)
    engine = SeenEngine()
    write(table, "upsert", given, engine=engine)
    target = target_of(engine)
    bare = replace(target, slices=tuple(replace(item, base_file=None) for item in target.slices))
    consume = type(engine.consumers[-1])(engine.consumers[-1].func, bare)
    with pytest.raises(ExecutionError, match="the file group has no base file to merge"):
        consume(0, iter(()), TaskAttempt(0, 1, 900))


@pytest.mark.parametrize("cut", [40, 400])
def test_a_damaged_file_of_tagged_rows_is_named(golden: Golden, tmp_path: Path, cut: int) -> None:
    table = golden("9", "cow_basic").table
    given, _ = source_of(table, tmp_path)

    class Damaging(SeenEngine):
        def exchange(self, produce: Any, units: Any, consume: Any, **named: Any) -> list[Any]:
            for path in table.glob(".hoodie/.airflow_hudi/staged/*/*.arrow"):
                path.write_bytes(path.read_bytes()[:-cut] + bytes(40))
            return super().exchange(produce, units, consume, **named)

    with pytest.raises(ExecutionError, match="tagged rows of a write were not read") as caught:
        write(table, "upsert", given, engine=Damaging())
    assert ".hoodie/.airflow_hudi/staged/" in str(caught.value.path)
    assert list(open_context(table).active.load().pending()) == []
