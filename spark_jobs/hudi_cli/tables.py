"""How hudictl shows its results to people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.filesize import decimal
from rich.json import JSON
from rich.markup import escape
from rich.table import Table

from hudi_core.model.engine import Json

_STATE_STYLE = {"requested": "yellow", "inflight": "cyan", "completed": "green", "failed": "bold red"}


def instant_table(name: str, rows: Sequence[Json]) -> Table:
    """The instants of a timeline, in its order."""
    completed = any(row["completion_time"] for row in rows)
    headings = ("requested", *(("completed",) if completed else ()), "action", "state")
    table = Table(*headings, title=escape(f"{name}: {len(rows)} instants"), title_justify="left")
    for row in rows:
        times = (row["requested_time"], *((row["completion_time"] or "",) if completed else ()))
        table.add_row(*times, escape(row["action"]), _state(row["state"]))
    return table


def file_table(name: str, slices: Sequence[Json]) -> Table:
    """File slices with their sizes; log files are counted."""
    title = escape(f"{name}: {len(slices)} file slices, {decimal(sum(item['bytes'] for item in slices))}")
    table = Table("partition", "file id", "base instant", "base file", title=title, title_justify="left")
    table.add_column("logs", justify="right")
    table.add_column("size", justify="right")
    for item in slices:
        base = escape(item["base_file"] or "-")
        logs = str(len(item["log_files"]))
        table.add_row(escape(item["partition"]) or ".", escape(item["file_id"]), item["base_instant"], base, logs, decimal(item["bytes"]))
    return table


def run_table(rows: Sequence[Json]) -> Table:
    """What a run did, one line per instant."""
    table = Table("instant", "action", "state", title_justify="left")
    for heading in ("files", "size", "records", "seconds"):
        table.add_column(heading, justify="right")
    for row in rows:
        numbers = (str(row["files_written"]), decimal(row["bytes_written"]), f"{row['records']:,}", f"{row['seconds']:.1f}")
        table.add_row(row["instant"], row["action"], _state(row["state"]), *numbers)
    return table


def print_details(console: Console, document: Json) -> None:
    """A plan and metadata as indented, coloured JSON."""
    for title, key in (("plan", "plan"), ("metadata", "metadata")):
        if document[key] is None:
            console.print(f"[bold]{title}[/]: none")
        else:
            console.print(f"[bold]{title}[/]")
            console.print(JSON.from_data(document[key], default=repr))


def _state(state: str) -> str:
    style = _STATE_STYLE.get(state)
    return f"[{style}]{escape(state)}[/]" if style else escape(state)
