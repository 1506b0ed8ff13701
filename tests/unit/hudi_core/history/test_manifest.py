from __future__ import annotations

import json

import pytest

from hudi_core.errors import CorruptFileError, FormatError, SizeLimitError
from hudi_core.history.manifest import (
    HistoryFile,
    latest_version,
    parse_manifest,
    read_manifest,
    read_snapshot,
)
from hudi_core.model.size_limits import Limit
from tests.support.memory_storage import MemoryStorage

FOLDER = "history"


def manifest(*names: str) -> bytes:
    return json.dumps({"files": [{"fileName": name, "fileLen": 7} for name in names]}).encode()


def test_files_oldest_first() -> None:
    found = parse_manifest(manifest("20_21_0.parquet", "01_12_1.parquet"), FOLDER, path="x")
    assert found == [
        HistoryFile("history/01_12_1.parquet", "01", "12", 1, 7),
        HistoryFile("history/20_21_0.parquet", "20", "21", 0, 7),
    ]
    assert found[0].name == "01_12_1.parquet"


@pytest.mark.parametrize(
    ("after", "up_to", "expected"),
    [(None, None, True), ("12", None, False), ("11", "01", True), (None, "00", False), ("00", "02", True)],
)
def test_which_files_a_range_needs(after: str | None, up_to: str | None, expected: bool) -> None:
    assert HistoryFile("f", "01", "12", 0).overlaps(after, up_to) is expected


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b'{"files": 1}', b'{"files": [1]}', manifest("02_01_0.parquet"), manifest("notes.txt")],
)
def test_what_is_no_manifest(data: bytes) -> None:
    with pytest.raises(CorruptFileError) as caught:
        parse_manifest(data, FOLDER, path="manifest_3")
    assert caught.value.path == "manifest_3"


def test_a_name_that_leaves_the_folder() -> None:
    with pytest.raises(FormatError):
        parse_manifest(manifest("../01_02_0.parquet"), FOLDER, path="x")


def test_the_latest_snapshot() -> None:
    storage = MemoryStorage()
    assert (latest_version(storage, FOLDER), read_snapshot(storage, FOLDER)) == (None, [])
    for version in (1, 2, 10):
        storage.write(f"{FOLDER}/manifest_{version}", manifest(f"0{version}_20_0.parquet"))
    assert latest_version(storage, FOLDER) == 10
    storage.write(f"{FOLDER}/_version_", b"2")
    assert [file.begin for file in read_snapshot(storage, FOLDER)] == ["02"]
    storage.write(f"{FOLDER}/_version_", b"3")
    with pytest.raises(CorruptFileError, match="names the snapshot 3, whose manifest is missing"):
        read_snapshot(storage, FOLDER)


def test_a_manifest_has_a_greatest_size() -> None:
    storage = MemoryStorage()
    storage.write(f".hoodie/{FOLDER}/manifest_1", b" " * (Limit.MANIFEST.default + 1))
    with pytest.raises(SizeLimitError, match="manifest"):
        read_manifest(storage, f".hoodie/{FOLDER}", 1)
