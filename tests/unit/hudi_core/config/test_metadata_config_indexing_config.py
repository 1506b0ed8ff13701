from __future__ import annotations

import pytest

from hudi_core.config.metadata_config import (
    CATCHUP_MINUTES,
    EXPRESSION_TYPE,
    FILE_GROUPS,
    INDEXING_KEYS,
    RECORD_INDEX_ENABLE,
    SECONDARY_COLUMN,
)
from hudi_core.errors import ConfigError


def test_no_index_is_built_by_default() -> None:
    assert [key.name for key in INDEXING_KEYS if key.read({}) is True] == []
    assert (FILE_GROUPS.read({}), SECONDARY_COLUMN.read({}), CATCHUP_MINUTES.read({})) == (None, None, 15)


@pytest.mark.parametrize(
    "name", ["hoodie.metadata.record.index.enable", "hoodie.metadata.global.record.level.index.enable"]
)
def test_the_record_index_has_the_names_of_both_releases(name: str) -> None:
    assert RECORD_INDEX_ENABLE.read({name: "true"})


@pytest.mark.parametrize("value", ["0", "10001", "many"])
def test_a_number_of_file_groups_has_bounds(value: str) -> None:
    with pytest.raises(ConfigError, match=r"airflow_hudi\.indexing\.file_groups"):
        FILE_GROUPS.read({FILE_GROUPS.name: value})


def test_what_an_expression_index_holds() -> None:
    assert EXPRESSION_TYPE.read({EXPRESSION_TYPE.name: "BLOOM_FILTERS"}) == "BLOOM_FILTERS"
    with pytest.raises(ConfigError):
        EXPRESSION_TYPE.read({EXPRESSION_TYPE.name: "RECORD_INDEX"})


def test_no_name_is_given_twice() -> None:
    names = [name for key in INDEXING_KEYS for name in (key.name, *key.aliases)]
    assert len(set(names)) == len(names)
