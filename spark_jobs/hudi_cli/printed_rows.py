"""The first rows of a query as people, spreadsheets and programs read them: a table, CSV or JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from hudi_cli.output import json_text
from hudi_core.engine.protocol import Json
from hudi_core.errors import one_line
from hudi_core.model.names import META_FIELDS

if TYPE_CHECKING:
    from hudi_core.table import ReadResult

FORMATS: Final = ("table", "csv", "json")


def first_rows(result: ReadResult, limit: int) -> list[Json]:
    """The first `limit` rows as dictionaries; of the files no more is read than they need."""
    rows: list[Json] = []
    for batch in result.batches:
        rows += batch.slice(0, limit - len(rows)).to_pylist()
        if len(rows) == limit:
            break
    return rows


def shown_rows(names: Sequence[str], rows: Sequence[Json], form: str) -> Iterator[RenderableType]:
    """The rows in one of FORMATS. The table has no `_hoodie_*` columns unless there are no others."""
    if form == "json":
        yield escape(json_text(rows))
    elif form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_cell(row[name]) for name in names] for row in rows)
        yield from map(escape, out.getvalue().splitlines())
    else:
        columns = [name for name in names if name not in META_FIELDS] or names
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        for name in columns:
            table.add_column(escape(name), overflow="fold")
        for row in rows:
            table.add_row(*(escape(one_line(_cell(row[name]))) for name in columns))
        yield table


def _cell(value: Any) -> str:
    """A value as one cell: nothing for null, a text as it is, anything else as in JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value).strip('"')
