from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.filegroup.read.output_columns import OutputColumns
from hudi_core.filegroup.read.reading_rules import partition_columns, reads_as_hudi_1

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


def test_who_reads_the_table() -> None:
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
def test_hudi_1_takes_values_from_the_path_where_it_tells_them(
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


def test_a_dropped_column_is_null_where_the_path_says_nothing() -> None:
    found = columns(
        8, {"hoodie.table.partition.fields": "a,b", "hoodie.datasource.write.drop.partition.columns": "true"}
    )
    batch = pa.record_batch([pa.array(["1"])], ["id"])
    assert found.finish(batch, "only-one-level", found.select(["a", "id"]), path="f").to_pylist() == [
        {"a": None, "id": "1"}
    ]
