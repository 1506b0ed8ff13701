"""Ranges of a footer are those of the rows."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

from hudi_core.metadata_table.extract.column_ranges import FooterRanges, RowRanges, column_of
from tests.support.golden_data import GoldenCase
from tests.support.golden_metadata_cells import GoldenCells

Golden = Callable[[str, str], GoldenCase]


TYPES = [
    ("6", "types_cow"),
    ("8", "types_mor"),
    ("9", "types_mor"),
    ("9", "types_timestamp_millis"),
    ("9", "types_timestamp_ntz"),
    ("8", "types_3level_lists_cow"),
]


@pytest.mark.parametrize(("version", "case"), TYPES)
def test_footers_of_real_files_say_what_their_rows_say(golden: Golden, version: str, case: str) -> None:
    table = GoldenCells(golden(version, case).table)
    index_version = table.table.version_of("column_stats")
    recorded = 0
    for file in table.files():
        if not file.is_base:
            continue
        parquet = pq.ParquetFile(table.storage.uri.removeprefix("file://") + f"/{file.partition}/{file.name}")
        rows = parquet.read().combine_chunks().to_batches()[0]
        for name, kind in table.table.indexed_types().items():
            found = FooterRanges(parquet.metadata).range(name, kind, index_version)
            array = column_of(rows, name)
            if found is None or array is None:
                continue
            expected = RowRanges(name, kind, index_version)
            expected.add(array)
            assert (found.least, found.greatest, found.null_count, found.value_count) == (
                expected.result().least,
                expected.result().greatest,
                expected.result().null_count,
                expected.result().value_count,
            ), name
            recorded += found.least is not None
    assert recorded > 10
