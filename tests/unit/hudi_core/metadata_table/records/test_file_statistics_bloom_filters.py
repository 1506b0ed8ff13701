"""Records of bloom filters."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hudi_core.codec.bloom import DYNAMIC
from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.records.file_statistics import BloomFilterRules
from tests.support.bloom_filters import build, might_contain

BLOOMS = BloomFilterRules()


def bloom(**changes: Any) -> dict[str, Any]:
    text = build(pa.array(["k"]), entries=10).to_base64()
    body = {"type": DYNAMIC, "timestamp": "1", "bloomFilter": text.encode(), "isDeleted": False}
    return {"type": 4, "BloomFilterMetadata": {**body, **changes}}


def test_a_filter_is_its_base64_text() -> None:
    stored = BLOOMS.decode("k", bloom(), path="f")
    assert (stored.instant, stored.is_deleted) == ("1", False)
    assert might_contain(stored.parse(), b"k")
    gone = BLOOMS.decode("k", bloom(isDeleted=True, bloomFilter=b"", type=""), path="f")
    assert gone.is_deleted
    assert BLOOMS.merge(stored, gone, path="f") is gone


@pytest.mark.parametrize("value", [{"type": 4}, {**bloom(), "type": 3}])
def test_other_records_are_corrupt(value: dict[str, Any]) -> None:
    with pytest.raises(CorruptFileError) as caught:
        BLOOMS.decode("k", value, path="x.hfile")
    assert caught.value.path == "x.hfile"


def test_a_broken_filter_names_its_file() -> None:
    with pytest.raises(CorruptFileError) as caught:
        BLOOMS.decode("k", bloom(bloomFilter=b"?"), path="x.hfile").parse()
    assert caught.value.path == "x.hfile"
