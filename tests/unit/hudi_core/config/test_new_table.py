"""What a new table is told by fields and by options of writers, and what means nothing."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_core.config.new_table import NewTable, key_generator_class, key_generator_type
from hudi_core.errors import ConfigError, UnsupportedError

WRITE = "hoodie.datasource.write."
FIELDS: dict[str, Any] = {
    "table_name": "trips",
    "table_type": "mor",
    "table_version": 9,
    "record_key": ("id",),
    "partition_by": ("day",),
    "ordering": ("ts",),
    "merge_mode": "COMMIT_TIME_ORDERING",
    "hive_style": True,
    "key_generator": "COMPLEX",
}
OPTIONS = {
    "hoodie.table.name": "trips",
    f"{WRITE}table.type": "MERGE_ON_READ",
    "hoodie.write.table.version": "9",
    f"{WRITE}recordkey.field": "id",
    f"{WRITE}partitionpath.field": "day",
    f"{WRITE}precombine.field": "ts",
    "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
    f"{WRITE}hive_style_partitioning": "true",
    f"{WRITE}keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
}
"""The same table by the options of a writer."""
LEAST: dict[str, Any] = {"table_name": "trips", "table_version": 8, "record_key": ("id",)}


def test_fields_and_options_say_the_same() -> None:
    by_fields = NewTable.of(FIELDS, {})
    assert by_fields.table_type == "MERGE_ON_READ"
    assert NewTable.of({}, OPTIONS) == by_fields
    assert NewTable.of(FIELDS, OPTIONS) == by_fields
    half = {name: FIELDS[name] for name in ("table_name", "ordering", "hive_style")}
    others = {name: text for name, text in OPTIONS.items() if name not in ("hoodie.table.name",)}
    assert NewTable.of(half, others) == by_fields


def test_the_least_makes_a_copy_on_write_table_without_partitions() -> None:
    table = NewTable.of(LEAST, {"hoodie.parquet.small.file.limit": "0"})
    assert (table.table_type, table.key_generator, table.merge_mode) == ("COPY_ON_WRITE", "NON_PARTITION", "")
    assert not table.is_merge_on_read


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "NON_PARTITION"),
        ({"record_key": ("id", "sub")}, "NON_PARTITION"),
        ({"partition_by": ("day",)}, "SIMPLE"),
        ({"partition_by": ("day",), "record_key": ("id", "sub")}, "COMPLEX"),
        ({"partition_by": ("day", "city")}, "COMPLEX"),
        ({"partition_by": ("day:TIMESTAMP", "city:SIMPLE")}, "CUSTOM"),
        ({"partition_by": ("day",), "key_generator": "timestamp"}, "TIMESTAMP"),
    ],
)
def test_the_key_generator_is_that_of_hudi(given: dict[str, Any], expected: str) -> None:
    table = NewTable.of({**LEAST, **given}, {})
    assert table.key_generator == expected
    assert not any(":" in column for column in table.partition_columns)


@pytest.mark.parametrize("name", ["SIMPLE", "COMPLEX", "NON_PARTITION", "TIMESTAMP", "CUSTOM"])
def test_a_key_generator_is_named_by_type_and_by_class(name: str) -> None:
    of_class = key_generator_class(name)
    texts = [name, name.lower(), f"{name}_AVRO", of_class, of_class.rsplit(".", 1)[-1]]
    texts.append(of_class.replace("KeyGenerator", "AvroKeyGenerator"))
    assert {key_generator_type(text) for text in texts} == {name}


@pytest.mark.parametrize("text", ["GLOBAL_DELETE", "com.acme.SimpleKeyGenerator", "x"])
def test_another_key_generator_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match="key_generator is"):
        NewTable.of({**LEAST, "key_generator": text}, {})


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ({"table_name": ""}, {}, "the new table has no name"),
        ({"table_name": " trips"}, {}, "' trips' is no name of a table"),
        ({"table_name": "a/b"}, {}, "is no name of a table"),
        ({"table_name": "a\nb"}, {}, "is no name of a table"),
        ({"table_version": 0}, {}, "the new table has no version"),
        ({"table_version": 7}, {}, "table_version is 7: not one of 6, 8, 9"),
        ({"table_type": "copy"}, {}, "table_type is 'copy': not one of"),
        ({"record_key": ()}, {}, "the new table has no record key"),
        ({"record_key": ("id", "id")}, {}, "record_key is 'id,id'"),
        ({"ordering": ("ts", " ")}, {}, "ordering is"),
        ({"partition_by": ("a:SIMPLE", "a:TIMESTAMP")}, {}, "partition_by is 'a,a'"),
        ({"ordering": ("ts", "seq")}, {}, "a table of version 8 has one ordering column, not ts, seq"),
        ({"merge_mode": "EVENT_TIME_ORDERING"}, {}, "EVENT_TIME_ORDERING needs an ordering column"),
        ({"merge_mode": "CUSTOM"}, {}, "merge_mode is 'CUSTOM': not one of"),
        ({"partition_by": ("a", "b"), "key_generator": "CUSTOM"}, {}, "needs a type of each column"),
        ({"partition_by": ("a:DATE",)}, {}, "needs a type of each column"),
        ({"partition_by": ("a:SIMPLE",), "key_generator": "SIMPLE"}, {}, "only the key generator CUSTOM takes types"),
        ({"key_generator": "SIMPLE"}, {}, "the key generator SIMPLE with the partition columns none"),
        ({"partition_by": ("a",), "key_generator": "NON_PARTITION"}, {}, "NON_PARTITION with the partition columns a"),
        ({"partition_by": ("a", "b"), "key_generator": "SIMPLE"}, {}, "takes one column of the record key and one of"),
        (
            {"partition_by": ("a",), "record_key": ("id", "sub"), "key_generator": "TIMESTAMP"},
            {},
            "TIMESTAMP takes one column of the record key",
        ),
        ({}, {"hoodie.table.name": "other"}, "table_name is 'trips', and the option hoodie.table.name is 'other'"),
        ({}, {f"{WRITE}recordkey.field": "id,sub"}, "record_key is 'id', and the option"),
        ({}, {"hoodie.write.table.version": "9"}, "table_version is .8., and the option"),
        ({"hive_style": True}, {f"{WRITE}hive_style_partitioning": "false"}, "hive_style is 'True', and the option"),
        (
            {},
            {f"{WRITE}precombine.field": "a", "hoodie.table.ordering.fields": "b"},
            "contradict each other",
        ),
        ({}, {f"{WRITE}table.type": "COPY"}, "hoodie.datasource.write.table.type is 'COPY'"),
        ({}, {"hoodie.table.metadata.partitions": "files"}, "is no option of a new table"),
        ({}, {"hoodie.table.create.schema": "{}"}, "is no option of a new table"),
        ({}, {"hoodie.table.checksum": "1"}, "is no option of a new table"),
    ],
)
def test_what_means_nothing_is_refused(given: dict[str, Any], options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        NewTable.of({**LEAST, **given}, options)


def test_types_of_partition_columns_are_in_upper_case() -> None:
    expected = ("day:TIMESTAMP", "city:SIMPLE")
    assert NewTable.of({**LEAST, "partition_by": ("day:timestamp", "city: Simple")}, {}).partition_by == expected
    options = {f"{WRITE}partitionpath.field": "day:timestamp, city:simple"}
    assert NewTable.of(LEAST, options).partition_by == expected
    assert NewTable.of({**LEAST, "partition_by": expected}, options).partition_by == expected


def test_an_empty_option_says_nothing() -> None:
    assert NewTable.of(LEAST, {f"{WRITE}partitionpath.field": "", f"{WRITE}precombine.field": " "}) == NewTable.of(
        LEAST, {}
    )


def test_version_9_has_several_ordering_columns() -> None:
    assert NewTable.of({**LEAST, "table_version": 9, "ordering": ("ts", "seq")}, {}).ordering == ("ts", "seq")


PAYLOAD = "org.apache.hudi.common.model."


@pytest.mark.parametrize("name", [f"{WRITE}payload.class", "hoodie.compaction.payload.class"])
def test_a_payload_class_says_how_rows_are_merged(name: str) -> None:
    ordered = {**LEAST, "ordering": ("ts",)}
    partial = {name: f"{PAYLOAD}PartialUpdateAvroPayload"}
    modes = {version: NewTable.of({**ordered, "table_version": version}, partial).payload_mode for version in (8, 9)}
    assert modes == {8: "CUSTOM", 9: "EVENT_TIME_ORDERING"}
    assert NewTable.of(LEAST, {name: f"{PAYLOAD}OverwriteWithLatestAvroPayload"}).payload_mode == "COMMIT_TIME_ORDERING"
    for payload in (f"{PAYLOAD}debezium.PostgresDebeziumAvroPayload", "com.acme.Payload"):
        with pytest.raises(UnsupportedError, match=name):
            NewTable.of(ordered, {name: payload})
    with pytest.raises(ConfigError, match="has not the merge mode COMMIT_TIME_ORDERING"):
        NewTable.of({**ordered, "merge_mode": "COMMIT_TIME_ORDERING"}, partial)
    with pytest.raises(ConfigError, match="ordering column"):
        NewTable.of(LEAST, partial)
