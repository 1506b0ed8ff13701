"""Timestamps in partition paths: which form a table's partitions show, and local time as Spark SQL writes it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest

from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from hudi_core.filegroup.write.partition_times import SqlTimes
from tests.support.table_configs import config_of

ONE, TWO = "dt=2024-01-01 00%3A00%3A00", "dt=2024-01-02 10%3A20%3A30"
NUMBERS = ["dt=1704067200000000", "dt=-1"]
NONE = "dt=__HIVE_DEFAULT_PARTITION__"
MICROS = pa.timestamp("us", "UTC")


def of(
    known: list[str], kind: pa.DataType | None = MICROS, fields: str = "dt", zone: str | None = None
) -> SqlTimes | None:
    columns = pa.schema([] if kind is None else [("dt", kind)]).append(pa.field("a", pa.string()))
    options = {} if zone is None else {"airflow_hudi.read.zone": zone}
    config = config_of({"hoodie.table.partition.fields": fields})
    return SqlTimes.of(config, options, columns, fields.split(","), known)


def test_the_partitions_show_the_form() -> None:
    utc = SqlTimes("UTC", False)
    assert of([ONE, TWO, NONE]) == utc
    assert of([part.removeprefix("dt=") for part in (ONE, TWO)]) == utc
    assert of([*NUMBERS, NONE]) is None
    assert of([f"a=x/{ONE}", f"a=y/{NONE}"], fields="a,dt") == utc
    assert of([f"a=x/{NUMBERS[0]}", f"a=x/y/{NUMBERS[0]}"], fields="a,dt") is None


def test_other_columns_have_no_form() -> None:
    assert of([ONE], pa.string()) is None
    assert of([], pa.string()) is None
    assert of([ONE, *NUMBERS], pa.date32()) is None


def test_a_column_that_rows_lack_goes_by_its_partitions() -> None:
    assert of([ONE], None) == SqlTimes("UTC", False)
    assert of([ONE, "dt=x"], None) is None
    assert of([], None) is None


@pytest.mark.parametrize("known", [[], [NONE], [f"a=x/{ONE}"]])
def test_a_table_whose_partitions_show_nothing_is_refused(known: list[str]) -> None:
    with pytest.raises(UnsupportedError, match="no partition shows which") as caught:
        of(known, fields="dt" if not known or known == [NONE] else "a,b,dt")
    assert "first partition" in str(caught.value.remedy)


@pytest.mark.parametrize("known", [[ONE, *NUMBERS], ["dt=2024-01-01 00:00:00.0"], ["dt=2024-01-01"]])
def test_other_forms_are_refused(known: list[str]) -> None:
    with pytest.raises(UnsupportedError, match="partitions show both, or neither"):
        of(known)


@pytest.mark.parametrize("kind", [pa.timestamp("ms", "UTC"), pa.timestamp("us")])
def test_local_time_of_other_timestamps_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="local time of the column 'dt'"):
        of([ONE], kind)
    assert of(NUMBERS, kind) is None


def test_the_zone_is_that_of_queries() -> None:
    assert of([ONE], zone="Europe/Berlin") == SqlTimes("Europe/Berlin", True)
    assert of([ONE], zone="UTC+02:00") == SqlTimes("+02:00", True)
    assert of([ONE], zone="Z") == SqlTimes("UTC", True)
    with pytest.raises(ConfigError, match="no time zone"):
        of([ONE], zone="Mars")


def test_times_are_cut_to_seconds_as_java_does() -> None:
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    micros = [1_704_190_830_500_000, None, 0, -1, -1_000, -999_500]
    column = pa.array([None if at is None else epoch + timedelta(microseconds=at) for at in micros], MICROS)
    assert SqlTimes("UTC", True).texts(column, path="T").to_pylist() == [
        "2024-01-02 10%3A20%3A30",
        "__HIVE_DEFAULT_PARTITION__",
        "1970-01-01 00%3A00%3A00",
        "1970-01-01 00%3A00%3A00",
        "1969-12-31 23%3A59%3A59",
        "1969-12-31 23%3A59%3A59",
    ]
    assert SqlTimes("Europe/Berlin", True).texts(column, path="T")[0].as_py() == "2024-01-02 11%3A20%3A30"
    assert SqlTimes("-03:30", True).texts(column, path="T")[0].as_py() == "2024-01-02 06%3A50%3A30"
    with pytest.raises(FormatError, match="year 1"):
        SqlTimes("UTC", True).texts(pa.array([-(10**17)], pa.int64()).cast(MICROS), path="T")
