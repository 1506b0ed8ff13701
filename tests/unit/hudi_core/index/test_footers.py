from __future__ import annotations

import io
from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pytest

from hudi_core.codec.bloom import DYNAMIC
from hudi_core.codec.parquet.file import BaseFileWriter
from hudi_core.errors import CorruptFileError, StorageNotFoundError
from hudi_core.index.footers import BLOOM, BLOOM_TYPE, MAX_BLOOM_KEYS, MAX_KEY, MIN_KEY, footer_may_match
from hudi_core.testing.memory import MemoryStorage
from hudi_core.view.file_group import DataFile
from tests.support.bloom_filters import build

FILE = DataFile("p", "f.parquet", 1)


def storage_with(footer: Mapping[str, str]) -> MemoryStorage:
    file = io.BytesIO()
    table = pa.table({"a": [1, 2]})
    writer = BaseFileWriter(file, table.schema, path="f.parquet")
    writer.write(table)
    writer.close(footer)
    storage = MemoryStorage()
    storage.write(FILE.path, file.getvalue())
    return storage


def bloom_of(*keys: str) -> dict[str, str]:
    data = [key.encode() for key in keys]
    offsets = np.cumsum([0, *(len(key) for key in data)])
    return {
        BLOOM: build(offsets, np.frombuffer(b"".join(data), dtype=np.uint8), entries=100).to_base64(),
        BLOOM_TYPE: DYNAMIC,
    }


def may_match(footer: Mapping[str, str], keys: Collection[str] | None) -> bool:
    return footer_may_match(storage_with(footer), FILE, None, keys)


def test_keys_by_their_range_and_filter() -> None:
    footer = {MIN_KEY: "b", MAX_KEY: "d", **bloom_of("b", "d")}
    assert may_match(footer, {"b"})
    assert not may_match(footer, {"a", "e"})
    assert not may_match(footer, {"c"})
    assert may_match(footer, {"c", "d"})
    assert not may_match(footer, set())
    assert may_match(footer, None)


def test_without_a_filter_or_a_range_the_other_decides() -> None:
    assert may_match({MIN_KEY: "b", MAX_KEY: "d"}, {"c"})
    assert not may_match({MIN_KEY: "b", MAX_KEY: "d"}, {"e"})
    assert not may_match(bloom_of("b"), {"c"})
    assert may_match({}, {"c"})


def test_a_range_in_either_order_of_texts() -> None:
    """U+1D11E stands before U+FFFF in UTF-16 and behind it in UTF-8."""
    assert may_match({MIN_KEY: "a", MAX_KEY: "\uffff"}, {"\U0001d11e"})
    assert may_match({MIN_KEY: "a", MAX_KEY: "\U0001d11e"}, {"\uffff"})
    assert not may_match({MIN_KEY: "b", MAX_KEY: "\uffff"}, {"a"})


def test_a_filter_is_not_asked_for_very_many_keys() -> None:
    assert may_match(bloom_of("b"), {f"x{number}" for number in range(MAX_BLOOM_KEYS + 1)})


def test_row_groups_decide_too() -> None:
    storage = storage_with({})
    assert not footer_may_match(storage, FILE, lambda metadata: [], None)
    assert footer_may_match(storage, FILE, lambda metadata: [0], None)
    assert footer_may_match(storage, FILE, lambda metadata: None, None)


def test_a_broken_filter_and_a_missing_file_are_errors() -> None:
    with pytest.raises(CorruptFileError, match=r"f\.parquet"):
        may_match({BLOOM: "no base64!", BLOOM_TYPE: DYNAMIC}, {"a"})
    with pytest.raises(StorageNotFoundError):
        footer_may_match(MemoryStorage(), FILE, None, {"a"})
