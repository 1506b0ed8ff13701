"""Makes a command of hudictl from the fields of a verb's class, for verbs without a command in another module."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, Final, TypeAlias, get_type_hints

import click

from hudi_cli.options import Target, common, engine_options, hudi_option, parse_pairs
from hudi_cli.output import Output
from hudi_cli.runner import Runner
from hudi_cli.verb_output import verb_output
from hudi_core.verbs.request import Request

_SHARED: Final = frozenset(item.name for item in fields(Request))
_PAIRS: Final = Mapping[str, str]
Parameter: TypeAlias = Callable[[Any], Any]
"""The result of click.option and click.argument."""


def verb_command(
    cls: type[Request],
    text: str | None = None,
    *,
    name: str | None = None,
    helps: Mapping[str, str | Parameter] | None = None,
    hidden: Collection[str] = (),
    engine: tuple[str, str] = ("auto", "Where the work is done; auto takes local where there is little to do."),
) -> click.Command:
    """Makes the command of a verb, with the help `text`. Each required field is an argument, and each other field an
    option, except `hidden` fields. `helps` has the help texts of options, or the parameters themselves; these fields
    come first. `engine` is the default of --engine and its help text, for a verb that has units.
    """
    shown = {item.name: item for item in fields(cls) if item.name not in _SHARED and item.name not in hidden}
    hints, texts = get_type_hints(cls), helps or {}

    def perform(output: Output, /, target: Target, *, option: tuple[str, ...], **given: Any) -> None:
        runs_on = {part: given.pop(part) for part in ("engine", "master", "spark_conf") if part in given}
        request = cls(**target.request_fields(option), **given)
        with Runner(output, **runs_on) as runner:
            document = runner.run(request).to_dict()
        output.result(document, verb_output(request.verb, document, dry_run=bool(given.get("dry_run"))))

    command: Any = click.pass_obj(perform)
    if cls.has_units:
        command = engine_options(*engine)(command)
    command = hudi_option()(command)
    for field in reversed([*texts, *(field for field in shown if field not in texts)]):
        text_of = texts.get(field)
        command = text_of(command) if callable(text_of) else _parameter(shown[field], hints[field], text_of)(command)
    return click.command(name or cls.verb.replace("_", "-"), help=text or cls.__doc__)(common(command))


def _parameter(item: Field[Any], hint: Any, text: str | None) -> Parameter:
    name = f"--{item.name.replace('_', '-')}"
    if item.default is MISSING and item.default_factory is MISSING:
        return click.argument(item.name)
    if hint is bool:
        return click.option(name, item.name, is_flag=True, help=text)
    if hint in (int, int | None):
        return click.option(name, item.name, type=int, default=item.default, help=text)
    if hint == _PAIRS:
        return click.option(name, item.name, multiple=True, metavar="K=V", callback=as_pairs, help=text)
    if hint == tuple[str, ...]:
        return click.option(name, item.name, multiple=True, metavar="NAME", help=text)
    return click.option(name, item.name, default=item.default, help=text)


def as_pairs(_: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    return parse_pairs(pairs, option=parameter.opts[0])
