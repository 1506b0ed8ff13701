from __future__ import annotations

import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.model.names import alike, check_distinct, places, spelled


def test_a_name_is_found_as_it_is_written_or_in_any_case() -> None:
    assert alike(["a", "B", "b"], "b") == ["b"]
    assert alike(["a", "B"], "b") == ["B"]
    assert alike(["aB", "Ab"], "ab") == ["aB", "Ab"]
    assert alike(["a"], "b") == []


def test_places() -> None:
    assert places(["Id", "Name", "ts"], ["name", "Id", "TS", "x"], path="f") == [1, 0, 2, -1]
    assert places([], ["a"], path="f") == [-1]


def test_a_column_that_is_there_twice_but_for_case_is_refused_where_it_is_requested() -> None:
    assert places(["a", "Name", "name"], ["a"], path="f") == [0]
    for name in ("name", "Name", "NAME"):
        with pytest.raises(UnsupportedError, match="'Name' and 'name' differ in upper and lower case alone") as raised:
            places(["a", "Name", "name"], [name], path="p/f.parquet")
        assert raised.value.path == "p/f.parquet"
        assert raised.value.exit_code == 2


def test_names_are_spelled_as_they_are_known() -> None:
    assert spelled(["NAME", "id", "x"], ["Id", "name"]) == ["name", "Id", "x"]
    assert spelled(["ab", "aB"], ["aB", "Ab"]) == ["ab", "aB"]
    assert spelled(["DT"], ["dt", "id", "dt"]) == ["dt"]


def test_distinct_names() -> None:
    check_distinct(["a", "b", "a"], path="s")
    with pytest.raises(UnsupportedError, match="caseSensitive"):
        check_distinct(["a", "b", "A"], path="s")
