"""What `metadata perf` asks, and that its times are those of the questions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from hudi_core.errors import MetadataUnavailableError
from hudi_core.services.metadata.perf import measure
from hudi_core.storage.data_registry import open_data_storage
from hudi_core.storage.fault import MUTATIONS, FaultPlan, FaultStorage
from hudi_core.storage.local import LocalStorage
from tests.golden_data import GoldenCase
from tests.unit.hudi_core.services.clean.golden_cleans import context_of

Golden = Callable[[str, str], GoldenCase]
LISTING = ["all partitions", "all files", "files of a partition"]
EVERY = [*LISTING, "column statistics of files", "bloom filter of a file", "record keys, one by one", "record keys, at once"]


def ticks() -> Callable[[], float]:
    """A clock that moves by one second with each look."""
    seconds: Iterator[int] = count()
    return lambda: float(next(seconds))


@pytest.mark.parametrize(
    ("version", "name", "asked", "keys"),
    [
        *((version, name, EVERY, 112) for version in ("6", "8", "9") for name in ("mdt_all_cow", "mdt_all_mor")),
        ("6", "mor_basic", LISTING, 0),
        ("9", "cow_basic", EVERY[:4], 0),
        ("8", "non_partitioned_cow", LISTING, 0),
        ("9", "empty_commit", LISTING[:2], 0),
    ],
)
def test_every_question_that_the_table_can_be_asked(golden: Golden, version: str, name: str, asked: list[str], keys: int) -> None:
    table = golden(version, name).table
    plan = FaultPlan(counts=MUTATIONS)
    found = measure(context_of(table, storage=FaultStorage(LocalStorage(table), plan)), open_data_storage(str(table)), ticks())
    assert plan.mutations() == []
    assert [item.what for item in found.timings] == asked
    by_name = {item.what: item for item in found.timings}
    for item in found.timings:
        assert (item.cold_ms, item.open_ms) == (1000, 1000)
        assert item.without_ms == (None if item.what.startswith("record keys") else 1000)
    assert by_name["all partitions"].items == found.partitions
    assert by_name["all files"].items == found.files
    if keys:
        assert (by_name["record keys, at once"].items, by_name["record keys, one by one"].asked) == (keys, 20)
    document = json.loads(json.dumps(found.to_dict()))
    assert sorted(document["timings"][0]) == ["asked", "cold_ms", "items", "open_ms", "what", "without_ms"]
    assert (document["partitions"], document["files"]) == (found.partitions, found.files)


def test_a_table_without_a_metadata_table(golden: Golden) -> None:
    table = golden("6", "hive_style").table
    with pytest.raises(MetadataUnavailableError, match="no metadata table"):
        measure(context_of(table), open_data_storage(str(table)))
