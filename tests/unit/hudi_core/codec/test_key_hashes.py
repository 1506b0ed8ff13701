"""File groups of keys in a column are those of the keys one by one."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from hudi_core.codec.hashing import file_group_index
from hudi_core.codec.key_hashes import group_indexes

UUIDS = [str(uuid.UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC834 % (1 << 128))) for number in range(300)]


@pytest.mark.parametrize("count", [1, 2, 7, 10000])
@pytest.mark.parametrize(
    "keys", [UUIDS, ["", "a", "polygenelubricants", "x" * 50, "ab"], ["ä", "k", "\U0001f600"], [""], []]
)
def test_groups_are_those_of_single_keys(keys: list[str], count: int) -> None:
    array = pa.array(["ß", *keys], pa.string()).slice(1)
    assert group_indexes(array, count).tolist() == [file_group_index(key, count) for key in keys]


def test_no_file_groups_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one file group"):
        group_indexes(pa.array(["a"]), 0)
