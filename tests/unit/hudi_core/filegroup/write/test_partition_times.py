"""Times as partition paths; golden tables show that real Hudi's are the same (tests/golden/test_overwrites.py)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from hudi_core.filegroup.write.partition_times import TimeFormat, strftime

PREFIX = "hoodie.keygen.timebased."


def of(**settings: str) -> TimeFormat:
    return TimeFormat.of({PREFIX + name.replace("_", "."): value for name, value in settings.items()}, path="T")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("UNIX_TIMESTAMP", 1_704_067_199, "2023/12/31-23"),
        ("EPOCHMILLISECONDS", 1_704_067_199_999, "2023/12/31-23"),
        ("EPOCHMICROSECONDS", -1, "1969/12/31-23"),
    ],
)
def test_numbers_are_counted_from_1970(kind: str, value: int, expected: str) -> None:
    form = of(timestamp_type=kind, output_dateformat="yyyy/MM/dd-HH")
    assert form.texts(pa.array([value]), path="T").to_pylist() == [expected]


def test_the_path_is_in_the_zone_of_the_output() -> None:
    form = of(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyyMMdd", output_timezone="Asia/Tokyo")
    assert form.texts(pa.array([1_704_067_199]), path="T").to_pylist() == ["20240101"]
    form = of(
        timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyyMMdd", timezone="UTC", output_timezone="Asia/Tokyo"
    )
    assert form.texts(pa.array([1_704_067_199]), path="T").to_pylist() == ["20231231"]


def test_texts_are_read_by_the_format_of_the_input() -> None:
    form = of(
        timestamp_type="DATE_STRING",
        input_dateformat="yyyy-MM-dd'T'HH:mm:ssZ",
        output_dateformat="yyyyMMdd'at'HH",
    )
    times = pa.array(["2024-01-01T00:30:00+0100", "2024-01-01T00:30:00+0000"])
    assert form.texts(times, path="T").to_pylist() == ["20231231at23", "20240101at00"]
    plain = of(
        timestamp_type="MIXED", input_dateformat="yyyy-MM-dd", input_timezone="Asia/Tokyo", output_dateformat="yyyyMMdd"
    )
    assert plain.texts(pa.array(["2024-01-01"]), path="T").to_pylist() == ["20231231"]
    with pytest.raises(FormatError, match=r"source\.parquet: '1 May' is no time"):
        form.texts(pa.array(["1 May"]), path="source.parquet")


def test_what_is_missing_or_wrong_is_named() -> None:
    with pytest.raises(ConfigError, match=r"does not record hoodie\.keygen\.timebased\.timestamp\.type"):
        of(output_dateformat="yyyy")
    with pytest.raises(ConfigError, match=r"output\.dateformat is not set"):
        of(timestamp_type="UNIX_TIMESTAMP")
    with pytest.raises(ConfigError, match=r"input\.dateformat is not set"):
        of(timestamp_type="DATE_STRING", output_dateformat="yyyy")
    for zone in ("Mars", "America", "/etc/passwd"):
        with pytest.raises(ConfigError, match=f"'{zone}' is no time zone"):
            of(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyy", timezone=zone)


@pytest.mark.parametrize("output", ["yyyy-ww", "yy", "yyyy Z", "EEE"])
def test_letters_that_are_not_written_alike_are_refused(output: str) -> None:
    with pytest.raises(UnsupportedError):
        of(timestamp_type="UNIX_TIMESTAMP", output_dateformat=output)
    with pytest.raises(UnsupportedError, match="SCALAR"):
        of(timestamp_type="SCALAR", output_dateformat="yyyy")


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (pa.array([1, None]), "1 rows have no value"),
        (pa.array([1.5]), "a partition column of type double"),
        (pa.array(["2024"]), "a partition column of type string"),
        (pa.array([10**12]), "after 9999"),
    ],
)
def test_values_without_an_exact_path_are_refused(column: pa.Array, error: str) -> None:
    with pytest.raises(FormatError, match=error):
        of(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyy").texts(column, path="T")


def test_quotes_and_percent_signs_stay_what_they_are() -> None:
    assert strftime("yyyy'year'%MM''dd", path="T") == "%Yyear%%%m'%d"
