"""Java's string hash, the file groups of metadata-table keys, xxHash64 and xxHash32."""

from __future__ import annotations

import uuid
import zipfile

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.hashing import (
    file_group_index,
    file_group_indexes,
    group_indexes,
    java_string_hash,
    xxh32_hashes,
    xxh64,
    xxh64_python,
)
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.errors import UnsupportedError
from tests.support.golden_data import golden_root


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(1 << 31)), ("\U0001d11e", 31 * 0xD834 + 0xDD1E)],
)
def test_java_string_hash(text: str, value: int) -> None:
    assert java_string_hash(text) == value


def test_the_smallest_hash_still_finds_a_file_group() -> None:
    assert file_group_index("polygenelubricants", 10) == 8
    assert file_group_index("polygenelubricants", 1) == 0


def test_a_text_that_is_no_utf_8_has_no_place() -> None:
    keys = pa.array([b"a", b"\xff\xfe"], pa.binary()).view(pa.string())
    with pytest.raises(UnsupportedError, match=r"is no UTF-8: b'\\xff\\xfe'"):
        group_indexes(keys, 10)


def test_a_partition_has_at_least_one_file_group() -> None:
    with pytest.raises(ValueError, match="at least one"):
        file_group_index("key", 0)


@pytest.mark.parametrize("case", ["mdt_all_cow_compacted", "mdt_record_index_lookup"])
def test_real_hudi_put_each_key_into_the_file_group_of_its_hash(case: str) -> None:
    groups: dict[str, dict[str, list[bytes]]] = {}
    with zipfile.ZipFile(golden_root() / "6" / f"{case}.zip") as archive:
        for name in archive.namelist():
            file = name.rsplit("/", 1)[-1]
            if file.endswith(".hfile") and not file.startswith("."):
                partition, group = name.split("/")[-2], file.split("_")[0]
                keys = [key for key, _ in HFileReader.of_bytes(archive.read(name), name).items()]
                groups.setdefault(partition, {}).setdefault(group, []).extend(keys)
        # A file group without records has its empty first log file only.
        for name in archive.namelist():
            file = name.rsplit("/", 1)[-1]
            if "/metadata/" in name and ".log." in file and not file.endswith(".crc"):
                groups.setdefault(name.split("/")[-2], {}).setdefault(file[1:].split("_")[0], [])
    assert "record_index" in groups
    for by_group in groups.values():
        for index, group in enumerate(sorted(by_group)):
            assert {file_group_index(key.decode("utf-8"), len(by_group)) for key in by_group[group]} <= {index}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=12), min_size=60, max_size=90), st.integers(1, 40))
def test_many_keys_at_once_give_what_each_gives(keys: list[str], count: int) -> None:
    expected = [file_group_index(key, count) for key in keys]
    assert file_group_indexes(keys, count).tolist() == expected
    assert file_group_indexes(keys[:3], count).tolist() == expected[:3]


def test_the_smallest_hash_among_many() -> None:
    """`polygenelubricants` hashes to Integer.MIN_VALUE."""
    keys = ["polygenelubricants"] * 100
    for count in (3, 7, 10):
        assert set(file_group_indexes(keys, count).tolist()) == {file_group_index(keys[0], count)}
    with pytest.raises(ValueError, match="at least one"):
        file_group_indexes(keys, 0)


UUIDS = [str(uuid.UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC834 % (1 << 128))) for number in range(300)]


@pytest.mark.parametrize("count", [1, 2, 7, 10000])
@pytest.mark.parametrize(
    "keys", [UUIDS, ["", "a", "polygenelubricants", "x" * 50, "ab"], ["ä", "k", "\U0001f600"], [""], []]
)
def test_groups_are_those_of_single_keys(keys: list[str], count: int) -> None:
    array = pa.array(["ß", *keys], pa.string()).slice(1)
    assert group_indexes(array, count).tolist() == [file_group_index(key, count) for key in keys]


def test_no_file_groups_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one file group"):
        group_indexes(pa.array(["a"]), 0)


def test_known_values_of_xxhash64() -> None:
    """Of the reference implementation."""
    assert xxh64_python(b"", 0) == xxh64(b"", 0) == 0xEF46DB3751D8E999
    assert xxh64_python(b"abc", 0) == xxh64(b"abc", 0) == 0x44BC2CF5AD770999


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=120), st.integers(0, (1 << 64) - 1))
def test_xxhash64_with_and_without_its_native_library(data: bytes, seed: int) -> None:
    assert xxh64_python(data, seed) == xxh64(data, seed) == xxhash.xxh64_intdigest(data, seed)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=90)), st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_xxhash32_of_many_texts(texts: list[str], first: int) -> None:
    found = xxh32_hashes(pa.array(texts, pa.string()).slice(first))
    assert found.tolist() == [xxhash.xxh32_intdigest(text.encode()) for text in texts[first:]]
