from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest

from hudi_core.codec.columns import octets, unsliced, with_children

TEXTS = ["a", "", "bcd", None, "é"]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()], ids=str)
@pytest.mark.parametrize(("start", "length"), [(0, 5), (1, 3), (2, 0), (4, 1), (1, 1)])
def test_the_bytes_of_a_slice(kind: pa.DataType, start: int, length: int) -> None:
    array = pa.array(TEXTS, pa.string()).cast(kind).slice(start, length)
    offsets, data = octets(array)
    expected = [(text or "").encode() for text in TEXTS[start : start + length]]
    assert [data[first:last].tobytes() for first, last in pairwise(offsets)] == expected
    assert (int(offsets[0]), int(offsets[-1])) == (0, len(data))


@pytest.mark.parametrize("values", [[], [None, None], ["", ""]])
def test_no_bytes_at_all(values: list[str | None]) -> None:
    offsets, data = octets(pa.array(values, pa.string()))
    assert (offsets.tolist(), len(data)) == ([0] * (len(values) + 1), 0)


@pytest.mark.parametrize(
    ("values", "kind", "widened"),
    [
        ([[1], None, [2, 3]], pa.list_(pa.int32()), pa.large_list(pa.int64())),
        ([[1], None, [2, 3]], pa.large_list(pa.int32()), pa.list_(pa.int64())),
    ],
)
def test_a_list_over_other_values(values: list[object], kind: pa.DataType, widened: pa.DataType) -> None:
    array = unsliced(pa.array([[9], *values], kind).slice(1))
    assert array.offset == 0
    found = with_children(array, widened, [array.values.cast(pa.int64())])
    found.validate(full=True)
    assert (found.type, found.to_pylist()) == (widened, values)


def test_a_struct_over_other_values() -> None:
    array = pa.array([{"a": 1}, None, {"a": 3}])
    found = with_children(array, pa.struct([("b", pa.string())]), [pa.array(["x", "y", "z"])])
    assert found.to_pylist() == [{"b": "x"}, None, {"b": "z"}]
