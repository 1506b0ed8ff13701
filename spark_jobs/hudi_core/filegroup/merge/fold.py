"""Which event of each key wins among the log records and deletes of a file group.

Everything here is NumPy over all events at once. `winners` is the rule of Hudi 0.15, `event_time_winners` and
`last_events` those of the merge modes of 1.x. Where two rows may become one, `fold_in_rounds` takes one event of each
key per round, all keys side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hudi_core.filegroup.merge.rules import Kind, Step

_Ints = NDArray[np.int64]
_NONE = np.int64(-1)


@dataclass(frozen=True, slots=True)
class Events:
    """What the logs hold, in merge order.

    `codes`: the key of each event, 0 ≤ code < `key_count`, every key at least once; `kinds`: Kind of each event;
    `ranks`: integers that order the ordering values as Java's compareTo does, ignored for natural deletes; `rows`: the
    row in the payload store, -1 for delete entries; `unordered`: records whose ordering value is null, which compares
    with no other.
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


@dataclass(frozen=True, slots=True)
class _Groups:
    """Events sorted by key, their order kept: positions in `order` from `starts` on, `sizes` of them."""

    order: _Ints
    starts: _Ints
    sizes: _Ints

    @staticmethod
    def of(codes: NDArray[np.int32]) -> _Groups:
        order = np.argsort(codes, kind="stable")
        sorted_codes = codes[order]
        starts = np.flatnonzero(np.r_[True, sorted_codes[1:] != sorted_codes[:-1]])
        return _Groups(order, starts, np.diff(np.r_[starts, len(codes)]))


def last_events(events: Events) -> _Ints:
    """The last event of every key (COMMIT_TIME_ORDERING)."""
    result = np.empty(events.key_count, dtype=np.int64)
    result[events.codes] = np.arange(len(events.codes))
    return result


def winners(events: Events) -> _Ints:
    """The winning event of every key by the rule of Hudi 0.15 (HoodieMergedLogRecordScanner).

    Event by event in merge order, where a key starts with nothing: a record replaces the present version, unless that
    is a record with a greater ordering value; a natural delete (ordering value int 0, or not comparable with the
    table's) replaces it; a typed delete does too, unless a record with a greater ordering value is present. So a record
    after a delete always restores the key.
    """
    if len(events.codes) == events.key_count:
        return last_events(events)
    groups = _Groups.of(events.codes)
    starts, sizes = groups.starts, groups.sizes
    kinds, ranks = events.kinds[groups.order], events.ranks[groups.order]
    position = np.arange(len(kinds))
    # Nothing before a key's last natural delete matters any more.
    reset = np.maximum.reduceat(np.where(kinds == Kind.NATURAL_DELETE, position, _NONE), starts)
    live = position > np.repeat(reset, sizes)
    typed = live & (kinds == Kind.TYPED_DELETE)
    best = _latest_greatest(ranks, live & (kinds <= Kind.FLAGGED), starts, sizes, position)
    result = np.where(best >= 0, best, reset)
    if typed.any():
        # A typed delete depends on the result of the event before it: only keys that have one are folded event by
        # event.
        folded = np.flatnonzero(np.add.reduceat(typed.astype(np.int64), starts))
        first = np.where(reset[folded] >= 0, reset[folded], starts[folded])
        result[folded] = _typed_deletes_in_rounds(kinds, ranks, first, (starts + sizes)[folded])
    chosen: _Ints = groups.order[result]
    return chosen


def event_time_winners(events: Events, *, deletes_win: bool) -> _Ints:
    """The winning event of every key under EVENT_TIME_ORDERING (BufferedRecordMergerFactory of Hudi 1.1 and later).

    The last of the greatest ordering values since the key's last natural delete; delete entries right after a natural
    delete change nothing. With `deletes_win` a typed delete, too, wins over all before it, and later events compare
    with it.
    """
    if len(events.codes) == events.key_count:
        return last_events(events)
    groups = _Groups.of(events.codes)
    starts, sizes = groups.starts, groups.sizes
    kinds, ranks = events.kinds[groups.order], events.ranks[groups.order]
    position = np.arange(len(kinds))
    natural = np.maximum.reduceat(np.where(kinds == Kind.NATURAL_DELETE, position, _NONE), starts)
    after = position > np.repeat(natural, sizes)
    first_row = np.minimum.reduceat(np.where(after & (kinds <= Kind.FLAGGED), position, len(kinds)), starts)
    ignored = (np.repeat(natural, sizes) >= 0) & (position < np.repeat(first_row, sizes))
    live = after & ~ignored
    if deletes_win:
        forced = np.maximum.reduceat(np.where(live & (kinds == Kind.TYPED_DELETE), position, _NONE), starts)
        live &= position >= np.repeat(forced, sizes)
    best = _latest_greatest(ranks, live, starts, sizes, position)
    chosen: _Ints = groups.order[np.where(best >= 0, best, natural)]
    return chosen


def fold_in_rounds(
    events: Events,
    step: Callable[[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.bool_]], Step],
    merge: Callable[[_Ints, _Ints, NDArray[np.bool_]], tuple[_Ints, NDArray[np.uint8]]],
) -> Folded:
    """Folds each key's events in turn, where rows are merged and so each result depends on the one before.

    `step` answers for pairs of kinds and whether the older ordering value is the greater. `merge` is given the rows of
    older and newer versions and where the newer one wins, and returns the merged rows and their kinds. There are as
    many rounds as the most events of one key, each over all keys that have a next event.
    """
    groups = _Groups.of(events.codes)
    held = groups.order[groups.starts]
    kinds, rows = events.kinds[held], events.rows[held]
    ends = groups.starts + groups.sizes
    active = np.flatnonzero(groups.sizes > 1)
    at = groups.starts[active] + 1
    while len(active):
        old, new = held[active], groups.order[at]
        above = (events.ranks[old] > events.ranks[new]) & ~events.unordered[old] & ~events.unordered[new]
        taken = step(kinds[active], events.kinds[new], above)
        both = np.flatnonzero(taken.merge)
        if len(both):
            merged_rows, merged_types = merge(rows[active[both]], events.rows[new[both]], taken.replace[both])
        wins = active[taken.replace]
        by = new[taken.replace]
        kinds[wins], rows[wins], held[wins] = events.kinds[by], events.rows[by], by
        if len(both):
            keys = active[both]
            # A merged row without an ordering value of its own has that of the other.
            other = np.where(taken.replace, old, new)[both]
            held[keys] = np.where(events.unordered[held[keys]] & (merged_rows != rows[keys]), other, held[keys])
            rows[keys], kinds[keys] = merged_rows, merged_types
        at = at + 1
        going = at < ends[active]
        active, at = active[going], at[going]
    return Folded(kinds, rows, held)


def _latest_greatest(ranks: _Ints, live: NDArray[np.bool_], starts: _Ints, sizes: _Ints, position: _Ints) -> _Ints:
    """Per key the position of the last live event with the greatest rank, or -1."""
    lowest = np.iinfo(np.int64).min
    greatest = np.maximum.reduceat(np.where(live, ranks, lowest), starts)
    found: _Ints = np.maximum.reduceat(np.where(live & (ranks == np.repeat(greatest, sizes)), position, _NONE), starts)
    return found


def _typed_deletes_in_rounds(kinds: NDArray[np.uint8], ranks: _Ints, first: _Ints, stop: _Ints) -> _Ints:
    """Folds each key's events from `first` up to `stop`, all keys in parallel; returns each one's position."""
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
