"""Writing HFiles: what is written reads back, and is what HBase writes."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.hfile import block
from hudi_core.codec.hfile.block import Codec
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.writer import write_hfile
from tests.support.golden_data import golden_cases
from tests.support.hfiles import base_hfiles, hfile, log_hfiles, meta_block


def rewrite(data: bytes) -> bytes:
    reader = HFileReader.of_bytes(data, "f")
    extra = {
        name: value
        for name, value in reader.file_info.items()
        if name in ("minRecordKey", "maxRecordKey", "bloomFilterTypeCode")
    }
    bloom = meta_block(data, "bloomFilter")
    return hfile(
        reader.items(),
        schema=str(reader.schema()),
        extra_info=extra,
        meta_blocks={} if bloom is None else {"bloomFilter": bloom},
    )


def test_writing_what_hbase_wrote_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit: block headers, index, file info and trailer; by zlib, which is the one Java uses, the compressed
    bytes too.
    """
    monkeypatch.setattr(block, "FASTEST", zlib)
    seen = 0
    for case in golden_cases("6"):
        for name, data in base_hfiles(case):
            assert rewrite(data) == data, name
            seen += 1
        for name, content, _ in log_hfiles(case):
            assert rewrite(content) == content, name
            seen += 1
    assert seen > 250


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.text(max_size=12).map(str.encode), st.binary(max_size=60)), max_size=60),
    st.integers(1, 400),
    st.sampled_from([Codec.GZ, Codec.NONE]),
)
def test_round_trip(cells: list[tuple[bytes, bytes]], block_size: int, codec: Codec) -> None:
    items = sorted(cells, key=lambda cell: cell[0])
    data = hfile(
        items,
        schema='{"type":"null"}',
        codec=codec,
        block_size=block_size,
        extra_info={"note": b"n"},
        meta_blocks={"m": b"block"},
    )
    reader = HFileReader.of_bytes(data, "f")
    assert list(reader.items()) == items
    assert reader.schema() == '{"type":"null"}'
    assert reader.file_info["note"] == b"n"
    assert meta_block(data, "m") == b"block"
    last = dict(items)
    assert dict(reader.lookup_many(sorted(last))) == last


def test_equal_keys_stay_in_one_block() -> None:
    items = [(b"a", b"x" * 50)] * 20 + [(b"b", b"y")]
    reader = HFileReader.of_bytes(write_hfile(items, schema="{}", block_size=100), "f")
    assert reader.trailer.data_index_count == 2
    assert list(reader.items()) == items


def test_keys_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="sorted"):
        write_hfile([(b"b", b""), (b"a", b"")], schema="{}")
