"""The properties of a new table are those that real Hudi wrote into the golden tables by the same options."""

from __future__ import annotations

import json
import zipfile
from typing import Any

import pytest

from hudi_core.config.new_table import NewTable
from hudi_core.config.properties import parse_properties
from hudi_core.config.table_config import CREATE_SCHEMA, TableConfig
from hudi_core.errors import ConfigError, CorruptFileError, UnsupportedError
from hudi_core.services.create.properties import differences, new_properties
from tests.support.golden_data import golden_cases, golden_root

VERSIONS = {"6": 6, "8": 8, "9": 9}
LATER = {
    "hoodie.table.metadata.partitions",
    "hoodie.table.metadata.partitions.inflight",
    "hoodie.table.index.defs.path",
}
"""What the metadata table adds."""
SCHEMA = {"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": [{"name": "id", "type": "string"}]}
LEAST: dict[str, Any] = {"table_name": "t", "table_version": 9, "record_key": ("id",)}


def stored(version: str, name: str) -> dict[str, str]:
    with zipfile.ZipFile(golden_root() / version / f"{name}.zip") as zipped:
        data = zipped.read(f"{name}/.hoodie/hoodie.properties")
    return parse_properties(data, path=name)


def options_of(version: str, name: str) -> dict[str, str]:
    case = json.loads((golden_root() / version / f"{name}.expected" / "case.json").read_text())
    return {**case["write_options"], "hoodie.write.table.version": version}


def by_options(options: dict[str, str]) -> dict[str, str]:
    return new_properties(NewTable.of({}, options), options, SCHEMA)


@pytest.mark.parametrize("version", VERSIONS)
def test_they_are_those_of_every_golden_table(version: str) -> None:
    """Of those that Spark's data source made. Spark SQL records a database."""
    compared = 0
    for name in golden_cases(version):
        theirs = stored(version, name)
        options = options_of(version, name)
        if "hoodie.table.name" not in options or theirs.get("hoodie.database.name") == "default":
            continue
        ours = by_options(options)
        schema = {CREATE_SCHEMA: json.dumps(SCHEMA, separators=(",", ":"))}
        assert ours == schema | {key: text for key, text in theirs.items() if key not in LATER}, name
        assert differences(theirs, ours) == [], name
        compared += 1
    assert compared > 60


@pytest.mark.parametrize("version", VERSIONS)
def test_a_reader_takes_them(version: str) -> None:
    table = NewTable.of({**LEAST, "table_version": VERSIONS[version]}, {})
    config = TableConfig.of(new_properties(table, {}, SCHEMA), any_version=False)
    assert (config.version, config.record_key_fields, config.partition_fields) == (VERSIONS[version], ("id",), ())
    assert json.loads(config.create_schema or "") == SCHEMA


def test_version_6_merges_by_event_time_where_it_is_told_to() -> None:
    """Hudi 0.15 records no payload class of a copy-on-write table, but obeys one."""
    given = {**LEAST, "table_version": 6, "ordering": ("ts",)}

    def payload(**more: str) -> str | None:
        return new_properties(NewTable.of({**given, **more}, {}), {}, SCHEMA).get("hoodie.compaction.payload.class")

    package = "org.apache.hudi.common.model."
    assert payload() is None
    assert payload(merge_mode="COMMIT_TIME_ORDERING") is None
    assert payload(merge_mode="EVENT_TIME_ORDERING") == f"{package}DefaultHoodieRecordPayload"
    assert payload(table_type="mor") == f"{package}OverwriteWithLatestAvroPayload"
    assert payload(table_type="mor", merge_mode="EVENT_TIME_ORDERING") == f"{package}DefaultHoodieRecordPayload"


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ({"hoodie.database.name": "sales"}, "hoodie.database.name", "sales"),
        ({"hoodie.table.timeline.timezone": "utc"}, "hoodie.table.timeline.timezone", "UTC"),
        ({"hoodie.populate.meta.fields": "false"}, "hoodie.populate.meta.fields", "false"),
        (
            {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": "op_key_only"},
            "hoodie.table.cdc.supplemental.logging.mode",
            "OP_KEY_ONLY",
        ),
        (
            {"hoodie.datasource.hive_sync.partition_extractor_class": "com.acme.Extractor"},
            "hoodie.table.partition_extractor_class",
            "com.acme.Extractor",
        ),
        (
            {
                "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
                "hoodie.datasource.write.partitionpath.field": "day",
                "hoodie.deltastreamer.keygen.timebased.timestamp.type": "epochmilliseconds",
            },
            "hoodie.keygen.timebased.timestamp.type",
            "EPOCHMILLISECONDS",
        ),
    ],
)
def test_options_are_properties(options: dict[str, str], name: str, value: str) -> None:
    ours = new_properties(NewTable.of(LEAST, options), options, SCHEMA)
    assert ours[name] == value
    config = TableConfig.of(ours)  # which checks the checksum, too
    assert config.name == "t"


def test_a_merge_on_read_table_drops_no_partition_columns() -> None:
    name = "hoodie.datasource.write.drop.partition.columns"

    def made(kind: str) -> str:
        table = NewTable.of({**LEAST, "table_type": kind, "partition_by": ("day",)}, {})
        return new_properties(table, {name: "true"}, SCHEMA)[name]

    assert made("cow") == "true"
    with pytest.raises(UnsupportedError, match=name):
        made("mor")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hoodie.table.base.file.format": "ORC"}, "base files of format ORC"),
        ({"hoodie.partition.metafile.use.base.format": "true"}, "metafile"),
        ({"hoodie.table.multiple.base.file.formats.enable": "true"}, "multiple.base.file.formats"),
    ],
)
def test_what_this_engine_does_not_write_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        new_properties(NewTable.of(LEAST, options), options, SCHEMA)


@pytest.mark.parametrize("name", ["hoodie.populate.meta.fields", "hoodie.table.cdc.enabled"])
def test_an_option_that_is_not_valid_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        new_properties(NewTable.of(LEAST, {name: "maybe"}), {name: "maybe"}, SCHEMA)


DIFFERENT: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({"table_name": "u"}, {}, "hoodie.table.name is t there, and u here"),
    ({"table_type": "mor"}, {}, "hoodie.table.type is COPY_ON_WRITE there, and MERGE_ON_READ here"),
    ({"record_key": ("id", "sub")}, {}, "hoodie.table.recordkey.fields is id there, and id,sub here"),
    ({"partition_by": ("day",)}, {}, "hoodie.table.partition.fields is not set there, and day here"),
    ({"partition_by": ("day",)}, {}, "hoodie.table.keygenerator.type is NON_PARTITION there, and SIMPLE here"),
    ({"ordering": ("ts",)}, {}, "hoodie.table.ordering.fields is not set there, and ts here"),
    ({"ordering": ("ts",)}, {}, "hoodie.record.merge.mode is COMMIT_TIME_ORDERING there, and EVENT_TIME_ORDERING here"),
    ({"hive_style": True}, {}, "hoodie.datasource.write.hive_style_partitioning is false there, and true here"),
    ({}, {"hoodie.populate.meta.fields": "false"}, "hoodie.populate.meta.fields is true there, and false here"),
    ({}, {"hoodie.table.timeline.timezone": "UTC"}, "hoodie.table.timeline.timezone is LOCAL there, and UTC here"),
]


@pytest.mark.parametrize(("given", "options", "expected"), DIFFERENT)
def test_a_difference_is_named(given: dict[str, Any], options: dict[str, str], expected: str) -> None:
    there = new_properties(NewTable.of(LEAST, {}), {}, SCHEMA)
    wanted = new_properties(NewTable.of({**LEAST, **given}, options), options, SCHEMA)
    assert expected in map(str, differences(there, wanted))


def test_a_key_generator_of_a_user_is_another_one() -> None:
    there = new_properties(NewTable.of(LEAST, {}), {}, SCHEMA)
    by_class = {**there, "hoodie.table.keygenerator.class": "com.acme.Keys"}
    expected = "hoodie.table.keygenerator.type is com.acme.Keys there, and NON_PARTITION here"
    assert [str(found) for found in differences(by_class, there)] == [expected]
    of_hudi = {**there, "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"}
    assert differences(of_hudi, there) == []


def test_columns_are_compared_where_both_have_a_schema() -> None:
    there = new_properties(NewTable.of(LEAST, {}), {}, SCHEMA)
    assert differences({key: text for key, text in there.items() if key != CREATE_SCHEMA}, there) == []

    def found(*fields: tuple[str, Any]) -> list[str]:
        columns = [{"name": name, "type": kind} for name, kind in fields]
        schema = json.dumps({"type": "record", "name": "other", "fields": columns})
        return [str(item) for item in differences({**there, CREATE_SCHEMA: schema}, there)]

    assert found(("id", ["string", "null"])) == [], "as Spark SQL writes it when a catalog gets the table"
    assert found(("id", "long")) == [f"{CREATE_SCHEMA} is id int64 there, and id string here"]
    assert found(("qty", "int"), ("id", "string")) == [f"{CREATE_SCHEMA} is qty int32 there, and without them here"]
    with pytest.raises(CorruptFileError, match="Avro schema"):
        differences({**there, CREATE_SCHEMA: "damaged"}, there)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_that_spark_sql_made_has_the_columns_that_it_was_given(version: str) -> None:
    """The order and the nulls of its schema are its own."""
    theirs = stored(version, "empty_table_no_commits")
    given = {
        **LEAST,
        "table_version": VERSIONS[version],
        "table_name": theirs["hoodie.table.name"],
        "partition_by": ("dt",),
        "ordering": ("ts",),
        "hive_style": True,
    }
    fields = [("dt", "string"), ("id", "string"), ("name", "string"), ("ts", "long")]
    schema = {**SCHEMA, "fields": [{"name": name, "type": kind} for name, kind in fields]}
    assert differences(theirs, new_properties(NewTable.of(given, {}), {}, schema)) == []


def test_what_says_nothing_of_rows_is_not_compared() -> None:
    there = new_properties(NewTable.of(LEAST, {}), {}, SCHEMA)
    later = {
        **dict.fromkeys(LATER, "files"),
        "hoodie.table.partition_extractor_class": "com.acme.Extractor",
        "hoodie.archivelog.folder": "archived",
        "hoodie.table.initial.version": "6",
        "hoodie.database.name": "default",
    }
    assert differences({**there, **later}, there) == []
    unset = ("hoodie.populate.meta.fields", "hoodie.table.base.file.format", "hoodie.table.cdc.enabled")
    assert differences({key: text for key, text in there.items() if key not in unset}, there) == []
