"""Column statistics of golden tables by both ways of decoding: whole runs, and one record after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.metadata_table.read import statistics
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.services.context import TableContext
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
CASES = [(version, name) for version in ("6", "8", "9") for name in ("mdt_all_mor", "mdt_all_mor_compacted")]


def metadata(case: GoldenCase) -> MetadataTable:
    context = context_of(case.table)
    return MetadataTable(context.storage, context.config, context.active.load())


def columns_of(case: GoldenCase) -> list[str]:
    schema = schema_of_table(context_of(case.table))
    return [*(str(field["name"]) for field in schema["fields"]), "_hoodie_record_key", "no such column"]


def schema_of_table(context: TableContext) -> dict[str, Any]:
    found: dict[str, Any] = table_schema(context.storage, context.config, context.active.load())
    return found


def equal(one: dict[str, pa.Table], other: dict[str, pa.Table]) -> None:
    assert list(one) == list(other)
    for column, table in one.items():
        assert table.schema == other[column].schema
        names = ["partition", "file", "min", "max", "null_count", "value_count", "uncompressed_size", "is_tight"]
        assert table.schema.names == names
        assert repr(table.to_pydict()) == repr(other[column].to_pydict()), column


@pytest.mark.parametrize(
    ("version", "name"), tiered(CASES, [("6", "mdt_all_mor"), ("8", "mdt_all_mor_compacted"), ("9", "mdt_all_mor")])
)
def test_every_column_of_a_table(golden: Golden, version: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = golden(version, name)
    columns = columns_of(case)
    places = metadata(case).partitions()
    files = {place: sorted(metadata(case).list_files(place))[::2] for place in places}
    requested: list[dict[str, Any]] = [
        {},
        {"partitions": places[:1]},
        {"files": files},
        {"partitions": []},
        {"files": {}},
        {"partitions": ["nowhere"]},
    ]
    found = []
    for least, run in ((0, 3), (1 << 30, 1 << 15)):
        monkeypatch.setattr(statistics, "_LEAST_RUN", least)
        monkeypatch.setattr(statistics, "RUN", run)
        found.append([metadata(case).column_stats(columns, **options) for options in requested])
    for one, other in zip(*found, strict=True):
        equal(one, other)
    whole, part, named, *nothing = found[0]
    assert sum(table.num_rows for table in whole.values()) > sum(table.num_rows for table in part.values()) > 0
    assert all(
        set(zip(table["partition"].to_pylist(), table["file"].to_pylist(), strict=True)) <= _pairs(files)
        for table in named.values()
    )
    assert all(table.num_rows == 0 for answer in nothing for table in answer.values())
    assert whole["no such column"].num_rows == 0


def _pairs(files: dict[str, list[str]]) -> set[tuple[str, str]]:
    return {(place, name) for place, names in files.items() for name in names}


def test_a_damaged_value_names_the_metadata_tables_cure(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    case = golden("8", "mdt_all_mor_compacted")
    table = metadata(case)

    def broken(
        self: statistics.StatColumns, schema: str, keys: list[bytes], values: list[bytes], *, path: str
    ) -> pa.Table:
        raise CorruptFileError("it is broken", path=path)

    monkeypatch.setattr(statistics.StatColumns, "of_cells", broken)
    with pytest.raises(CorruptFileError, match="it is broken") as caught:
        table.column_stats(["qty"])
    assert "metadata" in str(caught.value.remedy)
