"""Records of one file group: merged by key, looked up, and split into merged and encoded ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.read.group_reader import GroupReader, of_keys, of_prefixes
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.read.whole_files import DAMAGED
from hudi_core.metadata_table.records.column_stats import ColumnStatsRules
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_groups import (
    CODEC,
    SCHEMA_TEXT,
    Groups,
    Numbers,
    Rows,
    data,
    deletes,
)


def test_base_and_log_records_merge_in_order_and_deletes_drop_older_ones() -> None:
    groups = Groups(
        ({"a": 1, "b": 1, "c": 1}, [data("1", {"a": 10, "d": 10}), deletes("2", "b", "d"), data("3", {"b": 100})])
    )
    expected = {"a": 11, "b": 100, "c": 1}
    assert dict(groups.partition.all()) == expected
    assert groups.partition.lookup(["d", "c", "b", "a", "a", "x"]) == expected
    assert dict(groups.partition.with_prefixes(["b", "a"])) == {"a": 11, "b": 100}
    assert (groups.partition.get("c"), groups.partition.get("d")) == (1, None)


def test_a_lookup_reads_few_blocks_of_a_large_file() -> None:
    groups = Groups(({f"key-{number:05d}": number for number in range(5000)}, []))
    size = groups.storage.stat("x/g-0000-0_0-0-0_0.hfile").size
    assert groups.partition.lookup(["key-00001", "key-04990"]) == {"key-00001": 1, "key-04990": 4990}
    assert sum(groups.storage.bytes_read.values()) < size // 5


def test_equal_data_of_keyless_rules_are_decoded_once() -> None:
    rows = {f"k{number}": number % 3 for number in range(90)}
    keyless, each = Groups((rows, []), rules=Numbers(keyless=True)), Groups((rows, []))
    assert dict(keyless.partition.all()) == dict(each.partition.all()) == rows
    assert (keyless.rules.decoded, each.rules.decoded) == (3, 90)


Golden = Callable[[str, str], GoldenCase]


def metadata(case: GoldenCase) -> MetadataTable:
    context = context_of(case.table)
    return MetadataTable(context.storage, context.config, context.active.load())


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_what_is_split_is_what_is_looked_up(golden: Golden, version: str) -> None:
    """Records of the base file that log files speak of are merged; the others are given as they are."""
    table = metadata(golden(version, "mdt_all_mor_compacted"))
    (group,) = table._partition("column_stats", ColumnStatsRules()).groups[:1]
    everything = group.all()
    half = sorted(everything)[::2]
    for split, requirements in (
        (group.split(of_keys(half)), set(half)),
        (group.split(of_prefixes([half[0][:12]])), {key for key in everything if key[:12] == half[0][:12]}),
    ):
        cells = list(split.cells)
        assert {key for key, _ in cells}.isdisjoint(split.merged)
        assert {key for key, _ in cells} | set(split.merged) == requirements
        assert all(record == everything[key] for key, record in split.merged.items())
        if split.base is not None:
            rules = statistics_rules(group)
            decoded = {key: rules.decode(*split.base.codec.decode(key, value), path="x") for key, value in cells}
            assert decoded == {key: everything[key] for key in decoded}


def statistics_rules(group: GroupReader[Any]) -> Any:
    return group._rules


def reader(base: Rows | None, *logs: bytes, rules: Numbers | None = None) -> GroupReader[int]:
    return Groups((base, list(logs)), rules=rules).partition.groups[0]


def test_a_group_without_base_file_has_no_encoded_records() -> None:
    split = reader(None, data("1", {"a": 1}), data("2", {"a": 2, "b": 5})).split(of_keys([b"a", b"c"]))
    assert (split.merged, split.base, list(split.cells)) == ({b"a": 3}, None, [])


def test_a_deleted_key_is_in_neither_part() -> None:
    group = reader({"a": 1, "b": 2, "c": 3}, deletes("1", "a"), data("2", {"b": 10}))
    for split in (group.split(of_keys([b"a", b"b", b"c"])), group.split(of_prefixes([b"a", b"b", b"c"]))):
        assert split.merged == {b"b": 12}
        assert [key for key, _ in split.cells] == [b"c"]
        assert split.base is not None


def test_a_key_that_is_inserted_after_its_deletion_merges_with_later_records_only() -> None:
    group = reader({"a": 1}, deletes("1", "a"), data("2", {"a": 5}), data("3", {"a": 2}))
    assert group.all() == group.records(of_keys([b"a"])) == group.records(of_prefixes([b"a"])) == {b"a": 7}


class OddCells(Numbers):
    """Decodes cells with an odd second byte by themselves."""

    by_cell = True

    def decode_cell(self, schema: str, key: bytes, value: bytes) -> int | None:
        assert schema == SCHEMA_TEXT
        number = int(CODEC.decode(value, path="cell")["n"])
        return number * 1000 if number % 2 else None


def test_rules_may_decode_some_cells_faster() -> None:
    rules = OddCells()
    assert reader({"a": 1, "b": 2, "c": 3}, rules=rules).all() == {b"a": 1000, b"b": 2, b"c": 3000}
    assert rules.decoded == 1


def test_a_released_group_is_read_again() -> None:
    groups = Groups(({"a": 1}, []))
    (group,) = groups.partition.groups
    assert group.records(of_keys([b"a"])) == {b"a": 1}
    once = sum(groups.storage.bytes_read.values())
    group.records(of_keys([b"a"]))
    kept = sum(groups.storage.bytes_read.values())
    group.release()
    assert group.records(of_keys([b"a"])) == {b"a": 1}
    assert sum(groups.storage.bytes_read.values()) - kept >= once > kept - once
    assert group.kept_bytes == groups.storage.stat("x/g-0000-0_0-0-0_0.hfile").size


def test_a_damaged_file_is_named_and_the_metadata_table_is_the_remedy() -> None:
    groups = Groups(({"a": 1}, []))
    path = "x/g-0000-0_0-0-0_0.hfile"
    groups.storage.write(path, b"?" * groups.storage.stat(path).size)
    with pytest.raises(CorruptFileError) as caught:
        groups.partition.groups[0].all()
    assert (caught.value.path, caught.value.remedy) == (path, DAMAGED)
