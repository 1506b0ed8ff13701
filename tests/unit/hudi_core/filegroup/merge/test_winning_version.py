from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hudi_core.config.rows_config import Payload
from hudi_core.filegroup.merge.table_policy import MergePolicy, Rules
from hudi_core.filegroup.merge.winning_version import Kind, base_step, compares_with_base, log_step

R, F, T, N = Kind.RECORD, Kind.FLAGGED, Kind.TYPED_DELETE, Kind.NATURAL_DELETE


def policy(rules: Rules, payload: Payload = Payload.LATEST) -> MergePolicy:
    return MergePolicy(("key",), ("ts",), rules, payload)


def newer_wins(rules: MergePolicy, old: Kind, new: Kind, *, above: bool) -> bool:
    kinds = [np.array([kind], np.uint8) for kind in (old, new)]
    return bool(log_step(rules, *kinds, np.array([above])).replace[0])


@pytest.mark.parametrize(
    ("rules", "old", "new", "expected"),
    [
        (Rules.COMMIT_TIME, R, R, True),
        (Rules.COMMIT_TIME, R, T, True),
        (Rules.EVENT_TIME, R, R, False),
        (Rules.EVENT_TIME, R, T, False),
        (Rules.EVENT_TIME, R, N, True),
        (Rules.EVENT_TIME, N, R, True),
        (Rules.EVENT_TIME, N, T, False),
        (Rules.PAYLOAD_0_15, R, R, False),
        (Rules.PAYLOAD_0_15, T, R, True),
        (Rules.PAYLOAD_0_15, R, N, True),
    ],
)
def test_an_older_version_with_the_greater_ordering_value(rules: Rules, old: Kind, new: Kind, expected: bool) -> None:
    assert newer_wins(policy(rules), old, new, above=True) is expected


@pytest.mark.parametrize("rules", [Rules.COMMIT_TIME, Rules.EVENT_TIME, Rules.PAYLOAD_0_15])
@pytest.mark.parametrize("new", [R, F])
def test_otherwise_the_newer_one_wins(rules: Rules, new: Kind) -> None:
    assert newer_wins(policy(rules), R, new, above=False)


@pytest.mark.parametrize(
    ("payload", "wins"),
    [
        (Payload.LATEST, True),
        (Payload.DEFAULT, False),
        (Payload.EVENT_TIME, False),
        (Payload.NON_DEFAULTS, True),
        (Payload.POSTGRES, False),
    ],
)
def test_which_classes_a_base_row_stands_against(payload: Payload, wins: bool) -> None:
    rules = policy(Rules.PAYLOAD_0_15, payload)
    step = base_step(rules, np.array([R], np.uint8), np.array([True]))
    assert bool(step.replace[0]) is wins
    assert compares_with_base(rules) is not wins


@pytest.mark.parametrize("payload", list(Payload))
def test_partial_update_payloads_of_0_15_compare_values_of_one_class_only(payload: Payload) -> None:
    """Of dates and decimals a log record has another class than a base row, so that it wins whatever its value."""
    rules, above = policy(Rules.PAYLOAD_0_15, payload), np.array([True])
    same, other = (
        base_step(rules, np.array([R], np.uint8), above, compared=compared).replace.tolist()
        for compared in (True, False)
    )
    assert other == ([True] if payload is Payload.PARTIAL_UPDATE else same)
    assert same == [not compares_with_base(rules)]
    assert not newer_wins(rules, R, R, above=True), "versions in log files are compared in any case"


@pytest.mark.parametrize("payload", [Payload.LATEST, Payload.NON_DEFAULTS, Payload.PARTIAL_UPDATE])
def test_a_write_of_1_0_asks_the_payload_class(payload: Payload) -> None:
    """HoodieMergeHandle does. A query and a compaction compare a flagged record by its ordering value."""
    read = policy(Rules.CUSTOM_1_0, payload)
    flagged, above = np.array([F], np.uint8), np.array([True])
    write = replace(read, in_write=True)
    assert [base_step(rules, flagged, above).replace.tolist() for rules in (read, write)] == [[False], [True]]
    assert compares_with_base(read)
    assert compares_with_base(write) is (payload is Payload.PARTIAL_UPDATE)


def test_a_delete_entry_is_never_compared_with_a_base_row_of_0_15() -> None:
    step = base_step(policy(Rules.PAYLOAD_0_15, Payload.DEFAULT), np.array([T, F], np.uint8), np.array([True, True]))
    assert step.replace.tolist() == [True, False]


def test_classes_that_complete_rows() -> None:
    new, above = np.array([R, N], np.uint8), np.array([False, False])
    merged = {payload: base_step(policy(Rules.PAYLOAD_0_15, payload), new, above).merge.tolist() for payload in Payload}
    assert {payload for payload, found in merged.items() if found == [True, False]} == {
        Payload.NON_DEFAULTS,
        Payload.PARTIAL_UPDATE,
        Payload.POSTGRES,
    }
