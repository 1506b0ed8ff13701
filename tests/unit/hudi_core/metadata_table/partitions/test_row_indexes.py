"""The record index: the records of places, and the file groups that they go to."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from hudi_core.codec.hashing import file_group_index
from hudi_core.config.versions import SUPPORTED, V9, TableVersion
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import TimelineError, UnsupportedError
from hudi_core.metadata_table.partitions.row_indexes import RecordIndexRows, location_datum
from hudi_core.metadata_table.partitions.row_level import RecordGroups
from hudi_core.metadata_table.read.row_level import RecordIndexRules, RecordLocation
from hudi_core.metadata_table.record import MetadataCodec, stored_schema

FILE_ID = "9edb754e-98e8-450a-8273-ba65f475f266"


@pytest.mark.parametrize(
    ("file_id", "is_uuid"),
    [
        (FILE_ID, True),
        (f"{FILE_ID}-0", True),
        (f"{FILE_ID}-2147483647", True),
        (f"{FILE_ID}-2147483648", False),
        (f"{FILE_ID}-00", False),
        (f"{FILE_ID}--1", False),
        (f"{FILE_ID}-x", False),
        (FILE_ID.upper(), False),
        ("00000003-98e8-450a-8273-ba65f475f266-0", True),
        ("any-name", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_location_is_read_back_to_the_letter(version: TableVersion, file_id: str, is_uuid: bool, zone: str) -> None:
    rows = RecordIndexRows(RecordGroups({None: 3}), stored_schema(version), zone)
    for instant in ("20261120225335920", "20260329023000001", "22001231000000999"):
        batch = rows.came("p/q", file_id, instant, pa.array(["k"]))
        name, datum = MetadataCodec(stored_schema(version), path="f").decode(b"k", batch.column(2)[0].as_py())
        found = RecordIndexRules(zone).decode(name, datum, path="f")
        assert found == RecordLocation("p/q", file_id, instant)
    body = location_datum("p", file_id, "20261120225335920", zone)["recordIndexMetadata"]
    assert (body["fileIdEncoding"] == 0) == is_uuid


def test_an_instant_of_seconds_ends_with_its_second() -> None:
    assert location_datum("", FILE_ID, "20261120225335", "UTC")["recordIndexMetadata"]["instantTime"] == 1795215215999
    with pytest.raises(TimelineError):
        location_datum("", FILE_ID, "00000000000000", "UTC")


def test_rows_go_to_the_file_groups_of_their_keys_and_partitions() -> None:
    keys = [str(uuid.UUID(int=number << 90)) for number in range(200)]
    schema = stored_schema(V9)
    whole = RecordIndexRows(RecordGroups({None: 7}), schema, "UTC")
    assert whole.went("p", pa.array(keys)).column(0).to_pylist() == [file_group_index(key, 7) for key in keys]
    parts = RecordIndexRows(RecordGroups({"a": 2, "b": 3}), schema, "UTC")
    again = from_text(RecordIndexRows, to_text(parts))
    assert again == parts
    found = parts.came("b", FILE_ID, "20261120225335920", pa.array(keys))
    assert found.column(0).to_pylist() == [2 + file_group_index(key, 3) for key in keys]
    assert found.column(1).to_pylist() == [key.encode() for key in keys]
    with pytest.raises(UnsupportedError, match="32768 bytes"):
        parts.went("a", pa.array(["x" * 32768]))
