from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_core.errors import ConfigError
from hudi_core.request import json_fields
from hudi_core.request.json_fields import refuse_unknown


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (json_fields.string, "a", "a"),
        (json_fields.optional_string, None, None),
        (json_fields.flag, True, True),
        (json_fields.number, 3, 3),
        (json_fields.optional_number, None, None),
        (json_fields.real, 3, 3.0),
        (json_fields.text_map, {"a": "b"}, {"a": "b"}),
        (json_fields.texts, ["a"], ("a",)),
    ],
)
def test_fields(read: Callable[..., Any], value: Any, expected: Any) -> None:
    assert read({"name": value}, "name", what="the request") == expected


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (json_fields.string, None),
        (json_fields.optional_string, 1),
        (json_fields.flag, "true"),
        (json_fields.number, True),
        (json_fields.number, 1.5),
        (json_fields.optional_number, "1"),
        (json_fields.real, "1"),
        (json_fields.text_map, {"a": 1}),
        (json_fields.text_map, ["a"]),
        (json_fields.texts, ["a", 1]),
        (json_fields.texts, "a"),
    ],
)
def test_fields_of_another_type_are_named(read: Callable[..., Any], value: Any) -> None:
    with pytest.raises(ConfigError, match="the request: name must be"):
        read({"name": value}, "name", what="the request")


def test_fields_that_may_be_absent() -> None:
    empty = [json_fields.flag, json_fields.text_map, json_fields.texts, json_fields.optional_string]
    assert [read({}, "name", what="x") for read in empty] == [False, {}, (), None]


def test_fields_of_a_newer_release_are_refused() -> None:
    refuse_unknown({"a": 1}, frozenset({"a", "b"}), what="the request")
    with pytest.raises(ConfigError, match="the request has unknown fields: c, d"):
        refuse_unknown({"a": 1, "d": 1, "c": 1}, frozenset({"a"}), what="the request")
