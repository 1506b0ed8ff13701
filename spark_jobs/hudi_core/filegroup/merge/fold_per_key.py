"""Applies the rules of winning_version.py to all log records and deletes of a file group: one version per key is left.

NumPy over all events at once. `winners` is the rule of Hudi 0.15, `event_time_winners` and `last_events` those of the
merge modes of 1.x. Where two rows may become one, `fold_in_rounds` takes one event of each key per round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hudi_core.filegroup.merge.winning_version import Kind, Step

_Ints = NDArray[np.int64]
_NONE = np.int64(-1)


@dataclass(frozen=True, slots=True)
class Events:
    """What the logs hold, in merge order. `codes`: the key of each event, 0 ≤ code < `key_count`, every key at least
    once; `ranks`: integers that order the ordering values as Java's compareTo does, ignored for natural deletes;
    `rows`: the row in the payload store, -1 for delete entries; `unordered`: records whose ordering value is null,
    which compares with no other.
    """

    codes: NDArray[np.int32]
    kinds: NDArray[np.uint8]
    ranks: _Ints
    rows: _Ints
    unordered: NDArray[np.bool_]
    key_count: int


@dataclass(frozen=True, slots=True)
class Folded:
    """The result for each key: its kind, its row, and the event whose ordering value it has."""

    kinds: NDArray[np.uint8]
    rows: _Ints
    ordered_by: _Ints


class _Groups:
    """Events sorted by key: `order` are their places among all, those of a key `sizes` many from `starts`."""

    def __init__(self, events: Events) -> None:
        self.order = np.argsort(events.codes, kind="stable")
        codes = events.codes[self.order]
        self.starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
        self.sizes = np.diff(np.r_[self.starts, len(codes)])
        self._events = events

    @cached_property
    def kinds(self) -> NDArray[np.uint8]:
        return self._events.kinds[self.order]

    @cached_property
    def ranks(self) -> _Ints:
        return self._events.ranks[self.order]

    @cached_property
    def position(self) -> _Ints:
        return np.arange(len(self.order))

    def last(self, mask: NDArray[np.bool_]) -> _Ints:
        """Per key the position of the last event in `mask`, or -1."""
        positions: _Ints = np.maximum.reduceat(np.where(mask, self.position, _NONE), self.starts)
        return positions

    def last_greatest(self, live: NDArray[np.bool_]) -> _Ints:
        """Per key the position of the last event in `live` with the greatest rank, or -1."""
        lowest = np.iinfo(np.int64).min
        greatest = np.maximum.reduceat(np.where(live, self.ranks, lowest), self.starts)
        return self.last(live & (self.ranks == np.repeat(greatest, self.sizes)))


def last_events(events: Events) -> _Ints:
    """COMMIT_TIME_ORDERING."""
    result = np.empty(events.key_count, dtype=np.int64)
    result[events.codes] = np.arange(len(events.codes))
    return result


def winners(events: Events) -> _Ints:
    """The winning event of every key by the rule of Hudi 0.15 (HoodieMergedLogRecordScanner). In merge order: a record
    replaces the present version, unless that is a record with a greater ordering value; a natural delete (ordering
    value int 0, or not comparable with the table's) replaces it; a typed delete does too, unless a record with a
    greater ordering value is present. So a record after a delete always restores the key.
    """
    if len(events.codes) == events.key_count:
        return last_events(events)
    groups = _Groups(events)
    starts, sizes, kinds = groups.starts, groups.sizes, groups.kinds
    # Nothing before a key's last natural delete matters any more.
    reset = groups.last(kinds == Kind.NATURAL_DELETE)
    live = groups.position > np.repeat(reset, sizes)
    typed = live & (kinds == Kind.TYPED_DELETE)
    best = groups.last_greatest(live & (kinds <= Kind.FLAGGED))
    result = np.where(best >= 0, best, reset)
    if typed.any():
        # A typed delete depends on the result of the event before it: only keys that have one are folded event by
        # event.
        folded = np.flatnonzero(np.add.reduceat(typed.astype(np.int64), starts))
        first = np.where(reset[folded] >= 0, reset[folded], starts[folded])
        result[folded] = _typed_deletes_in_rounds(kinds, groups.ranks, first, (starts + sizes)[folded])
    chosen: _Ints = groups.order[result]
    return chosen


def event_time_winners(events: Events, *, deletes_win: bool) -> _Ints:
    """The winning event of every key under EVENT_TIME_ORDERING (BufferedRecordMergerFactory of Hudi 1.1 and later): the
    last of the greatest ordering values since the last natural delete, right after which delete entries change nothing.
    With `deletes_win` a typed delete, too, wins over all before it, and later events compare with it.
    """
    if len(events.codes) == events.key_count:
        return last_events(events)
    groups = _Groups(events)
    starts, sizes, kinds, position = groups.starts, groups.sizes, groups.kinds, groups.position
    natural = groups.last(kinds == Kind.NATURAL_DELETE)
    after = position > np.repeat(natural, sizes)
    first_row = np.minimum.reduceat(np.where(after & (kinds <= Kind.FLAGGED), position, len(kinds)), starts)
    ignored = (np.repeat(natural, sizes) >= 0) & (position < np.repeat(first_row, sizes))
    live = after & ~ignored
    if deletes_win:
        live &= position >= np.repeat(groups.last(live & (kinds == Kind.TYPED_DELETE)), sizes)
    best = groups.last_greatest(live)
    chosen: _Ints = groups.order[np.where(best >= 0, best, natural)]
    return chosen


def fold_in_rounds(
    events: Events,
    step: Callable[[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.bool_]], Step],
    merge: Callable[[_Ints, _Ints, NDArray[np.bool_]], tuple[_Ints, NDArray[np.uint8]]],
) -> Folded:
    """Folds each key's events in turn, where rows are merged and so each result depends on the one before. `step`
    answers for pairs of kinds and whether the older ordering value is the greater; `merge`, given the rows of both
    versions and where the newer one wins, returns the merged rows and their kinds.
    """
    groups = _Groups(events)
    winner = groups.order[groups.starts]
    kinds, rows = events.kinds[winner], events.rows[winner]
    ends = groups.starts + groups.sizes
    active = np.flatnonzero(groups.sizes > 1)
    at = groups.starts[active] + 1
    while len(active):
        old, new = winner[active], groups.order[at]
        above = (events.ranks[old] > events.ranks[new]) & ~events.unordered[old] & ~events.unordered[new]
        taken = step(kinds[active], events.kinds[new], above)
        both = np.flatnonzero(taken.merge)
        if len(both):
            merged_rows, merged_types = merge(rows[active[both]], events.rows[new[both]], taken.replace[both])
        wins = active[taken.replace]
        by = new[taken.replace]
        kinds[wins], rows[wins], winner[wins] = events.kinds[by], events.rows[by], by
        if len(both):
            keys = active[both]
            # A merged row without an ordering value of its own has that of the other.
            other = np.where(taken.replace, old, new)[both]
            winner[keys] = np.where(events.unordered[winner[keys]] & (merged_rows != rows[keys]), other, winner[keys])
            rows[keys], kinds[keys] = merged_rows, merged_types
        at = at + 1
        going = at < ends[active]
        active, at = active[going], at[going]
    return Folded(kinds, rows, winner)


def _typed_deletes_in_rounds(kinds: NDArray[np.uint8], ranks: _Ints, first: _Ints, stop: _Ints) -> _Ints:
    """Folds each key's events from `first` up to `stop`, all keys in parallel; returns each one's position."""
    winner: _Ints = first.copy()
    active = np.flatnonzero(first + 1 < stop)
    at = first[active] + 1
    while len(active):
        now = winner[active]
        there_is_record = kinds[now] <= Kind.FLAGGED
        survives = there_is_record & (ranks[now] > ranks[at]) & (kinds[at] != Kind.NATURAL_DELETE)
        winner[active] = np.where(survives, now, at)
        at = at + 1
        going = at < stop[active]
        active, at = active[going], at[going]
    return winner
