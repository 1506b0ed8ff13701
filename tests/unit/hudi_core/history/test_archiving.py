from __future__ import annotations

from hudi_core.history.archiving import ArchivedInstant, StateFile
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
