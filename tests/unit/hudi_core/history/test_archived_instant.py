from __future__ import annotations

from typing import Any

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.history.archived_instant import ArchivedInstant, StateFile, archived_entry
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit
from hudi_core.timeline.instant import Instant, State


def test_an_archived_instant_has_the_files_of_its_states() -> None:
    files = (
        StateFile("compaction", State.REQUESTED, b"plan", "001.compaction.requested", "001"),
        StateFile("commit", State.COMPLETED, b"commit", "001.commit", "002"),
    )
    item = ArchivedInstant(Instant("001", "commit", State.COMPLETED, "002", "compaction"), files)
    assert item.key == ("001", "commit")
    assert item.size == 10
    assert [item.content(state) for state in State] == [b"plan", b"", b"commit"]


class TestEntry:
    def entry(self, action: str, state: State, data: bytes) -> dict[str, Any]:
        return archived_entry("001", StateFile(action, state, data, "file", "002"))

    def test_a_commit_of_a_compaction_says_so(self) -> None:
        data = encode_commit(
            CommitMetadata(operation_type="UNKNOWN", compacted=True, extra_metadata={"a": None, "b": "c"})
        )
        commit = self.entry("commit", State.COMPLETED, data)["hoodieCommitMetadata"]
        assert commit["operationType"] == "COMPACT"
        assert commit["extraMetadata"] == {"b": "c", "ROLLING_STAT": ""}

    @pytest.mark.parametrize(
        ("action", "state"), [("rollback", State.REQUESTED), ("compaction", State.INFLIGHT), ("clean", State.INFLIGHT)]
    )
    def test_states_without_content(self, action: str, state: State) -> None:
        entry = self.entry(action, state, b"")
        assert entry == {
            "commitTime": "001",
            "actionType": action,
            "actionState": state.name,
            "stateTransitionTime": "002",
            "version": None,
        }

    @pytest.mark.parametrize(
        "data",
        [b"{", b"[]", b'{"partitionToWriteStats": {"p": 1}}', b'{"partitionToWriteStats": {"p": [1]}}', b"Obj\x01"],
    )
    def test_a_damaged_file_is_named(self, data: bytes) -> None:
        with pytest.raises(CorruptFileError) as caught:
            self.entry("commit", State.COMPLETED, data)
        assert caught.value.path == "file"
