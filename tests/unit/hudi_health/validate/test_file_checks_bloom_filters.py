from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from hudi_core.metadata_table.keys import (
    bloom_filter_key,
)
from tests.support.bloom_filters import build
from tests.support.damaged_tables import changed
from tests.unit.hudi_health.validate.test_run import BLOOM, VERSIONS, Golden, metadata_snapshot


@pytest.mark.parametrize("version", VERSIONS)
def test_the_filter_of_another_file(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    other = next((place, name) for place, name in table.base_files() if place != partition)
    data = table.raw("bloom_filters")
    table.write({"bloom_filters": [(bloom_filter_key(partition, file), data[bloom_filter_key(*other)])]})
    rows = pq.ParquetFile(table.path / partition / file).metadata.num_rows
    assert [(item.partition_type, item.partition, item.file, item.what) for item in table.found()] == [
        ("bloom_filters", partition, file, "the filter is not that of the file's footer"),
        ("bloom_filters", partition, file, f"the filter lacks {rows} of the file's {rows} keys"),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_filter_that_lacks_a_key(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    keys = pq.read_table(table.path / partition / file)["_hoodie_record_key"].combine_chunks()
    lacking = build(keys[1:])
    key = bloom_filter_key(partition, file)
    datum = changed(table.raw("bloom_filters")[key], BLOOM, bloomFilter=lacking.to_base64().encode())
    table.write({"bloom_filters": [(key, datum)]})
    assert [item.what for item in table.found()] == [
        "the filter is not that of the file's footer",
        f"the filter lacks 1 of the file's {len(keys)} keys",
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_filters_of_no_file_and_files_without_a_filter(golden: Golden, version: str) -> None:
    table = metadata_snapshot(golden, version)
    partition, file = table.latest_base()
    key, nowhere = bloom_filter_key(partition, file), bloom_filter_key(partition, "gone.parquet")
    datum = table.raw("bloom_filters")[key]
    gone = changed(datum, BLOOM, isDeleted=True, bloomFilter=b"")
    table.write({"bloom_filters": [(key, gone), (nowhere, datum)]})
    assert [(item.file, item.what) for item in table.found()] == [
        (None, f"key {nowhere}: a filter of a file that is no listed base file of the partition"),
        (file, "has a filter in its footer, and none here"),
    ]
