"""Lookups of the keys that a global record index has outside of the replaced partitions."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from hudi_core.engine.exchange import SHARD_ROWS
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.read.row_level import OtherPartitions
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.record import GONE
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table

Golden = Callable[[str, str], GoldenCase]
REPLACED, OTHER = "2024-01-01", "2024-01-02"
CASES = [("6", "mdt_all_cow"), ("8", "mdt_all_mor"), ("9", "mdt_all_mor_compacted")]


def opened(table: Table, *, refuses: bool) -> OtherPartitions:
    snapshot = MetadataTableSnapshot(table.storage, table.config, table.data.load())
    slices = tuple(snapshot.checked_slices("record_index"))
    others = OtherPartitions((REPLACED,), slices, snapshot.blocks, "UTC", refuses)
    return from_text(OtherPartitions, to_text(others))


def keys_by_group(table: Table) -> list[dict[bytes, str]]:
    """Of each file group of the index its keys with their partitions, sorted."""
    index = MetadataTable(table.storage, table.config, table.data.load()).record_index
    return [
        {key: place.partition for key, place in sorted(group.all().items())}
        for part in index.parts.values()
        for group in part.groups
    ]


def batch(keys: list[bytes], value: bytes) -> pa.RecordBatch:
    return pa.record_batch([pa.array(keys, pa.binary()), pa.array([value] * len(keys), pa.binary())], SHARD_ROWS)


@pytest.mark.parametrize(("version", "case"), CASES)
def test_deletions_of_keys_elsewhere_are_left_out(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    by_group = keys_by_group(table)
    assert {name for found in by_group for name in found.values()} >= {REPLACED, OTHER}
    places = opened(table, refuses=True).open(table.storage)
    for group, found in enumerate(by_group):
        keys = sorted([*found, b"no such key"])
        (kept,) = places.filtered(group, iter([batch(keys, GONE)]))
        assert kept.column(0).to_pylist() == [key for key in keys if found.get(key, REPLACED) == REPLACED]
    elsewhere = sum(name != REPLACED for found in by_group for name in found.values())
    assert places.spared == elsewhere


@pytest.mark.parametrize(("version", "case"), CASES)
def test_a_key_that_comes_and_is_elsewhere(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    group, key = next(
        (group, key) for group, found in enumerate(keys_by_group(table)) for key, name in found.items() if name == OTHER
    )
    rows = batch([key], b"a record")
    with pytest.raises(UnsupportedError, match=f"{key.decode()}.* is in partition '{OTHER}'"):
        list(opened(table, refuses=True).open(table.storage).filtered(group, iter([rows])))
    late = opened(table, refuses=False).open(table.storage)
    assert list(late.filtered(group, iter([rows]))) == [rows], "as Hudi has it"


@pytest.mark.parametrize(("version", "case"), CASES)
def test_rows_whose_keys_are_elsewhere(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    found = {key.decode(): name for group in keys_by_group(table) for key, name in group.items()}
    keys = pa.array(found, pa.string())
    rows = pa.record_batch([pa.array(found.values(), pa.string())], ["partition"])
    kept, beside = opened(table, refuses=True).open(table.storage).without(keys, rows)
    assert kept.to_pylist() == [key for key, name in found.items() if name == REPLACED]
    assert set(beside.column(0).to_pylist()) == {REPLACED}
