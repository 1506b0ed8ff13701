from __future__ import annotations

import pytest

from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError
from hudi_core.filegroup.read.block_validity import CommittedInstants, latest_compaction_instant, latest_read_instant
from hudi_core.timeline.instant import Instant, State
from hudi_core.timeline.timeline import Timeline

TIMELINE = Timeline(
    [
        Instant("003", "deltacommit", State.COMPLETED),
        Instant("004", "clean", State.COMPLETED),
        Instant("005", "deltacommit", State.INFLIGHT),
        Instant("006", "commit", State.COMPLETED),
        Instant("007", "replacecommit", State.REQUESTED),
        Instant("008", "compaction", State.INFLIGHT),
        Instant("009", "rollback", State.COMPLETED),
    ]
)


@pytest.mark.parametrize(
    ("instant", "committed"),
    [("001", True), ("003", True), ("004", False), ("005", False), ("006", True), ("007", False), ("010", False)],
)
def test_what_is_committed_survives_json(instant: str, committed: bool) -> None:
    statistics = CommittedInstants.of(TIMELINE)
    assert statistics(instant) is committed
    assert from_text(CommittedInstants, to_text(statistics)) == statistics


def test_what_was_committed_up_to_an_instant_or_before_it() -> None:
    statistics = CommittedInstants.of(TIMELINE)
    requested = ["001", "002", "003", "005", "006", "010"]
    expected = {"003": ["001", "002", "003"], "006": ["001", "002", "003", "006"], "005": ["001", "002", "003"]}
    for instant, committed in expected.items():
        assert list(filter(statistics.up_to(instant), requested)) == committed
        assert list(filter(statistics.up_to(instant, inclusive=False), requested)) == [
            time for time in committed if time < instant
        ]
    archived = statistics.up_to("001")
    assert list(filter(archived, requested)) == ["001"], "instants that were archived after it are not committed yet"
    assert list(filter(statistics.up_to("002", inclusive=False), requested)) == ["001"]


def test_latest_instants() -> None:
    assert latest_read_instant(TIMELINE) == "006"
    assert latest_compaction_instant(TIMELINE) == "009", "a rollback's command blocks must be obeyed"
    assert latest_read_instant(Timeline()) is None
    assert latest_compaction_instant(Timeline()) is None


@pytest.mark.parametrize("raw", ["{}", "[]", "[1,[],null]"])
def test_other_json_is_refused(raw: str) -> None:
    with pytest.raises(ConfigError):
        from_text(CommittedInstants, raw)
