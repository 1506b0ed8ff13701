"""Real Hudi goes on with base files that were made by our pages, by splicing row groups, by cutting row groups, and by
a compaction that copies row groups and pieces of its own: it reads them with the metadata table and without, by every
index, in both readers of Spark, finds its updates by BLOOM and RECORD_INDEX, and compacts and clusters them.
"""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.parquet.cuts import RowGroupCuts
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.pieces import Piece
from hudi_core.codec.parquet.splice import RowGroupSource, WholeRowGroup
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from hudi_core.model.names import FILE_NAME
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from hudi_health.table import validate_metadata
from tests.interop.fully_indexed_table import BY_BLOOM, BY_RECORD_INDEX, OURS, SWITCHES, FullyIndexedTable
from tests.interop.judged import COW, JUDGES, KINDS, MOR, Judged, first_rows
from tests.interop.real_hudi import RealHudi
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

COPYING = {**OURS, "airflow_hudi.parquet.row_group.rows": "1"}
"""A row group of each row, so that a file is mostly copied."""
CUTTING = {**OURS, "airflow_hudi.parquet.row_group.rows": "40000"}
"""Pieces of 10,000 rows may be copied. Real Hudi begins a page in all columns every 20,000 rows."""
CLUSTERING = {"hoodie.clustering.plan.strategy.small.file.limit": "100000000", "hoodie.clustering.inline": "false"}


def rewritten(path: Path, number: int) -> str:
    """Makes a base file again, under its name: by pages alone, by splicing alone, by both in turns, or by pieces of a
    row group whose pages have a row each, in turns with pages.
    """
    with ParquetBaseFile(io.BytesIO(path.read_bytes()), str(path)) as base:
        footer = {key: value for key, value in base.footer.items() if key != "ARROW:schema"}
        table = pa.Table.from_batches(base.batches(), base.schema)
        out = io.BytesIO()
        style = ParquetStyle(base.compression or "GZIP", row_group_rows=2 + number)
        writer = BaseFileWriter(out, table.schema, path=str(path), style=style)
        source = RowGroupSource(base)
        made = ("pages", "splice", "both", "cut")[number % 4] if source.refusal(table.schema) is None else "pages"
        if made == "pages":
            writer.write(table)
        if made == "cut":
            write_pieces(table, writer, path.name)
        rest = 0
        for group in range(base.metadata.num_row_groups if made in ("splice", "both") else 0):
            rows = base.metadata.row_group(group).num_rows
            if made == "splice" or group % 2:
                writer.copy(WholeRowGroup(source, group), {FILE_NAME: pa.repeat(pa.scalar(path.name), rows)})
            else:
                writer.write(table.slice(rest, rows))
            rest += rows
        # A file that is shorter than its commit says is taken for a cut one.
        writer.close({**footer, "padding": "x" * 4096})
    path.write_bytes(out.getvalue())
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    assert pq.read_table(path, partitioning=None, page_checksum_verification=True).equals(table)
    return made


def write_pieces(table: pa.Table, writer: BaseFileWriter, name: str) -> None:
    paged = io.BytesIO()
    pages = {"write_page_index": True, "max_rows_per_page": 1, "write_batch_size": 1}
    pq.write_table(table, paged, compression="gzip", use_dictionary=["note"], store_schema=False, **pages)
    source = RowGroupSource(ParquetBaseFile(paged, name))
    cuts = RowGroupCuts(source, 0, range(table.num_columns), all_read=True)
    assert len(cuts.rows) == table.num_rows + 1
    for first in range(0, table.num_rows, 2):
        end = min(first + 2, table.num_rows)
        if first % 4:
            writer.write(table.slice(first, end - first))
        else:
            writer.copy(Piece(cuts, first, end), {FILE_NAME: pa.repeat(pa.scalar(name), end - first)})


def base_files(table: Judged) -> list[Path]:
    return sorted(path for path in table.base.rglob("*.parquet") if ".hoodie" not in path.parts)


def read_by_both(table: Judged) -> None:
    """Spark's vectorised reader, and parquet-mr's of rows."""
    for vectorised in ("true", "false"):
        table.hudi.ask("sql", statement=f"SET spark.sql.parquet.enableVectorizedReader={vectorised}")
        assert_same_rows(table.hudi.snapshot(table.base, metadata=True), read_rows(table.base, "off"))
        table.hudi.ask("sql", statement="RESET spark.sql.parquet.enableVectorizedReader")


def compact_by_copying(table: FullyIndexedTable) -> None:
    """Our run of a compaction that real Hudi planned, of files whose row groups are rows; most of them are copied."""
    for _ in range(2):  # the second one finds the row groups of the first
        table.upsert(4, fresh=False)
        instant = table.schedule_compaction()
        table.run(service="compaction", instant=instant, options=COPYING)
        assert instant in table.times(Action.COMMIT)
    newest = [path for path in base_files(table) if path.stem.endswith(f"_{instant}")]
    footers = [pq.ParquetFile(path).metadata for path in newest]
    sizes = {footer.row_group(group).num_rows for footer in footers for group in range(footer.num_row_groups)}
    assert sizes > {1}, "a row group that was not copied has one row"


def cluster(table: Judged) -> None:
    """Real Hudi rewrites all files."""
    options = {**table.options, **CLUSTERING}
    instant = table.hudi.ask("service", base=str(table.base), name="schedule_clustering", options=options)
    assert instant is not None
    table.hudi.ask("service", base=str(table.base), name="cluster", instant=instant, options=options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", ["6", "8", "9"])
def test_real_hudi_goes_on_with_files_of_pages_and_copies(
    request: pytest.FixtureRequest, tmp_path: Path, label: str, kind: str
) -> None:
    hudi: RealHudi = request.getfixturevalue(JUDGES[label])
    table = FullyIndexedTable.without_metadata(hudi, tmp_path / "table", kind, label)
    for path in base_files(table):
        rewritten(path, 0)
    made = {rewritten(path, number) for number, path in enumerate(base_files(table))}
    assert made == {"pages", "splice", "both", "cut"}
    table.begin()
    table.judge()
    read_by_both(table)
    table.upsert(5, options=BY_BLOOM)
    table.upsert(5, fresh=False, options=BY_RECORD_INDEX)
    table.check()
    if kind == MOR:
        compact_by_copying(table)
        table.judge()
        read_by_both(table)
        table.upsert(4, options=BY_BLOOM)
        table.upsert(4, fresh=False, options=BY_RECORD_INDEX)
        table.compact()
        table.judge()
    else:
        assert kind == COW
    cluster(table)
    table.check()
    table.go_on()


@pytest.mark.parametrize("label", ["6", "8", "9"])
def test_real_hudi_goes_on_with_pieces_of_its_own_files(
    request: pytest.FixtureRequest, tmp_path: Path, label: str
) -> None:
    """Base files of 60,000 rows, of which the logs touch some in one page: the others are copied, again and again."""
    hudi: RealHudi = request.getfixturevalue(JUDGES[label])
    kept = {name: value for name, value in SWITCHES.items() if "partition.stats" not in name}
    options = {**kept, "hoodie.parquet.small.file.limit": "0", "hoodie.metadata.index.partition.stats.enable": "false"}
    table = Judged.create(hudi, tmp_path / "table", MOR, label, options, first_rows(120_000))
    for _ in range(2):
        table.upsert(4, fresh=False)
        instant = table.schedule_compaction()
        table.run(service="compaction", instant=instant, options=CUTTING)
    footers = [pq.ParquetFile(path).metadata for path in base_files(table) if path.stem.endswith(f"_{instant}")]
    sizes = [[footer.row_group(group).num_rows for group in range(footer.num_row_groups)] for footer in footers]
    assert all(sum(rows) == 60_000 and len(rows) > 1 and set(rows) <= {20_000, 40_000} for rows in sizes), sizes
    check_cut(table)
    table.upsert(4, options=BY_BLOOM)
    table.upsert(4, fresh=False, options=BY_RECORD_INDEX)
    check_cut(table)
    table.compact()
    cluster(table)
    table.clean()
    check_cut(table)


def check_cut(table: Judged) -> None:
    table.check()
    read_by_both(table)
    assert validate_metadata(HudiTable.open(str(table.base))).differences == ()
    predicates = ["id = 'key-0500'", "ts > 10000000", "name = 's1-2'", "amount < 3.0"]
    answers = table.hudi.ask("skipping", base=str(table.base), predicates=predicates)
    assert all(answer["same"] for answer in answers), answers
    assert sum(answer["rows"] for answer in answers) > 0
