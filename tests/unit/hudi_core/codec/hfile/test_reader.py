"""Reading HFiles: those of real Hudi, damaged ones, and how little a lookup reads."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.bloom import BloomFilter
from hudi_core.codec.hfile.block import Codec, IndexEntry, Magic, cell_key, encode_block, encode_root_index
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.trailer import TRAILER_SIZE
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.errors import CorruptFileError, FormatError, SizeLimitError, UnsupportedError
from hudi_core.model.size_limits import Limit, SizeLimits
from tests.support.bloom_filters import might_contain
from tests.support.golden_data import golden_cases
from tests.support.hfiles import (
    base_hfiles,
    hfile,
    inner_index,
    log_hfiles,
    lookup,
    meta_block,
    two_level_hfile,
    with_root_index,
)

ITEMS = [(b"key-%03d" % index, b"value-%d" % index * 3) for index in range(200)]


class Counting:
    """A file in memory that notes which ranges were read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.ranges: list[tuple[int, int]] = []

    def read(self, offset: int, length: int) -> bytes:
        self.ranges.append((offset, length))
        return self.data[offset : offset + length]

    def open(self) -> HFileReader:
        return HFileReader(self.read, len(self.data), "x.hfile")


def test_every_base_hfile_of_real_hudi_decodes() -> None:
    seen = 0
    for case in golden_cases("6"):
        for name, data in base_hfiles(case):
            reader = HFileReader.of_bytes(data, name)
            items = list(reader.items())
            assert len(items) == reader.trailer.entry_count
            assert [key for key, _ in items] == sorted({key for key, _ in items})
            assert list(reader.lookup_many([key for key, _ in items])) == items
            assert lookup(reader, b"\0") is None
            assert lookup(reader, b"\xff" * 5) is None
            assert str(reader.schema()).startswith('{"type":"record","name":"HoodieMetadataRecord"')
            bloom = BloomFilter.parse(
                meta_block(data, "bloomFilter") or b"", reader.file_info["bloomFilterTypeCode"].decode(), path=name
            )
            assert all(might_contain(bloom, key) for key, _ in items[:3])
            seen += 1
    assert seen >= 50


def test_every_hfile_log_block_of_real_hudi_decodes() -> None:
    seen = 0
    for case in golden_cases("6"):
        for name, content, block in log_hfiles(case):
            reader = HFileReader.of_bytes(content, name)
            keys = [key for key, _ in reader.items()]
            assert keys == sorted(keys)
            assert reader.schema() == block.schema
            assert meta_block(content, "bloomFilter") is None
            seen += 1
    assert seen >= 200


def test_a_lookup_reads_the_trailer_the_load_on_open_section_and_one_block() -> None:
    file = Counting(write_hfile(ITEMS, schema="{}", block_size=500))
    reader = file.open()
    assert lookup(reader, b"key-117") == b"value-117" * 3
    trailer = reader.trailer
    assert trailer.data_index_count > 5
    end = len(file.data) - TRAILER_SIZE
    assert file.ranges[:2] == [(end, TRAILER_SIZE), (trailer.load_on_open_offset, end - trailer.load_on_open_offset)]
    (block,) = file.ranges[2:]
    assert block[0] + block[1] < trailer.load_on_open_offset
    assert lookup(reader, b"key-117x") is None
    assert len(file.ranges) == 3, "the block in hand answers for its neighbours"
    assert lookup(reader, b"key-000") == b"value-0" * 3
    assert len(file.ranges) == 4


def test_sorted_lookups_read_each_block_once() -> None:
    file = Counting(write_hfile(ITEMS, schema="{}", block_size=500))
    reader = file.open()
    assert list(reader.lookup_many([key for key, _ in ITEMS])) == ITEMS
    assert len(file.ranges) == 2 + reader.trailer.data_index_count


def test_nothing_is_read_before_it_is_needed() -> None:
    file = Counting(write_hfile(ITEMS, schema="{}"))
    reader = file.open()
    assert file.ranges == []
    assert reader.trailer.entry_count == 200
    assert len(file.ranges) == 1


def test_deeper_indexes_are_followed() -> None:
    blocks = [ITEMS[start : start + 10] for start in range(0, 200, 10)]
    file = Counting(two_level_hfile([blocks[start : start + 4] for start in range(0, 20, 4)]))
    reader = file.open()
    assert list(reader.items()) == ITEMS
    assert list(reader.prefix_items([b"key-03", b"key-1"])) == ITEMS[30:40] + ITEMS[100:]
    fresh = file.open()
    file.ranges.clear()
    assert lookup(fresh, b"key-033") == b"value-33" * 3
    assert len(file.ranges) == 4, "trailer, load-on-open section, one leaf index block and one data block"
    assert lookup(fresh, b"a") is None


KEYS = st.integers(0, 40).map(lambda number: b"k%d" % number)


@settings(max_examples=100, deadline=None)
@given(st.lists(KEYS, max_size=60), st.sets(KEYS, max_size=20), st.integers(20, 400))
def test_keys_and_prefixes_give_every_cell_of_a_file_with_repeated_keys(
    rows: list[bytes], requested: set[bytes], block_size: int
) -> None:
    items = [(row, b"%d" % index) for index, row in enumerate(sorted(rows))]
    keys = sorted(requested)
    reader = HFileReader.of_bytes(write_hfile(items, schema="{}", block_size=block_size), "f")
    assert list(reader.lookup_many(keys, unique=False)) == [item for item in items if item[0] in requested]
    assert list(reader.prefix_items(keys)) == [item for item in items if item[0].startswith(tuple(requested))]
    once = list({row: (row, value) for row, value in items}.values())
    single = HFileReader.of_bytes(write_hfile(once, schema="{}", block_size=block_size), "f")
    assert list(single.lookup_many(keys)) == [item for item in once if item[0] in requested]
    assert [lookup(single, key) for key in keys] == [dict(once).get(key) for key in keys]


def test_a_key_that_goes_on_in_the_next_block_is_found_whole() -> None:
    """HBase, unlike Hudi's native writer, may part equal keys: two data blocks that share one."""
    blocks = [[(b"a", b"1"), (b"k", b"2")], [(b"k", b"3"), (b"k", b"4")], [(b"k", b"5"), (b"z", b"6")]]
    reader = HFileReader.of_bytes(two_level_hfile([blocks[:2], blocks[2:]]), "f")
    expected = [(b"k", b"2"), (b"k", b"3"), (b"k", b"4"), (b"k", b"5")]
    assert list(reader.lookup_many([b"k"], unique=False)) == expected
    assert list(reader.lookup_many([b"a", b"b", b"k", b"l", b"z"], unique=False)) == [
        (b"a", b"1"),
        *expected,
        (b"z", b"6"),
    ]
    assert list(reader.prefix_items([b"k"])) == expected


def test_an_empty_hfile_has_nothing() -> None:
    reader = HFileReader.of_bytes(write_hfile([], schema="{}"), "f")
    assert list(reader.items()) == []
    assert lookup(reader, b"k") is None
    assert reader.schema() == "{}"


@pytest.mark.parametrize("codec", [Codec.GZ, Codec.NONE])
def test_truncation_at_any_byte_is_a_corrupt_file(codec: Codec) -> None:
    data = hfile(ITEMS[:20], schema="{}", codec=codec, block_size=200, meta_blocks={"bloomFilter": b"bits"})
    for end in range(len(data)):
        with pytest.raises(CorruptFileError) as caught:
            list(HFileReader.of_bytes(data[:end], "cut.hfile").items())
        assert caught.value.path == "cut.hfile"


def test_a_file_shorter_than_its_listed_size_is_corrupt() -> None:
    data = hfile(ITEMS, schema="{}", codec=Codec.NONE)
    for end in (0, 100, len(data) - TRAILER_SIZE, len(data) - 1):
        part = data[:end]
        with pytest.raises(CorruptFileError):
            list(HFileReader(lambda offset, length, part=part: part[offset : offset + length], len(data), "f").items())  # type: ignore[misc]


@pytest.mark.slow
@pytest.mark.parametrize("codec", [Codec.GZ, Codec.NONE])
def test_a_changed_byte_is_an_error_or_changes_nothing(codec: Codec) -> None:
    data = hfile(ITEMS[:20], schema="{}", codec=codec, block_size=200)
    noticed = 0
    for index in range(len(data) - TRAILER_SIZE + 120):
        for bit in (0x01, 0x80):
            forged = bytearray(data)
            forged[index] ^= bit
            try:
                assert list(HFileReader.of_bytes(bytes(forged), "f").items()) == ITEMS[:20]
            except FormatError:
                noticed += 1
    assert noticed > len(data) - TRAILER_SIZE


def test_features_hudi_never_uses_are_refused_by_name() -> None:
    for info, message in (
        ({"hfile.MAX_TAGS_LEN": b"\0\0\0\1"}, "tags"),
        ({"DATA_BLOCK_ENCODING": b"FAST_DIFF"}, "FAST_DIFF"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            list(HFileReader.of_bytes(hfile(ITEMS, schema="{}", extra_info=info), "f").items())


def test_an_index_that_repeats_a_block_is_corrupt() -> None:
    blocks = [ITEMS[:10]]
    data = two_level_hfile([blocks, blocks])
    assert list(HFileReader.of_bytes(data, "f").items()) == ITEMS[:10] * 2
    forged = two_level_hfile([[ITEMS[:10]]])
    reader = HFileReader.of_bytes(forged, "f")
    index = reader._open()
    index.append(index[0])
    with pytest.raises(CorruptFileError, match="goes back"):
        list(reader.items())


def test_an_index_that_unpacks_to_more_entries_than_the_file_has_blocks() -> None:
    count = 400_000
    data = with_root_index(b"", encode_root_index([IndexEntry(b"\0\0", 0, 1)]) * count, count)
    assert len(data) < 30_000
    tracemalloc.start()
    with pytest.raises(CorruptFileError, match=f"claims {count} entries"):
        HFileReader.of_bytes(data, "f").schema()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * count, "the index, and not its entries"


def test_inner_indexes_have_no_more_entries_than_the_file_has_blocks() -> None:
    """All of them together, also where each alone has few enough."""
    leaves = [IndexEntry(cell_key(b"k%04d" % number), number, 40) for number in range(100)]
    blocks = [encode_block(Magic.LEAF_INDEX, inner_index(leaves), Codec.GZ, -1)] * 20
    starts = [len(block) * number for number, block in enumerate(blocks)]
    root = [IndexEntry(cell_key(b"a%04d" % at), at, len(blocks[0])) for at in starts]
    before = b"".join(blocks)
    most = len(before) // 33
    assert 100 < most < 2000
    reader = HFileReader.of_bytes(with_root_index(before, encode_root_index(root), len(root), levels=2), "f")
    reader.schema()
    with pytest.raises(CorruptFileError, match="claims 100 entries"):
        [reader._children(entry) for entry in root]
    assert sum(len(children) for children, _ in reader._inner.values()) <= most


def test_an_index_is_held_to_the_limit_of_a_block_with_all_its_levels() -> None:
    reader = HFileReader.of_bytes(
        two_level_hfile([[[item]] for item in ITEMS]), "f", SizeLimits({Limit.HFILE_BLOCK: 8 << 10})
    )
    assert lookup(reader, b"key-033") == b"value-33" * 3
    with pytest.raises(SizeLimitError, match="index of the HFile"):
        list(reader.items())


def test_a_key_that_starts_all_others_does_not_have_them_read() -> None:
    items = [(b"a" * length, b"value") for length in range(1, 60)]
    file = Counting(two_level_hfile([[[item] for item in items]]))
    assert list(file.open().lookup_many([key for key, _ in items], unique=False)) == items
    assert len(file.ranges) < 5 * len(items)
