"""A savepoint as callers see it, and the list of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hudi_core.services.context import TableContext
from hudi_core.timeline.actions.savepoint import SavepointMetadata, decode_savepoint
from hudi_core.timeline.instant import Action, Instant


@dataclass(frozen=True, slots=True)
class Savepoint:
    """The savepoint of the commit requested at `instant`: its user, time (milliseconds since the epoch), comment and
    number of files.

    `existed`: it was there before. `deleted`: it is gone by now.
    """

    instant: str
    by: str
    at_ms: int
    comment: str
    files: int
    existed: bool = False
    deleted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """An item of `hudictl savepoint list --json`, and with `removed` the document of create and delete: neither
        removes a data file.
        """
        return {
            "instant": self.instant,
            "by": self.by,
            "at_ms": self.at_ms,
            "comment": self.comment,
            "files": self.files,
            "existed": self.existed,
            "deleted": self.deleted,
            "removed": {"files": 0, "bytes": 0, "instants": []},
        }


def savepoint_list(context: TableContext) -> list[Savepoint]:
    """The completed savepoints, oldest first. Raises CorruptFileError naming the file of one that cannot be read."""
    found = context.active.load().completed().of_actions(Action.SAVEPOINT)
    return [savepoint_of(instant.requested_time, read_savepoint(context, instant)) for instant in found]


def read_savepoint(context: TableContext, instant: Instant) -> SavepointMetadata:
    """What a completed savepoint keeps."""
    return decode_savepoint(context.active.read_details(instant), path=context.active.path_of(instant))


def savepoint_of(
    instant: str, metadata: SavepointMetadata, *, existed: bool = True, deleted: bool = False
) -> Savepoint:
    """The savepoint of `instant`."""
    files = sum(len(names) for names in metadata.files.values())
    return Savepoint(instant, metadata.by, metadata.at_ms, metadata.comment, files, existed, deleted)
