"""The content of claim files, which processes of other releases read."""

from __future__ import annotations

import json

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.transaction.claim_file import ClaimRecord
from hudi_core.transaction.owner import Owner

RECORD = ClaimRecord("c/000002.json", 2, "abc", Owner.current("dag"), 60_000, 2, 5.0)


def test_a_record_is_read_back() -> None:
    assert ClaimRecord.decode(RECORD.encode(), path=RECORD.path, epoch=2, claimed=5.0) == RECORD
    assert RECORD.tolerance_seconds == 120
    assert list(json.loads(RECORD.encode())) == ["version", "token", "owner", "interval_ms", "tolerable_misses"]


@pytest.mark.parametrize(
    "change",
    [{"interval_ms": 10**8, "tolerable_misses": 1000}, {"interval_ms": 1 << 62}, {"tolerable_misses": 10**400}],
)
def test_no_claim_holds_for_more_than_a_day(change: dict[str, object]) -> None:
    data = json.dumps({**json.loads(RECORD.encode()), **change}).encode()
    assert ClaimRecord.decode(data, path=RECORD.path, epoch=2, claimed=5.0).tolerance_seconds == 86_400


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"owner": None},
        {"token": 1},
        {"interval_ms": 0},
        {"interval_ms": "1"},
        {"tolerable_misses": -1},
    ],
)
def test_damage_names_the_file(change: dict[str, object]) -> None:
    data = json.dumps({**json.loads(RECORD.encode()), **change}).encode()
    for content in (data, b"no JSON", b"[]"):
        with pytest.raises(CorruptFileError) as caught:
            ClaimRecord.decode(content, path=RECORD.path, epoch=2, claimed=5.0)
        assert caught.value.path == RECORD.path
