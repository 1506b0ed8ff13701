"""How many file groups a row-level index has, and their names."""

from __future__ import annotations

import pytest

from hudi_core.config.metadata_config import (
    PARTITIONED_RECORD_INDEX_MAXIMUM,
    PARTITIONED_RECORD_INDEX_MINIMUM,
    RECORD_INDEX_GROUP_BYTES,
    RECORD_INDEX_GROWTH,
    RECORD_INDEX_MAXIMUM,
    RECORD_INDEX_MINIMUM,
)
from hudi_core.errors import ConfigError
from hudi_core.metadata_table.partitions.row_level import (
    RecordGroups,
    escape_file_name,
    global_group_count,
    partitioned_group_count,
)

PARTITIONED = (PARTITIONED_RECORD_INDEX_MINIMUM.name, PARTITIONED_RECORD_INDEX_MAXIMUM.name)
A_GROUP = (1 << 30) // 48

GROWTH, MAXIMUM_BYTES = RECORD_INDEX_GROWTH.name, RECORD_INDEX_GROUP_BYTES.name
(OLD_MINIMUM,), (OLD_MAXIMUM,) = RECORD_INDEX_MINIMUM.aliases, RECORD_INDEX_MAXIMUM.aliases


@pytest.mark.parametrize(
    ("records", "settings", "count"),
    [
        (0, {}, 10),
        (A_GROUP * 10 // 2, {}, 10),
        (A_GROUP * 11 // 2 + A_GROUP // 4, {}, 11),
        (10**13, {}, 10000),
        (1000, {MAXIMUM_BYTES: "480", GROWTH: "1"}, 100),
        (999, {MAXIMUM_BYTES: "480", GROWTH: "1.0"}, 99),
        (1000, {MAXIMUM_BYTES: "1", GROWTH: "1"}, 1000),
        (10**9, {OLD_MINIMUM: "4", OLD_MAXIMUM: "4"}, 4),
        (10**9, {OLD_MINIMUM: "4", OLD_MAXIMUM: "6"}, 6),
        (
            10**9,
            {OLD_MINIMUM: "4", OLD_MAXIMUM: "6", RECORD_INDEX_MAXIMUM.name: "7", RECORD_INDEX_MINIMUM.name: "7"},
            7,
        ),
        # (float) 16777217 is 16777216.
        (16777217, {MAXIMUM_BYTES: "48", GROWTH: "1", OLD_MAXIMUM: "100000000"}, 16777216),
    ],
)
def test_the_count_is_estimated_as_hudi_does(records: int, settings: dict[str, str], count: int) -> None:
    assert global_group_count(settings, records) == count


def test_a_data_partition_has_limits_of_its_own() -> None:
    assert partitioned_group_count({OLD_MINIMUM: "4"}, 0) == 1
    assert partitioned_group_count({}, 10**12) == 10
    assert partitioned_group_count(dict.fromkeys(PARTITIONED, "3"), 10**12) == 3


@pytest.mark.parametrize(
    "settings",
    [{GROWTH: "x"}, {GROWTH: "0"}, {GROWTH: "nan"}, {GROWTH: "inf"}, {OLD_MINIMUM: "-1"}, {MAXIMUM_BYTES: "1e9"}],
)
def test_settings_that_are_no_numbers_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        global_group_count(settings, 1)


def test_file_groups_of_a_global_index() -> None:
    groups = RecordGroups({None: 11})
    assert groups.of("any") == (0, 11)
    assert groups.file_ids()[9:] == ["record-index-0009-0", "record-index-0010-0"]


def test_file_groups_of_an_index_by_data_partition() -> None:
    groups = RecordGroups({"b": 2, "2026-01-02/x_y": 1, "": 1})
    assert [groups.of(name) for name in ("", "2026-01-02/x_y", "b")] == [(0, 1), (1, 1), (2, 2)]
    assert groups.file_ids() == [
        "record-index--0000-0",
        "record-index-2026%2D01%2D02%2Fx%5Fy-0000-0",
        "record-index-b-0000-0",
        "record-index-b-0001-0",
    ]
    with pytest.raises(ConfigError, match="'c'"):
        groups.of("c")


def test_escaped_characters_are_those_of_hudi() -> None:
    kept = "abcXYZ019 !$&()+,.;<>@|~`ä€\U0001f600"
    assert escape_file_name(kept) == kept
    assert (
        escape_file_name("a\x00\x1f\x7f\"#%'*/:=?\\{[]^_-b")
        == "a%00%1F%7F%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%5B%5D%5E%5F%2Db"
    )
