"""Bloom filters against real Hudi's, bit for bit."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.bloom import DYNAMIC, SIMPLE, BloomFilter
from hudi_core.errors import CorruptFileError, UnsupportedError
from tests.support.bloom_filters import build, might_contain
from tests.support.golden_data import golden_cases, golden_root

FOOTER, TYPE = b"org.apache.hudi.bloomfilter", b"hoodie_bloom_filter_type_code"


def binary(keys: list[bytes]) -> pa.Array:
    return pa.array(keys, pa.binary())


def test_rebuilding_from_a_base_files_keys_gives_its_footer() -> None:
    compared, settings_seen = 0, set()
    for case in golden_cases("6"):
        with zipfile.ZipFile(golden_root() / "6" / f"{case}.zip") as archive:
            names = [
                name
                for name in archive.namelist()
                if name.endswith(".parquet") and not name.rsplit("/", 1)[-1].startswith(".")
            ]
            for name in names[:1]:
                file = pq.ParquetFile(io.BytesIO(archive.read(name)))
                footer = file.metadata.metadata or {}
                if FOOTER not in footer:
                    continue
                real = footer[FOOTER].decode("ascii")
                parsed = BloomFilter.parse(real, footer[TYPE].decode("ascii"), path=name)
                assert parsed.to_base64() == real
                keys = [
                    str(key).encode()
                    for key in file.read(columns=["_hoodie_record_key"])["_hoodie_record_key"].to_pylist()
                ]
                assert build(binary(keys), entries=parsed.entries).to_base64() == real
                assert all(might_contain(parsed, key) for key in keys[:5])
                compared += 1
                settings_seen.add((parsed.entries, parsed.bits, parsed.probes))
    assert compared > 60
    assert settings_seen == {(1000, 43133, 30), (60000, 2587966, 30)}


MANY = [f"key-{index}{'äß' * (index % 3)}{'x' * (index % 7)}".encode() for index in range(1000)]


@pytest.mark.parametrize(
    ("entries", "most", "count", "rows", "digest"),
    [
        (100, 250, 300, 3, "93f29cee550b7609d9f47de151429356cd009f0c4648733a4bde7905f4435734"),
        (100, 250, 301, 3, "ae33940da563ce5530de667f72fbb54e1576e01cb63405585c3a6f6c7192dad2"),
        (100, 250, 302, 3, "f695d5f99ce2d6c1785e98d47f8276636fc08e11337c3dba1fcaefbe32dcd398"),
        (100, 250, 303, 3, "e0080276e79ef645213a2ea63dcfcdee7cf358981d70da06f9eb3a96227e1aff"),
        (100, 250, 1000, 3, "d486bb6a56ad19c3b33ea0ff051c07c2bb07849f67157a829911ec8376463f9b"),
        (50, 50, 175, 1, "27b2c330f2a79faf3d681819285474c038eb3aedf073fe96f18d37eca6e5f552"),
    ],
)
@pytest.mark.parametrize("batch", [1000, 37])
def test_growth_and_overflow_match_hudi_0_15(
    entries: int, most: int, count: int, rows: int, digest: str, batch: int
) -> None:
    """The digests are of `serializeToString()` of Hudi 0.15.0's own filter with error rate 1e-6 over the same keys."""
    keys = binary(MANY[:count])
    bloom = BloomFilter(entries=entries, error_rate=1e-6, max_entries=most)
    for start in range(0, count, batch):
        bloom.add_batch(keys[start : start + batch])
    assert int.from_bytes(base64.b64decode(bloom.to_base64())[21:25], "big") == rows
    assert hashlib.sha256(bloom.to_base64().encode("ascii")).hexdigest() == digest


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=21), max_size=60), st.integers(1, 60))
def test_batches_of_any_size_give_the_same_filter_and_no_key_is_missed(keys: list[bytes], size: int) -> None:
    whole = build(binary(keys), entries=7, error_rate=0.01, max_entries=20)
    parts = BloomFilter(entries=7, error_rate=0.01, max_entries=20)
    for start in range(0, len(keys), size):
        parts.add_batch(binary(keys[start : start + size]))
    assert parts.to_base64() == whole.to_base64()
    assert all(might_contain(whole, key) for key in keys)
    assert BloomFilter.parse(whole.to_base64(), DYNAMIC, path="f").to_base64() == whole.to_base64()


def test_absent_keys_are_almost_never_found() -> None:
    bloom = build(binary(MANY), entries=1000)
    assert not any(might_contain(bloom, b"absent-%d" % index) for index in range(300))


def test_a_simple_filter_parses_and_answers() -> None:
    row = base64.b64decode(build(binary(MANY), entries=1000).to_base64())[13 + 12 :]
    simple = BloomFilter.parse(base64.b64encode(row).decode(), SIMPLE, path="f")
    assert simple.to_base64() == base64.b64encode(row).decode()
    assert all(might_contain(simple, key) for key in MANY[::5])
    assert not might_contain(simple, b"absent")


def test_what_was_read_takes_no_keys() -> None:
    bloom = BloomFilter.parse(BloomFilter(entries=10).to_base64(), DYNAMIC, path="f")
    with pytest.raises(ValueError, match="cannot take"):
        bloom.add_batch(binary([b"a"]))


@pytest.mark.parametrize("bad", [{"entries": 0}, {"error_rate": 0.0}, {"error_rate": 1.0}])
def test_impossible_settings_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="at least one entry"):
        BloomFilter(**bad)  # type: ignore[arg-type]


def test_truncation_at_any_byte_is_a_corrupt_file() -> None:
    data = base64.b64decode(build(binary(MANY[:30]), entries=10, max_entries=30, error_rate=0.1).to_base64())
    for end in range(len(data)):
        with pytest.raises(CorruptFileError) as caught:
            BloomFilter.parse(base64.b64encode(data[:end]), DYNAMIC, path="base.parquet")
        assert caught.value.path == "base.parquet"
    with pytest.raises(CorruptFileError, match="more bytes"):
        BloomFilter.parse(base64.b64encode(data + b"\0"), DYNAMIC, path="f")


def test_foreign_filters_are_refused_by_name() -> None:
    text = BloomFilter(entries=10).to_base64()
    jenkins = base64.b64decode(text)[:8] + b"\0" + base64.b64decode(text)[9:]
    with pytest.raises(UnsupportedError, match="hash type 0"):
        BloomFilter.parse(base64.b64encode(jenkins), DYNAMIC, path="f")
    with pytest.raises(UnsupportedError, match="OTHER"):
        BloomFilter.parse(text, "OTHER", path="f")
    with pytest.raises(CorruptFileError, match="base64"):
        BloomFilter.parse("&&&", DYNAMIC, path="f")


@pytest.mark.parametrize("entries", [100, 5000])
def test_how_many_keys_a_filter_lacks(entries: int) -> None:
    """As might_contain for each key; of several rows any may hold a key."""
    bloom = BloomFilter.parse(
        build(binary(MANY[:400]), entries=entries, max_entries=2 * entries).to_base64(), DYNAMIC, path="f"
    )
    assert bloom.lacking(binary(MANY[:400])) == 0
    some = MANY[::5]
    expected = sum(not might_contain(bloom, key) for key in some)
    assert bloom.lacking(binary(some)) == expected > 100
    assert bloom.lacking(binary(MANY[5:6])) == bloom.lacking(binary([])) == 0


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string(), pa.large_binary()])
def test_keys_of_any_width_of_offsets(data_type: pa.DataType) -> None:
    keys = pa.array(MANY[:50], pa.binary()).cast(data_type)
    assert build(keys[7:]).to_base64() == build(binary(MANY[7:50])).to_base64()


@cache
def serialized(count: int, entries: int, most: int) -> str:
    bloom = BloomFilter(entries=entries, error_rate=1e-6, max_entries=most)
    bloom.add_batch(binary(MANY[:count]))
    return bloom.to_base64()


@pytest.mark.parametrize("most", [1, 250])
@pytest.mark.parametrize("first", [0, 1, 99, 100, 101, 299, 300, 301, 555])
def test_an_empty_filter_goes_on_where_a_footers_stopped(first: int, most: int) -> None:
    """As if it had got all keys: rows that are full, and rows that overflow."""
    for count in (first, first + 1, first + 150, 1000):
        bloom = BloomFilter(entries=100, error_rate=1e-6, max_entries=most)
        assert bloom.join(serialized(first, 100, most), DYNAMIC, first, path="f")
        bloom.add_batch(binary(MANY[first:count]))
        assert bloom.to_base64() == serialized(count, 100, most), count


def test_joined_filters_hold_the_keys_of_all() -> None:
    bloom = BloomFilter(entries=100, error_rate=1e-6, max_entries=250)
    for start, stop in ((0, 301), (301, 401), (401, 402), (402, 402), (402, 900)):
        part = BloomFilter(entries=100, error_rate=1e-6, max_entries=250)
        part.add_batch(binary(MANY[start:stop]))
        assert bloom.join(part.to_base64(), DYNAMIC, stop - start, path="f")
    bloom.add_batch(binary(MANY[900:]))
    read = BloomFilter.parse(bloom.to_base64(), DYNAMIC, path="f")
    assert read.lacking(binary(MANY)) == 0
    assert read.lacking(binary([b"no-%d" % number for number in range(1000)])) > 900


@pytest.mark.parametrize(
    ("count", "entries", "most", "type_code"),
    [(301, 100, 250, DYNAMIC), (300, 50, 250, DYNAMIC), (300, 100, 10**6, DYNAMIC), (300, 100, 250, SIMPLE)],
    ids=["another number of keys", "rows of another size", "another bound", "another type"],
)
def test_a_filter_that_these_keys_did_not_make_is_not_joined(
    count: int, entries: int, most: int, type_code: str
) -> None:
    bloom = BloomFilter(entries=entries, error_rate=1e-6, max_entries=most)
    text = serialized(300, 100, 250) if type_code == DYNAMIC else one_row_of_300()
    joined = bloom.join(text, type_code, count, path="f")
    assert joined is (most == 10**6)  # below the bound, filters do not depend on it
    if not joined:
        assert bloom.to_base64() == BloomFilter(entries=entries, error_rate=1e-6, max_entries=most).to_base64()


def one_row_of_300() -> str:
    bloom = BloomFilter(entries=100, error_rate=1e-6, max_entries=1)
    bloom.type_code = SIMPLE
    bloom.add_batch(binary(MANY[:300]))
    return bloom.to_base64()


def test_the_filters_of_real_hudi_are_joined_by_their_rows() -> None:
    joined = 0
    for case in golden_cases("9")[::5]:
        with zipfile.ZipFile(golden_root() / "9" / f"{case}.zip") as archive:
            names = [name for name in archive.namelist() if name.endswith(".parquet") and "/.hoodie/" not in name]
            for name in names[:2]:
                file = pq.ParquetFile(io.BytesIO(archive.read(name)))
                footer = file.metadata.metadata or {}
                if FOOTER in footer:
                    text, kind = footer[FOOTER].decode("ascii"), footer[TYPE].decode("ascii")
                    entries = BloomFilter.parse(text, kind, path=name).entries
                    bloom = BloomFilter(entries=entries)
                    assert bloom.join(text, kind, file.metadata.num_rows, path=name)
                    assert bloom.to_base64() == text
                    joined += 1
    assert joined > 10
