"""hudictl metadata: the metadata table compared with the table, and how fast it answers."""

from __future__ import annotations

from typing import Final

import click
from rich.console import Console
from rich.markup import escape

from hudi_cli.options import common, open_table, parse_pairs
from hudi_cli.output import Output
from hudi_cli.tables import timing_table
from hudi_core.errors import EXIT_FAILED
from hudi_core.model.engine import Json

_SHOWN: Final = 100
"""Differences of each kind that people are shown; --json has up to 1000."""


@click.group()
def metadata() -> None:
    """Look after the metadata table of TABLE."""


@metadata.command()
@common
@click.option("--option", "option", multiple=True, metavar="K=V", help="Hudi's configuration as the table's writers have it; repeatable.")
@click.pass_obj
def validate(output: Output, table: str, storage_option: tuple[str, ...], storage_options_file: str | None, option: tuple[str, ...]) -> int | None:
    """Compare the metadata table with the data files and rows.

    Nothing is written. Every listed data file is read once, and the rows of the latest slices. The exit code is 1 when anything differs.
    """
    opened = open_table(table, storage_option, storage_options_file, parse_pairs(option, option="--option"))
    report = opened.validate_metadata()
    document = report.to_dict()
    output.result(document)
    if not output.json_mode:
        _print_report(output.people, opened.config.name, document)
    return None if report.is_clean else EXIT_FAILED


@metadata.command()
@common
@click.pass_obj
def perf(output: Output, table: str, storage_option: tuple[str, ...], storage_options_file: str | None) -> None:
    """Time what the metadata table is asked for, beside the storage answering the same.

    All partitions, all files, the files of a partition, and point lookups of the indexes that the table has. Nothing is written.
    """
    opened = open_table(table, storage_option, storage_options_file)
    document = opened.metadata_timings().to_dict()
    output.result(document)
    if not output.json_mode:
        output.people.print(timing_table(opened.config.name, document))


def _print_report(console: Console, name: str, document: Json) -> None:
    found = sum(document["counts"].values())
    verdict = "[green]no difference[/]" if not found else f"[bold red]{found} difference{'' if found == 1 else 's'}[/]"
    console.print(f"[bold]{escape(name)}[/]: {verdict} in {', '.join(map(escape, document['kinds']))}", highlight=False, soft_wrap=True)
    for kind, count in document["counts"].items():
        kept = [item for item in document["differences"] if item["kind"] == kind]
        for item in kept[:_SHOWN]:
            place = "/".join(part for part in (item["partition"], item["file"]) if part)
            console.print(f"[bold]{escape(kind)}[/] {escape(place)}: {escape(item['what'])}", highlight=False, soft_wrap=True)
        if count > _SHOWN:
            console.print(f"[bold]{escape(kind)}[/] and {count - min(len(kept), _SHOWN)} more", highlight=False)
    for item in document["not_checked"]:
        console.print(f"[yellow]not checked[/] {escape(item['kind'])}: {escape(item['why'])}", highlight=False, soft_wrap=True)
    looked = f"{document['partitions']} partitions, {document['files']} files, {document['rows']:,} rows"
    console.print(f"looked at {looked}", highlight=False)
