"""Large records of the `files` partition, read by the loop and by the codec."""

from __future__ import annotations

import json
from importlib import resources

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.record import (
    ALL_PARTITIONS,
    FileEntry,
    FilesRecord,
    MetadataCodec,
    RecordEncoder,
    RecordType,
    files_datum,
    files_record,
)
from hudi_core.metadata_table.records.files import LEAST_BYTES, FilesRules, files_record_of_cell

SCHEMAS = [
    resources.files("hudi_core.metadata_table").joinpath(f"schema_v{version}.avsc").read_text("utf-8").strip()
    for version in "689"
]
BARE = '{"type":"record","name":"r","fields":[{"name":"key","type":"string"},{"name":"type","type":"int"}]}'


def _gone(size: int) -> FileEntry:
    return FileEntry(size, is_deleted=True)


ENTRIES = st.dictionaries(
    st.text(max_size=90),
    st.one_of(
        st.integers(1, (1 << 63) - 1).map(FileEntry),
        st.just(FileEntry(0, is_deleted=True)),
        st.integers(0, 99).map(_gone),
    ),
    max_size=40,
)


def by_codec(schema: str, key: bytes, value: bytes) -> FilesRecord:
    return files_record(*MetadataCodec(schema, path="x").decode(key, value), path="x")


def value_of(schema: str, record: FilesRecord) -> bytes:
    return RecordEncoder(schema).value(files_datum(record))


@pytest.mark.parametrize("schema", SCHEMAS)
@settings(deadline=None, max_examples=60)
@given(entries=ENTRIES)
def test_both_ways_give_one_record(schema: str, entries: dict[str, FileEntry]) -> None:
    record = FilesRecord("päth=1", RecordType.FILES, entries)
    value = value_of(schema, record)
    found = files_record_of_cell(schema, record.key.encode(), value)
    if not entries:
        assert found is None, "a map without entries is left to the codec"
        assert by_codec(schema, record.key.encode(), value) == record
        return
    assert found == record == by_codec(schema, record.key.encode(), value)
    assert list(found.entries) == list(entries)
    assert all(
        type(entry) is FileEntry and type(entry.size) is int and type(entry.is_deleted) is bool
        for entry in found.entries.values()
    )


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_list_of_partitions_and_names_of_every_length(schema: str) -> None:
    entries = {"n" * length: FileEntry(0) for length in (0, 1, 62, 63, 64, 65, 127, 128, 4000, 8191)}
    record = FilesRecord(ALL_PARTITIONS, RecordType.PARTITIONS, entries)
    key, value = ALL_PARTITIONS.encode(), value_of(schema, record)
    assert by_codec(schema, key, value) == record
    assert files_record_of_cell(schema, key, value) == record
    longer = FilesRecord(ALL_PARTITIONS, RecordType.PARTITIONS, {"n" * 8192: FileEntry(0)})
    assert files_record_of_cell(schema, key, value_of(schema, longer)) is None


@settings(deadline=None, max_examples=250)
@given(st.integers(0, 10_000), st.integers(0, 255), st.booleans())
def test_a_changed_byte_is_read_as_the_codec_reads_it_or_left_to_it(place: int, octet: int, cut: bool) -> None:
    schema = SCHEMAS[1]
    value = bytearray(
        value_of(
            schema,
            FilesRecord(
                "p", RecordType.FILES, {f"f{number}.parquet": FileEntry(number * 999 + 1) for number in range(6)}
            ),
        )
    )
    at = place % len(value)
    value[at] = octet
    changed = bytes(value[:at] if cut else value)
    found = files_record_of_cell(schema, b"p", changed)
    if found is not None:
        assert found == by_codec(schema, b"p", changed)


def test_what_only_the_codec_reads() -> None:
    schema = SCHEMAS[0]
    good = value_of(schema, FilesRecord("p", RecordType.FILES, {"f": FileEntry(7)}))
    bad_size = value_of(schema, FilesRecord("p", RecordType.FILES, {"f": FileEntry(0)}))
    assert files_record_of_cell(schema, b"p", good) is not None
    assert files_record_of_cell(schema, b"\xff", good) is None
    assert files_record_of_cell(schema, b"p", bad_size) is None
    assert (
        files_record_of_cell(schema, b"p", RecordEncoder(schema).value({"type": 2, "filesystemMetadata": None})) is None
    )
    assert (
        files_record_of_cell(schema, b"p", RecordEncoder(schema).value({"type": 3, "filesystemMetadata": {}})) is None
    )
    assert files_record_of_cell(BARE, b"p", good) is None
    assert files_record_of_cell("no JSON", b"p", good) is None
    other = json.loads(schema)
    files = next(field for field in other["fields"] if field["name"] == "filesystemMetadata")
    files["type"][1]["values"]["fields"][0]["type"] = "int"
    assert files_record_of_cell(json.dumps(other), b"p", good) is None


def test_the_rules_take_the_loop_for_large_values_only() -> None:
    schema, rules = SCHEMAS[0], FilesRules()
    small = FilesRecord("p", RecordType.FILES, {"f": FileEntry(7)})
    large = FilesRecord("p", RecordType.FILES, {f"file-{number:040d}": FileEntry(7) for number in range(200)})
    assert rules.decode_cell(schema, b"p", value_of(schema, small)) is None
    value = value_of(schema, large)
    assert len(value) >= LEAST_BYTES
    assert rules.decode_cell(schema, b"p", value) == large
    with pytest.raises(CorruptFileError):
        by_codec(schema, b"p", value[:-1])
    assert rules.decode_cell(schema, b"p", value[:-1]) is None
