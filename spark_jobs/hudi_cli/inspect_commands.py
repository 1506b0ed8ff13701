"""hudictl timeline, show and files: what a table holds, read without changing it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from rich.filesize import decimal

from hudi_cli.instant_details import instant_details
from hudi_cli.options import Target, common, hudi_option, metadata_option
from hudi_cli.output import Output
from hudi_cli.tables import counted, file_table, instant_table, wrapped_rows
from hudi_core.engine.protocol import Json
from hudi_core.errors import ConfigError
from hudi_core.query.request import MetadataMode
from hudi_core.storage.local import local_path
from hudi_core.storage.registry import scheme_of
from hudi_core.timeline.instant import KNOWN_ACTIONS, Instant, State
from hudi_core.timeline.timeline import Timeline

if TYPE_CHECKING:
    from hudi_core.timeline.actions.commit import CommitTotals
    from hudi_core.view.file_group import FileSlice


@click.command()
@common
@click.option("--action", help="Only instants of this action, as shown (a completed compaction is a commit).")
@click.option("--state", type=click.Choice([state.value for state in State]), help="Only instants in this state.")
@click.option("--archived", is_flag=True, help="Also the instants of the archived timeline.")
@hudi_option()
@click.pass_obj
def timeline(
    output: Output,
    /,
    target: Target,
    action: str | None,
    state: str | None,
    archived: bool,
    option: tuple[str, ...],
) -> None:
    """List the instants of the timeline.

    Of a commit also its operation, and the rows and bytes that it wrote.
    """
    opened = target.open(option)
    active = opened.timeline()
    older = opened.archived(active) if archived else []
    instants = Timeline([*older, *active])
    known = KNOWN_ACTIONS | {instant.action for instant in instants}
    if action is not None and action not in known:
        raise ConfigError(f"{action!r} is no action of a timeline", remedy=f"one of {', '.join(sorted(known))}")

    def is_shown(item: Instant) -> bool:
        return action in (None, item.action) and state in (None, item.state.value)

    totals = opened.commit_totals([*filter(is_shown, active)], [*filter(is_shown, older)])
    rows = [_instant(item, totals.get(item)) for item in instants if is_shown(item)]
    name = opened.config.name
    document = {"table": target.table, "name": name, "version": opened.config.version, "instants": rows}
    output.result(document, [instant_table(name, rows)])


@click.command()
@common
@click.argument("instant")
@click.option("--action", help="Of several actions at INSTANT, this one; without it the commit that a savepoint holds.")
@hudi_option()
@click.pass_obj
def show(
    output: Output,
    /,
    target: Target,
    instant: str,
    action: str | None,
    option: tuple[str, ...],
) -> None:
    """Show an instant's plan and metadata, decoded.

    INSTANT is one of the timeline or of its archive, or the beginning of one alone. Where a savepoint holds a commit,
    its content is shown with the commit's.
    """
    shown = target.open(option).show(instant, action)
    document: Json = {
        "instant": shown.instant.requested_time,
        "plan": shown.plan,
        "metadata": shown.metadata,
        "savepoint": shown.savepoint,
        "action": shown.instant.action,
        "state": shown.instant.state.value,
    }
    output.result(document, instant_details({**document, "completed": shown.instant.completion_time}))


@click.command()
@common
@click.option("--partition", help="Only this partition path; an empty text is the whole of a table without partitions.")
@click.option(
    "--as-of", metavar="T", help="As of an instant, or a date such as 2026-11-20 or '2026-11-20 22:33:44.123'."
)
@metadata_option
@hudi_option()
@click.pass_obj
def files(
    output: Output,
    /,
    target: Target,
    partition: str | None,
    as_of: str | None,
    metadata: MetadataMode,
    option: tuple[str, ...],
) -> None:
    """List the latest file slices, now or as of a time."""
    opened = target.open(option)
    slices = [_slice(item) for item in opened.files(partition, metadata, as_of=as_of)]
    output.result({"slices": slices}, [file_table(opened.config.name, slices, output.width)])


def _instant(instant: Instant, totals: CommitTotals | None) -> Json:
    return {
        "requested_time": instant.requested_time,
        "completion_time": instant.completion_time,
        "action": instant.action,
        "state": instant.state.value,
        "operation": None if totals is None else totals.operation,
        "rows": None if totals is None else totals.rows,
        "bytes": None if totals is None else totals.bytes,
    }


def _slice(item: FileSlice) -> Json:
    return {
        "partition": item.file_group.partition,
        "file_id": item.file_group.file_id,
        "base_instant": item.base_instant,
        "base_file": None if item.base_file is None else item.base_file.name,
        "log_files": [log.name for log in item.log_files],
        "bytes": item.size,
    }


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
    output.result(document, wrapped_rows([*_due_rows(document)], output.width))


def _due_rows(document: Json) -> Iterator[tuple[str, str, str]]:
    yield "service", "due", "why"
    for item in document["due"]:
        size = f", {decimal(item['bytes'])}" if item["bytes"] else ""
        groups = f", {counted(item['file_groups'], 'file group')}" if item["file_groups"] else ""
        yield item["service"], "yes", f"{item['why']}{groups}{size}"
    for item in document["not_due"]:
        yield item["service"], "no", item["why"]
    for item in document["alerts"]:
        yield "alert", "!", item["what"]
