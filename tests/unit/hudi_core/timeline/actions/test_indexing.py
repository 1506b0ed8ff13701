from __future__ import annotations

import pytest

from hudi_core.codec.avro.container import read_container, write_container
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.timeline.actions.content import load_schema
from hudi_core.timeline.actions.indexing import (
    IndexedPartition,
    decode_index_plan,
    encode_index_metadata,
    encode_index_plan,
)

INDEXES = (IndexedPartition("column_stats", "001"), IndexedPartition("record_index", ""))


@pytest.mark.parametrize("encode", [encode_index_plan, encode_index_metadata])
@pytest.mark.parametrize("extra", [False, True])
def test_what_is_planned_and_what_was_built_are_read_alike(encode: object, extra: bool) -> None:
    data = encode(INDEXES, extra=extra)  # type: ignore[operator]
    assert decode_index_plan(data, path="x") == INDEXES
    _, (raw,) = read_container(data, path="x")
    assert ("extraMetadata" in raw["indexPartitionInfos"][0]) is extra


def plan(*names: str, version: int = 1) -> bytes:
    infos = [{"version": 1, "metadataPartitionPath": name, "indexUptoInstant": "001"} for name in names]
    return write_container(load_schema("HoodieIndexPlan"), [{"version": version, "indexPartitionInfos": infos}])


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (plan(), CorruptFileError, "names no partition"),
        (plan("files", "files"), CorruptFileError, "twice"),
        (plan("../files"), FormatError, "files"),
        (plan("files", version=2), UnsupportedError, "version 2"),
        (b"cut", CorruptFileError, "Avro"),
    ],
)
def test_what_is_no_plan(data: bytes, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        decode_index_plan(data, path="the plan")
    assert caught.value.path == "the plan"  # type: ignore[attr-defined]
