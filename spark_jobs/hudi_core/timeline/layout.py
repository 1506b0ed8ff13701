"""Which rules name the files of a timeline, by `hoodie.timeline.layout.version`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from hudi_core.errors import UnsupportedVersionError
from hudi_core.timeline import naming_v1
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.query import Timeline


class Naming(Protocol):
    """The names of one timeline layout."""

    @property
    def folder(self) -> str:
        """The timeline's folder below the base path."""
        ...

    def instants(self, names: Iterable[str]) -> list[Instant]:
        """The instants that a listing of the folder's names shows, highest states only."""
        ...

    def file_name(self, requested_time: str, action: str, state: State) -> str:
        """The name of a state's file; `action` is the pending action."""
        ...


@dataclass(frozen=True, slots=True)
class NamingV1:
    """Layout 1: see naming_v1."""

    folder: str = naming_v1.FOLDER

    def instants(self, names: Iterable[str]) -> list[Instant]:
        """See Naming."""
        return naming_v1.instants(names)

    def file_name(self, requested_time: str, action: str, state: State) -> str:
        """See Naming."""
        return naming_v1.file_name(requested_time, action, state)


def naming_for(layout_version: int) -> Naming:
    """The rules of a layout; raises UnsupportedVersionError for any but 1."""
    if layout_version != 1:
        raise UnsupportedVersionError(
            f"timeline layout {layout_version} is not supported",
            path=".hoodie/hoodie.properties",
            remedy="this release handles layout 1 (table version 6)",
        )
    return NamingV1()


def timeline_of(names: Iterable[str], layout_version: int = 1) -> Timeline:
    """The timeline that a listing of the timeline folder's names shows. Pure: Airflow's conditions need the names only."""
    return Timeline(naming_for(layout_version).instants(names))
