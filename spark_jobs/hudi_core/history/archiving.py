"""What goes into an archive of either layout: completed instants with the files of all their states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hudi_core.timeline.instant import Instant, State

InstantKey = tuple[str, str]
"""Requested time and the action under which the instant completed."""


@dataclass(frozen=True, slots=True)
class StateFile:
    """One state of an instant: action, content and path of its file, and its modification time as an instant time."""

    action: str
    state: State
    data: bytes
    path: str
    modified: str


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """A completed instant and its state files in the order of the states; the last is the completed one."""

    instant: Instant
    files: tuple[StateFile, ...]

    @property
    def key(self) -> InstantKey:
        """The key that distinguishes it from the other instants."""
        return self.instant.requested_time, self.instant.action

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(len(file.data) for file in self.files)

    def content(self, state: State) -> bytes:
        """The content of a state's file; empty when there is none."""
        return next((file.data for file in self.files if file.state is state), b"")


class ArchiveWriter(Protocol):
    """Adds instants to an archive. Called under the table lock, by one process at a time.

    Every method may be repeated after a crash. What `write` returned for is in the archive for every reader, and stays
    there.
    """

    def held(self, instants: Sequence[Instant]) -> frozenset[InstantKey]:
        """Those of `instants`, given in timeline order, that an interrupted run has left in the archive already."""
        ...

    def write(self, instants: Sequence[ArchivedInstant]) -> None:
        """Adds instants, which are in the order of the plan. Memory: their contents about three times over."""
        ...

    def finish(self) -> None:
        """Puts the archive in order after the instants have left the timeline."""
        ...
