"""Records of the `files` partition and their Avro form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.config.versions import V6
from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.metadata_table.record import (
    ALL_PARTITIONS,
    FILE_NAME,
    FileDatum,
    FileEntry,
    FilesRecord,
    MetadataCodec,
    RecordEncoder,
    RecordType,
    block_schema,
    files_record,
    stored_schema,
)
from hudi_core.model.names import META_FIELDS
from tests.support.golden_data import golden_cases
from tests.support.hfiles import base_hfiles, log_hfiles
from tests.support.metadata_cells import encode_items

CODEC = MetadataCodec(stored_schema(V6), path="f")
FILE_TYPES = (RecordType.PARTITIONS, RecordType.FILES)


def decode(item: tuple[bytes, bytes], codec: MetadataCodec = CODEC, path: str = "f") -> FilesRecord:
    return files_record(*codec.decode(*item), path=path)


def test_records_of_real_hudi_encode_to_the_same_bytes() -> None:
    seen = 0
    for case in golden_cases("6"):
        for name, content, block in log_hfiles(case):
            if name.split("/")[-2] == "files":
                items = list(HFileReader.of_bytes(content, name).items())
                codec = MetadataCodec(block.schema or "", path=name)
                assert encode_items(decode(item, codec, name) for item in items) == items
                seen += len(items)
    assert seen > 200


def without_docs(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_docs(item) for key, item in value.items() if key != "doc"}
    return [without_docs(item) for item in value] if isinstance(value, list) else value


def test_the_schema_is_that_of_hudi_0_15_without_its_texts() -> None:
    (name, data), *_ = base_hfiles("cow_basic")
    real = json.loads(str(HFileReader.of_bytes(data, name).schema()))
    assert json.loads(stored_schema(V6)) == without_docs(real)
    assert [field["name"] for field in real["fields"]][:6] == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        "key",
    ]


ENTRIES = st.dictionaries(
    st.text(max_size=10),
    st.one_of(st.builds(FileEntry, st.integers(1, 1 << 60)), st.just(FileEntry(0, is_deleted=True))),
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(max_size=10), st.tuples(st.sampled_from(FILE_TYPES), ENTRIES), max_size=6))
def test_round_trip_in_key_order(parts: dict[str, tuple[RecordType, dict[str, FileEntry]]]) -> None:
    records = [FilesRecord(key, record_type, entries) for key, (record_type, entries) in parts.items()]
    items = encode_items(records)
    assert [key for key, _ in items] == sorted(key.encode() for key in parts)
    assert sorted((decode(item) for item in items), key=lambda record: record.key) == sorted(
        records, key=lambda record: record.key
    )


def test_the_documented_datum() -> None:
    """Five null meta fields, a blank key, the type, an empty map in its union branch, null unions."""
    ((key, value),) = encode_items([FilesRecord(ALL_PARTITIONS, RecordType.PARTITIONS, {})])
    assert key == b"__all_partitions__"
    assert value.hex() == "000000000000020200000000"


def test_keys_sort_by_bytes_not_by_utf16() -> None:
    records = [FilesRecord(key, RecordType.FILES, {}) for key in ("\U0001f600", "\uffee")]
    assert [key.decode() for key, _ in encode_items(records)] == ["\uffee", "\U0001f600"]


def test_a_key_occurs_once() -> None:
    record = FilesRecord("p", RecordType.FILES, {})
    with pytest.raises(ValueError, match="two metadata records"):
        encode_items([record, record])


def datum(**values: Any) -> bytes:
    return DatumCodec(json.loads(stored_schema(V6))).encode(
        {"key": "", "type": 2, "filesystemMetadata": None, **values}
    )


def test_records_that_are_no_list_of_files_are_corrupt() -> None:
    good = datum(filesystemMetadata={"f": {"size": 1, "isDeleted": False}})
    assert decode((b"p", good)).entries == {"f": FileEntry(1)}
    assert decode((b"p", datum())).entries == {}
    empty_file = datum(filesystemMetadata={"f": {"size": 0, "isDeleted": False}})
    for value in (datum(type=3), empty_file, *(good[:end] for end in range(len(good))), good + b"\0"):
        with pytest.raises(CorruptFileError) as caught:
            decode((b"p", value))
        assert caught.value.path == "f"
    with pytest.raises(CorruptFileError, match="UTF-8"):
        CODEC.decode(b"\xff", good)


@pytest.mark.parametrize(
    "broken", [None, 3, "x", [], {}, {"size": 1}, {"size": "1", "isDeleted": False}, {"size": 1, "isDeleted": 0}]
)
def test_an_entry_of_another_form_is_named(broken: Any) -> None:
    files = {"f": {"size": 1, "isDeleted": False}, "g": broken}
    with pytest.raises(CorruptFileError, match="'g'"):
        files_record("p", {"type": 2, "filesystemMetadata": files}, path="x")


@pytest.mark.parametrize("schema", ["", "{}", "[", '"string"', '{"type":"record","name":"r","fields":[]}'])
def test_another_schema_is_corrupt(schema: str) -> None:
    with pytest.raises(CorruptFileError) as caught:
        decode((b"p", b""), MetadataCodec(schema, path="x.hfile"), "x.hfile")
    assert caught.value.path == "x.hfile"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True, max_size=5))
def test_a_datum_of_many_files_encodes_as_each_of_them_would(names: list[str]) -> None:
    def datum(name: str) -> dict[str, Any]:
        return {
            "type": 4,
            "BloomFilterMetadata": {"type": name, "timestamp": "t", "bloomFilter": b"", "isDeleted": True},
        }

    encoder, template = RecordEncoder(stored_schema(V6)), datum(FILE_NAME)
    assert encoder.cells((name, FileDatum(template, name)) for name in names) == encoder.cells(
        (name, datum(name)) for name in names
    )


def test_two_records_of_one_key_are_refused() -> None:
    with pytest.raises(ValueError, match="'a'"):
        RecordEncoder(stored_schema(V6)).cells([("a", {"type": 2}), ("a", {"type": 2})])


def test_the_schema_of_blocks_is_that_of_commits_behind_the_meta_columns() -> None:
    commit = {
        "type": "record",
        "name": "r",
        "doc": "d",
        "fields": [{"name": "key", "type": "string"}, {"name": "ü", "type": "int"}],
    }
    text = block_schema(json.dumps(commit))
    schema = json.loads(text)
    assert [field["name"] for field in schema["fields"]] == [*META_FIELDS, "key", "ü"]
    assert block_schema(text) == text, "columns that are there already come once"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"fields": 3}', '{"fields": [{}]}'])
def test_a_commit_schema_that_is_none(text: str) -> None:
    with pytest.raises(FormatError, match="schema"):
        block_schema(text)


@pytest.mark.parametrize("text", ["{", '"nothing"', "3"])
def test_an_encoder_needs_a_schema(text: str) -> None:
    with pytest.raises(FormatError):
        RecordEncoder(text)
