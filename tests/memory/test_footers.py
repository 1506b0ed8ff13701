"""The footers of base files, which may hold Bloom filters of megabytes, are freed with the last use of them.

In a reference cycle they would stay until the cyclic collector runs, which goes by the number of objects. Processes of
the tests, where it runs rarely, once took 9 and 21 GiB.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.table import HudiTable
from tests.support.golden_data import GoldenCase
from tests.support.hudictl_runner import hudictl

BY_US: Final = ("--schedule", "--engine", "local", "--option")
SERVICES: Final = (
    ("run compaction", *BY_US, "hoodie.compact.inline.max.delta.commits=1"),
    ("run clustering", *BY_US, "hoodie.clustering.plan.strategy.sort.columns=id"),
    ("metadata create", "--partition", "column_stats", "--partition", "bloom_filters", "--partition", "record_index"),
    ("metadata validate",),
)


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def footers() -> int:
    return sum(isinstance(item, pq.FileMetaData) for item in gc.get_objects())


def read(table: str, where: str | None = None) -> int:
    found = HudiTable.open(table).read(where=where)
    return pa.Table.from_batches(found.batches, found.schema).num_rows


@pytest.mark.usefixtures("no_collector")
@pytest.mark.conformance
@pytest.mark.parametrize("version", ["6", "9"])
def test_no_footer_outlives_its_use(golden: Callable[[str, str], GoldenCase], version: str) -> None:
    table = str(golden(version, "mor_basic").table)
    before = footers()
    assert read(table) > read(table, "id < 'k00050'") > 0
    assert footers() == before
    for verb, *options in SERVICES:
        done = hudictl(*verb.split(), table, *options, "--json")
        assert (done.code, done.document.get("reason")) == (0, None), done
        assert footers() == before, verb
