"""Results that do not account for each row are refused: nothing is published, and nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.errors import ExecutionError
from hudi_core.services.rewriting.new_file_groups import NewFile
from hudi_core.services.write.tagging.tag import Tagged
from hudi_core.services.write.upsert import GroupRows, Upserted
from tests.support.changed_tables import data_files, open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import put_source
from tests.support.table_invariants import assert_metadata_true, leftovers, read_rows
from tests.support.tiers import tiered
from tests.support.writes import APART, Model, SeenEngine, changed, like, own_columns, staged, write

Golden = Callable[[str, str], GoldenCase]
Change = Callable[[list[Any]], list[Any]]
"""Of the results of an exchange."""


def data_of(table: Path) -> set[str]:
    """The data files of a table. A rollback of layout 1 leaves log files, with a block that makes them void."""
    layout = open_context(table).active.layout
    return {name for name in data_files(table) if ".parquet" in name or (".log." in name and layout > 1)}


def fails(table: Path, scratch: Path, change: Change, match: str, options: dict[str, str] | None = None) -> None:
    """An upsert of changed rows and new ones, whose results are changed on their way, is refused."""
    model, rows = Model.of(table, event_time=True), own_columns(read_rows(table))
    new = like(rows, {"id": "new 1"}, {"id": "new 2", "dt": "2031-01-01"}, {"id": "new 3", "dt": "2031-01-01"})
    source = pa.concat_tables([changed(rows.slice(0, 9), ts=lambda ts: ts + 1, qty=1), new])
    files = data_of(table)
    engine = SeenEngine(change)
    with pytest.raises(ExecutionError, match=match):
        write(table, "upsert", put_source(source, scratch, files=2), options, engine=engine)
    assert engine.units
    model.check(table)
    assert data_of(table) == files
    assert list(open_context(table).active.load().pending()) == []
    assert leftovers(table, "") == []
    assert staged(table) == []
    assert_metadata_true(table)


def of(kind: type, change: Callable[[Any], Any], *, chosen: Callable[[Any], bool] = lambda item: True) -> Change:
    """Changes the first result of this class that is chosen."""

    def changes(results: list[Any]) -> list[Any]:
        if not isinstance(results[0], kind):
            return results
        at = next(number for number, item in enumerate(results) if chosen(item))
        return [*results[:at], change(results[at]), *results[at + 1 :]]

    return changes


def is_of_group(item: Upserted) -> bool:
    return item.counts is not None


def is_new(item: Upserted) -> bool:
    return item.counts is None and bool(item.files)


def with_stat(item: Upserted, **values: Any) -> Upserted:
    """The result with other values in the stat of its file."""
    (file, *_) = item.files
    return replace(item, files=(NewFile(replace(file.stat, **values), file.statistics),))


def with_counts(item: Upserted, **more: int) -> Upserted:
    """The result with more rows counted."""
    counts: GroupRows = item.counts or GroupRows(0, 0)
    return replace(item, counts=replace(counts, **{name: getattr(counts, name) + by for name, by in more.items()}))


TAGGED = {
    "a tagged row is gone": (lambda item: replace(item, rows={"2024-01-01": 1}), "12 rows were counted, but"),
    "a row is tagged twice": (
        lambda item: replace(item, dropped={**item.dropped, "2024-01-01": 1}),
        "12 rows were counted, but 12 and 1 newer ones tagged",
    ),
}


@pytest.mark.parametrize("what", TAGGED)
def test_rows_that_are_lost_or_doubled_by_tagging(golden: Golden, tmp_path: Path, what: str) -> None:
    change, match = TAGGED[what]
    fails(golden("9", "mdt_disabled").table, tmp_path, of(Tagged, change), match)


def test_more_rows_that_are_tagged_for_a_file_group_than_come(golden: Golden, tmp_path: Path) -> None:
    fails(
        golden("9", "mdt_disabled").table,
        tmp_path,
        of(Tagged, lambda item: replace(item, in_groups={name: count + 1 for name, count in item.in_groups.items()})),
        r"\d+ rows were read and \d+ written",
    )


def test_fewer_rows_that_are_tagged_than_come(golden: Golden, tmp_path: Path) -> None:
    fails(
        golden("9", "mdt_disabled").table,
        tmp_path,
        of(Tagged, lambda item: replace(item, in_groups=dict.fromkeys(item.in_groups, 0))),
        "more rows were written than came",
    )


RESULTS: dict[str, tuple[Change, str]] = {
    "a file group was not written": (
        of(Upserted, lambda item: Upserted(), chosen=is_of_group),
        "file groups get rows, and",
    ),
    "a file group has no file": (
        of(Upserted, lambda item: replace(item, files=()), chosen=is_of_group),
        "the engine wrote 0 files",
    ),
    "a file group has two files": (
        of(Upserted, lambda item: replace(item, files=item.files * 2), chosen=is_of_group),
        "the engine wrote 2 files",
    ),
    "a row did not come": (
        of(Upserted, lambda item: with_counts(item, incoming=-1), chosen=is_of_group),
        r"\d+ rows were read and \d+ written",
    ),
    "a row came and nothing became of it": (
        of(Upserted, lambda item: with_counts(item, incoming=1), chosen=is_of_group),
        "the engine returned",
    ),
    "a base row is lost": (
        of(Upserted, lambda item: with_stat(item, num_writes=item.files[0].stat.num_writes - 1), chosen=is_of_group),
        r"\d+ rows were written for GroupRows",
    ),
    "a file is empty": (
        of(Upserted, lambda item: with_stat(item, file_size_in_bytes=0), chosen=is_of_group),
        "the engine returned",
    ),
    "a file is of another partition": (
        of(Upserted, lambda item: with_stat(item, partition_path="2024-01-09"), chosen=is_of_group),
        "the engine returned",
    ),
    "a file has no statistics": (
        of(Upserted, lambda item: replace(item, files=(replace(item.files[0], statistics=None),)), chosen=is_of_group),
        "no statistics of the file",
    ),
    "a new file lost a row": (
        of(Upserted, lambda item: with_stat(item, num_writes=1), chosen=is_new),
        r"2 rows were read and 1 written in '2031-01-01'",
    ),
    "a new file is gone": (
        of(Upserted, lambda item: replace(item, files=()), chosen=is_new),
        r"2 rows were read and 0 written in '2031-01-01'",
    ),
    "a new file is there twice": (
        of(Upserted, lambda item: replace(item, files=item.files * 2), chosen=is_new),
        r"2 rows were read and 4 written in '2031-01-01'",
    ),
    "rows are said to be marked as deleted": (
        of(Upserted, lambda item: replace(item, dropped={"2031-01-01": 1}), chosen=is_new),
        r"1 rows were read and 2 written in '2031-01-01'",
    ),
}


@pytest.mark.parametrize("what", RESULTS)
def test_results_that_lost_a_row(golden: Golden, tmp_path: Path, what: str) -> None:
    change, match = RESULTS[what]
    fails(golden("9", "cow_basic" if "statistics" in what else "mdt_disabled").table, tmp_path, change, match)


@pytest.mark.parametrize("version", tiered(["6", "9"], ["6"]))
@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"num_writes": 0}, r"0 rows were written for GroupRows"),
        ({"path": "{day}/{other}"}, "the engine returned"),
        ({"file_size_in_bytes": -1}, "the engine returned"),
    ],
)
def test_log_files_that_lost_a_row(
    golden: Golden, tmp_path: Path, version: str, values: dict[str, Any], match: str
) -> None:
    """Or are named after another slice."""

    def change(item: Upserted) -> Upserted:
        stat = item.files[0].stat
        name = stat.name.replace(f"_{stat.prev_commit}.log", "_20200101000000000.log")
        filled = {
            key: value.format(day=stat.partition_path, other=name) if isinstance(value, str) else value
            for key, value in values.items()
        }
        return with_stat(item, **filled)

    def is_log(item: Upserted) -> bool:
        return item.counts is not None and item.files[0].stat.log_version is not None

    table = golden(version, "mor_basic").table
    fails(table, tmp_path, of(Upserted, change, chosen=is_log), match, APART)


def test_a_file_that_is_there_is_the_one_that_the_task_named(golden: Golden, tmp_path: Path) -> None:
    """By its size."""
    larger = of(
        Upserted,
        lambda item: with_stat(item, file_size_in_bytes=item.files[0].stat.file_size_in_bytes + 1),
        chosen=is_of_group,
    )
    fails(golden("9", "mdt_disabled").table, tmp_path, larger, "the task reported")
