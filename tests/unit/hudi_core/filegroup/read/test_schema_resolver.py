"""Schemas that only the files have."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pyarrow.parquet as pq
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.filegroup.read.schema_resolver import stored_schema
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.schemas import schema_of
from tests.support.golden_data import GoldenCase
from tests.support.golden_timelines import load_table
from tests.support.memory_storage import MemoryStorage
from tests.support.slice_readers import opened


def _commits(active: ActiveTimeline) -> Iterator[tuple[Instant, CommitMetadata]]:
    return ((instant, active.read_commit(instant)) for instant in reversed(active.load().commits().instants))


def _fields(schema: dict[str, object] | None) -> list[tuple[str, object]]:
    assert schema is not None
    return [(field["name"], field["type"]) for field in schema["fields"]]  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize(
    "case", ["cow_basic", "mor_basic", "schema_evolution_mor", "bucket_index_mor", "mor_parquet_log"]
)
def test_the_newest_files_have_the_schema_of_the_newest_commit(version: str, case: str) -> None:
    storage = load_table(case, version)
    active = ActiveTimeline(storage, TableConfig.load(storage))
    assert _fields(stored_schema(storage, _commits(active))) == _fields(schema_of(active.load(), active.read_details))


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_partial_update_does_not_set_the_schema(golden: Callable[[str, str], GoldenCase], version: str) -> None:
    """Its log blocks have only the columns that it sets; a compaction by their schema would lose the others."""
    table = golden(version, "partial_update_merge_into").table
    reader, slices = opened(table)
    storage, active = reader.storage, ActiveTimeline(reader.storage, reader.spec.config)
    assert any(block.is_partial for item in slices for block in reader.scan(item).blocks)
    assert _fields(stored_schema(storage, _commits(active))) == _fields(schema_of(active.load(), active.read_details))


def test_a_file_without_an_avro_schema_is_read_by_its_parquet_schema() -> None:
    storage = load_table("cow_basic", "9")
    active = ActiveTimeline(storage, TableConfig.load(storage))
    expected = _fields(stored_schema(storage, _commits(active)))
    for _, metadata in _commits(active):
        for stat in metadata.write_stats():
            out = io.BytesIO()
            pq.write_table(pq.read_table(io.BytesIO(storage.read(stat.path))).replace_schema_metadata(None), out)
            storage.write(stat.path, out.getvalue())
    assert _fields(stored_schema(storage, _commits(active))) == expected


def test_files_that_are_gone_are_passed_over() -> None:
    storage = load_table("mor_basic", "9")
    active = ActiveTimeline(storage, TableConfig.load(storage))
    newest, *_ = _commits(active)
    for stat in newest[1].write_stats():
        storage.delete(stat.path)
    assert stored_schema(storage, _commits(active)) is not None
    for _, metadata in _commits(active):
        for stat in metadata.write_stats():
            storage.delete(stat.path)
    assert stored_schema(storage, _commits(active)) is None
    with pytest.raises(FormatError, match="records the table's schema"):
        schema_of(
            active.load().before("0"), active.read_details, stored=lambda: stored_schema(storage, _commits(active))
        )


def _commit(path: str) -> list[tuple[Instant, CommitMetadata]]:
    stat = WriteStat("f", path, "p", "null", 0, 0, 0, 0, 0, 0)
    return [(Instant("1", "commit", State.COMPLETED), CommitMetadata({"p": (stat,)}))]


def test_damage_and_foreign_paths_are_errors() -> None:
    storage = MemoryStorage()
    storage.write("p/f_0-0-0_1.parquet", b"no parquet")
    with pytest.raises(CorruptFileError, match=r"p/f_0-0-0_1\.parquet"):
        stored_schema(storage, _commit("p/f_0-0-0_1.parquet"))
    with pytest.raises(FormatError, match="not relative"):
        stored_schema(storage, _commit("/etc/f.parquet"))
    assert stored_schema(storage, _commit("")) is None
    assert stored_schema(storage, _commit("p/f_0-0-0_1.orc")) is None
