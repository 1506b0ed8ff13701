"""How records of a file group merge when they are compacted: pairs of data, and whole groups out of sources that are
built here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.config.versions import V6, V8, V9
from hudi_core.errors import CorruptFileError
from hudi_core.metadata_table.partitions.registry import merge_data
from hudi_core.metadata_table.read.group_reader import Deletes, Records, Source
from hudi_core.metadata_table.record import MetadataCodec, RecordEncoder, commit_schema, stored_schema
from hudi_core.metadata_table.services.merge_group import GroupMerge
from hudi_core.metadata_table.write.base_file import MetadataBaseFile
from hudi_core.storage.local import LocalStorage
from tests.support.metadata_records import TOKEN

NAMESPACE = "org.apache.hudi.avro.model"
Cells = list[tuple[bytes, bytes]]


def wrapped(data_type: str, value: Any) -> Any:
    return None if value is None else (f"{NAMESPACE}.{data_type}Wrapper", {"value": value})


def stats(least: Any, greatest: Any, data_type: str = "Int", **changes: Any) -> dict[str, Any]:
    body = {
        "fileName": "f",
        "columnName": "c",
        "minValue": wrapped(data_type, least),
        "maxValue": wrapped(data_type, greatest),
        "valueCount": 10,
        "nullCount": 1,
        "totalSize": 100,
        "totalUncompressedSize": 200,
        "isDeleted": False,
        "isTightBound": False,
        "valueType": None,
    }
    return {"type": 3, "ColumnStatsMetadata": {**body, **changes}}


def bounds(datum: Mapping[str, Any]) -> tuple[Any, Any]:
    body = datum["ColumnStatsMetadata"]
    return body["minValue"], body["maxValue"]


def test_ranges_are_widened_and_counts_added() -> None:
    merged = merge_data("k", stats(3, 9), stats(5, 12), path="p")
    assert bounds(merged) == (wrapped("Int", 3), wrapped("Int", 12))
    body = merged["ColumnStatsMetadata"]
    assert [body[name] for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")] == [
        20,
        2,
        200,
        400,
    ]
    for version in (V6, V8, V9):
        encoder = RecordEncoder(stored_schema(version))
        plain = {
            **merged,
            "ColumnStatsMetadata": {name: item for name, item in body.items() if version is V9 or name != "valueType"},
        }
        decoded = MetadataCodec(encoder.schema, path="p").decode(b"k", encoder.value(plain))[1]
        assert bounds(decoded) == bounds(merged)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (stats(3, 9), stats(None, None, isDeleted=True)),
        (stats(None, None, isDeleted=True), stats(3, 9)),
        (stats(3, 9), stats(5, 6, isTightBound=True)),
    ],
)
def test_the_newer_statistics_stand_alone(older: dict[str, Any], newer: dict[str, Any]) -> None:
    assert merge_data("k", older, newer, path="p") is newer


def test_a_widened_column_takes_the_newer_form() -> None:
    assert bounds(merge_data("k", stats(3, 9), stats(5, 6, "Long"), path="p")) == (
        wrapped("Long", 3),
        wrapped("Long", 9),
    )
    assert bounds(merge_data("k", stats(3, 9), stats(5.5, 6.5, "Double"), path="p")) == (
        wrapped("Double", 3.0),
        wrapped("Double", 9.0),
    )


def test_nothing_is_known_where_the_two_do_not_compare() -> None:
    assert bounds(merge_data("k", stats(3, 9), stats("a", "b", "String"), path="p")) == (None, None)
    assert bounds(merge_data("k", stats(3, 9), stats(None, None), path="p")) == (None, None)
    all_null = stats(None, None, nullCount=10)
    assert bounds(merge_data("k", stats(3, 9), all_null, path="p")) == (wrapped("Int", 3), wrapped("Int", 9))


def test_of_other_types_the_newer_record_counts() -> None:
    older, newer = ({"type": 5, "recordIndexMetadata": {"partitionName": name}} for name in ("a", "b"))
    assert merge_data("k", older, newer, path="p") is newer
    with pytest.raises(CorruptFileError, match="do not merge"):
        merge_data("k", older, stats(1, 2), path="p")


def test_files_are_combined() -> None:
    older = {
        "type": 2,
        "filesystemMetadata": {"a": {"size": 1, "isDeleted": False}, "b": {"size": 2, "isDeleted": False}},
    }
    newer = {
        "type": 2,
        "filesystemMetadata": {"a": {"size": 0, "isDeleted": True}, "c": {"size": 3, "isDeleted": False}},
    }
    assert merge_data("k", older, newer, path="p")["filesystemMetadata"] == {
        "b": {"size": 2, "isDeleted": False},
        "c": {"size": 3, "isDeleted": False},
    }


def secondary(*, deleted: bool = False) -> dict[str, Any]:
    return {"type": 7, "SecondaryIndexMetadata": {"isDeleted": deleted}}


ENCODER = RecordEncoder(stored_schema(V9))
LIVE, GONE = ENCODER.value(secondary()), ENCODER.value(secondary(deleted=True))


def source(cells: Cells, *, unique: bool, schema: str = ENCODER.schema) -> Records:
    data = write_hfile(cells, schema=schema)
    return Records(
        HFileReader.of_bytes(data, "source"), MetadataCodec(schema, path="source"), schema, "source", unique=unique
    )


def merged(sources: list[Source], tmp_path: Path) -> tuple[Cells, GroupMerge, MetadataBaseFile | None]:
    storage = LocalStorage(tmp_path)
    merge = GroupMerge(sources, ENCODER)
    file = merge.write(lambda: MetadataBaseFile(storage, "out.hfile", ENCODER.schema, bloom_entries=100))
    if file is None:
        return [], merge, None
    file.close()
    reader = HFileReader.of_bytes((tmp_path / "out.hfile").read_bytes(), "out")
    return list(reader.items()), merge, file


def keys(first: int, last: int) -> list[bytes]:
    return [f"{number:05d}".encode() for number in range(first, last)]


def test_later_sources_win_and_deletes_take_away(tmp_path: Path) -> None:
    base = source([(key, LIVE) for key in keys(0, 200)], unique=True)
    first = source([(key, GONE) for key in keys(50, 60)] + [(key, LIVE) for key in keys(300, 310)], unique=False)
    deletes = Deletes(frozenset([*keys(55, 70), *keys(305, 320)]), "deletes")
    last = source([(key, GONE) for key in keys(58, 62)], unique=False)
    found, merge, _ = merged([base, first, deletes, last], tmp_path)
    expected = dict.fromkeys([*keys(0, 200), *keys(300, 305)], LIVE)
    expected.update(dict.fromkeys(keys(50, 55), GONE))
    for key in keys(55, 70):
        del expected[key]
    expected.update(dict.fromkeys(keys(58, 62), GONE))
    assert found == sorted(expected.items())
    counts = merge.counts
    assert (counts.base, counts.updated, counts.inserted, counts.deleted) == (200, 9, 5, 11)
    assert counts.in_logs == 10 + 10 + 15 + 15 + 4
    assert counts.log_keys == len({*keys(50, 70), *keys(300, 320)})


def test_the_file_is_that_of_single_records(tmp_path: Path) -> None:
    """Runs that are copied make the same file, filter and all, as records that are added one by one."""
    cells = [(key, LIVE) for key in keys(0, 3000)]
    found, _, _ = merged([source(cells, unique=True), source([(b"01500", GONE)], unique=False)], tmp_path)
    storage = LocalStorage(tmp_path)
    with MetadataBaseFile(storage, "single.hfile", ENCODER.schema, bloom_entries=100) as file:
        for key, value in found:
            file.add(key, value)
        file.close()
    with MetadataBaseFile(storage, "plain.hfile", ENCODER.schema, bloom_entries=5000) as single:
        for key, value in cells:
            single.add(key, value)
        single.close()
    assert [key for key, _ in found] == keys(0, 3000)
    assert dict(found)[b"01500"] == GONE
    a, b = (HFileReader.of_bytes((tmp_path / name).read_bytes(), name) for name in ("out.hfile", "single.hfile"))
    assert a.file_info == b.file_info
    assert list(a.items()) == list(b.items())


def test_a_group_without_records_stays_without_a_base_file(tmp_path: Path) -> None:
    assert merged([], tmp_path)[2] is None
    assert merged([source([(b"a", LIVE)], unique=False), Deletes(frozenset([b"a"]), "d")], tmp_path)[2] is None
    found, merge, file = merged([source([(b"a", LIVE)], unique=True), Deletes(frozenset([b"a"]), "d")], tmp_path)
    assert found == []
    assert merge.counts.deleted == 1
    assert file is not None


def test_records_of_another_schema_are_written_in_the_new_one(tmp_path: Path) -> None:
    old = RecordEncoder(stored_schema(V6))
    value = {"size": 5, "isDeleted": False}
    files = {"type": 2, "filesystemMetadata": {"f": value}}
    base = source([(key, old.value(files)) for key in keys(0, 40)], unique=True, schema=old.schema)
    found, _, _ = merged([base], tmp_path)
    codec = MetadataCodec(ENCODER.schema, path="out")
    assert [key for key, _ in found] == keys(0, 40)
    assert all(codec.decode(key, cell)[1]["filesystemMetadata"] == {"f": value} for key, cell in found)
    assert all(cell.startswith(bytes(5)) for _, cell in found)


def test_the_names_of_old_base_files_go(tmp_path: Path) -> None:
    named = bytes(4) + b"\x02\x08file" + LIVE[5:]
    base = source([(key, named) for key in keys(0, 40)], unique=True)
    found, _, _ = merged([base, source([(b"zz", LIVE)], unique=False)], tmp_path)
    assert found == [*((key, LIVE) for key in keys(0, 40)), (b"zz", LIVE)]


def test_sources_that_are_not_sorted_are_damaged(tmp_path: Path) -> None:
    class Disordered(HFileReader):
        def items(self) -> Any:
            return iter([(b"b", LIVE), (b"a", LIVE)])

    good = source([(b"a", LIVE)], unique=False)
    disordered = Disordered(lambda start, length: b"", 0, "source")
    bad = Records(disordered, good.codec, good.schema, "source", unique=False)
    with pytest.raises(CorruptFileError, match="not sorted"):
        merged([bad], tmp_path)
    twice = source([(b"a", LIVE), (b"a", LIVE)], unique=True)
    with pytest.raises(CorruptFileError, match="not sorted"):
        merged([twice], tmp_path)


def test_schemas_of_an_initialization() -> None:
    for version in (V6, V8, V9):
        assert '"_hoodie_file_name"' in stored_schema(version)
        assert '"_hoodie_' not in commit_schema(version)
    assert TOKEN.attempt_id == 0
