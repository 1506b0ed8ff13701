"""What the dataclasses of hudi_core.frozen do is what those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, field
from typing import Any, Generic, TypeVar

import pytest

from hudi_core import frozen

T = TypeVar("T")
MAKERS = (dataclasses.dataclass, frozen.dataclass)


class Shape(ABC):
    __slots__ = ()

    @abstractmethod
    def area(self) -> int: ...


def classes(made: Callable[..., Any]) -> dict[str, Any]:
    @made(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 2

    @made(frozen=True, slots=True, order=True)
    class Ordered:
        """Has an order."""

        first: str
        second: int = 0

    @made(frozen=True, slots=True)
    class Whole:
        name: str
        tags: Mapping[str, str] = field(default_factory=dict, hash=False)
        hidden: int = field(default=0, compare=False, repr=False)
        made: int = field(default=7, init=False)
        _: KW_ONLY
        last: bool = False
        must: int

        def __post_init__(self) -> None:
            if self.must < 0:
                raise ValueError("less than nothing")

    @made(frozen=True, slots=True)
    class Square(Shape):
        side: int

        def area(self) -> int:
            return self.side**2

    @made(frozen=True, slots=True)
    class Named(Square):
        name: str = "square"

        def __repr__(self) -> str:
            return f"<{self.name}>"

    @made(frozen=True, slots=True)
    class Own:
        value: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.value % 10 == other.value % 10

        def __hash__(self) -> int:
            return self.value % 10

    @made(frozen=True, slots=True, init=False)
    class Built:
        text: str

        def __init__(self, number: int) -> None:
            object.__setattr__(self, "text", str(number))

    @made(frozen=True, slots=True)
    class Box(Generic[T]):
        value: T

    @made(frozen=True, slots=True)
    class Nothing:
        pass

    return {name: one for name, one in locals().items() if isinstance(one, type)}


STANDARD, OURS = (classes(made) for made in MAKERS)
GIVEN: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Point", (1,), {}),
    ("Point", (), {"y": 5, "x": 3}),
    ("Ordered", ("a",), {"second": 1}),
    ("Whole", ("n",), {"must": 1}),
    ("Whole", ("n", {"a": "b"}, 4), {"must": 2, "last": True}),
    ("Square", (3,), {}),
    ("Named", (3, "s"), {}),
    ("Own", (12,), {}),
    ("Built", (5,), {}),
    ("Box", ([1, 2],), {}),
    ("Nothing", (), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), GIVEN)
def test_values_are_those_of_the_standard_library(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    theirs, ours = STANDARD[name](*args, **kwargs), OURS[name](*args, **kwargs)
    assert repr(ours) == repr(theirs)
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert [item.name for item in dataclasses.fields(ours)] == [item.name for item in dataclasses.fields(theirs)]
    assert ours == OURS[name](*args, **kwargs)
    assert ours != theirs
    assert copy.copy(ours) == ours == copy.deepcopy(ours)
    assert type(ours).__slots__ == type(theirs).__slots__
    assert type(ours).__match_args__ == type(theirs).__match_args__
    assert not hasattr(ours, "__dict__")
    if name != "Box":
        assert hash(ours) == hash(OURS[name](*args, **kwargs))
    if name != "Built":
        parameters = [inspect.signature(one[name]).parameters for one in (STANDARD, OURS)]
        assert [(item.name, item.kind) for item in parameters[0].values()] == [
            (item.name, item.kind) for item in parameters[1].values()
        ]
        assert dataclasses.replace(ours) == ours
    for given, field_name in ((one, item.name) for one in (ours, theirs) for item in dataclasses.fields(one)):
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot assign to field '{field_name}'"):
            setattr(given, field_name, 1)
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot delete field '{field_name}'"):
            delattr(given, field_name)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'other'"):
        ours.other = 1


@pytest.mark.parametrize("made", [STANDARD, OURS])
def test_they_compare_by_their_fields(made: dict[str, Any]) -> None:
    point, ordered, whole = made["Point"], made["Ordered"], made["Whole"]
    assert {point(1), point(1, 2), point(2)} == {point(2), point(1)}
    assert point(1) != point(1, 3)
    assert point(1) != made["Nothing"]()
    assert sorted([ordered("b"), ordered("a", 2), ordered("a")]) == [ordered("a"), ordered("a", 2), ordered("b")]
    assert ordered("a") <= ordered("a") < ordered("b") >= ordered("b") > ordered("a")
    with pytest.raises(TypeError):
        assert ordered("a") < point(1)
    with pytest.raises(TypeError):
        assert point(1) < point(2)
    assert whole("n", must=1, hidden=1) == whole("n", must=1, hidden=2)
    assert hash(whole("n", {"a": "b"}, must=1)) == hash(whole("n", {}, must=1))
    assert whole("n", {"a": "b"}, must=1) != whole("n", must=1)
    assert whole("n", must=1).tags is not whole("n", must=1).tags
    nan = float("nan")
    assert made["Box"](nan) == made["Box"](nan) != made["Box"](float("nan"))
    assert made["Own"](12) == made["Own"](2)
    assert {made["Own"](12), made["Own"](2)} == {made["Own"](32)}


@pytest.mark.parametrize("made", [STANDARD, OURS])
def test_what_is_wrong_is_refused(made: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        made["Point"]()
    with pytest.raises(TypeError):
        made["Whole"]("n")
    with pytest.raises(ValueError, match="less than nothing"):
        made["Whole"]("n", must=-1)
    with pytest.raises(ValueError, match="less than nothing"):
        dataclasses.replace(made["Whole"]("n", must=1), must=-1)
    with pytest.raises(TypeError):
        hash(made["Box"]([]))


@frozen.dataclass(frozen=True, slots=True)
class Sent:
    """Pickle finds it by its name."""

    name: str
    parts: tuple[int, ...] = ()


@frozen.dataclass(frozen=True)
class Cached:
    name: str


def test_they_are_sent_to_other_processes() -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(Sent("a", (1, 2)), protocol)) == Sent("a", (1, 2))


def test_those_with_other_flags_are_the_standard_librarys() -> None:
    assert vars(Cached("a")) == {"name": "a"}
