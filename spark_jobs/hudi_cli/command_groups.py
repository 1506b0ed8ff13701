"""The groups of hudictl's commands: their help, and the import of a command's module when the command is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

import click

from hudi_core.verbs.registry import VERBS


class CommandGroup(click.Group):
    """A group whose help shows the whole first sentence of each command, over several lines if needed. click would cut
    it.

    An option that takes one value may be given only once. click would take the last value and ignore the others.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            # Resilient parsing ignores other mistakes. They are reported when click parses the command's arguments.
            _check_given_once(click.Context(command, ctx, name, resilient_parsing=True), list(rest))
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.summary(ctx, name)) for name in self.list_commands(ctx)])

    def summary(self, ctx: click.Context, name: str) -> str:
        """Returns the first sentence of a command's help."""
        command = self.get_command(ctx, name)
        return "" if command is None else command.get_short_help_str(1000)


def _check_given_once(ctx: click.Context, arguments: list[str]) -> None:
    """Raises UsageError if an option that takes one value is given twice."""
    _, _, given = ctx.command.make_parser(ctx).parse_args(arguments)
    for item in given:
        if isinstance(item, click.Option) and not (item.multiple or item.is_flag) and given.count(item) > 1:
            raise click.UsageError(f"Option '{item.opts[0]}' is given more than once.", ctx)


class WrittenCommands(Mapping[str, click.Command]):
    """The commands that modules define, by name. A module is imported when its command is looked up: the imports of all
    commands take three times the CPU time of help.
    """

    def __init__(self, modules: Mapping[str, Mapping[str, str]]) -> None:
        """Takes the commands of each module with the first sentences of their help. The command `probe-store` is the
        variable `probe_store` of its module.
        """
        self._modules = {name: module for module, commands in modules.items() for name in commands}
        self.summaries = {name: text for commands in modules.values() for name, text in commands.items()}

    def __getitem__(self, name: str) -> click.Command:
        command: click.Command = getattr(import_module(self._modules[name]), name.replace("-", "_"))
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


class VerbGroup(CommandGroup):
    """A group that has a command for each verb of the registry, also for verbs without a written command."""

    commands: WrittenCommands  # type: ignore[assignment]  # click only reads it

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *sorted(verb.replace("_", "-") for verb in self._others())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = cmd_name.replace("-", "_")
        if verb not in self._others():
            return super().get_command(ctx, cmd_name)
        from hudi_cli.command_from_fields import verb_command
        from hudi_core.verbs.request import verb_class

        return verb_command(verb_class(verb))

    def summary(self, ctx: click.Context, name: str) -> str:
        return self.commands.summaries.get(name) or super().summary(ctx, name)

    def _others(self) -> set[str]:
        """Returns the verbs without a written command. The command `metadata create` is that of `metadata_create`."""
        written = [name.replace("-", "_") for name in self.commands]
        groups = tuple(f"{name}_" for name in written)
        return {verb for verb in VERBS if verb not in written and not verb.startswith(groups)}
