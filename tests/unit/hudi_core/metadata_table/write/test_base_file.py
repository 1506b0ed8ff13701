"""Base files of the metadata table: sorted distinct records, the filter of their keys, and nothing left by an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_core.codec.bloom import BloomFilter
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.writer import CopiedBlock
from hudi_core.metadata_table.write.base_file import MetadataBaseFile
from hudi_core.storage.local import LocalStorage
from tests.support.bloom_filters import might_contain
from tests.support.hfiles import meta_block

KEYS = [f"key-{number:05d}".encode() for number in range(9000)]
VALUE = bytes(5) + b"value"
"""The `_hoodie_*` fields are null."""
Write = Callable[[MetadataBaseFile], object]


def new_file(folder: Path, name: str = "f.hfile") -> MetadataBaseFile:
    return MetadataBaseFile(LocalStorage(folder), name, '"string"', bloom_entries=10000)


def written(folder: Path, write: Write, name: str = "f.hfile") -> HFileReader:
    with new_file(folder, name) as file:
        write(file)
        size = file.close()
    data = (folder / name).read_bytes()
    assert len(data) == size
    return HFileReader.of_bytes(data, name)


def add_singly(file: MetadataBaseFile) -> None:
    for key in KEYS:
        file.add(key, VALUE)


def add_in_batches(file: MetadataBaseFile) -> None:
    for start in (0, 4000):
        keys = KEYS[start : start + 4000] if start == 0 else KEYS[start:]
        file.add_batch(pa.array(keys, pa.binary()), pa.array([VALUE] * len(keys), pa.binary()))
    file.add_batch(pa.array([], pa.binary()), pa.array([], pa.binary()))


def add_copied(source: HFileReader) -> Write:
    def write(file: MetadataBaseFile) -> None:
        for block in source.blocks():
            copied = CopiedBlock(block, bytes(5))
            assert file.copy(copied, 0, len(block) // 2)
            assert file.copy(copied, len(block) // 2, len(block))

    return write


def test_records_are_the_same_however_they_are_added(tmp_path: Path) -> None:
    singly = written(tmp_path, add_singly)
    files = [singly, written(tmp_path, add_in_batches, "b"), written(tmp_path, add_copied(singly), "c")]
    for file in files:
        assert list(file.items()) == [(key, VALUE) for key in KEYS]
        assert file.file_info["minRecordKey"] == KEYS[0]
        assert file.file_info["maxRecordKey"] == KEYS[-1]
    filters = {meta_block((tmp_path / name).read_bytes(), "bloomFilter") for name in ("f.hfile", "b", "c")}
    (text,) = filters
    assert text is not None
    bloom = BloomFilter.parse(text, "DYNAMIC_V0", path="f")
    assert all(might_contain(bloom, key) for key in KEYS[::97])
    assert not might_contain(bloom, b"another key")


def test_a_file_without_records_has_no_range_of_keys(tmp_path: Path) -> None:
    file = written(tmp_path, lambda file: None)
    assert list(file.items()) == []
    assert "minRecordKey" not in file.file_info
    assert "bloomFilterTypeCode" in file.file_info


def twice(file: MetadataBaseFile) -> None:
    file.add(b"a", VALUE)
    file.add(b"a", VALUE)


def twice_in_a_batch(file: MetadataBaseFile) -> None:
    file.add_batch(pa.array([b"a", b"b", b"b"], pa.binary()), pa.array([VALUE] * 3, pa.binary()))


def twice_between_batches(file: MetadataBaseFile) -> None:
    for keys in ([b"a", b"b"], [b"b", b"c"]):
        file.add_batch(pa.array(keys, pa.binary()), pa.array([VALUE] * 2, pa.binary()))


def backwards(file: MetadataBaseFile) -> None:
    file.add(b"b", VALUE)
    file.add(b"a", VALUE)


@pytest.mark.parametrize("write", [twice, twice_in_a_batch, twice_between_batches, backwards])
def test_keys_that_do_not_ascend_are_refused_and_leave_no_file(tmp_path: Path, write: Write) -> None:
    with pytest.raises(ValueError, match=r"key|sort"), new_file(tmp_path) as file:
        write(file)
    assert list(tmp_path.iterdir()) == []


def test_copied_cells_come_after_what_was_added(tmp_path: Path) -> None:
    source = written(tmp_path, add_singly, "source")
    (block, *_) = source.blocks()

    def write(file: MetadataBaseFile) -> None:
        file.add(b"z", VALUE)
        file.copy(CopiedBlock(block, bytes(5)), 0, 1)

    with pytest.raises(ValueError, match="not sorted"):
        written(tmp_path, write)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_cells_of_another_form_are_not_copied(tmp_path: Path) -> None:
    """Values that name the file that they were in: the caller adds them one by one."""

    def write(file: MetadataBaseFile) -> None:
        file.add(b"a", b"\x02\x02f" + bytes(4))

    (block,) = written(tmp_path, write, "source").blocks()
    with new_file(tmp_path) as file:
        assert not file.copy(CopiedBlock(block, bytes(5)), 0, 1)
        assert file.count == 0
        file.close()
