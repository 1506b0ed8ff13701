"""Bloom filters over given keys."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hudi_core.codec.bloom import BloomFilter


def build(offsets: NDArray[Any], data: NDArray[np.uint8], **settings: Any) -> BloomFilter:
    """A dynamic filter over the keys of one batch; see BloomFilter.add_batch."""
    result = BloomFilter(**settings)
    result.add_batch(offsets, data)
    return result
