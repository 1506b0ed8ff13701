"""Which event of each key wins among the log records and deletes of a file group (HoodieMergedLogRecordScanner of Hudi 0.15; facts 6.1).

The rule, event by event in merge order, where a key starts with nothing:
- a record replaces what is there, unless that is a record with a greater ordering value;
- a natural delete (ordering value int 0, or not comparable with the table's) replaces what is there;
- a typed delete does too, unless a record with a greater ordering value is there.
So a record after a delete always brings the key back, whatever the delete's ordering value.

Everything here is NumPy over all events at once. Only keys with typed deletes after their last natural delete are folded in rounds, one
event of each such key per round: those deletes' fate depends on the fate of the one before.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

_Ints = NDArray[np.int64]
_NONE = np.int64(-1)


class Kind(IntEnum):
    """What an event is. FLAGGED is a log record that says of itself that it is deleted; until the end it competes as a record."""

    RECORD = 0
    FLAGGED = 1
    TYPED_DELETE = 2
    NATURAL_DELETE = 3


def winners(codes: NDArray[np.int32], kinds: NDArray[np.uint8], ranks: _Ints, key_count: int) -> _Ints:
    """The winning event of every key.

    `codes`: the key of each event, 0 ≤ code < key_count, events in merge order, every key at least once; `kinds`: Kind of each event;
    `ranks`: integers that order the ordering values as Java's compareTo does, ignored for natural deletes. Returns one event index per key.
    """
    count = len(codes)
    if count == key_count:
        result = np.empty(key_count, dtype=np.int64)
        result[codes] = np.arange(count)
        return result
    order = np.argsort(codes, kind="stable")
    sorted_codes = codes[order]
    starts = np.flatnonzero(np.r_[True, sorted_codes[1:] != sorted_codes[:-1]])
    sizes = np.diff(np.r_[starts, count])
    kinds, ranks = kinds[order], ranks[order]
    position = np.arange(count)
    # Nothing before a key's last natural delete matters any more.
    reset = np.maximum.reduceat(np.where(kinds == Kind.NATURAL_DELETE, position, _NONE), starts)
    live = position > np.repeat(reset, sizes)
    typed = live & (kinds == Kind.TYPED_DELETE)
    best = _latest_greatest(kinds, ranks, live & (kinds <= Kind.FLAGGED), starts, sizes, position)
    result = np.where(best >= 0, best, reset)
    if typed.any():
        folded = np.flatnonzero(np.add.reduceat(typed.astype(np.int64), starts))
        first = np.where(reset[folded] >= 0, reset[folded], starts[folded])
        result[folded] = _fold_in_rounds(kinds, ranks, first, (starts + sizes)[folded])
    chosen: _Ints = order[result]
    return chosen


def _latest_greatest(kinds: NDArray[np.uint8], ranks: _Ints, live: NDArray[np.bool_], starts: _Ints, sizes: _Ints, position: _Ints) -> _Ints:
    """Per key the position of the last live record with the greatest rank, or -1."""
    lowest = np.iinfo(np.int64).min
    greatest = np.maximum.reduceat(np.where(live, ranks, lowest), starts)
    found: _Ints = np.maximum.reduceat(np.where(live & (ranks == np.repeat(greatest, sizes)), position, _NONE), starts)
    return found


def _fold_in_rounds(kinds: NDArray[np.uint8], ranks: _Ints, first: _Ints, stop: _Ints) -> _Ints:
    """Folds each key's events from `first` up to `stop`, all keys side by side; returns the position that is left of each."""
    held: _Ints = first.copy()
    active = np.flatnonzero(first + 1 < stop)
    at = first[active] + 1
    while len(active):
        now = held[active]
        there_is_record = kinds[now] <= Kind.FLAGGED
        survives = there_is_record & (ranks[now] > ranks[at]) & (kinds[at] != Kind.NATURAL_DELETE)
        held[active] = np.where(survives, now, at)
        at = at + 1
        going = at < stop[active]
        active, at = active[going], at[going]
    return held
