from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import UnsupportedVersionError
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.naming import naming_for, timeline_of


@pytest.mark.parametrize(
    ("layout", "completed", "name"),
    [(1, "001.commit", "001.commit"), (2, "001_002.commit", "001_002.commit")],
)
def test_names_of_both_layouts(layout: int, completed: str, name: str) -> None:
    naming = naming_for(layout)
    assert naming.file_name("001", Action.COMMIT, State.COMPLETED, "002") == name
    (instant,) = naming.instants([completed, "001.commit.requested", "001.inflight", "notes.txt"])
    assert (instant.state, instant.completed_at) == (State.COMPLETED, "001" if layout == 1 else "002")
    assert naming.completes_by_name is (layout == 1)


@pytest.mark.parametrize("layout", [0, 3])
def test_other_layouts(layout: int) -> None:
    with pytest.raises(UnsupportedVersionError, match=f"layout {layout} is not supported") as caught:
        naming_for(layout)
    assert caught.value.remedy == "layouts 1 and 2 are"


def test_a_file_that_an_upgrade_left_completed_when_it_was_written() -> None:
    names = ["20260101000000000.commit", "20260103000000000_20260103000001000.commit"]
    at = {names[0]: 1767312000.5}
    first, second = timeline_of(names, 2, at, "UTC")
    assert (first.is_legacy, first.completion_time) == (True, "20260102000000500")
    assert (second.is_legacy, second.completion_time) == (False, "20260103000001000")


@given(
    st.permutations(
        [
            *(
                "1.compaction.requested",
                "1.compaction.inflight",
                "1_7.commit",
                "1_5.commit",
                "1_x.commit",
            ),
            *("1.savepoint.inflight", "2.newthing.inflight", "2_3.newthing", "3_4.newthing", "5_.clean", "_5.clean"),
            *("4.clean.inflight", "4.clean.requested", "hoodie.properties"),
        ]
    )
)
def test_the_order_of_a_listing_does_not_matter(names: list[str]) -> None:
    shown = [(item.requested_time, item.action, item.completion_time) for item in timeline_of(names, 2)]
    assert shown == [("1", "commit", "5"), ("1", "savepoint", None), ("2", "newthing", "3"), ("4", "clean", None)]
    assert [item.pending_action for item in timeline_of(names, 2)] == ["compaction", "savepoint", "newthing", "clean"]
