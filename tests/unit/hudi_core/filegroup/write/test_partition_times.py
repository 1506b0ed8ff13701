"""Times as partition paths, each expected one as Hudi 0.15.0 and 1.2.0 make it; golden tables and tests/interop show
that they are the same.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from hudi_core.filegroup.write.partition_times import _READ, TimeFormat, strftime

PREFIX = "hoodie.keygen.timebased."


def of(**settings: str) -> TimeFormat:
    return TimeFormat.of({PREFIX + name.replace("_", "."): value for name, value in settings.items()}, path="T")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("UNIX_TIMESTAMP", 1_704_067_199, "2023/12/31-23"),
        ("EPOCHMILLISECONDS", 1_704_067_199_999, "2023/12/31-23"),
        ("EPOCHMICROSECONDS", -1, "1970/01/01-00"),
        ("EPOCHMICROSECONDS", -1001, "1969/12/31-23"),
        ("SCALAR", -1, "1969/12/31-23"),
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


@pytest.mark.parametrize(
    ("unit", "value", "expected"),
    [
        ("days", 19_723, "2024010100"),
        ("HOURS", 19_724 * 24 + 5, "2024010205"),
        ("MINUTES", -1, "1969123123"),
        ("SECONDS", 1_704_072_600, "2024010101"),
        ("MILLISECONDS", 1_704_072_600_999, "2024010101"),
        ("MICROSECONDS", -1, "1970010100"),
        ("NANOSECONDS", -1_000_000, "1969123123"),
    ],
)
def test_scalars_have_a_unit(unit: str, value: int, expected: str) -> None:
    form = of(timestamp_type="SCALAR", timestamp_scalar_time_unit=unit, output_dateformat="yyyyMMddHH", timezone="UTC")
    assert form.texts(pa.array([value]), path="T").to_pylist() == [expected]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("GMT+8:00", "2024-07-02 07"),
        ("GMT-0830", "2024-07-01 14"),
        ("GMT+800", "2024-07-02 07"),
        ("GMT+9", "2024-07-02 08"),
        ("GMT", "2024-07-01 23"),
        ("EST", "2024-07-01 19"),
    ],
)
def test_zones_are_those_of_java(zone: str, expected: str) -> None:
    form = of(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy-MM-dd HH", timezone=zone)
    assert form.texts(pa.array([1_719_874_800_000]), path="T").to_pylist() == [expected]


def test_hours_of_half_days() -> None:
    form = of(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyy-MM-dd hh")
    assert form.texts(pa.array([1_704_112_200, 1_704_067_200, 1_704_130_200]), path="T").to_pylist() == [
        "2024-01-01 12",
        "2024-01-01 12",
        "2024-01-01 05",
    ]
    form = of(timestamp_type="DATE_STRING", input_dateformat="yyyy-MM-dd hh:mm", output_dateformat="HHmm")
    assert form.texts(pa.array(["2024-01-01 12:30", "2024-01-01 1:30"]), path="T").to_pylist() == ["0030", "0130"]


WITH_OFFSETS = ["2024-01-01T01:30:00+0800", "2024-01-01T12:30:00Z", "2024-01-01T23:30:00-05:00"]
LOCAL = ["2024-01-01 01:30", "2024-1-2 3:4"]


@pytest.mark.parametrize(
    ("texts", "zones", "expected"),
    [
        (WITH_OFFSETS, {}, ["2024010101", "2024010112", "2024010123"]),
        (WITH_OFFSETS, {"input_timezone": "Asia/Tokyo"}, ["2024010102", "2024010121", "2024010213"]),
        (WITH_OFFSETS, {"output_timezone": "Asia/Tokyo"}, ["2024010102", "2024010121", "2024010213"]),
        (LOCAL, {}, ["2024010101", "2024010203"]),
        (LOCAL, {"input_timezone": "Asia/Tokyo"}, ["2024010101", "2024010203"]),
        (LOCAL, {"input_timezone": "Asia/Tokyo", "output_timezone": "GMT+5:30"}, ["2023123122", "2024010123"]),
    ],
)
def test_texts_are_in_the_zone_of_the_output_or_the_input_or_their_own(
    texts: list[str], zones: dict[str, str], expected: list[str]
) -> None:
    """Without both, a path has the time that the text has, whatever its offset."""
    given = "yyyy-MM-dd HH:mm" if texts is LOCAL else "yyyy-MM-dd'T'HH:mm:ssZ"
    form = of(timestamp_type="DATE_STRING", input_dateformat=given, output_dateformat="yyyyMMddHH", **zones)
    assert form.missing_zone is None
    assert form.texts(pa.array(texts), path="T").to_pylist() == expected


def test_texts_of_several_formats() -> None:
    form = of(
        timestamp_type="MIXED",
        input_dateformat="yyyy-MM-dd'T'HH:mm:ssZ, yyyy-MM-dd'T'HH:mm:ss.SSSZ ,yyyyMMdd",
        output_dateformat="yyyyMMdd'at'HHmmss",
        timezone="GMT",
    )
    times = pa.array(["2024-01-01T13:01:33Z", "2024-01-01T13:01:33.428Z", "20240102"])
    expected = ["20240101at130133", "20240101at130133", "20240102at000000"]
    assert form.texts(times, path="T").to_pylist() == expected
    for wrong in ("1 May", "0001-01-01T00:00:00+0100"):
        with pytest.raises(FormatError, match=rf"source\.parquet: '{re.escape(wrong)}' is no time"):
            form.texts(pa.array([wrong]), path="source.parquet")


def test_the_zone_of_the_writers_jvm_is_known_to_be_missing() -> None:
    numbers = {"timestamp_type": "UNIX_TIMESTAMP", "output_dateformat": "yyyy"}
    assert of(**numbers).missing_zone == PREFIX + "output.timezone"
    assert of(**numbers, input_timezone="UTC").missing_zone == PREFIX + "output.timezone"
    assert of(**numbers, timezone="UTC").missing_zone is None
    texts = {"timestamp_type": "DATE_STRING", "output_dateformat": "yyyy", "output_timezone": "UTC"}
    assert of(**texts, input_dateformat="yyyy").missing_zone == PREFIX + "input.timezone"
    assert of(**texts, input_dateformat="yyyyZ,yyyy").missing_zone == PREFIX + "input.timezone"
    assert of(**texts, input_dateformat="yyyyZ,yyyy-MM-ddZ").missing_zone is None
    assert of(**texts, input_dateformat="yyyy", input_timezone="Asia/Tokyo").missing_zone is None


def test_what_is_missing_or_wrong_is_named() -> None:
    with pytest.raises(ConfigError, match=r"does not record hoodie\.keygen\.timebased\.timestamp\.type"):
        of(output_dateformat="yyyy")
    with pytest.raises(ConfigError, match=r"output\.dateformat is not set"):
        of(timestamp_type="UNIX_TIMESTAMP")
    with pytest.raises(ConfigError, match=r"input\.dateformat is not set"):
        of(timestamp_type="DATE_STRING", output_dateformat="yyyy")
    for zone in ("Mars", "America", "/etc/passwd", "UTC+8", "+08:00", "GMT+24:00", "GMT+080"):
        with pytest.raises(ConfigError, match=f"{re.escape(repr(zone))} is no time zone"):
            of(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyy", timezone=zone)


@pytest.mark.parametrize("output", ["yyyy-ww", "yy", "yyyy Z", "EEE", "yyyy hh a", "yyyy SSS"])
def test_letters_that_are_not_written_alike_are_refused(output: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        of(timestamp_type="UNIX_TIMESTAMP", output_dateformat=output)
    assert caught.value.remedy == "overwrite the table with Hudi"


@pytest.mark.parametrize(
    ("given", "more", "error"),
    [
        ("MM-dd", {}, "MM-dd without a year"),
        ("yyyy,MM-dd", {}, "without a year"),
        ("yyyy SSSSSSSSS", {}, "the letters 'SSSSSSSSS'"),
        ("yyyy;yyyyMM", {"input_dateformat_list_delimiter_regex": ";"}, r"list\.delimiter\.regex=; makes"),
    ],
)
def test_formats_of_texts_that_are_not_read_alike_are_refused(given: str, more: dict[str, str], error: str) -> None:
    with pytest.raises(UnsupportedError, match=error):
        of(timestamp_type="DATE_STRING", output_dateformat="yyyy", input_dateformat=given, **more)


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (pa.array([1, None]), "1 rows have no value"),
        (pa.array([1.5]), "a partition column of type double"),
        (pa.array(["2024"]), "a partition column of type string"),
        (pa.array([10**12]), "after 9999"),
        (pa.array([2**63 - 1]), "after 9999"),
        (pa.array([0], pa.timestamp("us")), "a partition column of type timestamp"),
    ],
)
def test_values_without_an_exact_path_are_refused(column: pa.Array, error: str) -> None:
    with pytest.raises(FormatError, match=error):
        of(timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyy").texts(column, path="T")


def test_quotes_and_percent_signs_stay_what_they_are() -> None:
    assert strftime("yyyy'year'%MM''dd", _READ, path="T") == "%Yyear%%%m'%d"
