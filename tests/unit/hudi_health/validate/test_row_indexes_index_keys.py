"""Keys of rows against keys of an index: collected with and without spilling, and compared."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.hashing import file_group_indexes
from hudi_health.validate.row_indexes import IndexKeys, compare_keys


def collected(keys: list[list[str]], groups: int, budget: int) -> dict[int, list[tuple[str, int]]]:
    index_keys = IndexKeys(groups, budget)
    for place, batch in enumerate(keys):
        index_keys.add(file_group_indexes(batch, groups), pa.array(batch, pa.string()), place)
    found = {
        group: [(key.decode(), place) for key, place in zip(keys.to_pylist(), places.tolist(), strict=True)]
        for group, (keys, places) in enumerate(index_keys.by_group())
    }
    assert len(found) == groups
    return found


@pytest.mark.parametrize("groups", [1, 3, 10, 300, 1000])
@pytest.mark.parametrize("budget", [1 << 20, 2000, 0])
def test_every_key_comes_back_in_its_group(
    groups: int, budget: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    keys = [[f"k{number}" for number in range(start, start + 37)] for start in range(0, 370, 37)]
    found = collected(keys, groups, budget)
    for place, batch in enumerate(keys):
        for key, group in zip(batch, file_group_indexes(batch, groups).tolist(), strict=True):
            assert (key, place) in found[group]
    assert sum(map(len, found.values())) == 370
    assert os.listdir(tmp_path) == [], "no temporary file is left"


def test_no_keys_at_all() -> None:
    assert collected([], 3, 1) == {0: [], 1: [], 2: []}


def differences(true: list[tuple[str, int]], stored: dict[str, int]) -> tuple[set[str], set[str], set[str]]:
    keys, index = pa.array([key for key, _ in true], pa.binary()), pa.array(list(stored), pa.binary())
    found = compare_keys(
        keys, np.array([place for _, place in true], np.int32), index, np.array(list(stored.values()), np.int32)
    )
    assert [keys[at] for at in found.first.tolist()] == [index[at] for at in found.elsewhere.tolist()]
    missing = [keys[at].as_py().decode() for at in found.missing.tolist()]
    assert len(missing) == len(set(missing))
    extra, elsewhere = (
        {index[at].as_py().decode() for at in which.tolist()} for which in (found.extra, found.elsewhere)
    )
    return set(missing), extra, elsewhere


def test_a_key_in_several_places_may_be_stored_in_any_of_them() -> None:
    true = [("a", 0), ("b", 0), ("b", 1), ("c", 2), ("c", 3), ("d", 1), ("d", 2)]
    assert differences(true, {"a": 0, "b": 1, "c": 1}) == ({"d"}, set(), {"c"})
    assert differences(true, {"a": -1, "b": 0, "c": 3, "d": 2, "e": 0}) == (set(), {"e"}, {"a"})
    assert differences([], {"x": 1}) == (set(), {"x"}, set())
    assert differences(true[:1], {}) == ({"a"}, set(), set())


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 3)), max_size=20),
    st.dictionaries(st.sampled_from("abcdefghij"), st.integers(-1, 3), max_size=10),
)
def test_against_plain_sets(true: list[tuple[str, int]], stored: dict[str, int]) -> None:
    places: dict[str, set[int]] = {}
    for key, place in true:
        places.setdefault(key, set()).add(place)
    missing = places.keys() - stored.keys()
    extra = stored.keys() - places.keys()
    elsewhere = {key for key, place in stored.items() if key in places and place not in places[key]}
    assert differences(true, stored) == (set(missing), set(extra), elsewhere)
