"""How many bytes a row takes in the base files of a table."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.services.context import TableContext
from hudi_core.services.source import row_size
from hudi_core.services.source.row_size import bytes_per_row
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.timeline import Timeline
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import commit_of, overwrite, own_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
MIB = 1 << 20


def commit(*sizes: tuple[int, int], operation: str | None = None, log: bool = False) -> CommitMetadata:
    """Of files with so many bytes and rows."""
    name = ".{}-0_20240101000000000.log.1_0-0-0" if log else "{}-0_0-0-0_20240101000000000.parquet"
    stats = tuple(
        WriteStat(f"{number}-0", f"p/{name.format(number)}", "p", "null", rows, 0, 0, rows, size, size)
        for number, (size, rows) in enumerate(sizes)
    )
    return CommitMetadata({"p": stats}, operation_type=operation)


@pytest.fixture
def context(golden: Golden) -> TableContext:
    """A table whose own files are too small to show the size of a row."""
    return open_context(golden("6", "cow_basic").table)


def of_commits(
    context: TableContext, monkeypatch: pytest.MonkeyPatch, *newest_first: CommitMetadata | None
) -> float | None:
    """By a timeline of these commits; None is one that cannot be read."""
    made = {f"2024010100000{number:04d}": item for number, item in enumerate(reversed(newest_first))}

    def read(_: ActiveTimeline, item: Instant) -> CommitMetadata:
        found = made[item.requested_time]
        if found is None:
            raise CorruptFileError("the commit is damaged")
        return found

    monkeypatch.setattr(ActiveTimeline, "read_commit", read)
    monkeypatch.setattr(row_size, "_of_files", lambda *_: -1.0)
    timeline = Timeline(Instant(time, Action.COMMIT, State.COMPLETED, time) for time in made)
    return bytes_per_row(context, timeline)


def test_the_newest_commit_that_wrote_enough_shows_it(context: TableContext, monkeypatch: pytest.MonkeyPatch) -> None:
    large = commit((120 * MIB, 1_000_000))
    older = commit((200 * MIB, 1_000))
    per_row = 120 * MIB / 1_000_000
    assert of_commits(context, monkeypatch, large, older) == per_row
    assert of_commits(context, monkeypatch, commit((100 * MIB, 7)), large) == per_row, "100 MiB are not enough"
    assert of_commits(context, monkeypatch, commit(*[(MIB, 9)] * 200), large) == per_row, "files that are small"
    assert of_commits(context, monkeypatch, commit((120 * MIB, 9), (MIB, 9)), older) == 120 * MIB / 9
    assert of_commits(context, monkeypatch, commit((120 * MIB, 9), log=True), large) == per_row, "log files"
    assert of_commits(context, monkeypatch, commit((120 * MIB, 9), operation=Operation.CLUSTER), large) == per_row
    assert of_commits(context, monkeypatch, None, commit(), large) == per_row, "damaged, and empty"
    assert of_commits(context, monkeypatch, *[commit()] * 4, large) == per_row
    assert of_commits(context, monkeypatch, *[commit()] * 5, large) == -1, "not more than five are read"


def test_what_is_enough_is_an_option(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"hoodie.parquet.small.file.limit": str(10 * MIB), "hoodie.record.size.estimation.threshold": "2"}
    context = open_context(golden("9", "cow_basic").table, options)
    assert of_commits(context, monkeypatch, commit((21 * MIB, 7)), commit()) == 3 * MIB
    assert of_commits(context, monkeypatch, commit((20 * MIB, 7)), commit()) == -1


def test_else_the_footers_of_base_files_show_it(context: TableContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the filters that are in them."""
    timeline = context.active.load()
    assert bytes_per_row(context, timeline) is None
    monkeypatch.setattr(row_size, "_LEAST_COLUMNS", 1)
    found = bytes_per_row(context, timeline)
    view = context.view(timeline)
    files = [Path(context.uri, base.path) for name in view.partitions() for base in view.latest_base_files(name)]
    footers = [pq.read_metadata(path) for path in files]
    columns = [
        footer.row_group(number).column(at).total_compressed_size
        for footer in footers
        for number in range(footer.num_row_groups)
        for at in range(footer.num_columns)
    ]
    assert found == sum(columns) / sum(footer.num_rows for footer in footers)
    files[0].write_bytes(b"damaged")
    assert bytes_per_row(context, timeline) is not None, "an overwrite repairs it"


def long_rows(table: Path, count: int) -> pa.Table:
    """Rows of one partition, whose texts compress well."""
    draw, few = random.Random(1), own_rows(table, read_rows(table))
    rows = few.take(pa.array([number % few.num_rows for number in range(count)]))
    texts = {
        "id": [f"k{number:06d}" for number in range(count)],
        "note": [draw.randbytes(4).hex() + "x" * 400 for _ in range(count)],
        "dt": ["2024-01-01"] * count,
    }
    for name, values in texts.items():
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), pa.array(values))
    return rows


@pytest.mark.parametrize("by", ["commits", "files"])
@pytest.mark.parametrize("version", tiered(["6", "9"], ["9"]))
def test_an_uncompressed_source_becomes_files_of_the_size_that_is_asked_for(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, by: str
) -> None:
    table = golden(version, "cow_basic").table
    rows = long_rows(table, 6000)
    options = {
        "hoodie.parquet.compression.codec": "GZIP",
        "hoodie.parquet.small.file.limit": "0",
        "airflow_hudi.parquet.row_group.rows": "500",
    }
    # So far its files have some rows and filters of 430 KB.
    monkeypatch.setattr(row_size, "_LEAST_FILE" if by == "commits" else "_LEAST_COLUMNS", 50_000)
    given = [tmp_path / name for name in ("packed", "plain")]
    for folder in given:
        folder.mkdir()
    pq.write_table(rows.replace_schema_metadata(None), given[0] / "rows.parquet")
    pq.write_table(rows, given[1] / "rows.parquet", compression="none", use_dictionary=False)
    first = overwrite(table, given[0], options, whole_table=True)
    (whole,) = commit_of(table, first.instant).write_stats()
    assert (given[1] / "rows.parquet").stat().st_size > 10 * whole.file_size_in_bytes
    size = whole.file_size_in_bytes // 3
    done = overwrite(table, given[1], {**options, "hoodie.parquet.max.file.size": str(size)}, whole_table=True)
    sizes = [stat.file_size_in_bytes for stat in commit_of(table, done.instant).write_stats()]
    # Filter and footer are not among the bytes at which a file ends.
    assert 2 <= len(sizes) <= 4
    assert all(size / 2 < found < 2 * size for found in sizes)
    assert done.records == 6000
