"""What people see in a terminal of 80 or 100 columns: nothing that a user may want to copy is cut."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from hudi_cli.tables import WIDE, file_table, instant_table, run_table, shown_rows, wrapped_rows
from hudi_core.engine.protocol import Json
from hudi_core.timeline.instant import Action
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl

WIDTH = 100


@pytest.fixture
def document(golden: Callable[[str, str], GoldenCase]) -> Callable[..., Json]:
    table = golden("8", "multilevel_plain_mor").table
    return lambda command, *more: hudictl(command, table, *more, "--json").document


def printed(table: Table, width: int = WIDTH) -> list[str]:
    """The table's lines."""
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return out.getvalue().splitlines()


def cells(lines: list[str], count: int, anchor: int) -> list[list[str]]:
    """The rows' texts, joined from the lines that each goes over; a row begins where the column `anchor` is not
    empty.
    """
    rows: list[dict[int, str]] = []
    for line in lines:
        parts = [part.strip() for part in line.split("│")[1:-1]]
        if len(parts) != count:
            continue
        if parts[anchor]:
            rows.append(defaultdict(str))
        for index, part in enumerate(parts):
            rows[-1][index] += part
    return [[row[index] for index in range(count)] for row in rows]


@pytest.mark.parametrize("width", [80, WIDE])
def test_file_slices(document: Callable[..., Json], width: int) -> None:
    """Each slice is one line below the line of its partition; in a wide terminal with the base file's name."""
    slices = document("files")["slices"]
    out = io.StringIO()
    Console(file=out, width=width).print(file_table("t", slices, width))
    title, _, *lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert title.startswith(f"t: {len(slices)} file slices")
    assert max(map(len, lines)) <= width
    assert "…" not in out.getvalue()
    expected, partition = [], None
    for item in slices:
        if item["partition"] != partition:
            partition = item["partition"]
            expected.append([partition])
        base = item["base_file"] if width == WIDE else "parquet"
        expected.append([item["file_id"], item["base_instant"], base, str(len(item["log_files"]))])
    assert [line.split()[:4] if len(line.split()) > 4 else [line] for line in lines] == expected


def test_instants(document: Callable[..., Json]) -> None:
    """Commits with their operation, rows and size."""
    instants = document("timeline")["instants"]
    title, _, *lines = printed(instant_table("t", instants))
    assert title.strip() == f"t: {len(instants)} instants"
    assert [line.split() for line in lines] == [
        [
            item["requested_time"],
            item["completion_time"],
            item["action"],
            *(
                (item["operation"].lower(), f"{item['rows']:,}", *decimal(item["bytes"]).split())
                if item["operation"]
                else ()
            ),
        ]
        for item in instants
    ]
    assert any(item["rows"] for item in instants)


@pytest.mark.parametrize("completed", [True, False], ids=["layout 2", "layout 1"])
def test_instants_fit_80_columns_and_are_not_cut(document: Callable[..., Json], completed: bool) -> None:
    """Whatever the action and the operation: these have the longest names."""
    time = document("timeline")["instants"][0]["requested_time"]
    row = {"requested_time": time, "completion_time": time if completed else None, "state": "completed"}
    none = {"operation": None, "rows": None, "bytes": None}
    written = {"operation": "INSERT_OVERWRITE_TABLE", "rows": 1234567, "bytes": 123_456_789}
    lines = printed(
        instant_table(
            "t", [{**row, "action": Action.REPLACE_COMMIT, **written}, {**row, "action": Action.LOG_COMPACTION, **none}]
        ),
        80,
    )
    assert max(len(line.rstrip()) for line in lines) <= 80
    words = " ".join(lines).split()
    longest = {time, Action.REPLACE_COMMIT, Action.LOG_COMPACTION, "insert", "overwrite", "table", "1,234,567", "123.5"}
    assert longest <= set(words)
    assert ("completed" in words, "state" in words) == (True, not completed)


def test_wrapped_rows_keep_words_whole() -> None:
    """A word that is longer than the column is for copying."""
    path = "p/" + "x" * 40
    lines = list(wrapped_rows([("one", "1", f"the file {path} is not there"), ("three", "22", "short [bold]")], 40))
    assert [Text.from_markup(line).plain for line in lines] == [
        "one    1   the file",
        f"           {path}",
        "           is not there",
        "three  22  short [bold]",
    ]
    assert list(wrapped_rows([], 40)) == []


def test_what_a_run_did() -> None:
    row = {
        "instant": "20261120214905004",
        "action": "compaction",
        "state": "completed",
        "files_written": 1234,
        "bytes_written": 12345678901,
    }
    lines = printed(run_table([{**row, "files_deleted": 0, "records": 1234567890, "seconds": 12345.6}]))
    assert cells(lines, 7, 0) == [
        ["20261120214905004", "compaction", "completed", "1234", "12.3 GB", "1,234,567,890", "12345.6"]
    ]
    lines = printed(run_table([{**row, "files_deleted": 77, "records": 0, "seconds": 1.0}]))
    assert cells(lines, 8, 0) == [["20261120214905004", "compaction", "completed", "1234", "12.3 GB", "77", "0", "1.0"]]


def test_one_is_no_plural() -> None:
    row = {"requested_time": "1", "completion_time": None, "action": "clean", "state": "completed"} | dict.fromkeys(
        ("operation", "rows", "bytes")
    )
    assert [str(instant_table("t", [row] * count).title) for count in (0, 1, 2)] == [
        "t: 0 instants",
        "t: 1 instant",
        "t: 2 instants",
    ]


def test_rows_as_csv_keep_line_separators_in_their_texts() -> None:
    lines = list(shown_rows(["a", "b"], [{"a": "x\u2028y", "b": None}, {"a": 'q"', "b": True}], "csv"))
    assert lines == ["a,b", "x\u2028y,", '"q""",true']
