"""The merge rules of table version 6 as slow and obvious Python: one event after the other, one row after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """A log record; `flagged` when it says of itself that it is deleted."""

    key: str
    ordering: int
    row: Row
    flagged: bool = False


@dataclass(frozen=True)
class Delete:
    """A delete entry; `ordering` None is the natural delete."""

    key: str
    ordering: int | None


Event = Record | Delete


def fold(events: Iterable[Event]) -> dict[str, Event]:
    """HoodieMergedLogRecordScanner.processNextRecord and processNextDeletedRecord."""
    held: dict[str, Event] = {}
    for event in events:
        old = held.get(event.key)
        if isinstance(event, Record):
            # OverwriteWithLatestAvroPayload.preCombine: a delete has no bytes and loses, an older record needs a greater value to win.
            keeps_old = isinstance(old, Record) and old.ordering > event.ordering
        else:
            keeps_old = isinstance(old, Record) and event.ordering is not None and old.ordering > event.ordering
        if not keeps_old:
            held[event.key] = event
    return held


@dataclass
class Merged:
    """Rows after the merge and HoodieMergeHandle's counts."""

    rows: list[Row]
    updated: int = 0
    kept: int = 0
    deleted: int = 0
    inserted: int = 0
    missed_deletes: int = 0


def merge(base: Iterable[Row], winners: dict[str, Event], *, compare_with_base: bool) -> Merged:
    """HoodieMergeHandle.write for each base row, then writeIncomingRecords."""
    result = Merged([])
    matched = set()
    for row in base:
        winner = winners.get(row["key"])
        if winner is None:
            result.rows.append(row)
            continue
        matched.add(row["key"])
        ordering = row["ordering"]
        if compare_with_base and isinstance(winner, Record) and ordering is not None and ordering > winner.ordering:
            result.rows.append(row)
            result.kept += 1
        elif isinstance(winner, Delete) or winner.flagged:
            result.deleted += 1
        else:
            result.rows.append(winner.row)
            result.updated += 1
    for key, winner in winners.items():
        if key in matched:
            continue
        if isinstance(winner, Delete) or winner.flagged:
            result.missed_deletes += 1
        else:
            result.rows.append(winner.row)
            result.inserted += 1
    return result
