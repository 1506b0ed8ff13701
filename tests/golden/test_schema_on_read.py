"""Tables that schema-on-read changed (made by make_schema_on_read.py): columns are found by their ids, as in real Hudi.

Renamed, nested in a struct and in an array of structs too; dropped and added again with another type; int, date and
float retyped.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import UnsupportedError
from hudi_core.model.names import FileGroupId
from hudi_core.services.clustering.planner import ClusteringService
from hudi_core.services.overwrite.plan import Overwrite, plan_overwrite
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable, ReadResult
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.schemas import internal_schema_history
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_data import unpacked_once
from tests.support.pending_operations import Operations

ARCHIVE = Path(__file__).parent / "data" / "schema_on_read.tar.xz"
TABLES = ("0.15.0-mor", "1.2.0-cow", "1.2.0-mor")


def _rows(result: ReadResult | pa.Table) -> list[str]:
    table = (
        result if isinstance(result, pa.Table) else pa.Table.from_batches(list(result.batches), schema=result.schema)
    )
    return sorted(str(row) for row in table.to_pylist())


def _folder(name: str) -> Path:
    return unpacked_once(ARCHIVE, "schema-on-read") / name


def _check(found: ReadResult, expected: pa.Table) -> None:
    assert found.schema.names == expected.schema.names
    assert [str(field.type) for field in found.schema] == [str(field.type) for field in expected.schema]
    assert _rows(found) == _rows(expected)


@pytest.mark.parametrize("name", TABLES)
def test_the_snapshot_is_that_of_real_hudi(name: str) -> None:
    folder = _folder(name)
    expected = pq.read_table(folder / "snapshot.parquet")
    assert expected.num_rows >= 8
    _check(HudiTable.open(str(folder / "table")).read(), expected)


@pytest.mark.parametrize("name", TABLES)
def test_an_older_state_has_the_older_schema(name: str) -> None:
    folder = _folder(name)
    (path,) = folder.glob("as_of_*.parquet")
    expected = pq.read_table(path)
    assert "a" in expected.schema.names
    assert "a2" not in expected.schema.names
    _check(HudiTable.open(str(folder / "table")).read(as_of=path.stem.removeprefix("as_of_")), expected)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("columns", [["b"], ["a2", "s"], ["l", "_hoodie_record_key"], ["d", "f", "c"]])
def test_a_projection_reads_the_same_values(name: str, columns: list[str]) -> None:
    folder = _folder(name)
    expected = pq.read_table(folder / "snapshot.parquet").select(columns)
    found = HudiTable.open(str(folder / "table")).read(columns=columns)
    table = pa.Table.from_batches(list(found.batches), schema=found.schema)
    assert _rows(table.select(columns)) == _rows(expected)


FILTERS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "a2 in (77, 1005, 3) or b = 2006": lambda row: row["a2"] in (77, 1005, 3) or row["b"] == 2006,
    # Old files have statistics of another column of this name.
    "b is null": lambda row: row["b"] is None,
    "b > 1000": lambda row: row["b"] is not None and row["b"] > 1000,
    "c = '300'": lambda row: row["c"] == "300",
    "d = '2024-01-03'": lambda row: row["d"] == "2024-01-03",
    "s.x1 < 3": lambda row: row["s"]["x1"] < 3,
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("where", sorted(FILTERS))
def test_a_filter_on_a_changed_column(name: str, where: str) -> None:
    folder = _folder(name)
    expected = [row for row in pq.read_table(folder / "snapshot.parquet").to_pylist() if FILTERS[where](row)]
    assert expected
    assert _rows(HudiTable.open(str(folder / "table")).read(where=where)) == sorted(map(str, expected))


@pytest.mark.parametrize("name", TABLES)
def test_the_history_holds_every_change(name: str) -> None:
    storage = LocalStorage(_folder(name) / "table")
    history = internal_schema_history(storage, ActiveTimeline(storage, TableConfig.load(storage)).load())
    assert history is not None
    assert len(history.schemas) == 9
    assert history.schemas[0].version == 0
    assert "a2" in {field.name for field in history.latest.fields}


@pytest.mark.parametrize("name", TABLES)
def test_no_service_rewrites_it(name: str, tmp_path: Path) -> None:
    """Columns go by their names there. A clustering of Hudi is no new schema, and its commit carries none."""
    table = Path(shutil.copytree(_folder(name) / "table", tmp_path / "table"))
    context = open_context(table)
    for _ in range(2):
        timeline = context.active.load()
        with pytest.raises(UnsupportedError, match="schema-on-read"):
            ClusteringService().schedule(context, an_owner(), dry_run=True)
        with pytest.raises(UnsupportedError, match="schema-on-read"):
            plan_overwrite(
                context, timeline, Overwrite(Operation.DELETE_PARTITION, partitions=("dt=p0",)), with_slices=False
            )
        instant = context.new_instant(timeline)
        Operations(context.active).cluster(instant, FileGroupId("dt=p0", "x-0"), completed=str(int(instant) + 1))
