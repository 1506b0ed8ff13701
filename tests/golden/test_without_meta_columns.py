"""Tables whose rows have nothing in `_hoodie_` columns (hoodie.populate.meta.fields=false): each service that rewrites
rows or replaces them, with the indexes that there are. Rows stay, and files are as real Hudi's compactions and inserts
of such tables leave them: the columns are there, none but the file's name is filled, and no footer tells of keys.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.model.names import META_FIELDS
from hudi_core.table import HudiTable
from hudi_core.verbs.metadata import MetadataCreateRequest
from hudi_core.verbs.run import RunRequest
from tests.support.golden_clusterings import LAYOUT, SORT_COLUMNS
from tests.support.golden_compactions import OPTIONS, footer_of
from tests.support.golden_data import GoldenCase
from tests.support.log_compactions import FROM_ONE
from tests.support.overwrites import delete, overwrite, put_source
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, assert_readable, leftovers, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS: Final = ("6", "8", "9")
KINDS: Final = (pytest.param("no_meta_fields_cow", marks=pytest.mark.conformance), "no_meta_fields_mor")
FOOTER: Final = {"parquet.avro.schema", "writer.model.name", "org.apache.spark.version"}
PARTITION: Final = "2024-01-01"
SMALL: Final = {"hoodie.clustering.plan.strategy.small.file.limit": str(1 << 30)}
ROW_GROUP: Final = "airflow_hudi.parquet.row_group.rows"
FULL: Final = {"airflow_hudi.verify": "full"}


def create_indexes(table: Path, version: str) -> None:
    """A metadata table of ours with every index that needs no definition."""
    partitions = ("column_stats", "bloom_filters", "record_index", *(("partition_stats",) if version != "6" else ()))
    request = MetadataCreateRequest(str(table), owner="the tests", options=OPTIONS, partitions=partitions)
    assert HudiTable.open(str(table)).run(request, LocalEngine(1)).exit_code == 0


@pytest.fixture(params=[pytest.param(False, marks=pytest.mark.conformance), True], ids=["plain", "indexed"])
def indexed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def opened(golden: Golden, version: str, name: str, *, indexed: bool) -> tuple[Path, pa.Table]:
    """The table and its rows."""
    table = golden(version, name).table
    if indexed:
        create_indexes(table, version)
    rows = read_rows(table)
    assert rows.num_rows
    assert not {*META_FIELDS} & {*rows.column_names}
    return table, rows


def run(table: Path, service: str, options: dict[str, str]) -> tuple[str, ...]:
    """The instants of a plan that was made and run; the rows are compared, all of them."""
    request = RunRequest(
        str(table), owner="the tests", options={**OPTIONS, **FULL, **options}, service=service, schedule=True
    )
    result = HudiTable.open(str(table)).run(request, LocalEngine(1))
    assert result.exit_code == 0, result
    return tuple(item.instant for item in result.instants)


def assert_form(table: Path, instant: str) -> int:
    """The new files are as Hudi's, and hold the rows of as many as are returned."""
    found = 0
    for path in table.rglob(f"*_{instant}.parquet"):
        rows = pq.ParquetFile(path).read()
        assert rows.column_names[:5] == list(META_FIELDS)
        assert set(rows.column("_hoodie_file_name").to_pylist()) == {path.name}
        for name in META_FIELDS[:4]:
            assert {*rows.column(name).to_pylist()} <= {None, ""}
        assert footer_of(path).keys() - {"ARROW:schema"} <= FOOTER
        found += rows.num_rows
    return found


def assert_kept(table: Path, rows: pa.Table, instant: str) -> None:
    assert_same_rows(read_rows(table), rows, ignore=())
    assert_readable(table, rows)
    assert_metadata_true(table)
    assert leftovers(table, instant) == []


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_a_compaction(golden: Golden, version: str, indexed: bool) -> None:
    table, rows = opened(golden, version, "no_meta_fields_mor", indexed=indexed)
    (instant,) = run(table, "compaction", {"hoodie.compact.inline.max.delta.commits": "1"})
    assert assert_form(table, instant) == rows.num_rows
    assert_kept(table, rows, instant)
    answer = HudiTable.open(str(table)).read("read_optimized")
    assert_same_rows(pa.Table.from_batches(list(answer.batches), answer.schema), rows, ignore=())


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_a_log_compaction(golden: Golden, version: str, indexed: bool) -> None:
    table, rows = opened(golden, version, "no_meta_fields_mor", indexed=indexed)
    (instant,) = run(table, "log_compaction", FROM_ONE)
    assert_kept(table, rows, instant)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
@pytest.mark.parametrize(
    "order",
    tiered(
        [
            pytest.param({}, id="none"),
            pytest.param({SORT_COLUMNS: "name"}, id="linear"),
            pytest.param({SORT_COLUMNS: "name,amount", LAYOUT: "z-order"}, id="z-order"),
        ],
        ["linear"],
    ),
)
@pytest.mark.parametrize("name", KINDS)
def test_a_clustering(golden: Golden, version: str, name: str, order: dict[str, str], indexed: bool) -> None:
    table, rows = opened(golden, version, name, indexed=indexed)
    (instant,) = run(table, "clustering", {**SMALL, **order})
    assert assert_form(table, instant) == rows.num_rows
    assert_kept(table, rows, instant)
    if order == {SORT_COLUMNS: "name"}:
        for path in table.rglob(f"*_{instant}.parquet"):
            names = pq.ParquetFile(path).read().column("name").to_pylist()
            assert names == sorted(names)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
@pytest.mark.parametrize("name", KINDS)
def test_row_groups_are_copied(golden: Golden, version: str, name: str, indexed: bool) -> None:
    """Of files without keys, by a clustering without sort columns: those of four rows stay."""
    table, rows = opened(golden, version, name, indexed=indexed)
    (first,) = run(table, "clustering", {**SMALL, SORT_COLUMNS: "id", ROW_GROUP: "4"})
    (second,) = run(table, "clustering", {**SMALL, ROW_GROUP: "16"})
    sizes = [row_group_sizes(table, instant) for instant in (first, second)]
    assert sizes[0] == sizes[1]
    assert set(sizes[0]) == {4}
    assert assert_form(table, second) == rows.num_rows
    assert_kept(table, rows, second)


def row_group_sizes(table: Path, instant: str) -> list[int]:
    files = [pq.read_metadata(path) for path in sorted(table.rglob(f"*_{instant}.parquet"))]
    return [file.row_group(number).num_rows for file in files for number in range(file.num_row_groups)]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
@pytest.mark.parametrize("combine", ["false", pytest.param("true", marks=pytest.mark.conformance)])
@pytest.mark.parametrize("name", KINDS)
def test_an_insert_overwrite_table(
    golden: Golden, tmp_path: Path, version: str, name: str, combine: str, indexed: bool
) -> None:
    table, rows = opened(golden, version, name, indexed=indexed)
    source = put_source(rows, tmp_path, files=2)
    options = {"hoodie.combine.before.insert": combine}
    result = overwrite(table, source, options, token="a day", whole_table=True)
    assert result.records == rows.num_rows == assert_form(table, str(result.instant))
    assert_kept(table, rows, str(result.instant))
    again = overwrite(table, source, options, token="a day", whole_table=True)
    assert (again.instant, again.repeated) == (result.instant, True)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["8"]))
@pytest.mark.parametrize("name", KINDS)
def test_an_insert_overwrite(golden: Golden, tmp_path: Path, version: str, name: str, indexed: bool) -> None:
    """Half of the rows of one partition, and another one of them that moves to a new partition."""
    table, rows = opened(golden, version, name, indexed=indexed)
    is_here = pc.equal(rows["dt"], PARTITION)
    here, elsewhere = rows.filter(is_here), rows.filter(pc.invert(is_here))
    half = here.num_rows // 2
    place = here.schema.get_field_index("dt")
    moved = here.slice(half, 1).set_column(place, here.schema.field(place), pa.array(["2024-12-31"]))
    given = pa.concat_tables([here.slice(0, half), moved])
    result = overwrite(table, put_source(given, tmp_path))
    assert result.partitions == 2
    assert assert_form(table, str(result.instant)) == given.num_rows
    assert_kept(table, pa.concat_tables([given, elsewhere]), str(result.instant))


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
@pytest.mark.parametrize("name", KINDS)
def test_a_delete_partition(golden: Golden, version: str, name: str, indexed: bool) -> None:
    table, rows = opened(golden, version, name, indexed=indexed)
    result = delete(table, PARTITION, token="once")
    assert (result.files_written, result.records, result.partitions) == (0, 0, 1)
    assert result.replaced_file_groups > 0
    assert_kept(table, rows.filter(pc.not_equal(rows["dt"], PARTITION)), str(result.instant))
    assert delete(table, PARTITION, token="once").repeated


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_files_that_lack_the_columns(golden: Golden, version: str) -> None:
    """As Hudi's clusterings leave them that write rows of Spark."""
    table = golden(version, "no_meta_fields_mor").table
    for path in table.rglob("*.parquet"):
        file = pq.ParquetFile(path)
        rows, metadata = file.read(), file.schema_arrow.metadata
        pq.write_table(rows.drop_columns(list(META_FIELDS)).replace_schema_metadata(metadata), path)
    rows = read_rows(table)
    for service, options in (("clustering", SMALL), ("clustering", {**SMALL, SORT_COLUMNS: "name"})):
        copy = Path(shutil.copytree(table, table.with_name(f"{table.name}-{len(options)}")))
        (instant,) = run(copy, service, options)
        assert assert_form(copy, instant) == rows.num_rows
        assert_kept(copy, rows, instant)
    (instant,) = run(table, "compaction", {"hoodie.compact.inline.max.delta.commits": "1"})
    assert assert_form(table, instant) == rows.num_rows
    assert_kept(table, rows, instant)
