"""The queries of `metadata perf`, and that its times are those of the queries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from hudi_core.errors import ConfigError, MetadataUnavailableError
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.local import LocalStorage
from hudi_health.perf import measure
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
LISTING = ["all partitions", "all files", "files of a partition"]
OF_FILES = ["column statistics of files", "bloom filter of a file"]
OF_KEYS = ["record keys, one by one", "record keys, at once"]
EVERY = [*LISTING, *OF_FILES, *OF_KEYS]
DAY, LOW, NAMES = (
    "expr_index_idx_day: all files",
    "expr_index_idx_low: filter of a file",
    "secondary_index_idx_name: record keys of values",
)


def ticks() -> Callable[[], float]:
    """A clock that moves by one second with each look."""
    seconds: Iterator[int] = count()
    return lambda: float(next(seconds))


@pytest.mark.parametrize(
    ("version", "name", "requested", "keys"),
    [
        ("6", "mdt_all_cow", EVERY, 112),
        ("6", "mdt_all_mor", EVERY, 112),
        ("9", "mdt_all_cow", [*LISTING, *OF_FILES, "statistics of partitions", DAY, LOW, NAMES, *OF_KEYS], 112),
        ("8", "mdt_all_mor", [*LISTING, *OF_FILES, "statistics of partitions", DAY, NAMES, *OF_KEYS], 112),
        pytest.param(
            "8",
            "mdt_all_cow",
            [*LISTING, *OF_FILES, "statistics of partitions", DAY, LOW, NAMES, *OF_KEYS],
            112,
            marks=pytest.mark.conformance,
        ),
        pytest.param(
            "9",
            "mdt_all_mor",
            [*LISTING, *OF_FILES, "statistics of partitions", DAY, NAMES, *OF_KEYS],
            112,
            marks=pytest.mark.conformance,
        ),
        ("6", "mor_basic", LISTING, 0),
        ("9", "cow_basic", [*EVERY[:4], "statistics of partitions"], 0),
        ("8", "non_partitioned_cow", LISTING, 0),
        ("9", "empty_commit", LISTING[:2], 0),
    ],
)
def test_every_query_that_the_table_can_answer(
    golden: Golden, version: str, name: str, requested: list[str], keys: int
) -> None:
    table = golden(version, name).table
    plan = FaultPlan(counts=MUTATIONS)
    found = measure(
        context_of(table, storage=FaultStorage(LocalStorage(table), plan)), open_data_storage(str(table)), clock=ticks()
    )
    assert plan.mutations() == []
    assert [item.what for item in found.timings] == requested
    by_name = {item.what: item for item in found.timings}
    for item in found.timings:
        assert (item.cold_ms, item.open_ms) == (1000, 1000)
        assert item.without_ms == (1000 if item.what in (*LISTING, *OF_FILES) else None)
    assert by_name["all partitions"].items == found.partitions
    assert by_name["all files"].items == found.files
    if keys:
        assert (by_name["record keys, at once"].items, by_name["record keys, one by one"].lookups) == (keys, 20)
    document = json.loads(json.dumps(found.to_dict()))
    assert sorted(document["timings"][0]) == ["asked", "cold_ms", "items", "open_ms", "what", "without_ms"]
    assert (document["partitions"], document["files"]) == (found.partitions, found.files)


@pytest.mark.parametrize(
    ("partition_types", "requested"),
    [
        (["files"], LISTING),
        (["record_index", "column_stats"], [OF_FILES[0], *OF_KEYS]),
        (["secondary_index_idx_name"], [NAMES]),
        (["partition_stats", "expr_index_idx_day"], ["statistics of partitions", DAY]),
    ],
)
def test_some_partition_types_alone(golden: Golden, partition_types: list[str], requested: list[str]) -> None:
    table = golden("8", "mdt_all_mor").table
    found = measure(context_of(table), open_data_storage(str(table)), partition_types, ticks())
    assert [item.what for item in found.timings] == requested
    assert found.partition_types == tuple(sorted(partition_types))
    assert found.files > 0


def test_a_partition_type_that_is_not_there(golden: Golden) -> None:
    table = golden("6", "mor_basic").table
    with pytest.raises(ConfigError, match="no record_index") as caught:
        measure(context_of(table), open_data_storage(str(table)), ["files", "record_index"])
    assert "files" in str(caught.value.remedy)


def test_a_table_without_a_metadata_table(golden: Golden) -> None:
    table = golden("6", "hive_style").table
    with pytest.raises(MetadataUnavailableError, match="no metadata table"):
        measure(context_of(table), open_data_storage(str(table)))
