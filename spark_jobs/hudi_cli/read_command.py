"""hudictl read: writes a query's rows to a Parquet file, or prints the first of them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from rich.markup import escape

from hudi_cli.options import Target, common, hudi_option, metadata_option
from hudi_cli.output import Output
from hudi_cli.tables import FORMATS, first_rows, shown_rows
from hudi_core.config.rows_config import STRICT
from hudi_core.errors import ConfigError
from hudi_core.expr.tree import DIALECTS
from hudi_core.query.request import MetadataMode, Query
from hudi_core.storage.failures import translated
from hudi_core.storage.local import local_path
from hudi_core.storage.registry import scheme_of

if TYPE_CHECKING:
    from hudi_core.table import ReadResult


MOST_PRINTED = 100_000
"""The most rows that --limit may ask for, because they are held in memory."""


@click.command()
@common
@click.option(
    "--query", type=click.Choice(get_args(Query)), default="snapshot", show_default=True, help="What is read."
)
@click.option("--columns", help="Comma-separated columns; all when not given.")
@click.option(
    "--as-of", metavar="T", help="Time travel: an instant, or a date such as 2026-11-20 or '2026-11-20 22:33:44.123'."
)
@click.option(
    "--begin",
    metavar="T",
    help="For incremental and cdc, exclusive: instant (version 6) or completion time; 000 is the start.",
)
@click.option("--end", metavar="T", help="For incremental and cdc, inclusive; the latest when not given.")
@click.option("--where", metavar="EXPR", help="Predicate in SQL; files and row groups that it rules out are not read.")
@click.option(
    "--dialect", type=click.Choice(DIALECTS), default="spark", show_default=True, help="The SQL dialect of --where."
)
@hudi_option()
@metadata_option
@click.option("--strict", is_flag=True, help="Fail on a corrupt block in a log file; else it is skipped.")
@click.option(
    "--output",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Parquet file to write or replace.",
)
@click.option("--limit", type=click.IntRange(1, MOST_PRINTED), help="Print the first rows, at most so many.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How rows are printed."
)
@click.pass_obj
def read(
    output: Output,
    /,
    target: Target,
    *,
    query: Query,
    columns: str | None,
    where: str | None,
    option: tuple[str, ...],
    metadata: MetadataMode,
    strict: bool,
    file: Path | None,
    limit: int | None,
    form: str,
    **given: Any,
) -> None:
    """Write the rows of a query to a Parquet file, or print the first of them.

    The file holds the _hoodie_* columns first, then the table's columns in schema order. Of cdc it holds op, ts_ms,
    before and after. A printed table has no _hoodie_* columns unless --columns names nothing else.
    """
    if (file is None) == (limit is None):
        raise click.UsageError("give either --output FILE to write, or --limit N to print", click.get_current_context())
    table = target.open((*option, f"{STRICT.name}=true") if strict else option)
    destination = None if file is None else _destination(file, target.table)
    result = table.read(query, _names(columns), metadata, where=where, **given)
    rows = [] if limit is None else first_rows(result, limit)
    count = len(rows) if destination is None else write_parquet(result, destination)
    for block in result.corrupt:
        output.warn(block.describe())
    document = {
        "rows": count,
        "files_read": result.files_read,
        "files_pruned": result.files_pruned,
        "corrupt_log_blocks": len(result.corrupt),
    }
    if destination is None:
        output.result({**document, "data": rows}, shown_rows(result.schema.names, rows, form))
    else:
        pruned = f" ({result.files_pruned} pruned)" if where else ""
        output.result(document, [escape(f"{count:,} rows from {result.files_read} files{pruned} into {file}")])


def _destination(file: Path, table: str) -> Path:
    """Returns the file to replace: `file`, or the target of a link at `file`.

    Raises ConfigError for a pipe, a socket, a device and a link to itself, because the new file would replace it. Also
    raises ConfigError for a file below the table's folder, because readers would treat it as a file of the table.
    """
    with translated(str(file), "--output"):
        found = Path(os.path.realpath(file))
        # A link that remains after realpath leads to itself.
        if found.is_symlink() or (file.exists() and not file.is_file()):
            raise ConfigError(
                "--output is a pipe, a socket, a device or a link to itself",
                path=str(file),
                remedy="name a new file, or one to replace",
            )
        if scheme_of(table) == "file":
            root = Path(local_path(table)).resolve()
            if root in (found, *found.parents, *file.absolute().parents):
                raise ConfigError(
                    "--output is below the table's folder", path=str(file), remedy="write the file outside the table"
                )
    return found


def write_parquet(result: ReadResult, target: Path) -> int:
    """Writes the batches to `target`, whole or not at all. Returns the number of rows. Raises ConfigError."""
    import pyarrow.parquet as pq

    if not target.parent.is_dir():
        raise ConfigError("the folder of --output does not exist", path=str(target), remedy="create the folder first")
    rows = 0
    with translated(str(target), "--output"):
        # The temporary name does not contain the target's name, which may already have the greatest length.
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".hudictl-", suffix=".tmp")
        os.close(handle)
        temporary = Path(name)
        try:
            with pq.ParquetWriter(temporary, result.schema) as writer:
                for batch in result.batches:
                    writer.write_batch(batch)
                    rows += batch.num_rows
            # mkstemp makes files private, but a result should be as readable as any other file of this user.
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    return rows


def _names(columns: str | None) -> list[str] | None:
    if columns is None:
        return None
    names = [name.strip() for name in columns.split(",")]
    if not all(names) or len(set(names)) != len(names):
        raise ConfigError("--columns holds an empty or repeated name", remedy="write --columns a,b,c")
    return names


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
