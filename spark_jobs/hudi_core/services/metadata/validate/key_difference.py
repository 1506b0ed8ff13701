"""Two sets of keys compared, each key with a place: what only one has, and what both have in different places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class KeyDifference:
    """Positions: `missing` among the true keys, each key once; `extra` and `elsewhere` among the stored ones, which are distinct.

    A key that is true in several places may be stored in any of them.
    """

    missing: NDArray[np.int64]
    extra: NDArray[np.int64]
    elsewhere: NDArray[np.int64]
    first: NDArray[np.int64]
    """For each of `elsewhere`, where among the true keys the key is first."""


def compare_keys(true: pa.Array, true_places: NDArray[np.int32], stored: pa.Array, stored_places: NDArray[np.int32]) -> KeyDifference:
    """Hashes both sides: some 50 bytes for each key besides the arrays."""
    found = _index_in(true, stored)
    missing = np.flatnonzero(found < 0)
    if len(missing) > 1:
        missing = missing[_firsts(true.take(pa.array(missing)))]
    there = _index_in(stored, true)
    extra = np.flatnonzero(there < 0)
    known = np.flatnonzero(there >= 0)
    suspects = known[true_places[there[known]] != stored_places[known]]
    if len(suspects):
        # The key may be in several places: any of them will do.
        repeated = np.flatnonzero(np.isin(found, suspects))
        right = repeated[true_places[repeated] == stored_places[found[repeated]]]
        suspects = suspects[~np.isin(suspects, found[right])]
    return KeyDifference(missing, extra, suspects, there[suspects])


def _index_in(keys: pa.Array, among: pa.Array) -> NDArray[np.int64]:
    """For each key the position of its first occurrence in `among`, -1 where it is not there."""
    found: NDArray[np.int64] = pc.index_in(keys, value_set=among).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _firsts(keys: pa.Array) -> NDArray[np.int64]:
    """The position of the first occurrence of each distinct key."""
    return np.unique(_index_in(keys, keys))
