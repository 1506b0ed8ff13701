from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.extract.date_patterns import DatePattern

SECONDS = int(dt.datetime(2026, 3, 4, 5, 6, 7, tzinfo=dt.timezone.utc).timestamp())


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss", "2026-03-04 05:06:07"),
        ("yyyy/M/d H.m.s", "2026/3/4 5.6.7"),
        ("yyyy'T'HH''mm", "2026T05'06"),
        ("'only text'", "only text"),
    ],
)
def test_patterns(pattern: str, text: str) -> None:
    found = DatePattern(pattern).format(pa.array([SECONDS, None], pa.int64()))
    assert found.to_pylist() == [text, None]


@pytest.mark.parametrize("pattern", ["", "yy", "yyyy-MMM", "E", "YYYY", "[yyyy]", "yyyy'", "z", "ddd"])
def test_patterns_that_are_not_read(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match="date pattern"):
        DatePattern(pattern)


def test_years_with_more_than_four_digits_have_a_sign() -> None:
    seconds = pa.array([253_402_300_800, -1], pa.int64())
    assert DatePattern("yyyy").format(seconds).to_pylist() == ["+10000", "1969"]
    with pytest.raises(UnsupportedError, match="before the year 1"):
        DatePattern("yyyy").format(pa.array([-70_000_000_000], pa.int64()))
