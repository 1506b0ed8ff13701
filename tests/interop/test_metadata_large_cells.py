"""HFiles of ours whose large cells have blocks to themselves, among blocks of many small cells: real Hudi finds each of
them.

Bloom filters with Hudi's defaults are cells of some 430 KB each; those of few keys are small ones.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.writer import LARGE_CELL
from tests.interop.changes import write_parquet
from tests.interop.fully_indexed_table import BY_BLOOM, COMPACT_AT_ONCE, OURS, SWITCHES, FullyIndexedTable
from tests.interop.judged import BASE_OPTIONS, COW, JUDGES, OTHERS
from tests.interop.real_hudi import RealHudi

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

PARTITIONS = 6
SMALL = {"hoodie.index.bloom.num_entries": "1000"}
ONE_GROUP = {"hoodie.metadata.index.bloom.filter.file.group.count": "1"}
LABELS = {**JUDGES, **OTHERS}


def part(number: int) -> pa.Table:
    """One row for each partition."""
    metadata_timeline = range(number * PARTITIONS, (number + 1) * PARTITIONS)
    return pa.table(
        {
            "id": [f"key-{row:04d}" for row in metadata_timeline],
            "dt": [f"2024-01-0{1 + row % PARTITIONS}" for row in metadata_timeline],
            "ts": pa.array(metadata_timeline, pa.int64()),
            "name": [f"name {row}" for row in metadata_timeline],
        }
    )


def table_of_mixed_filters(hudi: RealHudi, base: Path, version: str) -> FullyIndexedTable:
    """By turns a file with a small and one with a large filter in each partition, without a metadata table."""
    one_x = not hudi.version.startswith("0.")
    pinned = {"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"} if one_x else {}
    served = {"hoodie.embed.timeline.server": "true"} if one_x else {}
    options = {
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.clean.automatic": "false",
        "hoodie.metadata.enable": "false",
        **served,
    }
    chosen = {
        **BASE_OPTIONS,
        "hoodie.datasource.write.table.type": COW,
        "hoodie.datasource.write.operation": "insert",
        **pinned,
        **options,
    }
    rows = [part(number) for number in range(3)]
    hudi.ask("create", base=str(base), parquet=write_parquet(rows[0], base.parent, "rows"), options={**chosen, **SMALL})
    for number, more in enumerate(rows[1:]):
        given = {**options, **(SMALL if number else {})}
        hudi.ask(
            "write",
            base=str(base),
            operation="insert",
            parquet=write_parquet(more, base.parent, f"more{number}"),
            options=given,
        )
    return FullyIndexedTable(hudi, base, pa.concat_tables(rows), options)


def blocks_of(base: Path) -> list[list[int]]:
    """The sizes of the values in each data block of the newest base file of `bloom_filters`."""
    newest = max(
        (base / ".hoodie" / "metadata" / "bloom_filters").glob("*.hfile"), key=lambda path: path.name.split("_")[-1]
    )
    reader = HFileReader.of_bytes(newest.read_bytes(), newest.name)
    return [[len(value) for _, value in block.items()] for block in reader.blocks()]


@pytest.mark.parametrize("label", LABELS)
def test_real_hudi_reads_base_files_with_large_cells(
    request: pytest.FixtureRequest, tmp_path: Path, label: str
) -> None:
    hudi: RealHudi = request.getfixturevalue(LABELS[label])
    table = table_of_mixed_filters(hudi, tmp_path / "table", label[0])
    table.run("metadata_create", partitions=("bloom_filters",), options={**OURS, **ONE_GROUP})
    assert_mixed(blocks_of(table.base))
    table.check()
    table.check_filters()
    table.options |= {
        **{name: "false" for name in SWITCHES if name.endswith("enable")},
        **ONE_GROUP,
        "hoodie.metadata.enable": "true",
    }
    table.options["hoodie.metadata.index.bloom.filter.enable"] = "true"
    before = table.metadata_files()
    table.upsert(7, fresh=False, options={**BY_BLOOM, **SMALL})
    table.ours("metadata_update", COMPACT_AT_ONCE)
    assert_mixed(blocks_of(table.base))
    table.assert_metadata_kept(before)
    table.check()
    table.check_filters()
    table.upsert(7, fresh=False, options=BY_BLOOM)
    assert pc.count_distinct(table.hudi.snapshot(table.base, metadata=False)["id"]).as_py() == table.rows.num_rows
    table.check()
    table.check_filters()
    assert table.found() == []


def assert_mixed(blocks: list[list[int]]) -> None:
    """There are large cells, each by itself, and small ones."""
    large = [sizes for sizes in blocks if max(sizes) >= LARGE_CELL]
    assert len(large) >= 3
    assert {len(sizes) for sizes in large} == {1}
    assert sum(len(sizes) for sizes in blocks if max(sizes) < LARGE_CELL) >= 3
