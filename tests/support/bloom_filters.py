"""Bloom filters over given keys."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudi_core.codec.bloom import BloomFilter


def build(keys: pa.Array, **settings: Any) -> BloomFilter:
    """A dynamic filter over the keys of one batch; see BloomFilter.add_batch."""
    result = BloomFilter(**settings)
    result.add_batch(keys)
    return result


def might_contain(bloom: BloomFilter, key: bytes) -> bool:
    """False when no added key equals `key`."""
    return not bloom.lacking(pa.array([key], pa.binary()))
