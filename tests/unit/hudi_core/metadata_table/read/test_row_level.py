"""Records of row-level indexes, and the two forms of the record index."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.read.file_group import BlockFilter, MergedSlice
from hudi_core.metadata_table.read.group_reader import GroupReader
from hudi_core.metadata_table.read.row_level import RecordIndex, RecordIndexRules, RecordLocation, SecondaryIndexRules
from tests.support.memory_storage import MemoryStorage

RULES = RecordIndexRules("UTC")
GROUP = "0edb754e-98e8-450a-8273-ba65f475f266"


def datum(**changes: Any) -> dict[str, Any]:
    number = uuid.UUID(GROUP).int
    high, low = number >> 64, number & (1 << 64) - 1
    body = {
        "partitionName": "p",
        "fileIdHighBits": high,
        "fileIdLowBits": low - (1 << 64) if low >> 63 else low,
        "fileIndex": 3,
        "fileId": "",
        "instantTime": 1795215215920,
        "fileIdEncoding": 0,
    }
    return {"type": 5, "recordIndexMetadata": {**body, **changes}}


def test_locations() -> None:
    assert RULES.decode("k", datum(), path="f") == RecordLocation("p", f"{GROUP}-3", "20261120225335920")
    assert RULES.decode("k", datum(fileIndex=-1), path="f").file_id == GROUP
    raw = datum(fileIdEncoding=1, fileId="00000001-any-name-0", fileIdHighBits=-1, fileIdLowBits=-1, fileIndex=-1)
    assert RULES.decode("k", raw, path="f").file_id == "00000001-any-name-0"


def test_the_newer_location_counts() -> None:
    older, newer = (RULES.decode("k", datum(partitionName=name), path="f") for name in ("a", "b"))
    assert RULES.merge(older, newer, path="f") is newer


@pytest.mark.parametrize(
    "value",
    [
        {"type": 5},
        {**datum(), "type": 3},
        datum(instantTime=-5),
        datum(instantTime=1 << 60),
        datum(instantTime=None),
        datum(fileIdHighBits="x"),
        {"type": 5, "recordIndexMetadata": {}},
    ],
)
def test_other_records_are_corrupt(value: dict[str, Any]) -> None:
    with pytest.raises(CorruptFileError) as caught:
        RULES.decode("k", value, path="x.hfile")
    assert caught.value.path == "x.hfile"


def group(file_id: str) -> GroupReader[RecordLocation]:
    blocks = BlockFilter(frozenset(), latest="")
    return GroupReader(MemoryStorage(), MergedSlice(file_id, None, ()), blocks, RULES)


def test_names_of_file_groups_show_the_form_of_the_index() -> None:
    assert not RecordIndex("f", [group("record-index-0000-0"), group("record-index-0001-0")]).is_partitioned
    parts = RecordIndex(
        "f",
        [group("record-index-2024%2D01%2D01-0000-0"), group("record-index--0000-0"), group("record-index-a b-0000-0")],
    )
    assert parts.is_partitioned
    assert set(parts.parts) == {"2024-01-01", "", "a b"}
    with pytest.raises(CorruptFileError, match="partitioned form"):
        RecordIndex("f", [group("record-index-0000-0"), group("record-index-a-0000-0")])
    with pytest.raises(CorruptFileError, match="no file group"):
        RecordIndex("f", [])


PAIRS = SecondaryIndexRules()


def test_a_pair_exists_or_is_deleted() -> None:
    current = {"type": 7, "SecondaryIndexMetadata": {"isDeleted": False}}
    gone = {"type": 7, "SecondaryIndexMetadata": {"isDeleted": True}}
    assert PAIRS.decode("a$k", current, path="f") is True
    assert PAIRS.decode("a$k", gone, path="f") is False
    assert PAIRS.merge(True, False, path="f") is False
    for value in ({"type": 7}, {**current, "type": 5}, {"type": 7, "SecondaryIndexMetadata": {"isDeleted": None}}):
        with pytest.raises(CorruptFileError):
            PAIRS.decode("a$k", value, path="f")
