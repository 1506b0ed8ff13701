"""Fields of plans whose types come from the plan's own schema."""

from __future__ import annotations

import math

import pytest

from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.timeline.actions.content import name_in_partition, numbers, record_map, records, text, texts

PATH = ".hoodie/001.compaction.requested"


def test_absent_and_null_fields_are_empty() -> None:
    for raw in ({}, {"x": None}):
        assert records(raw, "x", path=PATH) == texts(raw, "x", path=PATH) == []
        assert (text(raw, "x", path=PATH), numbers(raw, "x", path=PATH)) == ("", {})


def test_fields_of_the_due_type() -> None:
    assert records({"x": [{"a": 1}]}, "x", path=PATH) == [{"a": 1}]
    assert texts({"x": ["a", "b"]}, "x", path=PATH) == ["a", "b"]
    assert text({"x": "a"}, "x", path=PATH) == "a"
    assert numbers({"x": {"a": 1, "b": 0.5}}, "x", path=PATH) == {"a": 1, "b": 0.5}


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (records, [1]),
        (records, {}),
        (texts, ["a", 1]),
        (texts, "ab"),
        (text, 1),
        (text, b"a"),
        (record_map, {"a": 1}),
        (record_map, [{}]),
        (numbers, {"a": "1"}),
        (numbers, {"a": math.inf}),
        (numbers, {"a": math.nan}),
        (numbers, {"a": -1e300}),
        (numbers, [1]),
    ],
)
def test_other_types_are_refused_by_name(read: object, value: object) -> None:
    assert callable(read)
    with pytest.raises(CorruptFileError, match="'x' holds") as refusal:
        read({"x": value}, "x", path=PATH)
    assert refusal.value.path == PATH


@pytest.mark.parametrize(
    ("value", "partition"), [("s3://b/t/a=1/b/f", "a=1/b"), ("/t/f", ""), ("f", "a"), ("file:/a/f", "a")]
)
def test_of_an_absolute_path_the_name_counts(value: str, partition: str) -> None:
    assert name_in_partition(value, partition, path=PATH, remedy="none") == "f"


@pytest.mark.parametrize(
    ("value", "partition"),
    [("/t/ab/f", "b"), ("/t/b/c/f", "b"), ("/t/../b/f", "b"), ("b/", "b"), ("/t/b/f\x00", "b"), ("/t/b/..", "b")],
)
def test_a_path_that_ends_elsewhere_is_refused(value: str, partition: str) -> None:
    with pytest.raises(FormatError) as refusal:
        name_in_partition(value, partition, path=PATH, remedy="none")
    assert refusal.value.path == PATH
