"""The verbs of hudictl that run on the driver, without Spark: schedule, rollback, restore, savepoint and others."""

from __future__ import annotations

from typing import Any

import click

from hudi_cli.options import CommandGroup, Target, common, hudi_option, max_bytes_option
from hudi_cli.output import Output
from hudi_cli.run_command import SERVICE_NAMES, SERVICES_SHOWN
from hudi_cli.runner import Runner
from hudi_cli.tables import savepoint_table
from hudi_cli.verb_output import verb_output
from hudi_core.request.services import check_service
from hudi_core.verbs.repair import TakeoverRequest, UnscheduleRequest
from hudi_core.verbs.request import Request
from hudi_core.verbs.savepoint import SavepointCreateRequest, SavepointDeleteRequest
from hudi_core.verbs.schedule import ScheduleRequest
from hudi_core.verbs.undo import RestoreRequest, RollbackRequest

_dry_run = click.option("--dry-run", is_flag=True, help="Report what would be done, and write nothing.")


@click.command(
    help=f"""Plan an instant of SERVICE, or report the reason why not.

    SERVICE is one of {SERVICES_SHOWN}. Archive has no instants: this reports what it would do now.
    """
)
@click.argument("service", type=click.Choice(SERVICE_NAMES), metavar="SERVICE")
@common
@hudi_option()
@max_bytes_option
@_dry_run
@click.pass_obj
def schedule(output: Output, /, service: str, target: Target, **given: Any) -> None:
    """See the help."""
    check_service(service)
    _perform(output, ScheduleRequest, target, service=service, **given)


@click.command()
@common
@click.option("--instant", help="Roll this instant back.")
@hudi_option()
@_dry_run
@click.pass_obj
def rollback(output: Output, /, target: Target, **given: Any) -> None:
    """Undo a failed write, or the newest commit.

    An attempt at a compaction or clustering goes back to its plan. Without --instant the next failed write is rolled
    back.
    """
    _perform(output, RollbackRequest, target, **given)


@click.command()
@common
@click.option("--instant", help="The savepoint or instant to restore to; optional with --dry-run.")
@hudi_option()
@_dry_run
@click.pass_obj
def restore(output: Output, /, target: Target, **given: Any) -> None:
    """Take the table back to an earlier commit.

    All its writers have to be stopped. --dry-run lists the commits that it can be restored to.
    """
    if given["instant"] is None and not given["dry_run"]:
        raise click.UsageError(
            "Missing option '--instant'; --dry-run without it lists the commits that the table can be restored to."
        )
    _perform(output, RestoreRequest, target, **given)


@click.command()
@common
@click.argument("instant")
@hudi_option()
@_dry_run
@click.pass_obj
def unschedule(output: Output, /, target: Target, **given: Any) -> None:
    """Drop a pending plan that will not be run.

    Files of attempts at it are deleted, too. Reports what that unblocks.
    """
    _perform(output, UnscheduleRequest, target, **given)


@click.command()
@common
@click.argument("instant")
@hudi_option()
@click.pass_obj
def takeover(output: Output, /, target: Target, **given: Any) -> None:
    """Free a pending instant whose owner is dead.

    Files of the attempt are deleted, and the next run starts at once. Reports what waits for the instant.
    """
    _perform(output, TakeoverRequest, target, **given)


@click.group(cls=CommandGroup, no_args_is_help=False)
def savepoint() -> None:
    """Create, list and delete savepoints."""


@savepoint.command("create")
@common
@click.option("--instant", help="The commit to keep; without it the latest.")
@click.option("--comment", default="", help="Why it is kept.")
@hudi_option()
@click.pass_obj
def savepoint_create(output: Output, /, target: Target, **given: Any) -> None:
    """Keep a commit's files until the savepoint is deleted."""
    _perform(output, SavepointCreateRequest, target, **given)


@savepoint.command("delete")
@common
@click.option("--instant", required=True, help="The savepoint.")
@hudi_option()
@click.pass_obj
def savepoint_delete(output: Output, /, target: Target, **given: Any) -> None:
    """Give a savepoint up; the next clean may delete its files."""
    _perform(output, SavepointDeleteRequest, target, **given)


@savepoint.command("list")
@common
@hudi_option()
@click.pass_obj
def savepoint_list(output: Output, /, target: Target, option: tuple[str, ...]) -> None:
    """List the savepoints."""
    opened = target.open(option)
    rows = [item.to_dict() for item in opened.savepoints()]
    output.result({"savepoints": rows}, [savepoint_table(opened.config.name, rows)])


def _perform(output: Output, cls: type[Request], target: Target, *, option: tuple[str, ...], **fields: Any) -> None:
    request = cls(**target.request_fields(option), **fields)
    document = Runner(output).run(request).to_dict()
    output.result(document, verb_output(request.verb, document, dry_run=fields.get("dry_run", False)))
