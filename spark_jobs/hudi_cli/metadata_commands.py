"""hudictl metadata: creates, updates, drops, validates and measures the metadata table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click
from rich.markup import escape

from hudi_cli.command_from_fields import verb_command
from hudi_cli.command_groups import CommandGroup
from hudi_cli.options import AS_WRITERS, Target, common, hudi_option
from hudi_cli.output import Output
from hudi_cli.tables import timing_table
from hudi_core.engine.protocol import Json
from hudi_core.errors import EXIT_FAILED
from hudi_core.verbs.metadata import MetadataCreateRequest, MetadataDropRequest, MetadataUpdateRequest

_partition = click.option(
    "--partition", "partitions", multiple=True, metavar="KIND", help="Such as column_stats or record_index; repeatable."
)
_column = click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME",
    help="A column of column_stats, nested ones with dots; repeatable. Without a rebuild.",
)
_ENGINE: Final = ("local", "Where files are read.")
_SHOWN: Final = 100
"""The most differences of each partition type that are printed; --json has up to 1000."""


@click.group(cls=CommandGroup)
def metadata() -> None:
    """Look after the metadata table of TABLE."""


@metadata.command()
@common
@hudi_option(AS_WRITERS)
@click.pass_obj
def validate(
    output: Output,
    /,
    target: Target,
    option: tuple[str, ...],
) -> int | None:
    """Compare the metadata table with the data files and rows.

    Nothing is written. Every listed data file is read once, and the rows of the latest slices. The exit code is 1 when
    anything differs.
    """
    from hudi_health.table import validate_metadata  # Help does not need this import.

    opened = target.open(option)
    report = validate_metadata(opened)
    document = report.to_dict()
    output.result(document, _differences(opened.config.name, document))
    return None if report.is_clean else EXIT_FAILED


@metadata.command()
@common
@_partition
@hudi_option()
@click.pass_obj
def perf(
    output: Output,
    /,
    target: Target,
    partitions: tuple[str, ...],
    option: tuple[str, ...],
) -> None:
    """Time lookups in the metadata table, beside the same lookups in the storage.

    All partitions, all files, the files of a partition, and lookups in the indexes that the table has, or in those of
    --partition alone. Nothing is written.
    """
    from hudi_health.table import metadata_timings  # Help does not need this import.

    opened = target.open(option)
    document = metadata_timings(opened, partitions).to_dict()
    output.result(document, [timing_table(opened.config.name, document)])


metadata.add_command(
    verb_command(
        MetadataCreateRequest,
        """Create the metadata table, and indexes in it, without a write of data.

        Initializes `files` where it is missing. Secondary and expression indexes must be defined in the table. Existing
        partitions are not changed.

        --column adds columns to existing column_stats and partition_stats: files are read without the table lock, while
        writers continue. Add them to the option hoodie.metadata.index.column.stats.column.list of all writers, too: a
        writer without them removes them again.
        """,
        name="create",
        helps={"partitions": _partition, "columns": _column},
        engine=_ENGINE,
    )
)
metadata.add_command(
    verb_command(
        MetadataUpdateRequest,
        """Apply missing instants to the metadata table, and run its own services.

        Commits, cleans, rollbacks and restores that are missing in it are applied in their order; then failed
        deltacommits are rolled back, and the metadata table is cleaned, compacted and archived as the options say. It
        is updated as a whole; --partition requires that an index exists.
        """,
        name="update",
        helps={"partitions": _partition},
        engine=_ENGINE,
    )
)
metadata.add_command(
    verb_command(
        MetadataDropRequest,
        """Drop indexes, columns of column_stats, or the whole metadata table.

        Without --partition and --column, or with `files`, the whole metadata table is dropped, and readers list the
        storage from then on.

        --column removes columns from the definition of column_stats and partition_stats, which remain. Remove them from
        the option hoodie.metadata.index.column.stats.column.list of all writers first: a writer that has them adds them
        again.
        """,
        name="drop",
        helps={"partitions": _partition, "columns": _column},
    )
)


def _differences(name: str, document: Json) -> Iterator[str]:
    found = sum(document["counts"].values())
    verdict = "[green]no difference[/]" if not found else f"[bold red]{found} difference{'' if found == 1 else 's'}[/]"
    yield f"[bold]{escape(name)}[/]: {verdict} in {', '.join(map(escape, document['kinds']))}"
    for partition_type, count in document["counts"].items():
        label = f"[bold]{escape(partition_type)}[/]"
        kept = [item for item in document["differences"] if item["kind"] == partition_type]
        for item in kept[:_SHOWN]:
            place = "/".join(part for part in (item["partition"], item["file"]) if part)
            yield f"{label} {escape(place)}: {escape(item['what'])}"
        if count > _SHOWN:
            yield f"{label} and {count - min(len(kept), _SHOWN)} more"
    for item in document["not_checked"]:
        yield f"[yellow]not checked[/] {escape(item['kind'])}: {escape(item['why'])}"
    yield f"examined {document['partitions']} partitions, {document['files']} files, {document['rows']:,} rows"
