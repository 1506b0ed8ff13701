"""What makes a service due, as texts."""

from __future__ import annotations

import pytest

from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.request.services import Conditions
from hudi_core.request.texts import bytes_of, ratio_of, seconds_of, whole_number_of


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("6 h", 21_600), (" 2d ", 172_800)])
def test_durations(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("1048576", 1 << 20), ("10GiB", 10 << 30), ("500 MB", 500_000_000), ("1KiB", 1024)]
)
def test_sizes(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "5", "-1s", "1.5h", "h", "1w", "9" * 12 + "s"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        seconds_of(text)


@pytest.mark.parametrize("text", ["", "-1", "1.5GiB", "GiB", "10 PB", "1e9", "9" * 16])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        bytes_of(text)


@pytest.mark.parametrize("text", ["0", "-1", "1.0", "", "1" * 10])
def test_no_whole_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="is no whole number"):
        whole_number_of(text)


@pytest.mark.parametrize("text", ["0", "-0.3", "", "nan", "inf", "1e3", "0.0"])
def test_no_ratios(text: str) -> None:
    with pytest.raises(ValueError, match="is no number above 0"):
        ratio_of(text)


def test_conditions_of_a_service() -> None:
    given = {"commits": "5", "age": "1h", "bytes": "1MiB", "log_ratio": "0.5"}
    assert Conditions.of("compaction", given) == Conditions(5, 3600, 1 << 20, 0.5)
    assert Conditions.of("clustering", {"small_files": "3"}) == Conditions(small_files=3)
    assert Conditions.of("archive", {}) == Conditions()
    assert [Conditions(commits=1).needs_files, Conditions(size=1).needs_files] == [False, True]


@pytest.mark.parametrize(
    ("service", "given", "message"),
    [
        ("clean", {"log_ratio": "1"}, "clean has no condition 'log_ratio'"),
        ("archive", {"commits": "1"}, "the service decides by itself"),
        ("clustering", {"age": "0s"}, "age of clustering: '0s' is not above 0"),
        ("clustering", {"bytes": "0"}, "bytes of clustering: '0' is not above 0"),
        ("compaction", {"commits": "many"}, "commits of compaction: 'many' is no whole number"),
    ],
)
def test_other_conditions_are_refused(service: str, given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Conditions.of(service, given)


def test_a_service_that_does_not_exist() -> None:
    with pytest.raises(UnsupportedError, match="none_such"):
        Conditions.of("none_such", {})
