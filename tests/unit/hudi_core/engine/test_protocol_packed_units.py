"""Units packed for an engine."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.engine.protocol import pack_units, result_type

TEXTS = st.text(max_size=3)


@dataclass(frozen=True, slots=True)
class Unit:
    schema: str
    names: tuple[str, ...]
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Other:
    schema: str


UNITS = st.builds(Unit, TEXTS, st.lists(TEXTS, max_size=2).map(tuple), st.dictionaries(TEXTS, st.integers()))


@given(st.lists(UNITS, min_size=1, max_size=5), st.booleans())
def test_units_come_out_as_they_went_in(units: list[Unit], compress: bool) -> None:
    packed = pickle.loads(pickle.dumps(pack_units(units, compress=compress)))
    assert [packed.unit(index) for index in range(len(units))] == units


def test_what_units_share_is_held_once() -> None:
    schema = json.dumps([f"field {index} of the table" for index in range(2000)])
    packed = pack_units([Unit(schema, (str(index),), {}) for index in range(1000)], compress=True)
    assert sum(len(text) for text in packed.separate) < 60_000
    assert packed.unit(999) == Unit(schema, ("999",), {})


def test_units_are_of_one_class() -> None:
    with pytest.raises(TypeError, match="not all units are of the class Unit"):
        pack_units([Unit("", (), {}), Other("")])


def task(unit: Unit, attempt: int) -> Other:
    return Other(unit.schema)


def nameless(unit):  # type: ignore[no-untyped-def]
    return unit


def test_a_result_has_the_class_that_the_task_names() -> None:
    assert result_type(task) is Other
    assert result_type(partial(partial(task, Unit("", (), {})), 1)) is Other
    with pytest.raises(TypeError, match="nameless names no class of results"):
        result_type(nameless)
