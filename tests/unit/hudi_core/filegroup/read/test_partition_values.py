from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.filegroup.read.partition_values import as_text, path_values

COUNTRY, DAY = pa.field("country", pa.string()), pa.field("day", pa.int64())


def values(partition: str, names: list[str], columns: list[pa.Field]) -> dict[str, object]:
    """What a path says, as Python values."""
    return {name: value.as_py() for name, value in path_values(partition, names, columns).items()}


def test_values_are_typed_unescaped_and_stripped_of_their_name() -> None:
    both = ["country", "day"]
    assert values("a%2Fb/20240101", both, [COUNTRY, DAY]) == {"country": "a/b", "day": 20240101}
    assert values("country=%C3%A9/day=7", both, [COUNTRY, DAY]) == {"country": "é", "day": 7}
    assert values("2024/01/02", ["country"], [COUNTRY]) == {"country": "2024/01/02"}, "one column takes the whole path"
    assert values("x/7", both, [DAY]) == {"day": 7}, "a column that is read from rows still takes up its level"


def test_default_partition_is_null() -> None:
    found = values("country=__HIVE_DEFAULT_PARTITION__/__HIVE_DEFAULT_PARTITION__", ["country", "day"], [COUNTRY, DAY])
    assert found == {"country": None, "day": None}


@pytest.mark.parametrize("partition", ["", "a", "a/b/c"])
def test_a_path_of_another_depth_says_nothing(partition: str) -> None:
    assert values(partition, ["country", "day"], [COUNTRY, DAY]) == {}


def test_value_of_another_type_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="day=x"):
        values("a/day=x", ["country", "day"], [COUNTRY, DAY])


def test_stored_values_as_text() -> None:
    assert as_text(pa.array([1704067200000, None]), path="f").to_pylist() == ["1704067200000", None]
    with pytest.raises(UnsupportedError, match="struct"):
        as_text(pa.array([{"a": 1}]), path="f")
