"""hudictl timeline, show, files and plan: they show what a table holds and which services are due. They only read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.console import RenderableType
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from hudi_cli.options import Target, common, hudi_option, metadata_option
from hudi_cli.output import Output
from hudi_cli.tables import counted, file_table, instant_table, wrapped_rows
from hudi_core.engine.protocol import Json
from hudi_core.errors import ConfigError, one_line
from hudi_core.query.request import MetadataMode
from hudi_core.storage.local import local_path
from hudi_core.storage.registry import scheme_of
from hudi_core.timeline.instant import KNOWN_ACTIONS, Instant, State
from hudi_core.timeline.timeline import Timeline

if TYPE_CHECKING:
    from hudi_core.timeline.actions.commit import CommitTotals
    from hudi_core.view.file_group import FileSlice

_NUMBERS = {
    "numWrites": "records",
    "numInserts": "inserts",
    "numUpdateWrites": "updates",
    "numDeletes": "deletes",
    "fileSizeInBytes": "size",
}
_LISTS = {
    "deltaFilePaths": "log files",
    "slices": "file slices",
    "filesToBeDeleted": "files to delete",
    "logBlocksToBeDeleted": "log files to roll back",
    "deletePathPatterns": "files to delete",
    "successDeleteFiles": "files deleted",
    "failedDeleteFiles": "files not deleted",
    "rollbackLogFiles": "log files added",
    "savepointDataFile": "files kept",
}
"""The members of an entry of a plan or of metadata that are summed up, and their headings."""
_SHORT = 200
"""The most characters of a value that is shown unchanged."""


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
    from hudi_core.config.policy_file import read_policies  # Help does not need this import.
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


def instant_details(document: Json) -> Iterator[RenderableType]:
    """Yields the document of `show` for people: totals by partition, where --json shows every file."""
    completed = f" at {document['completed']}" if document["completed"] else ""
    yield f"[bold]{escape(document['action'])} {document['instant']}[/]: {document['state']}{completed}"
    for name in ("plan", "metadata", "savepoint"):
        if document[name] is not None:
            yield f"[bold]{name}[/]"
            yield from _members(document[name])
    yield "[dim]--json shows all of it[/]"


def _members(content: Mapping[str, Any], indent: str = "  ") -> Iterator[RenderableType]:
    """Yields the short members of a plan or of metadata, then a table for each member with entries of partitions."""
    long = []
    for name, value in content.items():
        if value is None or value in ("", [], {}):
            continue
        rows = _by_partition(value)
        if rows:
            long.append((name, rows))
        elif name == "extraMetadata" and isinstance(value, dict):
            yield f"{indent}{name}"
            yield from _members(value, indent + "  ")
        else:
            yield f"{indent}{escape(name)}: {escape(_short(value))}"
    for name, rows in long:
        yield _partition_table(name, rows)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=repr, ensure_ascii=False)
    if len(text) <= _SHORT:
        return text
    if isinstance(value, dict | list):
        return f"{len(value):,} entries"
    return f"{text[:60]}… ({len(text):,} characters)"


def _by_partition(value: Any) -> dict[str, list[Mapping[str, Any]]]:
    """Returns the entries of a member by partition, for any action; empty for a member of another kind.

    The member is a map from partitions to their entries, or to one entry, or a list of entries that name their
    partitions.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    if isinstance(value, dict):
        for partition, entries in value.items():
            listed = entries if isinstance(entries, list) else [entries]
            if not all(isinstance(entry, dict | str) for entry in listed) or isinstance(entries, str):
                return {}
            found[partition] = [entry if isinstance(entry, dict) else {} for entry in listed]
    elif isinstance(value, list):
        for entry in value:
            if not isinstance(entry, dict):
                return {}
            partition = entry.get("partitionPath")
            slices = entry.get("slices")
            if partition is None and slices and isinstance(slices, list):  # The entry is a group of a clustering plan.
                partition = slices[0].get("partitionPath") if isinstance(slices[0], dict) else None
            if not isinstance(partition, str):
                return {}
            found.setdefault(partition, []).append(entry)
    return found


def _partition_table(name: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Table:
    """Returns a table with a line for each partition: the number of its entries and their sums. Adds a total line."""
    sums = {partition: _sums(entries) for partition, entries in sorted(rows.items())}
    total = {key: sum(line[key] for line in sums.values()) for key in next(iter(sums.values()))}
    shown = [key for key, count in total.items() if count]
    table = Table(title=f"  {escape(name)}", title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("    partition", overflow="fold")
    for heading in shown:
        table.add_column(heading, justify="right", overflow="fold")
    for partition, line in [*sums.items(), *([("all", total)] if len(sums) > 1 else [])]:
        style = "bold" if line is total else None
        cells = [decimal(line[key]) if key == "size" else f"{line[key]:,}" for key in shown]
        table.add_row(f"    {escape(one_line(partition)) or '.'}", *cells, style=style)
    return table


def _sums(entries: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    found = {"entries": len(entries), **dict.fromkeys([*_NUMBERS.values(), *_LISTS.values()], 0)}
    for entry in entries:
        for name, heading in _NUMBERS.items():
            value = entry.get(name)
            found[heading] += value if isinstance(value, int) else 0
        for name, heading in _LISTS.items():
            value = entry.get(name)
            found[heading] += len(value) if isinstance(value, dict | list) else 0
    return found
