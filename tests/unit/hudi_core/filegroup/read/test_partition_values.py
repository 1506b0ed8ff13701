from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.filegroup.merge.table_policy import reads_as_hudi_1
from hudi_core.filegroup.read.partition_values import as_text, partition_columns, path_values
from hudi_core.filegroup.read.read_spec import OutputColumns

SIMPLE = {"hoodie.table.partition.fields": "day"}
TIMESTAMP_CLASS = {**SIMPLE, "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator"}
TIMESTAMP_TYPE = {**SIMPLE, "hoodie.table.keygenerator.type": "TIMESTAMP"}
CUSTOM = {"hoodie.table.partition.fields": "country:SIMPLE,day:TIMESTAMP", "hoodie.table.keygenerator.type": "CUSTOM"}
CUSTOM_UNTYPED = {"hoodie.table.partition.fields": "country,day", "hoodie.table.keygenerator.type": "CUSTOM"}
DROPPED = {**SIMPLE, "hoodie.datasource.write.drop.partition.columns": "true"}
ORDERED = {**SIMPLE, "hoodie.table.precombine.field": "day"}
SCHEMA = {
    "type": "record",
    "name": "t",
    "fields": [
        {"name": name, "type": ["null", kind]}
        for name, kind in (("id", "string"), ("day", "long"), ("country", "string"), ("x", "int"))
    ],
}


def config(version: int, more: dict[str, str]) -> TableConfig:
    """A table of the version with these properties."""
    return TableConfig.of(
        {"hoodie.table.name": "t", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": str(version), **more}
    )


def test_the_release_that_reads_the_table() -> None:
    assert not reads_as_hudi_1(config(6, SIMPLE))
    assert reads_as_hudi_1(config(6, {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"})), "1.x keeps it"
    assert reads_as_hudi_1(config(8, SIMPLE))
    assert reads_as_hudi_1(config(9, SIMPLE))


@pytest.mark.parametrize(
    ("more", "merged", "incremental", "from_path"),
    [
        (SIMPLE, False, False, ("day",)),
        (SIMPLE, True, False, ()),
        (SIMPLE, False, True, ()),
        (DROPPED, True, False, ("day",)),
        (TIMESTAMP_CLASS, False, False, ("day",)),
    ],
)
def test_hudi_0_15_takes_values_from_the_path_where_it_does_not_merge(
    more: dict[str, str], merged: bool, incremental: bool, from_path: tuple[str, ...]
) -> None:
    rule = partition_columns(config(6, more), merged=merged, incremental=incremental)
    assert rule.from_path == from_path
    assert rule.last


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize(
    ("more", "from_path", "as_text"),
    [
        (SIMPLE, ("day",), set()),
        (TIMESTAMP_TYPE, (), {"day"}),
        (TIMESTAMP_CLASS, (), {"day"}),
        (CUSTOM, ("country",), set()),
        (CUSTOM_UNTYPED, (), set()),
        (DROPPED, ("day",), set()),
        (ORDERED, (), set()),
    ],
)
def test_hudi_1_takes_values_from_the_path_where_it_determines_them(
    more: dict[str, str], from_path: tuple[str, ...], as_text: set[str], merged: bool
) -> None:
    rule = partition_columns(config(8, more), merged=merged, incremental=False)
    assert (rule.from_path, rule.as_text) == (from_path, as_text)
    assert not rule.last


def columns(version: int, more: dict[str, str]) -> OutputColumns:
    """The columns of a query of base files alone."""
    made = config(version, {**more, "hoodie.populate.meta.fields": "false"})
    return OutputColumns(made, SCHEMA, partition_columns(made, merged=False, incremental=False))


def test_order_and_types_of_columns() -> None:
    assert columns(6, SIMPLE).all.names == ["id", "country", "x", "day"], "behind the others, as Spark puts them"
    assert columns(8, SIMPLE).all.names == ["id", "day", "country", "x"]
    assert columns(8, SIMPLE).all.field("day").type == pa.int64()
    assert columns(6, TIMESTAMP_CLASS).all.field("day").type == pa.string(), "the path's text"
    assert columns(8, TIMESTAMP_TYPE).all.field("day").type == pa.string(), "the stored value as text"
    assert columns(8, {"hoodie.table.partition.fields": "gone"}).all.field("gone").type == pa.string(), (
        "a column that rows lack"
    )


def test_stored_rows_become_columns() -> None:
    batch = pa.record_batch(
        [pa.array(["1", "2"]), pa.array([5, 6]), pa.array(["stored", "stored"])], ["id", "day", "country"]
    )
    found = columns(8, {"hoodie.table.partition.fields": "country"})
    rows = found.finish(batch, "country=a%2Fb", found.select(["country", "day"]), path="f")
    assert rows.to_pylist() == [{"country": "a/b", "day": 5}, {"country": "a/b", "day": 6}]
    text = columns(8, TIMESTAMP_TYPE)
    assert text.finish(batch, "2024/01", text.select(["day"]), path="f").to_pylist() == [{"day": "5"}, {"day": "6"}]


def test_a_dropped_column_is_null_where_the_path_has_no_value() -> None:
    found = columns(
        8, {"hoodie.table.partition.fields": "a,b", "hoodie.datasource.write.drop.partition.columns": "true"}
    )
    batch = pa.record_batch([pa.array(["1"])], ["id"])
    assert found.finish(batch, "only-one-level", found.select(["a", "id"]), path="f").to_pylist() == [
        {"a": None, "id": "1"}
    ]


COUNTRY, DAY = pa.field("country", pa.string()), pa.field("day", pa.int64())


def values(
    partition: str, names: list[str], columns: list[pa.Field], zone: str | None = None, **more: str
) -> dict[str, object]:
    """The values of a path in Python."""
    made = config(9, {"hoodie.table.partition.fields": ",".join(names), **more})
    return {name: value.as_py() for name, value in path_values(partition, made, columns, zone=zone).items()}


def test_values_are_typed_unescaped_and_stripped_of_their_name() -> None:
    both = ["country", "day"]
    assert values("a%2Fb/20240101", both, [COUNTRY, DAY]) == {"country": "a/b", "day": 20240101}
    assert values("country=é%3A/day=7", both, [COUNTRY, DAY]) == {"country": "é:", "day": 7}
    assert values("2024/01/02", ["country"], [COUNTRY]) == {"country": "2024/01/02"}, "one column takes the whole path"
    assert values("x/7", both, [DAY]) == {"day": 7}, "a column that is read from rows still takes up its level"


@pytest.mark.parametrize(
    ("path", "value"),
    [("50%AB", "50«"), ("%C3%A9", "Ã©"), ("ü%fC", "üü"), ("100%25%", "100%%"), ("%G0", "%G0"), ("a\\b\n", "a\\b\n")],
)
def test_each_escape_is_a_character_as_in_spark(path: str, value: str) -> None:
    """tests/interop/test_partition_values.py asks real Hudi."""
    assert values(path, ["country"], [COUNTRY]) == {"country": value}


def test_default_partition_is_null() -> None:
    found = values("country=__HIVE_DEFAULT_PARTITION__/__HIVE_DEFAULT_PARTITION__", ["country", "day"], [COUNTRY, DAY])
    assert found == {"country": None, "day": None}


@pytest.mark.parametrize("partition", ["", "a", "a/b/c"])
def test_a_path_of_another_depth_has_no_values(partition: str) -> None:
    assert values(partition, ["country", "day"], [COUNTRY, DAY]) == {}


def test_value_of_another_type_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="day=x"):
        values("a/day=x", ["country", "day"], [COUNTRY, DAY])


AT = pa.field("at", pa.timestamp("us", "UTC"))
NINE = dt.datetime(2021, 5, 20, 9, tzinfo=dt.timezone.utc)


@pytest.mark.parametrize(
    ("partition", "zone", "value"),
    [
        ("at=2021-05-20 09%3A00%3A00", None, NINE),
        ("2021-05-20 09:00:00.0", "UTC", NINE),
        ("at=2021-05-20 11%3A00%3A00", "Europe/Berlin", NINE),
        ("at=2021-05-20 09%3A00%3A00Z", "Europe/Berlin", NINE),
        ("2021-05-20", None, NINE.replace(hour=0)),
        ("1621501200000000", None, None),
        ("at=soon", None, None),
        ("at=__HIVE_DEFAULT_PARTITION__", None, None),
    ],
)
def test_timestamps_are_local_time_and_null_where_spark_s_cast_gives_null(
    partition: str, zone: str | None, value: dt.datetime | None
) -> None:
    """As SqlKeyGenerator writes them, and as writers of DataFrames do: microseconds, which Spark does not cast."""
    assert values(partition, ["at"], [AT], zone) == {"at": value}


def test_a_zone_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="Nowhere"):
        values("2021-05-20 09:00:00", ["at"], [AT], "Nowhere")


SLASHED = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}


def test_slashes_of_dates_are_dashes_of_their_values() -> None:
    """As TestSlashSeparatedPartitionValue of Hudi 1.2 expects of texts."""
    text, date = pa.field("d", pa.string()), pa.field("d", pa.date32())
    assert values("2026/01/05", ["d"], [text], **SLASHED) == {"d": "2026-01-05"}
    assert values("2026/01/05", ["d"], [date], **SLASHED) == {"d": dt.date(2026, 1, 5)}
    assert values("a%2Fb", ["d"], [text], **SLASHED) == {"d": "a/b"}, "written before the dashes were replaced"
    assert values("2026/01/05", ["d"], [text]) == {"d": "2026/01/05"}
    assert values("x-y/7", ["country", "day"], [COUNTRY, DAY], **SLASHED) == {"country": "x-y", "day": 7}


def test_stored_values_as_text() -> None:
    assert as_text(pa.array([1704067200000, None]), path="f").to_pylist() == ["1704067200000", None]
    with pytest.raises(UnsupportedError, match="struct"):
        as_text(pa.array([{"a": 1}]), path="f")
