"""The options of the metadata table: Hudi's names, defaults and bounds."""

from __future__ import annotations

import pytest

from hudi_core.config.keys import ConfigKey
from hudi_core.config.metadata_config import (
    EXPRESSION_FILTER_TYPE,
    METADATA_DELTA_COMMITS,
    METADATA_TABLE_KEYS,
    PARTITIONED_RECORD_INDEX_MAXIMUM,
    PARTITIONED_RECORD_INDEX_MINIMUM,
    RECORD_INDEX_GROWTH,
    RECORD_INDEX_MAXIMUM,
    RECORD_INDEX_MINIMUM,
    STATISTICS_COLUMN_COUNT,
    STATISTICS_COLUMNS,
)
from hudi_core.errors import ConfigError


def test_defaults_are_those_of_hudi() -> None:
    keys = (METADATA_DELTA_COMMITS, STATISTICS_COLUMN_COUNT, RECORD_INDEX_MINIMUM, RECORD_INDEX_MAXIMUM)
    assert [key.read({}) for key in keys] == [10, 32, 10, 10_000]
    assert STATISTICS_COLUMNS.read({}) == ()
    assert RECORD_INDEX_GROWTH.read({}) == 2.0
    assert EXPRESSION_FILTER_TYPE.read({}) == "DYNAMIC_V0"


def test_no_name_is_of_two_options() -> None:
    names = [name for key in METADATA_TABLE_KEYS for name in (key.name, *key.aliases)]
    assert len(names) == len(set(names))


def test_the_column_list_is_separated_by_commas() -> None:
    assert STATISTICS_COLUMNS.read({STATISTICS_COLUMNS.name: "id, address.city ,ts"}) == ("id", "address.city", "ts")


@pytest.mark.parametrize(("key", "bound"), [(RECORD_INDEX_MINIMUM, "min"), (RECORD_INDEX_MAXIMUM, "max")])
def test_names_before_hudi_1_1_are_read(key: ConfigKey[int], bound: str) -> None:
    """Hudi 1.1 renamed the options of the global record index."""
    old = f"hoodie.metadata.record.index.{bound}.filegroup.count"
    assert key.read({old: "7"}) == 7
    assert key.read({old: "7", key.name: "8"}) == 8


def test_a_partitioned_record_index_has_bounds_of_its_own() -> None:
    bounds = (PARTITIONED_RECORD_INDEX_MINIMUM, PARTITIONED_RECORD_INDEX_MAXIMUM)
    assert [key.read({RECORD_INDEX_MINIMUM.name: "4", RECORD_INDEX_MAXIMUM.name: "4"}) for key in bounds] == [1, 10]


@pytest.mark.parametrize("value", ["0", "-1", "many", str(2**31)])
def test_a_count_is_a_positive_integer_of_java(value: str) -> None:
    with pytest.raises(ConfigError, match=METADATA_DELTA_COMMITS.name):
        METADATA_DELTA_COMMITS.read({METADATA_DELTA_COMMITS.name: value})


def test_an_unknown_filter_type_is_refused() -> None:
    with pytest.raises(ConfigError, match="DYNAMIC_V0"):
        EXPRESSION_FILTER_TYPE.read({EXPRESSION_FILTER_TYPE.name: "RIBBON"})
