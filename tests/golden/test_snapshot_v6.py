"""Every golden table of version 6, read by this engine, against what real Hudi 0.15 reads: all columns, meta columns too, and all rows.

Both queries, before and after real Hudi ran what was pending. A case is equal, or refused by a typed error for the reason given here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import HudiError, UnsupportedError
from hudi_core.filegroup.reader import SliceReader
from hudi_core.model.ids import FileGroupId
from hudi_core.model.names import parse_base_file
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.table_schema import schema_of
from hudi_core.view.file_group import FileSlice
from hudi_core.view.fs_view import FileSystemView, load_view
from hudi_core.view.listing import StorageListing
from tests.golden_data import GoldenCase, golden_cases, golden_root
from tests.rows import assert_same_rows

QUERIES = ("snapshot", "read_optimized", "after_snapshot", "after_read_optimized")

REFUSED: dict[tuple[str, str], tuple[type[HudiError], str]] = {
    ("payload_dms", "snapshot"): (UnsupportedError, "AWSDmsAvroPayload"),
    ("payload_event_time", "snapshot"): (UnsupportedError, "EventTimeAvroPayload"),
    ("payload_overwrite_nondefaults", "snapshot"): (UnsupportedError, "OverwriteNonDefaultsWithLatestAvroPayload"),
    ("payload_partial_update", "snapshot"): (UnsupportedError, "PartialUpdateAvroPayload"),
}
"""Queries this release refuses, by case: the payload class merges log records by rules of its own. Base files alone are read all the same,
and so are these tables once their logs are compacted."""

UNREADABLE_BY_HUDI = {"timestamp_keygen_hive": 60}
"""Real Hudi 0.15 fails on its own table (it casts the path `2024-01-01-07` to a long), so there are no rows to compare with; their number."""

Golden = Callable[[str, str], GoldenCase]


def comparisons() -> list[tuple[str, str]]:
    """Case and query, wherever real Hudi gave an answer."""
    root = golden_root() / "6"
    return [(case, query) for case in golden_cases("6") for query in QUERIES if (root / f"{case}.expected" / f"{query}.parquet").exists()]


def read(table: Path, *, snapshot: bool) -> pa.Table:
    """The whole table by this engine, listed without the metadata table."""
    storage = LocalStorage(str(table))
    config = TableConfig.load(storage)
    active = ActiveTimeline(storage, config)
    timeline = active.load()
    schema = schema_of(timeline, active.read_details, create_schema=config.raw.get("hoodie.table.create.schema"))
    reader = SliceReader.for_query(storage, config, schema, timeline, snapshot=snapshot)
    view = load_view(active, StorageListing(storage), timeline)
    batches = [batch for partition in view.partitions() for item in slices(view, partition, reader) for batch in reader.read(item)]
    return pa.Table.from_batches(batches, reader.output_schema())


def slices(view: FileSystemView, partition: str, reader: SliceReader) -> list[FileSlice]:
    """What the reader's query reads of a partition."""
    if reader.snapshot:
        return view.latest_merged_slices(partition)
    names = [(parse_base_file(base.name), base) for base in view.latest_base_files(partition)]
    return [FileSlice(FileGroupId(partition, name.file_id), name.instant, base) for name, base in names]


def type_text(kind: pa.DataType) -> str:
    """A type without the names that writers give to the entries of maps."""
    return re.sub(r" \('[^']*'\)", "", str(kind))


def base_path(case: GoldenCase, query: str) -> Path:
    """The table before or after the pending plan ran."""
    return case.after() if query.startswith("after_") else case.table


@pytest.mark.parametrize(("name", "query"), comparisons())
def test_rows_are_those_of_real_hudi(golden: Golden, name: str, query: str) -> None:
    case = golden("6", name)
    snapshot = query.endswith("snapshot")
    if (name, query) in REFUSED:
        error, words = REFUSED[name, query]
        with pytest.raises(error, match=words) as caught:
            read(base_path(case, query), snapshot=snapshot)
        assert caught.value.path == ".hoodie/hoodie.properties"
        return
    found = read(base_path(case, query), snapshot=snapshot)
    expected = pq.read_table(case.expected / f"{query}.parquet")
    assert found.column_names == expected.column_names
    assert [type_text(field.type) for field in found.schema] == [type_text(field.type) for field in expected.schema]
    assert found.num_rows == expected.num_rows
    assert_same_rows(found, expected, ignore=())


@pytest.mark.parametrize("name", UNREADABLE_BY_HUDI)
def test_tables_that_real_hudi_itself_cannot_read(golden: Golden, name: str) -> None:
    assert read(golden("6", name).table, snapshot=True).num_rows == UNREADABLE_BY_HUDI[name]


def test_every_case_is_compared() -> None:
    made = comparisons()
    assert {case for case, _ in made} | set(UNREADABLE_BY_HUDI) == set(golden_cases("6"))
    assert set(REFUSED) <= set(made)
    root = golden_root() / "6"
    rows = sum(pq.read_metadata(root / f"{case}.expected" / f"{query}.parquet").num_rows for case, query in made if (case, query) not in REFUSED)
    assert (len(golden_cases("6")), len(made), len(REFUSED), rows) == (100, 197, 4, 20444)
