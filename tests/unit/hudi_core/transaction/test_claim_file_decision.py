from __future__ import annotations

import pytest

from hudi_core.errors import ConflictError, CorruptFileError
from hudi_core.model.names import ClaimFolder
from hudi_core.transaction.claim_file import Decision, abandon, close, decide, find_decision
from tests.support.memory_storage import MemoryStorage

FOLDER = ClaimFolder("001")
DECISION = Decision("compaction", "002", b"commit\nmetadata")


def test_the_owner_is_first() -> None:
    """Its decision is final, and its successor carries it out."""
    storage = MemoryStorage()
    decide(storage, FOLDER, 3, DECISION)
    decide(storage, FOLDER, 3, DECISION)
    assert close(storage, FOLDER, 3) == DECISION
    assert find_decision(storage, FOLDER, 3) == DECISION
    with pytest.raises(ConflictError, match="new owner closed"):
        decide(storage, FOLDER, 3, Decision("compaction", "003", b"other"))


def test_the_commits_that_it_knew_are_on_record() -> None:
    storage = MemoryStorage()
    for epoch, known in enumerate((frozenset[str](), frozenset({"002", "001"})), 1):
        decision = Decision("compaction", "003", b"x", known)
        decide(storage, FOLDER, epoch, decision)
        assert find_decision(storage, FOLDER, epoch) == decision


def test_the_successor_is_first() -> None:
    storage = MemoryStorage()
    assert close(storage, FOLDER, 3) is None
    with pytest.raises(ConflictError, match="new owner closed") as caught:
        decide(storage, FOLDER, 3, DECISION)
    assert caught.value.path == FOLDER.decision(3)
    assert (close(storage, FOLDER, 3), find_decision(storage, FOLDER, 3)) == (None, None)


def test_an_epoch_that_is_open_has_no_decision() -> None:
    storage = MemoryStorage()
    assert find_decision(storage, FOLDER, 1) is None
    decide(storage, FOLDER, 1, Decision("commit", None, b"x"))
    abandon(storage, FOLDER, 1)
    assert find_decision(storage, FOLDER, 1) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"version": 2}',
        b'{"version": 1, "action": "a"}\n',
        b'{"version": 1}\nx',
        b'{"version": 1, "action": "a", "completion_time": null}\nx',
        b'{"version": 1, "action": "a", "completion_time": null, "known": [1]}\nx',
    ],
)
def test_files_that_are_no_decision_are_named(data: bytes) -> None:
    storage = MemoryStorage()
    storage.write(FOLDER.decision(1), data)
    with pytest.raises(CorruptFileError) as caught:
        find_decision(storage, FOLDER, 1)
    assert caught.value.path == FOLDER.decision(1)
