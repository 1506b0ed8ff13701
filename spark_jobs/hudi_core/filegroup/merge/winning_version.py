"""Decides which version of a row wins: of two, and of all log records and deletes of a file group, of which one version
per key is left. The rule is EVENT_TIME_ORDERING, COMMIT_TIME_ORDERING, CUSTOM, or the payload class of 0.15.

table_policy.py says which rule a table has, ordering_values.py how ordering values compare. The rules are NumPy over
many pairs. A pair is an older version, a newer one, and whether the older one's ordering value is the greater
(`above`). Each rule names Hudi's code for the same question. The two most frequent rules also have a form over all
events at once (`winners`, `event_time_winners`, `last_events`). When two rows may become one, `fold_in_rounds` takes
one event of each key per round.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hudi_core.config.rows_config import Payload
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules
from hudi_core.frozen import dataclass

Kinds = NDArray[np.uint8]
Mask = NDArray[np.bool_]

_BY_ORDER = frozenset({Payload.DEFAULT, Payload.EVENT_TIME, Payload.PARTIAL_UPDATE, Payload.POSTGRES})
"""Payload classes that compare ordering values when a log record meets a stored row."""


class Kind(IntEnum):
    """The form of a version of a row. FLAGGED is a log record whose own delete mark is set. TYPED_DELETE is a delete
    entry with an ordering value that compares with those of records. NATURAL_DELETE wins over all before it: a delete
    entry without such a value, and in Hudi 1.x a flagged record with the default one
    (BufferedRecord.isCommitTimeOrderingDelete).
    """

    RECORD = 0
    FLAGGED = 1
    TYPED_DELETE = 2
    NATURAL_DELETE = 3


@dataclass(frozen=True, slots=True)
class Step:
    """The result for pairs of versions. `replace`: the newer version wins, else the older one. `merge`: the winner's
    fields are filled from the other version.
    """

    replace: Mask
    merge: Mask


def log_step(
    policy: MergePolicy, old: Kinds, new: Kinds, above: Mask, *, compared: bool = True, deletes_win: bool = False
) -> Step:
    """Returns the step for two versions in log files. `compared` is Ordering.same_class. With `deletes_win`, a delete
    entry's value has another class than a record's (text in Hudi 1.0): the entry wins over all before it, and later
    versions compare with it.
    """
    if policy.rules is Rules.PAYLOAD_0_15:
        return _payload_0_15_logs(policy.payload, old, new, above)
    if policy.rules in (Rules.COMMIT_TIME, Rules.FUNCTION):
        return _modes(np.ones(len(old), dtype=np.bool_), old, new)
    if policy.rules is Rules.EVENT_TIME:
        return _modes(_event_time(old, new, above, deletes_win), old, new)
    if policy.rules is Rules.CUSTOM_1_0:
        step = _custom_1_0(policy.payload, old, new, above, compared)
        return Step(
            np.where(new >= Kind.TYPED_DELETE, _event_time(old, new, above, deletes_win), step.replace), step.merge
        )
    return _custom_1_1(policy.payload, old, new, above, compared)


def base_step(policy: MergePolicy, new: Kinds, above: Mask, *, compared: bool = True) -> Step:
    """Returns the step for a base row and the version that the logs have of its key. In Hudi 1.x, it is that of a
    record and a newer version in logs.
    """
    if policy.asks_payload:
        return _payload_0_15_base(policy.payload, new, above, compared)
    record = np.full(len(new), Kind.RECORD, dtype=np.uint8)
    if policy.rules is Rules.CUSTOM_1_0:
        return _custom_1_0(policy.payload, record, new, above, compared)  # the same as in logs, for a record
    return log_step(policy, record, new, above, compared=compared)


def compares_with_base(policy: MergePolicy) -> bool:
    if policy.asks_payload:
        return policy.payload in _BY_ORDER
    return policy.is_ordered


def _payload_0_15_logs(payload: Payload, old: Kinds, new: Kinds, above: Mask) -> Step:
    """Follows HoodieMergedLogRecordScanner with OverwriteWithLatestAvroPayload.preCombine. A record after a delete
    restores the key, for any ordering value of the delete. PartialUpdateAvroPayload.preCombine merges two records both
    ways, but a newer deleted record stays as it is.
    """
    replace = ~((old <= Kind.FLAGGED) & above) | (new == Kind.NATURAL_DELETE)
    if payload is not Payload.PARTIAL_UPDATE:
        return Step(replace, np.zeros(len(old), dtype=np.bool_))
    rows = (old <= Kind.FLAGGED) & (new <= Kind.FLAGGED)
    return Step(replace, rows & ~(replace & (new == Kind.FLAGGED)))


def _payload_0_15_base(payload: Payload, new: Kinds, above: Mask, compared: bool) -> Step:
    """Follows HoodieRecordPayload.combineAndGetUpdateValue. A delete entry is never compared with the base row. A
    flagged record is not compared when the class checks the flag first (EventTimeAvroPayload,
    PartialUpdateAvroPayload).
    """
    wins = _payload_wins(payload, above, compared)
    by_order = Kind.FLAGGED if payload in (Payload.DEFAULT, Payload.POSTGRES) else Kind.RECORD
    replace = wins | (new > by_order)
    return Step(replace, _completed(payload, replace) & (new == Kind.RECORD))


def _completed(payload: Payload, replace: Mask) -> Mask:
    """Whether a payload class merges each two rows into one: always, never, or (Postgres) when the newer one wins."""
    if payload in (Payload.NON_DEFAULTS, Payload.PARTIAL_UPDATE):
        return np.ones(len(replace), dtype=np.bool_)
    return replace if payload is Payload.POSTGRES else np.zeros(len(replace), dtype=np.bool_)


def _event_time(old: Kinds, new: Kinds, above: Mask, deletes_win: bool) -> Mask:
    """Whether each newer version wins (BufferedRecordMergerFactory.shouldKeepNewerRecord), also on equal values. A
    natural delete wins over all before it and loses to any row after it; a delete entry after it changes nothing.
    """
    entry = new == Kind.TYPED_DELETE
    wins = ~above | (new == Kind.NATURAL_DELETE) | (old == Kind.NATURAL_DELETE)
    changed: Mask = (wins | entry if deletes_win else wins) & ~(entry & (old == Kind.NATURAL_DELETE))
    return changed


def _modes(replace: Mask, old: Kinds, new: Kinds) -> Step:
    """Returns a step that merges two rows by fields in every mode (Hudi's partialMerge), but no deletes."""
    return Step(replace, (old == Kind.RECORD) & (new == Kind.RECORD))


def _custom_1_0(payload: Payload, old: Kinds, new: Kinds, above: Mask, compared: bool) -> Step:
    """Follows FileGroupRecordBuffer.doProcessNextDataRecord and merge of Hudi 1.0: deletes are ordered as in event-time
    ordering, two rows go through combineAndGetUpdateValue.
    """
    deleted = (old != Kind.RECORD) | (new != Kind.RECORD)
    natural = (old == Kind.NATURAL_DELETE) | (new == Kind.NATURAL_DELETE)
    replace = np.where(deleted, natural | ~above, _payload_wins(payload, above, compared))
    return Step(replace, ~deleted & _completed(payload, replace))


def _custom_1_1(payload: Payload, old: Kinds, new: Kinds, above: Mask, compared: bool) -> Step:
    """Follows HoodieAvroRecordMerger.merge of Hudi 1.1 and later. Without an older row the newer version wins, else
    combineAndGetUpdateValue decides. Only DefaultHoodieRecordPayload and its subclasses use a delete's ordering value.
    """
    free = (new == Kind.NATURAL_DELETE) | (old >= Kind.TYPED_DELETE)
    by_order = _payload_wins(payload, above, compared)
    if payload in (Payload.DEFAULT, Payload.EVENT_TIME):
        deletes = ~above
    elif payload is Payload.POSTGRES:
        deletes = ~above | (new >= Kind.TYPED_DELETE)
    else:
        deletes = np.ones(len(old), dtype=np.bool_)
    replace = free | np.where(new == Kind.RECORD, by_order, deletes)
    merge = ~free & (new == Kind.RECORD) & _completed(payload, replace)
    return Step(replace, merge & ~((old == Kind.FLAGGED) & ~replace))


def _payload_wins(payload: Payload, above: Mask, compared: bool) -> Mask:
    """Whether combineAndGetUpdateValue takes each newer row. PartialUpdateAvroPayload compares within a class only."""
    if payload not in _BY_ORDER or (payload is Payload.PARTIAL_UPDATE and not compared):
        return np.ones(len(above), dtype=np.bool_)
    return ~above


_Ints = NDArray[np.int64]
_NONE = np.int64(-1)
Merge: TypeAlias = Callable[[_Ints, _Ints, Mask], "tuple[_Ints, Kinds]"]
"""Takes the rows of two versions and whether the newer one wins. Returns the merged rows and their kinds."""


@dataclass(frozen=True, slots=True)
class Events:
    """The versions in the logs, in merge order. `codes`: the key of each event, 0 ≤ code < `key_count`, every key at
    least once. `ranks`: integers that order the ordering values as Java's compareTo does, ignored for natural deletes.
    `rows`: the row in the payload store, -1 for delete entries. `unordered`: records whose ordering value is null,
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
    """Events sorted by key. `order` has their places among all. Each key has `sizes` events from `starts` on."""

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
        """Returns, per key, the position of the last event in `mask`, or -1."""
        positions: _Ints = np.maximum.reduceat(np.where(mask, self.position, _NONE), self.starts)
        return positions

    def last_greatest(self, live: NDArray[np.bool_]) -> _Ints:
        """Returns, per key, the position of the last event in `live` with the greatest rank, or -1."""
        lowest = np.iinfo(np.int64).min
        greatest = np.maximum.reduceat(np.where(live, self.ranks, lowest), self.starts)
        return self.last(live & (self.ranks == np.repeat(greatest, self.sizes)))


def last_events(events: Events) -> _Ints:
    """Returns the last event of every key (COMMIT_TIME_ORDERING)."""
    result = np.empty(events.key_count, dtype=np.int64)
    result[events.codes] = np.arange(len(events.codes))
    return result


def winners(events: Events, policy: MergePolicy, merge: Merge) -> _Ints:
    """Returns the winning event of every key by the rule of Hudi 0.15 (HoodieMergedLogRecordScanner). It differs from
    EVENT_TIME_ORDERING in typed deletes, after which a record always restores the key. Keys that have a typed delete
    are folded event by event.
    """
    chosen = event_time_winners(events, deletes_win=False)
    folded = np.zeros(events.key_count, dtype=np.bool_)
    folded[events.codes[events.kinds == Kind.TYPED_DELETE]] = True
    if folded.any():
        at = np.flatnonzero(folded[events.codes])
        codes = (np.cumsum(folded) - 1).astype(np.int32)[events.codes[at]]
        some = Events(codes, events.kinds[at], events.ranks[at], events.rows[at], events.unordered[at], folded.sum())
        chosen[folded] = at[fold_in_rounds(some, partial(log_step, policy), merge).ordered_by]
    return chosen


def event_time_winners(events: Events, *, deletes_win: bool) -> _Ints:
    """Returns the winning event of every key under EVENT_TIME_ORDERING (BufferedRecordMergerFactory of Hudi 1.1 and
    later): the last one with the greatest ordering value since the last natural delete. Delete entries right after a
    natural delete change nothing. With `deletes_win`, a typed delete also wins over all before it, and later events
    compare with it.
    """
    if len(events.codes) == events.key_count:
        return last_events(events)
    groups = _Groups(events)
    starts, sizes, kinds, position = groups.starts, groups.sizes, groups.kinds, groups.position
    natural = groups.last(kinds == Kind.NATURAL_DELETE)
    live = position > np.repeat(natural, sizes)
    if (natural >= 0).any():
        first_row = np.minimum.reduceat(np.where(live & (kinds <= Kind.FLAGGED), position, len(kinds)), starts)
        live &= (np.repeat(natural, sizes) < 0) | (position >= np.repeat(first_row, sizes))
    if deletes_win:
        live &= position >= np.repeat(groups.last(live & (kinds == Kind.TYPED_DELETE)), sizes)
    best = groups.last_greatest(live)
    chosen: _Ints = groups.order[np.where(best >= 0, best, natural)]
    return chosen


def fold_in_rounds(
    events: Events,
    step: Callable[[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.bool_]], Step],
    merge: Merge,
) -> Folded:
    """Folds each key's events in turn. Rows are merged, so each result depends on the one before. `step` decides by
    pairs of kinds and whether the older ordering value is the greater.
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
            # A merged row without an ordering value takes that of the other row.
            other = np.where(taken.replace, old, new)[both]
            winner[keys] = np.where(events.unordered[winner[keys]] & (merged_rows != rows[keys]), other, winner[keys])
            rows[keys], kinds[keys] = merged_rows, merged_types
        at = at + 1
        going = at < ends[active]
        active, at = active[going], at[going]
    return Folded(kinds, rows, winner)
