"""xxHash64 with and without its native library."""

from __future__ import annotations

import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.xxhash64 import xxh64, xxh64_python


def test_known_values() -> None:
    """Of the reference implementation."""
    assert xxh64_python(b"", 0) == xxh64(b"", 0) == 0xEF46DB3751D8E999
    assert xxh64_python(b"abc", 0) == xxh64(b"abc", 0) == 0x44BC2CF5AD770999


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=120), st.integers(0, (1 << 64) - 1))
def test_both_agree(data: bytes, seed: int) -> None:
    assert xxh64_python(data, seed) == xxh64(data, seed) == xxhash.xxh64_intdigest(data, seed)
