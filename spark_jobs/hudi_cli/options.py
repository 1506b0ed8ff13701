"""Options and arguments that several commands share, and how their text is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import wraps
from getpass import getuser
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from hudi_core.config.engine_config import ENGINES
from hudi_core.config.rows_config import PLAN_MAX_BYTES
from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_core.request.secrets import merge_storage_options
from hudi_core.verbs.request import METADATA_MODES, Request

if TYPE_CHECKING:
    from hudi_core.table import HudiTable

F = TypeVar("F", bound=Callable[..., Any])

AS_WRITERS = "Hudi's configuration as the table's writers have it; repeatable."


@dataclass(frozen=True, slots=True)
class Target:
    """The TABLE of a command, and the options of its storage."""

    table: str
    storage_option: tuple[str, ...]
    storage_options_file: str | None

    def open(self, option: Iterable[str] = ()) -> HudiTable:
        """Opens the table with Hudi's options, texts `K=V`."""
        from hudi_core.table import HudiTable  # This import takes half of the start, and help does not need it.

        return HudiTable.open(self.table, self.storage_options(), parse_pairs(option, option="--option"))

    def storage_options(self) -> dict[str, str]:
        """Returns the storage options of the file and of the command line."""
        return merge_storage_options(self._pairs(), self.storage_options_file)

    def request_fields(self, option: Iterable[str]) -> dict[str, Any]:
        """Returns the fields that the request of every verb has. Raises ConfigError for a text that is not `K=V`."""
        return {
            "table": self.table,
            "owner": f"hudictl of {user_name()}",
            "options": parse_pairs(option, option="--option"),
            "storage_options": self._pairs(),
            "storage_options_file": self.storage_options_file,
        }

    def _pairs(self) -> dict[str, str]:
        return parse_pairs(self.storage_option, option="--storage-option")


def common(command: F, *, of_tables: bool = False) -> F:
    """Adds TABLE and the storage options as `target`, or with `of_tables` one or more tables as `targets`. Also adds
    --json and --debug.

    main reads --json and --debug before click does, so that usage errors obey them.
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
    """Adds --option K=V."""
    return click.option("--option", "option", multiple=True, metavar="K=V", help=meaning)


def max_bytes_option(command: F) -> F:
    """Adds --max-bytes, whose value becomes one of the pairs of `option`."""

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
    """Adds --engine, --master and --spark-conf."""

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
    """Adds --metadata auto|on|off."""
    return click.option(
        "--metadata",
        type=click.Choice(METADATA_MODES),
        default="auto",
        show_default=True,
        help="List files by the table's metadata table: when it has one, always, or never.",
    )(command)


def parse_pairs(pairs: Iterable[str], *, option: str) -> dict[str, str]:
    """Returns `K=V` texts as a mapping. Raises ConfigError for a text without `=`, and for an empty or repeated key."""
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
    """Returns the name of this process's user, or its number: a container's user may have no entry in /etc/passwd."""
    try:
        return getuser()
    except (KeyError, OSError):  # Python 3.13 and later raise OSError.
        return f"uid {os.getuid()}"


def table_of(request: Request) -> HudiTable:
    """Opens the table of a request with the request's options."""
    from hudi_core.table import HudiTable

    storage_options = merge_storage_options(request.storage_options, request.storage_options_file)
    return HudiTable.open(request.table, storage_options, request.options)
