"""From options to the indexes that they request."""

from __future__ import annotations

import pytest

from hudi_core.config.metadata_config import (
    COLUMN_STATS_ENABLE,
    EXPRESSION_COLUMN,
    EXPRESSION_OPTIONS,
    EXPRESSION_TYPE,
    INDEX_NAME,
    PARTITION_STATS_ENABLE,
    PARTITIONED_RECORD_INDEX_ENABLE,
    RECORD_INDEX_ENABLE,
    SECONDARY_COLUMN,
)
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.metadata_table.indexed_table import IndexDefinition
from hudi_core.services.indexing.planner import NONE_NAMED, RequestedIndexes, requested_indexes
from tests.support.table_configs import VERSION_9, config_of

PARTITIONED = {"hoodie.table.partition.fields": "day"}
CITY = IndexDefinition("secondary_index_city", "secondary_index", "identity", ("city",), {}, 2)


def requested(
    options: dict[str, str], config: TableConfig | None = None, defined: tuple[IndexDefinition, ...] = ()
) -> RequestedIndexes:
    table = config_of(VERSION_9) if config is None else config
    return requested_indexes(table, {item.name: item for item in defined}, options)


def test_switches_name_partitions_in_order() -> None:
    found = requested({RECORD_INDEX_ENABLE.name: "true", COLUMN_STATS_ENABLE.name: "true"}, config_of())
    assert found.names == ("column_stats", "record_index")
    assert found.definitions == {}


def test_no_index_may_be_named() -> None:
    assert requested({COLUMN_STATS_ENABLE.name: "false"}).names == ()
    assert COLUMN_STATS_ENABLE.name in NONE_NAMED


def test_a_column_defines_a_secondary_index() -> None:
    found = requested({SECONDARY_COLUMN.name: "city"})
    assert found.names == ("secondary_index_city",)
    assert found.definitions == {"secondary_index_city": CITY}


@pytest.mark.parametrize("name", ["towns", "secondary_index_towns"])
def test_a_name_is_given_with_its_prefix_or_without(name: str) -> None:
    found = requested({SECONDARY_COLUMN.name: "city", INDEX_NAME.name: name})
    assert found.names == ("secondary_index_towns",)
    assert found.definitions["secondary_index_towns"].source_fields == ("city",)


def test_a_defined_index_is_found_by_its_name() -> None:
    found = requested({INDEX_NAME.name: "city"}, defined=(CITY,))
    assert found.definitions == {"secondary_index_city": CITY}


def test_a_name_without_a_definition_is_refused() -> None:
    with pytest.raises(ConfigError, match="no index 'town' is defined"):
        requested({INDEX_NAME.name: "town"}, defined=(CITY,))


def test_a_defined_index_keeps_its_column() -> None:
    with pytest.raises(ConfigError, match="defined already, on city"):
        requested({SECONDARY_COLUMN.name: "country", INDEX_NAME.name: "city"}, defined=(CITY,))


def test_an_expression_index_has_its_function_and_options() -> None:
    options = {EXPRESSION_COLUMN.name: "ts", EXPRESSION_OPTIONS.name: "expr=from_unixtime, format=yyyy-MM-dd"}
    (definition,) = requested(options).definitions.values()
    assert (definition.name, definition.function) == ("expr_index_ts", "from_unixtime")
    assert definition.options == {"expr": "from_unixtime", "format": "yyyy-MM-dd"}
    assert definition.type == EXPRESSION_TYPE.read({}).lower()


@pytest.mark.parametrize(
    "options",
    [{EXPRESSION_OPTIONS.name: "lower"}, {EXPRESSION_TYPE.name: "SECONDARY_INDEX"}],
    ids=["no pair", "no type of expressions"],
)
def test_a_wrong_expression_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="hoodie"):
        requested({EXPRESSION_COLUMN.name: "ts", **options})


def test_version_8_writes_definitions_of_version_1() -> None:
    config = config_of({"hoodie.table.version": "8", "hoodie.timeline.layout.version": "2"})
    (definition,) = requested({SECONDARY_COLUMN.name: "city"}, config).definitions.values()
    assert definition.version == 1


def test_version_6_has_no_secondary_index() -> None:
    with pytest.raises(UnsupportedError, match="needs table version 8"):
        requested({SECONDARY_COLUMN.name: "city"}, config_of())


def test_a_partitioned_record_index_is_defined() -> None:
    found = requested({PARTITIONED_RECORD_INDEX_ENABLE.name: "true"})
    assert found.names == ("record_index",)
    assert found.definitions["record_index"].is_partitioned
    with pytest.raises(UnsupportedError, match="needs table version 9"):
        requested({PARTITIONED_RECORD_INDEX_ENABLE.name: "true"}, config_of())


def test_partition_statistics_need_partitions() -> None:
    with pytest.raises(UnsupportedError, match="without partitions"):
        requested({PARTITION_STATS_ENABLE.name: "true"})
    config = config_of({**VERSION_9, **PARTITIONED})
    assert requested({PARTITION_STATS_ENABLE.name: "true"}, config).names == ("partition_stats",)
