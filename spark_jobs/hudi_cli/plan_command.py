"""hudictl plan: which services of a table are due, and why."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.filesize import decimal

from hudi_cli.options import Target, common, hudi_option
from hudi_cli.output import Output
from hudi_cli.tables import counted, wrapped_rows
from hudi_core.engine.protocol import Json
from hudi_core.storage.local import local_path
from hudi_core.storage.registry import scheme_of


@click.command()
@common
@click.option(
    "--policy", metavar="FILE", help="YAML file with policies; without it each service's own triggers decide."
)
@hudi_option()
@click.pass_obj
def plan(output: Output, /, target: Target, option: tuple[str, ...], policy: str | None) -> None:
    """Report which services are due now, and why.

    Nothing is written. With --policy by the conditions of the policy for TABLE.
    """
    from hudi_core.config.policy_file import read_policies  # not for help
    from hudi_core.request.policy import ALL_SERVICES

    table = local_path(target.table) if scheme_of(target.table) == "file" else target.table
    chosen = ALL_SERVICES if policy is None else read_policies(policy).of(table)
    document = target.open(option).due(chosen).to_dict()
    output.result(document, wrapped_rows([*_rows(document)], output.width))


def _rows(document: Json) -> Iterator[tuple[str, str, str]]:
    yield "service", "due", "why"
    for item in document["due"]:
        size = f", {decimal(item['bytes'])}" if item["bytes"] else ""
        groups = f", {counted(item['file_groups'], 'file group')}" if item["file_groups"] else ""
        yield item["service"], "yes", f"{item['why']}{groups}{size}"
    for item in document["not_due"]:
        yield item["service"], "no", item["why"]
    for item in document["alerts"]:
        yield "alert", "!", item["what"]
