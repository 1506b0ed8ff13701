"""Which rules name the files of a timeline, by `hoodie.timeline.layout.version`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from hudi_core.errors import UnsupportedVersionError
from hudi_core.timeline import naming_v1, naming_v2
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.instant_time import of_epoch_seconds
from hudi_core.timeline.naming_v2 import CompletionOf
from hudi_core.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Naming:
    """The names of one timeline layout: those of naming_v1 or naming_v2."""

    layout_version: int

    @property
    def completes_by_name(self) -> bool:
        """Whether the exclusive create of the completed file decides which process completed the instant."""
        return self.layout_version == 1

    def instants(self, names: Iterable[str], completion_of: CompletionOf | None = None) -> list[Instant]:
        """The instants that a listing of the folder's names shows, highest states only, in timeline order.

        `completion_of` gives the completion time of a completed file that does not name it, as an upgrade leaves it;
        None without it. Instants of layout 1 have no completion time.
        """
        if self.layout_version == 1:
            return naming_v1.instants(names)
        return naming_v2.instants(names, completion_of or (lambda name: None))

    def file_name(self, requested_time: str, action: str, state: State, completion_time: str | None = None) -> str:
        """The name of a state's file for the pending `action`; layout 2 needs a completed one's completion time."""
        if self.layout_version == 1:
            return naming_v1.file_name(requested_time, action, state)
        return naming_v2.file_name(requested_time, action, state, completion_time)


_LAYOUTS: Final = (1, 2)


def naming_for(layout_version: int) -> Naming:
    """The rules of a layout; raises UnsupportedVersionError for one that does not exist."""
    if layout_version not in _LAYOUTS:
        raise UnsupportedVersionError(
            f"timeline layout {layout_version} is not supported",
            path=".hoodie/hoodie.properties",
            remedy=f"layouts {' and '.join(map(str, _LAYOUTS))} are",
        )
    return Naming(layout_version)


def completion_by_file(modified: Callable[[str], float | None], zone: str = "LOCAL") -> CompletionOf:
    """The completion time of a file that an upgrade did not rename: its modification time (InstantGeneratorV2)."""

    def completion_of(name: str) -> str | None:
        seconds = modified(name)
        return None if seconds is None else of_epoch_seconds(seconds, zone)

    return completion_of


def timeline_of(
    names: Iterable[str], layout_version: int = 1, modified: Mapping[str, float] | None = None, zone: str = "LOCAL"
) -> Timeline:
    """The timeline that names in its folder show; `modified` in epoch seconds, `zone` as instant_time.zone_of."""
    return Timeline.in_order(naming_for(layout_version).instants(names, completion_by_file((modified or {}).get, zone)))
