from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from hudi_core.errors import ConfigError
from hudi_core.request.texts import parse_object, read_fields


@dataclass
class Sample:
    text: str
    note: str = "none"
    label: str | None = None
    flag: bool = False
    count: int = 7
    limit: int | None = None
    pairs: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("text", "a", "a"),
        ("label", "a", "a"),
        ("flag", True, True),
        ("count", 3, 3),
        ("limit", 3, 3),
        ("pairs", {"a": "b"}, {"a": "b"}),
        ("names", ["a"], ("a",)),
        ("names", [], ()),
    ],
)
def test_fields(name: str, value: Any, expected: Any) -> None:
    assert read_fields(Sample, {"text": "x", name: value}, what="the request")[name] == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("text", None, "text"),
        ("text", 1, "text"),
        ("note", 1, "text"),
        ("label", 1, "text"),
        ("flag", "true", "true or false"),
        ("flag", None, "true or false"),
        ("flag", 1, "true or false"),
        ("count", True, "a whole number"),
        ("count", 1.5, "a whole number"),
        ("count", None, "a whole number"),
        ("limit", "1", "a whole number"),
        ("pairs", {"a": 1}, "an object of texts"),
        ("pairs", ["a"], "an object of texts"),
        ("pairs", None, "an object of texts"),
        ("names", ["a", 1], "a list of texts"),
        ("names", "a", "a list of texts"),
        ("names", None, "a list of texts"),
    ],
)
def test_fields_of_another_type_are_named(name: str, value: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"the request: {name} must be {expected}"):
        read_fields(Sample, {"text": "x", name: value}, what="the request")


def test_fields_with_a_default_may_be_absent_and_texts_null() -> None:
    assert read_fields(Sample, {"text": "x"}, what="x") == {"text": "x"}
    assert read_fields(Sample, {"text": "x", "note": None, "label": None, "limit": None}, what="x") == {"text": "x"}
    with pytest.raises(ConfigError, match="x: text must be text"):
        read_fields(Sample, {}, what="x")


def test_what_no_field_names_is_not_read() -> None:
    assert read_fields(Sample, {"text": "x", "other": 1}, what="x") == {"text": "x"}


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "1", b"\xff", "[" * 100_000])
def test_what_is_no_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(ConfigError, match="the file is not"):
        parse_object(text, what="the file")


@pytest.mark.parametrize("text", ["a\0b", "\udcff"])
def test_what_is_no_text_is_refused(text: str) -> None:
    for value in ({"text": text}, {"text": "a", "pairs": {"k": text}}, {"text": "a", "names": ["a", text]}):
        with pytest.raises(ConfigError, match="holds bytes that are not UTF-8, or a NUL"):
            read_fields(Sample, value, what="sample")
