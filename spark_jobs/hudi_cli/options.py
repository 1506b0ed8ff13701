"""Options and arguments that several commands share, and how their text is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from getpass import getuser
from typing import Any, TypeVar

import click

from hudi_core.errors import ConfigError
from hudi_core.request.requests import METADATA_MODES, Request
from hudi_core.request.secrets import merge_storage_options
from hudi_core.table import HudiTable

F = TypeVar("F", bound=Callable[..., Any])


def common(command: F) -> F:
    """TABLE, the storage options, --json and --debug.

    The last two are read by main, before click, so that usage errors obey them.
    """
    for decorate in (
        click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks and Spark's own log."),
        click.option("--json", is_flag=True, expose_value=False, help="Print exactly one JSON document to stdout."),
        click.option(
            "--storage-options-file",
            metavar="FILE",
            help="JSON object with options for the storage library; may hold secrets.",
        ),
        click.option(
            "--storage-option",
            "storage_option",
            multiple=True,
            metavar="K=V",
            help="Option for the storage library; no secrets.",
        ),
        click.argument("table", metavar="TABLE"),
    ):
        command = decorate(command)
    return command


def metadata_option(command: F) -> F:
    """--metadata auto|on|off."""
    return click.option(
        "--metadata",
        type=click.Choice(METADATA_MODES),
        default="auto",
        show_default=True,
        help="List files by the table's metadata table: when it has one, always, or never.",
    )(command)


def parse_pairs(pairs: Iterable[str], *, option: str) -> dict[str, str]:
    """`K=V` texts as a mapping; raises ConfigError for a text without `=`, an empty or a repeated key."""
    result: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            # The text may be a mistyped secret, so it is not repeated.
            raise ConfigError(
                f"a value of {option} is not of the form key=value",
                remedy=f"write {option} key=value, once for each option",
            )
        if key in result:
            raise ConfigError(f"{option} names {key} twice", remedy="give each option once")
        result[key] = value
    return result


def request_fields(
    option: Iterable[str], storage_option: Iterable[str], storage_options_file: str | None
) -> dict[str, Any]:
    """The fields that the request of every verb has. Raises ConfigError for a text that is no `K=V`."""
    return {
        "owner": f"hudictl of {getuser()}",
        "options": parse_pairs(option, option="--option"),
        "storage_options": parse_pairs(storage_option, option="--storage-option"),
        "storage_options_file": storage_options_file,
    }


def open_table(
    table: str, pairs: Iterable[str], file: str | None, options: Mapping[str, str] | None = None
) -> HudiTable:
    """The table at `table`, with the storage options of the file and of the command line."""
    return HudiTable.open(table, merge_storage_options(parse_pairs(pairs, option="--storage-option"), file), options)


def table_of(request: Request) -> HudiTable:
    """The table of a request, opened with its options."""
    storage_options = merge_storage_options(request.storage_options, request.storage_options_file)
    return HudiTable.open(request.table, storage_options, request.options)
