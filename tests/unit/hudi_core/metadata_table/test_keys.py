"""Keys of the metadata table's records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.keys import (
    bloom_filter_key,
    column_id,
    column_stats_key,
    file_id,
    parse_secondary_key,
    partition_id,
    partition_stats_key,
    secondary_hashed_part,
    secondary_prefix,
)
from tests.support.metadata_cells import secondary_key


def test_ids_of_columns_partitions_and_files() -> None:
    """Seen in tables of real Hudi (the golden tables)."""
    assert column_id("name") == "F5SYxeUa1U8="
    assert partition_id("0") == "06zdpyCf3Jg="
    assert partition_id("2024-01-01") == "8I3ykeAF+eE="
    assert (
        file_id("4df6a151-a6f0-4060-9a3b-41b879900df0-0_1-31-33_20261120225905039.parquet")
        == "Ko1o9ze3jMhzAKu+HOzv3Q=="
    )
    assert partition_id("") == partition_id(".")


def test_keys_are_ids_one_behind_the_other() -> None:
    assert column_stats_key("c", "p", "f") == column_id("c") + partition_id("p") + file_id("f")
    assert partition_stats_key("c", "p") == column_id("c") + partition_id("p")
    assert bloom_filter_key("p", "f") == partition_id("p") + file_id("f")
    assert len(column_stats_key("é", "", "x")) == 48


@pytest.mark.parametrize(
    ("value", "key", "text"),
    [("n$3", "k3", "n\\$3$k3"), (None, "k", "\0$k"), ("\0", "k", "\\\0$k"), ("a\\", "b$", "a\\\\$b\\$"), ("", "", "$")],
)
def test_keys_of_secondary_indexes(value: str | None, key: str, text: str) -> None:
    assert secondary_key(value, key) == text
    assert parse_secondary_key(text) == (value, key)
    assert secondary_hashed_part(text) == secondary_prefix(value)


TEXT = st.text(alphabet=st.sampled_from("ab\\$\0é"), max_size=8)


@given(st.none() | TEXT, TEXT, st.none() | TEXT)
def test_keys_of_secondary_indexes_part_again(value: str | None, key: str, other: str | None) -> None:
    assert parse_secondary_key(secondary_key(value, key)) == (value, key)
    assert secondary_key(value, key).startswith(secondary_prefix(other)) == (value == other)


@pytest.mark.parametrize("text", ["", "k", "a\\$k", "\\"])
def test_a_key_without_a_separator_is_corrupt(text: str) -> None:
    with pytest.raises(CorruptFileError, match="secondary index"):
        parse_secondary_key(text)
    with pytest.raises(CorruptFileError):
        secondary_hashed_part(text)
