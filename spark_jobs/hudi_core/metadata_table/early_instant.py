"""Base instants that are earlier than every timeline: in version 6 the file groups of an index begin under one that is built beside writers.

Everybody takes a slice for committed whose base instant is before the timeline starts (containsOrBeforeTimelineStarts): so writers of all lines
append to it what they tell the index, and there is no pending deltacommit that one of them could take for a failed one. Nobody reads the index
before the properties list it.
"""

from __future__ import annotations

from typing import Final

from hudi_core.metadata_table.validity import SOLO_COMMIT

_EARLY: Final = f"{SOLO_COMMIT}00"
"""Metadata tables of version 6 start at SOLO_COMMIT and 010 at the earliest."""
_NOTHING: Final = "0" * 17
_EPOCH: Final = 3
"""Digits of the claim's epoch, of which the last ones will do."""
_SHORTEST: Final = len(_EARLY) + 14 + _EPOCH
"""With an instant of before Hudi 0.10, in seconds."""
_INDEXER: Final = "004"


def early_instant(last: str | None, epoch: int) -> str:
    """The base instant of what the claim `epoch` builds from a data table whose latest completed instant is `last`."""
    return f"{_EARLY}{last or _NOTHING}{epoch % 10**_EPOCH:0{_EPOCH}d}"


def is_early(base_instant: str) -> bool:
    """Whether a base instant is of an index that was built beside writers in version 6."""
    return base_instant.startswith(_EARLY) and len(base_instant) >= _SHORTEST


def begun_at(base_instant: str) -> str:
    """When a slice with this base instant began, as an instant of the metadata table's timeline; for an early one as real Hudi's indexer names it."""
    if not is_early(base_instant):
        return base_instant
    last = base_instant[len(_EARLY) : -_EPOCH]
    return SOLO_COMMIT if last == _NOTHING else f"{last}{_INDEXER}"
