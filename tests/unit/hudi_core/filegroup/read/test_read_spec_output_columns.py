from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.config.table_config import DROP_PARTITION, TableConfig
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.filegroup.read.partition_values import PartitionColumns
from hudi_core.filegroup.read.read_spec import OutputColumns

SCHEMA: AvroSchema = {
    "type": "record",
    "name": "t",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "day", "type": ["null", "int"]},
        {"name": "x", "type": "int"},
    ],
}


def columns(
    *from_path: str, last: bool = False, as_text: frozenset[str] = frozenset(), schema: AvroSchema = SCHEMA, **more: str
) -> OutputColumns:
    config = TableConfig.of(
        {
            "hoodie.table.name": "t",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": "8",
            "hoodie.table.partition.fields": "day",
            "hoodie.populate.meta.fields": "false",
            **more,
        }
    )
    return OutputColumns(config, schema, PartitionColumns(from_path, as_text, False, last))


ROWS = pa.RecordBatch.from_pydict(
    {"id": ["a", "b"], "day": pa.array([1, None], pa.int32()), "x": pa.array([5, 6], pa.int32())}
)


def finished(output: OutputColumns, partition: str, *names: str) -> list[list[object]]:
    schema = output.select(names or None)
    stored = output.stored_of(schema.names)
    batch = output.finish(ROWS.select(stored.names), partition, schema, path="p")
    assert batch.schema == schema
    return [column.to_pylist() for column in batch.columns]


def test_values_come_from_rows_or_from_the_path() -> None:
    assert finished(columns(), "7") == [["a", "b"], [1, None], [5, 6]]
    assert finished(columns("day"), "7") == [["a", "b"], [7, 7], [5, 6]]
    assert finished(columns("day"), "7", "x", "day") == [[5, 6], [7, 7]]


def test_a_value_of_the_path_that_cannot_be_read_is_no_error_of_other_columns() -> None:
    assert finished(columns("day"), "seven", "id", "x") == [["a", "b"], [5, 6]]
    with pytest.raises(UnsupportedError, match="seven"):
        finished(columns("day"), "seven", "id", "day")


def test_columns_of_the_path_may_stand_behind_all_others() -> None:
    assert columns("day").all.names == ["id", "day", "x"]
    assert columns("day", last=True).all.names == ["id", "x", "day"]


def test_columns_that_are_shown_as_text() -> None:
    output = columns(as_text=frozenset({"day"}))
    assert output.all.field("day").type == pa.string()
    assert finished(output, "7", "day") == [["1", None]]


def test_a_dropped_column_that_the_schema_names_is_not_read_from_rows() -> None:
    """It keeps its type and its place (TableSchemaResolver.recreateSchemaWhenDropPartitionColumns)."""
    output = columns("day", **{DROP_PARTITION.name: "true"})
    assert output.stored.names == ["id", "x"]
    assert output.all.names == ["id", "day", "x"]
    assert finished(output, "7") == [["a", "b"], [7, 7], [5, 6]]
    assert finished(output, "") == [["a", "b"], [None, None], [5, 6]]


def test_a_partition_field_within_a_struct_is_no_column_of_hudi_1() -> None:
    schema = {**SCHEMA, "fields": [{"name": "m", "type": {**SCHEMA, "name": "m"}}]}
    nested = {"hoodie.table.partition.fields": "m.day"}
    assert columns("m.day", schema=schema, **nested).all.names == ["m"]
    assert columns("m.day", last=True, schema=schema, **nested).all.names == ["m", "m.day"]


def test_vectors_are_lists() -> None:
    kind = {"type": "fixed", "name": "v", "size": 8, "logicalType": "vector", "dimension": 2, "elementType": "FLOAT"}
    schema = {**SCHEMA, "fields": [{"name": "x", "type": "int"}, {"name": "v", "type": ["null", kind]}]}
    output = columns(schema=schema)
    assert output.stored.field("v").type == pa.binary()
    stored = pa.RecordBatch.from_pydict(
        {"x": pa.array([5, 6], pa.int32()), "v": pa.array([bytes.fromhex("0000f042000020c0"), None], pa.binary())}
    )
    batch = output.finish(stored, "7", output.select(["v"]), path="p")
    assert batch.column(0).to_pylist() == [[120.0, -2.5], None]
    assert batch.schema == output.select(["v"])


def test_a_column_that_the_table_lacks() -> None:
    with pytest.raises(ConfigError, match="no column 'y', 'z'") as caught:
        columns().select(["x", "y", "z"])
    assert caught.value.remedy == "the columns are id, day, x"
