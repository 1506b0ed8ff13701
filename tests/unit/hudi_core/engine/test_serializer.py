"""Values of every form that crosses an engine come back as they were, and nothing else is read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.engine.serializer import fields_from_text, fields_to_text, from_text, to_text
from hudi_core.errors import ConfigError, FormatError


class Colour(str, Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: float = 0.0


@dataclass(frozen=True)
class Text:
    text: str


Scalar = bool | int | float | str | bytes | Decimal


@dataclass(frozen=True, slots=True)
class Everything:
    name: str
    flag: bool
    data: bytes
    amount: Decimal
    ratio: float
    colour: Colour
    mode: Literal["auto", "on"]
    point: Point
    maybe: Point | None
    either: Point | Text | None
    scalar: Annotated[Any, Scalar]
    names: tuple[str, ...] = ()
    pair: tuple[int, float] = (0, 0.0)
    points: tuple[Point, ...] = ()
    gaps: tuple[str | None, ...] = ()
    some: frozenset[str] = frozenset()
    mapping: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    counts: Mapping[str | None, int] = field(default_factory=dict)
    mixed: Mapping[str, Point | Text] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)


DECIMALS = st.decimals(allow_nan=False) | st.sampled_from([Decimal("-0.00"), Decimal("1E+40")])
FLOATS = st.floats(allow_nan=False)
POINTS = st.builds(Point, st.integers(), FLOATS)
TEXTS = st.builds(Text, st.text())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
EVERYTHING = st.builds(
    Everything,
    name=st.text(),
    flag=st.booleans(),
    data=st.binary(),
    amount=DECIMALS,
    ratio=FLOATS,
    colour=st.sampled_from(Colour),
    mode=st.sampled_from(["auto", "on"]),
    point=POINTS,
    maybe=st.none() | POINTS,
    either=st.none() | POINTS | TEXTS,
    scalar=st.booleans() | st.integers() | FLOATS | st.text() | st.binary() | DECIMALS,
    names=st.lists(st.text(), max_size=3).map(tuple),
    pair=st.tuples(st.integers(), FLOATS),
    points=st.lists(POINTS, max_size=3).map(tuple),
    gaps=st.lists(st.none() | st.text(), max_size=3).map(tuple),
    some=st.frozensets(st.text(), max_size=1),
    mapping=st.dictionaries(st.text(), st.lists(st.text(), max_size=2).map(tuple), max_size=3),
    counts=st.dictionaries(st.none() | st.text(), st.integers(), max_size=3),
    mixed=st.dictionaries(st.text(), POINTS | TEXTS, max_size=3),
    document=st.dictionaries(st.text(), JSON, max_size=3),
)


def exact(value: Any) -> str:
    """Distinguishes what is equal: 1, 1.0 and True, and zeros by their sign."""
    return repr(value)


@settings(max_examples=60)
@given(EVERYTHING)
def test_a_value_comes_back_exactly(value: Everything) -> None:
    found = from_text(Everything, to_text(value))
    assert found == value
    assert exact(found) == exact(value)


@settings(max_examples=60)
@given(EVERYTHING)
def test_fields_come_back_exactly(value: Everything) -> None:
    names = ["point", "either", "counts"]
    found = fields_from_text(Everything, fields_to_text(value, names))
    assert exact(found) == exact({name: getattr(value, name) for name in names})


@pytest.mark.parametrize("number", [math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308])
def test_special_floats(number: float) -> None:
    assert exact(from_text(Point, to_text(Point(1, number))).y) == exact(number)


def test_sets_are_written_in_order() -> None:
    assert to_text(Some(frozenset({"b", "a", "c"}))) == '[["a","b","c"]]'


@dataclass(frozen=True, slots=True)
class Some:
    items: frozenset[str]


def test_no_number_is_a_float() -> None:
    assert math.isnan(from_text(Point, to_text(Point(1, math.nan))).y)


@pytest.mark.parametrize("text", ["NaN", "sNaN", "-Infinity", "-NaN12"])
def test_special_decimals(text: str) -> None:
    value = Holder(Decimal(text))
    assert from_text(Holder, to_text(value)).amount.as_tuple() == value.amount.as_tuple()


@dataclass(frozen=True, slots=True)
class Holder:
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Loose:
    items: Sequence[Sequence[str]]
    mapping: Mapping[str, str]


def test_what_comes_back_as_another_class_that_its_annotation_allows() -> None:
    found = from_text(Loose, to_text(Loose([["a"], ("b",)], MappingProxyType({"a": "b"}))))
    assert found == Loose((("a",), ("b",)), {"a": "b"})


@dataclass(frozen=True, slots=True)
class FileName:
    name: str

    def __post_init__(self) -> None:
        if "/" in self.name:
            raise FormatError("leaves the table", path=self.name)


def test_a_class_checks_what_it_gets() -> None:
    with pytest.raises(FormatError, match="leaves the table"):
        from_text(FileName, '["../a"]')


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "{}", "[]", "[1]", "[1,2.0,3]", '["1",2.0]', "[true,2.0]", "[1.0,2.0]", '[1,"2"]', "[1,null]"],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="a Point is not what this version writes"):
        from_text(Point, text)


@settings(max_examples=60)
@given(EVERYTHING, st.data())
def test_a_damaged_field_is_refused_or_another_value_of_its_type(value: Everything, data: st.DataObject) -> None:
    raw = json.loads(to_text(value))
    raw[data.draw(st.integers(0, 16))] = data.draw(JSON)
    try:
        found = from_text(Everything, json.dumps(raw))
    except ConfigError:
        return
    assert json.loads(to_text(found)) == json.loads(json.dumps(raw)) or "frozenset" in exact(found)


@dataclass(frozen=True, slots=True)
class Odd:
    value: set[int]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Odd({1}), "has no form"),
        ({"a": 1}, "a dict is no dataclass"),
        (None, "a NoneType is no dataclass"),
        (Text(object()), "Object of type object is not JSON serializable"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_cross_is_refused(value: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        to_text(value)
