from __future__ import annotations

import pytest

from airflow_hudi.conditions import InstantCondition
from hudi_core.errors import ConfigError
from hudi_core.timeline.layout import timeline_of

NAMES = [
    "hoodie.properties",
    "001.deltacommit.requested",
    "001.deltacommit.inflight",
    "001.deltacommit",
    "002.compaction.requested",
    "002.compaction.inflight",
    "002.commit",
    "003.compaction.requested",
    "003.compaction.inflight",
    "004.compaction.requested",
    "005.clean.requested",
]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (InstantCondition("compaction"), "003"),
        (InstantCondition("compaction", "requested"), "004"),
        (InstantCondition("compaction", "inflight"), "003"),
        (InstantCondition("compaction", "completed"), "002"),
        (InstantCondition("commit", "completed"), "002"),
        (InstantCondition("deltacommit", "completed"), "001"),
        (InstantCondition("deltacommit", "completed", after="001"), None),
        (InstantCondition("compaction", "pending", instant="004"), "004"),
        (InstantCondition("compaction", "pending", instant="002"), None),
        (InstantCondition("compaction", "pending", after="003"), "004"),
        (InstantCondition("clean"), "005"),
        (InstantCondition("clustering"), None),
    ],
)
def test_finds_the_oldest_instant_that_holds(condition: InstantCondition, expected: str | None) -> None:
    found = condition.find(timeline_of(NAMES))
    assert (found and found.requested_time) == expected


@pytest.mark.parametrize(
    "arguments",
    [("compaction", "done"), ("",), ("compaction", "pending", "yesterday"), ("compaction", "pending", None, "x")],
)
def test_refuses_what_can_never_hold(arguments: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError):
        InstantCondition(*arguments)
