"""A command of hudictl made from the fields of a verb's class. A verb for which nobody wrote a command in
verb_commands.py or another module here has this one (VerbGroup).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, Final, get_type_hints

import click

from hudi_cli.options import CommandGroup, Target, common, engine_options, hudi_option, parse_pairs
from hudi_cli.output import Output
from hudi_cli.runner import Runner
from hudi_cli.verb_output import verb_output
from hudi_core.verbs.request import VERBS, Request, verb_class

_SHARED: Final = frozenset(item.name for item in fields(Request))
_PAIRS: Final = Mapping[str, str]


def verb_command(
    cls: type[Request],
    text: str | None = None,
    *,
    name: str | None = None,
    helps: Mapping[str, str] | None = None,
    hidden: Collection[str] = (),
    options: Collection[str] = (),
) -> click.Command:
    """The command of a verb: an argument for each field that is required, or an option where it is among `options`; an
    option for each other one, but for `hidden` ones. `helps` are the texts of options, `text` is that of the command.
    """
    hints = get_type_hints(cls)

    def perform(output: Output, /, target: Target, *, option: tuple[str, ...], **given: Any) -> None:
        engine = {part: given.pop(part) for part in ("engine", "master", "spark_conf") if part in given}
        for part, value in given.items():
            if hints[part] == _PAIRS:
                given[part] = parse_pairs(value, option=f"--{part.replace('_', '-')}")
        request = cls(**target.request_fields(option), **given)
        with Runner(output, **engine) as runner:
            document = runner.run(request).to_dict()
        output.result(document, verb_output(request.verb, document, dry_run=bool(given.get("dry_run"))))

    command: Any = click.pass_obj(perform)
    if cls.has_units:
        command = engine_options("auto", "Where the work is done; auto takes local where there is little to do.")(
            command
        )
    command = hudi_option()(command)
    for item in reversed(fields(cls)):
        if item.name not in _SHARED and item.name not in hidden:
            text_of = (helps or {}).get(item.name)
            command = _parameter(item, hints[item.name], text_of, is_option=item.name in options)(command)
    return click.command(name or cls.verb.replace("_", "-"), help=text or cls.__doc__)(common(command))


def _parameter(item: Field[Any], hint: Any, text: str | None, *, is_option: bool) -> Any:
    required = item.default is MISSING and item.default_factory is MISSING
    if required and not is_option:
        return click.argument(item.name)
    name = f"--{item.name.replace('_', '-')}"
    if hint is bool:
        return click.option(name, item.name, is_flag=True, help=text)
    if hint in (int, int | None):
        return click.option(name, item.name, type=int, default=item.default, help=text)
    if hint in (tuple[str, ...], _PAIRS):
        metavar = "K=V" if hint == _PAIRS else "NAME"
        return click.option(name, item.name, multiple=True, metavar=metavar, help=text)
    if required:
        return click.option(name, item.name, required=True, help=text)
    return click.option(name, item.name, default=item.default, help=text)


class VerbGroup(CommandGroup):
    """A group that has a command for each verb of the registry, also for one that none was written for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *sorted(verb.replace("_", "-") for verb in self._others())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = cmd_name.replace("-", "_")
        return verb_command(verb_class(verb)) if verb in self._others() else super().get_command(ctx, cmd_name)

    def _others(self) -> set[str]:
        """The verbs that no command is called after; `metadata create` is called after `metadata_create`."""
        written = set[str]()
        for name, command in self.commands.items():
            parts = [f"{name}_{part}" for part in command.commands] if isinstance(command, click.Group) else [name]
            written.update(part.replace("-", "_") for part in parts)
        return VERBS.keys() - written
