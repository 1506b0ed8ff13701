"""An instant's plan and metadata for people: totals by partition instead of every file; --json has the whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from hudi_core.engine.protocol import Json
from hudi_core.errors import one_line

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
"""Members of an entry of a plan or of metadata that are summed up, and their headings."""
_SHORT = 200
"""Characters of a value that is shown as it is."""


def instant_details(document: Json) -> Iterator[RenderableType]:
    """What people see of the document of `show`."""
    completed = f" at {document['completed']}" if document["completed"] else ""
    yield f"[bold]{escape(document['action'])} {document['instant']}[/]: {document['state']}{completed}"
    for name in ("plan", "metadata", "savepoint"):
        if document[name] is not None:
            yield f"[bold]{name}[/]"
            yield from _members(document[name])
    yield "[dim]--json shows all of it[/]"


def _members(content: Mapping[str, Any], indent: str = "  ") -> Iterator[RenderableType]:
    """The short members of a plan or of metadata, then a table of each that has entries of partitions."""
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
    """The entries of each partition, of a member of any action; empty for a member of another kind.

    A map from partitions to their entries, or to one entry; or a list of entries that name their partitions.
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
            if partition is None and slices and isinstance(slices, list):  # a group of a clustering plan
                partition = slices[0].get("partitionPath") if isinstance(slices[0], dict) else None
            if not isinstance(partition, str):
                return {}
            found.setdefault(partition, []).append(entry)
    return found


def _partition_table(name: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Table:
    """A line for each partition with its number of entries and their sums, and one of all."""
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
