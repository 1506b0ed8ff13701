from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from hudi_core.errors import UnsupportedError
from hudi_core.expr.wall_time import WallTime
from hudi_core.metadata_table.extract.expressions import DatePattern

SECONDS = int(dt.datetime(2026, 3, 4, 5, 6, 7, tzinfo=dt.timezone.utc).timestamp())


def formatted(pattern: str, *seconds: int | None) -> list[str | None]:
    times = WallTime.of_unix_seconds(pa.array(seconds, pa.int64()), "UTC")
    texts: list[str | None] = DatePattern(pattern).format(times).to_pylist()
    return texts


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
    assert formatted(pattern, SECONDS, None) == [text, None]


@pytest.mark.parametrize("pattern", ["", "yy", "yyyy-MMM", "E", "YYYY", "[yyyy]", "yyyy'", "z", "ddd"])
def test_patterns_that_are_not_read(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match="date pattern"):
        DatePattern(pattern)


def test_years_with_more_than_four_digits_have_a_sign() -> None:
    assert formatted("yyyy", 253_402_300_800, -1) == ["+10000", "1969"]
    with pytest.raises(UnsupportedError, match="before the year 1"):
        formatted("yyyy", -70_000_000_000)
