"""Prints hudictl's results as tables. In a narrow terminal names continue on the next line: a cut name is useless."""

from __future__ import annotations

import csv
import io
import textwrap
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import RenderableType
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from hudi_cli.output import json_text
from hudi_core.engine.protocol import Json
from hudi_core.errors import one_line
from hudi_core.model.names import META_FIELDS

if TYPE_CHECKING:
    from hudi_core.table import ReadResult

_TIMES = frozenset({"requested", "completed", "base instant", "instant"})
WIDE = 160
"""The least columns of a terminal for the names of base files to be in one line with the rest."""
FORMATS: Final = ("table", "csv", "json")
"""The forms in which the rows of a query can be printed."""
_STATE_STYLE = {"requested": "yellow", "inflight": "cyan", "completed": "green", "failed": "bold red"}


def counted(number: int, noun: str) -> str:
    """Returns the number with the noun, which is in the plural unless the number is 1."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def wrapped_rows(rows: Sequence[Sequence[str]], width: int, style: str = "bold") -> Iterator[str]:
    """Yields the rows of a table without lines. Cells are in columns; the last cell is wrapped at words within its
    column.

    A word that is longer than its column, such as a path, stays whole. `style` is the style of the first column.
    """
    widths = [max(len(row[index]) for row in rows) + 2 for index in range(len(rows[0]) - 1)] if rows else []
    indent = " " * sum(widths)
    for row in rows:
        texts = _at_words(row[-1], width - len(indent))
        first, *others = (cell.ljust(size) for cell, size in zip(row, widths, strict=False))
        head = f"[{style}]{escape(first)}[/]" + "".join(map(escape, others))
        yield (head + escape(texts[0])).rstrip()
        yield from (indent + escape(text) for text in texts[1:])


def _at_words(text: str, width: int) -> list[str]:
    return textwrap.wrap(one_line(text), max(width, 20), break_long_words=False, break_on_hyphens=False) or [""]


def instant_table(name: str, rows: Sequence[Json]) -> Table:
    """Returns a table of the instants of a timeline, in its order; commits show what they wrote. It fits 80 columns.

    If the timeline has completion times, an instant without one shows its state in that column.
    """
    timed = any(row["completion_time"] for row in rows)
    title = f"{name}: {counted(len(rows), 'instant')}"
    table = Table(title=escape(title), title_justify="left", box=None, padding=(0, 1, 0, 0), header_style="dim")
    for heading in ("requested", "completed" if timed else "state", "action"):
        table.add_column(heading, no_wrap=True)
    table.add_column("operation")
    for heading in ("rows", "size"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["requested_time"],
            row["completion_time"] or _state(row["state"]),
            escape(row["action"]),
            escape((row["operation"] or "").lower().replace("_", " ")),
            "" if row["rows"] is None else f"{row['rows']:,}",
            "" if row["bytes"] is None else decimal(row["bytes"]),
        )
    return table


def file_table(name: str, slices: Sequence[Json], width: int) -> Table:
    """Returns a table of file slices with their sizes, below a line for each partition. Log files are counted.

    It fits 80 columns. The name of a base file, which is its file id, write token and instant, needs WIDE columns.
    """
    title = f"{name}: {counted(len(slices), 'file slice')}, {decimal(sum(item['bytes'] for item in slices))}"
    named = width >= WIDE
    table = Table(title=escape(title), title_justify="left", box=None, padding=(0, 1, 0, 0), header_style="dim")
    for heading in ("file id", "base instant", "base file" if named else "base"):
        table.add_column(heading, overflow="fold", no_wrap=heading in _TIMES)
    for heading in ("logs", "size"):
        table.add_column(heading, justify="right", no_wrap=True)
    partition = None
    for item in slices:
        if item["partition"] != partition:
            partition = item["partition"]
            table.add_row(f"[bold]{escape(one_line(partition)) or '.'}[/]")
        base = item["base_file"] or "-"
        table.add_row(
            escape(item["file_id"]),
            item["base_instant"],
            escape(base if named else base.rpartition(".")[2]),
            str(len(item["log_files"])),
            decimal(item["bytes"]),
        )
    return table


def run_table(rows: Sequence[Json]) -> Table:
    """Returns a table of what a run did, one line per instant. It has a column of deleted files if there are any."""
    deleted = any(row["files_deleted"] for row in rows)
    headings = ("written", "size", *(("deleted",) if deleted else ()), "records", "seconds")
    table = _uncut(("instant", "action", "state"), numbers=headings)
    for row in rows:
        gone = (str(row["files_deleted"]),) if deleted else ()
        numbers = (
            str(row["files_written"]),
            decimal(row["bytes_written"]),
            *gone,
            f"{row['records']:,}",
            f"{row['seconds']:.1f}",
        )
        table.add_row(row["instant"], row["action"], _state(row["state"]), *numbers)
    return table


def savepoint_table(name: str, rows: Sequence[Json]) -> Table:
    """Returns a table of the savepoints."""
    title = f"{name}: {counted(len(rows), 'savepoint')}"
    table = _uncut(("instant", "by", "at (UTC)", "comment"), title, numbers=("files",))
    for row in rows:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(row["at_ms"] / 1000))
        table.add_row(row["instant"], escape(row["by"]), at, escape(row["comment"]), str(row["files"]))
    return table


def restorable_table(rows: Sequence[Json]) -> Table:
    """Returns a table of the commits: whether the Hudi table can be restored to each, and why not."""
    usable = sum(row["reason"] is None for row in rows)
    table = _uncut(
        ("instant", "action", "savepoint", "restorable"), f"{usable} of {len(rows)} commits can be restored to"
    )
    for row in rows:
        table.add_row(
            row["instant"], escape(row["action"]), "yes" if row["savepoint"] else "", escape(row["reason"] or "yes")
        )
    return table


def timing_table(name: str, document: Json) -> Table:
    """Returns a table of the times with and without the metadata table, for one lookup, in milliseconds."""
    title = f"{name}: {document['files']} files in {document['partitions']} partitions"
    table = _uncut(("question",), title, numbers=("items", "just opened", "open", "without"))
    for row in document["timings"]:
        times = (row["cold_ms"], row["open_ms"], row["without_ms"])
        table.add_row(
            escape(row["what"]),
            f"{row['items']:,}",
            *("-" if item is None else f"{item / row['asked']:.3f} ms" for item in times),
        )
    return table


def first_rows(result: ReadResult, limit: int) -> list[Json]:
    """Returns the first `limit` rows as dictionaries. Reads no more batches of the files than needed."""
    rows: list[Json] = []
    for batch in result.batches:
        rows += batch.slice(0, limit - len(rows)).to_pylist()
        if len(rows) == limit:
            break
    return rows


def shown_rows(names: Sequence[str], rows: Sequence[Json], form: str) -> Iterator[RenderableType]:
    """Yields the rows in one of FORMATS. The table form has `_hoodie_*` columns only if there are no others."""
    if form == "json":
        yield escape(json_text(rows))
    elif form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_cell(row[name]) for name in names] for row in rows)
        # splitlines would also break at characters that CSV does not quote.
        yield from map(escape, out.getvalue().removesuffix("\n").split("\n"))
    else:
        columns = [name for name in names if name not in META_FIELDS] or names
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        for name in columns:
            table.add_column(escape(name), overflow="fold")
        for row in rows:
            table.add_row(*(escape(one_line(_cell(row[name]))) for name in columns))
        yield table


def _uncut(headings: Sequence[str], title: str | None = None, *, numbers: Sequence[str] = ()) -> Table:
    """Returns a table with columns of text, and then columns of numbers. Instants stay in one line."""
    table = Table(title=None if title is None else escape(title), title_justify="left")
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading in _TIMES)
    for heading in numbers:
        table.add_column(heading, justify="right", overflow="fold")
    return table


def _state(state: str) -> str:
    style = _STATE_STYLE.get(state)
    return f"[{style}]{escape(state)}[/]" if style else escape(state)


def _cell(value: Any) -> str:
    """Returns a value as one cell: empty for null, a text unchanged, anything else as in JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value).strip('"')
