"""hudictl read: a query's rows into a Parquet file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click
import pyarrow.parquet as pq

from hudi_cli.options import common, metadata_option, open_table, refuse
from hudi_cli.output import Output
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.table import MetadataMode, Query, ReadResult

_SERVED = ("snapshot", "read_optimized")


@click.command()
@common
@click.option("--query", type=click.Choice([*_SERVED, "incremental", "cdc"]), default="snapshot", show_default=True, help="What is read.")
@click.option("--columns", help="Comma-separated columns; all when not given.")
@click.option("--as-of", help="Not in this release.")
@click.option("--begin", help="Not in this release.")
@click.option("--end", help="Not in this release.")
@click.option("--where", help="Not in this release.")
@metadata_option
@click.option("--output", "target", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Parquet file to write or replace.")
@click.pass_obj
def read(
    output: Output,
    table: str,
    storage_option: tuple[str, ...],
    storage_options_file: str | None,
    query: str,
    columns: str | None,
    as_of: str | None,
    begin: str | None,
    end: str | None,
    where: str | None,
    metadata: MetadataMode,
    target: Path,
) -> None:
    """Write the rows of a query to a Parquet file.

    The file holds the _hoodie_* columns first, then the table's columns in schema order.
    """
    refuse(as_of=as_of, begin=begin, end=end, where=where)
    opened = open_table(table, storage_option, storage_options_file)
    result = opened.read(_served(query), columns=_names(columns), metadata=metadata)
    rows = write_parquet(result, target)
    output.result({"rows": rows, "files_read": result.files_read, "files_pruned": 0})
    if not output.json_mode:
        output.people.print(f"{rows:,} rows from {result.files_read} files into {target}", markup=False, highlight=False)


def write_parquet(result: ReadResult, target: Path) -> int:
    """Writes the batches to `target`, which appears whole or not at all; returns the number of rows. Raises ConfigError for a bad target."""
    if not target.parent.is_dir():
        raise ConfigError("the folder of --output does not exist", path=str(target), remedy="create the folder first")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    os.close(handle)
    temporary = Path(name)
    rows = 0
    try:
        with pq.ParquetWriter(temporary, result.schema) as writer:
            for batch in result.batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        # mkstemp makes files private; a result is as readable as any file that this user creates.
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return rows


def _served(query: str) -> Query:
    for served in _SERVED:
        if query == served:
            return served  # type: ignore[return-value]
    raise UnsupportedError(f"the query {query} is not in this release", remedy=f"use --query {' or '.join(_SERVED)}")


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
