"""Which files of a folder of staged rows are read; what Spark puts there is in tests/contract/test_staged_rows.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import StorageNotFoundError
from hudi_core.request.overwrites import InsertOverwriteRequest
from hudi_core.services.overwrite.staged_rows import STAGED
from hudi_core.services.overwrite.verb import insert_overwrite
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import own_rows, places
from tests.support.table_invariants import assert_metadata_true, read_rows

Golden = Callable[[str, str], GoldenCase]


class Staging(LocalEngine):
    """Puts rows as `files` into the folder, of which `names` are those of winning tasks."""

    def __init__(self, rows: pa.Table, files: tuple[str, ...], names: frozenset[str]) -> None:
        super().__init__(1)
        self._rows, self._files, self._names = rows.replace_schema_metadata(None), files, names

    def stage_query(self, query: str, folder: str, storage_options: Mapping[str, str]) -> frozenset[str]:
        Path(folder).mkdir(parents=True)
        for name in self._files:
            pq.write_table(self._rows, f"{folder}/{name}")
        return self._names

    def stage_dataframe(
        self, function: str, arguments: Mapping[str, str], folder: str, storage_options: Mapping[str, str]
    ) -> frozenset[str]:
        return self.stage_query(function, folder, storage_options)


REQUESTS = {"query": {"query": "SELECT 1"}, "dataframe": {"dataframe": "module:function"}}


def put(table: Path, engine: LocalEngine, by: str) -> int:
    request = InsertOverwriteRequest(str(table), whole_table=True, **REQUESTS[by])  # type: ignore[arg-type]
    return insert_overwrite(open_context(table), request, engine, an_owner()).records


@pytest.mark.parametrize("by", REQUESTS)
def test_a_file_of_a_task_that_lost_does_not_count(golden: Golden, by: str) -> None:
    """It is closed when the query is over."""
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    files = ("part-00000-7.parquet", "part-00000-9.parquet")
    assert put(table, Staging(own_rows(table, rows), files, frozenset({files[0]})), by) == rows.num_rows
    assert places(read_rows(table)) == places(rows)
    assert not list((table / STAGED).rglob("*.parquet"))
    assert_metadata_true(table)


def test_a_file_that_is_gone_is_missed(golden: Golden) -> None:
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    with pytest.raises(StorageNotFoundError, match="lacks 1 of its files"):
        put(table, Staging(own_rows(table, rows), ("a.parquet",), frozenset({"a.parquet", "b.parquet"})), "query")
    assert places(read_rows(table)) == places(rows)
