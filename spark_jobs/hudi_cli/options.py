"""Options and arguments that several commands share, and how their text is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from getpass import getuser
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from hudi_core.config.engine_config import ENGINES
from hudi_core.config.rows_config import PLAN_MAX_BYTES
from hudi_core.errors import ConfigError
from hudi_core.request.secrets import merge_storage_options
from hudi_core.verbs.request import METADATA_MODES, Request

if TYPE_CHECKING:
    from hudi_core.table import HudiTable

F = TypeVar("F", bound=Callable[..., Any])

AS_WRITERS = "Hudi's configuration as the table's writers have it; repeatable."


class CommandGroup(click.Group):
    """A group whose help has the first sentence of each command, over several lines where it must be; click cuts it.

    An option that takes one value may be given once: click would take the last and drop the others.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            # Resilient: other mistakes are reported when click parses the arguments for the command.
            _check_given_once(click.Context(command, ctx, name, resilient_parsing=True), list(rest))
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, item.get_short_help_str(1000)) for name, item in commands if item is not None])


@dataclass(frozen=True, slots=True)
class Target:
    """The TABLE of a command, and how its storage is reached."""

    table: str
    storage_option: tuple[str, ...]
    storage_options_file: str | None

    def open(self, option: Iterable[str] = ()) -> HudiTable:
        """Opens the table with Hudi's options, texts `K=V`."""
        from hudi_core.table import HudiTable  # half of what a start takes: help needs none

        return HudiTable.open(self.table, self.storage_options(), parse_pairs(option, option="--option"))

    def storage_options(self) -> dict[str, str]:
        """The storage options of the file and of the command line."""
        return merge_storage_options(self._pairs(), self.storage_options_file)

    def request_fields(self, option: Iterable[str]) -> dict[str, Any]:
        """The fields that the request of every verb has. Raises ConfigError for a text that is no `K=V`."""
        return {
            "table": self.table,
            "owner": f"hudictl of {user_name()}",
            "options": parse_pairs(option, option="--option"),
            "storage_options": self._pairs(),
            "storage_options_file": self.storage_options_file,
        }

    def _pairs(self) -> dict[str, str]:
        return parse_pairs(self.storage_option, option="--storage-option")


def _check_given_once(ctx: click.Context, arguments: list[str]) -> None:
    """Raises UsageError for an option that has one value and is there twice."""
    _, _, given = ctx.command.make_parser(ctx).parse_args(arguments)
    for item in given:
        if isinstance(item, click.Option) and not (item.multiple or item.is_flag) and given.count(item) > 1:
            raise click.UsageError(f"Option '{item.opts[0]}' is given more than once.", ctx)


def common(command: F, *, of_tables: bool = False) -> F:
    """TABLE and the storage options, as `target`, or with `of_tables` one or more, as `targets`; --json and --debug.

    The last two are read by main, before click, so that usage errors obey them.
    """

    @wraps(command)
    def with_targets(
        *, table: str | tuple[str, ...], storage_option: tuple[str, ...], storage_options_file: str | None, **given: Any
    ) -> Any:
        names = dict.fromkeys(table) if isinstance(table, tuple) else [table]
        targets = [Target(name, storage_option, storage_options_file) for name in names]
        return command(**({"targets": targets} if of_tables else {"target": targets[0]}), **given)

    several = {"metavar": "TABLE...", "nargs": -1, "required": True}
    decorated: Any = with_targets
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
        click.argument("table", **(several if of_tables else {"metavar": "TABLE"})),
    ):
        decorated = decorate(decorated)
    return cast("F", decorated)


def hudi_option(meaning: str = "Hudi's configuration by its own names; repeatable.") -> Callable[[F], F]:
    """--option K=V."""
    return click.option("--option", "option", multiple=True, metavar="K=V", help=meaning)


def max_bytes_option(command: F) -> F:
    """--max-bytes, which is one of `option`."""

    @wraps(command)
    def with_budget(*, max_bytes: int | None, option: tuple[str, ...], **arguments: Any) -> Any:
        budget = () if max_bytes is None else (f"{PLAN_MAX_BYTES.name}={max_bytes}",)
        return command(option=(*option, *budget), **arguments)

    option = click.option(
        "--max-bytes",
        type=click.IntRange(1),
        help="Plan no more than reads so many bytes, the best gain first. The rest is due at once.",
    )
    return cast("F", option(with_budget))


def engine_options(default: str, meaning: str) -> Callable[[F], F]:
    """--engine, --master and --spark-conf."""

    def decorated(command: F) -> F:
        for option in (
            click.option("--spark-conf", multiple=True, metavar="K=V", help="Spark's own configuration; repeatable."),
            click.option(
                "--master",
                default="local[*]",
                show_default=True,
                help="Spark master, or sc://host:port for Spark Connect.",
            ),
            click.option(
                "--engine",
                type=click.Choice(ENGINES),
                default=default,
                show_default=True,
                help=meaning,
            ),
        ):
            command = option(command)
        return command

    return decorated


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
        key = key.strip()
        if not separator or not key:
            # The text may be a mistyped secret, so it is not repeated.
            raise ConfigError(
                f"a value of {option} is not of the form key=value",
                remedy=f"write {option} key=value, once for each option",
            )
        if key in result:
            raise ConfigError(f"{option} names {key} twice", remedy="give each option once")
        result[key] = value
    return result


def user_name() -> str:
    """The user of this process, or its number: a container may run as one that has no entry in /etc/passwd."""
    try:
        return getuser()
    except (KeyError, OSError):  # the latter from Python 3.13 on
        return f"uid {os.getuid()}"


def table_of(request: Request) -> HudiTable:
    """The table of a request, opened with its options."""
    from hudi_core.table import HudiTable

    storage_options = merge_storage_options(request.storage_options, request.storage_options_file)
    return HudiTable.open(request.table, storage_options, request.options)
