"""The record positions of log blocks, as Hudi's writers encode them."""

from __future__ import annotations

import base64
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.codec.log.positions import decode_positions, encode_positions
from hudi_core.errors import CorruptFileError

FROM_HUDI = {
    "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAIAEAAAAAAAAQACAA==": [0, 1, 2],
    "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAEAEAAAAAUABgA=": [5, 6],
    "AQAAAAAAAAAAAAAAOzAAAAEAAAcAAQAoAAcA": [*range(40, 48)],
}
"""Headers of blocks that real Hudi wrote."""


def of(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def decoded(text: str, records: int) -> list[int]:
    return decode_positions(text, path="log").rows(records).tolist()


def runs(*containers: tuple[int, list[tuple[int, int]]]) -> str:
    """A bitmap of run containers: (key, [(start, length)])."""
    number = len(containers)
    data = struct.pack("<I", 12347 | (number - 1) << 16) + bytes([255] * ((number + 7) // 8))
    for key, pairs in containers:
        data += struct.pack("<HH", key, sum(length for _, length in pairs) - 1)
    data += bytes(4 * number if number >= 4 else 0)
    for _, pairs in containers:
        data += struct.pack("<H", len(pairs)) + b"".join(struct.pack("<HH", at, length - 1) for at, length in pairs)
    return base64.b64encode(struct.pack("<QI", 1, 0) + data).decode()


@pytest.mark.parametrize(("text", "rows"), FROM_HUDI.items())
def test_headers_of_hudi(text: str, rows: list[int]) -> None:
    assert decoded(text, len(rows)) == rows
    assert encode_positions(of(rows)) == text


@given(
    st.sets(st.integers(0, 1 << 40), min_size=1, max_size=30), st.integers(0, 3), st.sampled_from([0, 1, 5000, 70000])
)
def test_what_is_encoded_is_decoded(single: set[int], first: int, dense: int) -> None:
    rows = sorted(single | set(range(first, first + 2 * dense, 2)))
    assert decoded(encode_positions(of(rows)), len(rows)) == rows


@pytest.mark.parametrize("number", [1, 3, 4, 9])
def test_runs(number: int) -> None:
    text = runs(*((key, [(0, 3), (10, 1), (65530, 6)]) for key in range(number)))
    due = [(key << 16) + at for key in range(number) for at in (0, 1, 2, 10, *range(65530, 65536))]
    assert decoded(text, len(due)) == due


def test_another_number_of_records_is_an_error_with_a_way_out() -> None:
    """Before anything is made of the positions: a few bytes may stand for millions of them."""
    text = runs(*((key, [(0, 65536)]) for key in range(4096)))
    positions = decode_positions(text, path="p/.f.log")
    assert positions.count == 1 << 28
    with pytest.raises(CorruptFileError, match=r"3 records, but 268435456 record positions .*positions=false") as found:
        positions.rows(3)
    assert found.value.path == "p/.f.log"


@pytest.mark.parametrize(
    "text",
    [
        "not base64",
        "",
        base64.b64encode(bytes(7)).decode(),
        base64.b64encode(struct.pack("<QII", 1, 0, 7)).decode(),
        base64.b64encode(struct.pack("<Q", 1 << 60)).decode(),
        base64.b64encode(struct.pack("<QIIIHHIH", 1, 1 << 31, 12346, 1, 0, 0, 16, 0)).decode(),
        base64.b64encode(struct.pack("<QIIIHHIHH", 1, 0, 12346, 1, 0, 1, 16, 5, 5)).decode(),
        base64.b64encode(struct.pack("<QIIBHHHHH", 1, 0, 12347, 1, 0, 1, 1, 0, 0)).decode(),
        encode_positions(of([1, 2]))[:-4],
    ],
)
def test_broken_ones(text: str) -> None:
    with pytest.raises(CorruptFileError, match=r"log"):
        decoded(text, 2)
