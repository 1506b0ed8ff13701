"""Which of two versions of a row wins: by EVENT_TIME_ORDERING, COMMIT_TIME_ORDERING, CUSTOM, or the payload of 0.15.

table_policy.py says which of these a table has, by the mode and payload class that merge_mode.py reads,
ordering_values.py how ordering values compare; fold_per_key.py applies them to all versions of a key, the two most
frequent rules in a form of its own. The rules are NumPy over many pairs of an older version, a newer one, and whether
the older one's ordering value is the greater (`above`). Each names Hudi's code for the same question.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hudi_core.filegroup.merge.merge_mode import Payload
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules

Kinds = NDArray[np.uint8]
Mask = NDArray[np.bool_]

_BY_ORDER = frozenset({Payload.DEFAULT, Payload.EVENT_TIME, Payload.PARTIAL_UPDATE, Payload.POSTGRES})
"""Payload classes that compare ordering values when a log record meets what is stored."""


class Kind(IntEnum):
    """The form of a version of a row. FLAGGED is a log record whose own delete mark is set, TYPED_DELETE a delete entry
    with an ordering value that compares with records', NATURAL_DELETE one that wins over all before it: without such a
    value, and in Hudi 1.x a flagged record with the default one (BufferedRecord.isCommitTimeOrderingDelete).
    """

    RECORD = 0
    FLAGGED = 1
    TYPED_DELETE = 2
    NATURAL_DELETE = 3


@dataclass(frozen=True, slots=True)
class Step:
    """`replace`: the newer version wins, else the older; `merge`: the winner's fields are filled from the other's."""

    replace: Mask
    merge: Mask


def log_step(
    policy: MergePolicy, old: Kinds, new: Kinds, above: Mask, *, compared: bool = True, deletes_win: bool = False
) -> Step:
    """Of two versions in log files. `compared` is Ordering.same_class. `deletes_win`: a delete entry's value has
    another class than a record's, so it wins over all before it, and later versions compare with it (text in Hudi 1.0).
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
    """Of a base row and what the logs have left of its key: in Hudi 1.x as of a record and a newer version in logs."""
    if policy.rules is Rules.PAYLOAD_0_15:
        return _payload_0_15_base(policy.payload, new, above, compared)
    record = np.full(len(new), Kind.RECORD, dtype=np.uint8)
    if policy.rules is Rules.CUSTOM_1_0:
        return _custom_1_0(policy.payload, record, new, above, compared)  # the same as in logs, for a record
    return log_step(policy, record, new, above, compared=compared)


def compares_with_base(policy: MergePolicy) -> bool:
    if policy.rules is Rules.PAYLOAD_0_15:
        return policy.payload in _BY_ORDER
    return policy.is_ordered


def _payload_0_15_logs(payload: Payload, old: Kinds, new: Kinds, above: Mask) -> Step:
    """HoodieMergedLogRecordScanner with OverwriteWithLatestAvroPayload.preCombine. A record after a delete restores the
    key, whatever the delete's ordering value. PartialUpdateAvroPayload.preCombine merges two records both ways, but a
    newer deleted one stays as it is.
    """
    replace = ~((old <= Kind.FLAGGED) & above) | (new == Kind.NATURAL_DELETE)
    if payload is not Payload.PARTIAL_UPDATE:
        return Step(replace, np.zeros(len(old), dtype=np.bool_))
    rows = (old <= Kind.FLAGGED) & (new <= Kind.FLAGGED)
    return Step(replace, rows & ~(replace & (new == Kind.FLAGGED)))


def _payload_0_15_base(payload: Payload, new: Kinds, above: Mask, compared: bool) -> Step:
    """HoodieRecordPayload.combineAndGetUpdateValue: a delete entry is never compared with the base, a flagged record
    not where the class checks the flag first (EventTimeAvroPayload, PartialUpdateAvroPayload).
    """
    wins = _payload_wins(payload, above, compared)
    by_order = Kind.FLAGGED if payload in (Payload.DEFAULT, Payload.POSTGRES) else Kind.RECORD
    replace = wins | (new > by_order)
    return Step(replace, _completed(payload, replace) & (new == Kind.RECORD))


def _completed(payload: Payload, replace: Mask) -> Mask:
    """Where a payload class merges two rows into one: always, never, or (Postgres) where the newer one wins."""
    if payload in (Payload.NON_DEFAULTS, Payload.PARTIAL_UPDATE):
        return np.ones(len(replace), dtype=np.bool_)
    return replace if payload is Payload.POSTGRES else np.zeros(len(replace), dtype=np.bool_)


def _event_time(old: Kinds, new: Kinds, above: Mask, deletes_win: bool) -> Mask:
    """Where the newer version wins (BufferedRecordMergerFactory.shouldKeepNewerRecord): also on equal values. A natural
    delete wins over all before it and loses to any row after it; a delete entry after it changes nothing
    (deltaMergeDeleteRecord).
    """
    entry = new == Kind.TYPED_DELETE
    wins = ~above | (new == Kind.NATURAL_DELETE) | (old == Kind.NATURAL_DELETE)
    changed: Mask = (wins | entry if deletes_win else wins) & ~(entry & (old == Kind.NATURAL_DELETE))
    return changed


def _modes(replace: Mask, old: Kinds, new: Kinds) -> Step:
    """Two rows are merged by their fields, in every mode (PartialUpdateHandler.partialMerge); deletes are not."""
    return Step(replace, (old == Kind.RECORD) & (new == Kind.RECORD))


def _custom_1_0(payload: Payload, old: Kinds, new: Kinds, above: Mask, compared: bool) -> Step:
    """FileGroupRecordBuffer.doProcessNextDataRecord and merge of Hudi 1.0: deletes are ordered as in event-time
    ordering, two rows go through combineAndGetUpdateValue.
    """
    deleted = (old != Kind.RECORD) | (new != Kind.RECORD)
    natural = (old == Kind.NATURAL_DELETE) | (new == Kind.NATURAL_DELETE)
    replace = np.where(deleted, natural | ~above, _payload_wins(payload, above, compared))
    return Step(replace, ~deleted & _completed(payload, replace))


def _custom_1_1(payload: Payload, old: Kinds, new: Kinds, above: Mask, compared: bool) -> Step:
    """HoodieAvroRecordMerger.merge of Hudi 1.1 and later: without an older row the newer version wins, else
    combineAndGetUpdateValue decides, by a delete's ordering value only in DefaultHoodieRecordPayload and its
    subclasses.
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
    """Where combineAndGetUpdateValue takes the newer row; PartialUpdateAvroPayload compares one class only."""
    if payload not in _BY_ORDER or (payload is Payload.PARTIAL_UPDATE and not compared):
        return np.ones(len(above), dtype=np.bool_)
    return ~above
