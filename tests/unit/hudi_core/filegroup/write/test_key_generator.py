"""Keys and paths by each key generator; golden tables show real Hudi's (tests/golden/test_overwrites.py)."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pyarrow as pa
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from hudi_core.filegroup.write.key_generator import KeyGenerator, escaped_path_name, labels_vary
from hudi_core.filegroup.write.partition_times import SqlTimes
from tests.support.table_configs import config_of

NEW_ENCODING = "hoodie.write.complex.keygen.new.encoding"
ROWS = pa.record_batch(
    {
        "id": ["a", "", None],
        "number": pa.array([1, 2, 3], pa.int32()),
        "day": [datetime.date(2024, 1, 2)] * 3,
        "place": ["x/y", "", None],
    }
)


def generator(
    kind: str, keys: str = "number", partitions: str = "place", *, labels_one: bool | None = None, **more: str
) -> KeyGenerator:
    return KeyGenerator.of(table(kind, keys, partitions, **more), {}, labels_one=labels_one)


def table(kind: str, keys: str, partitions: str, **more: str) -> TableConfig:
    raw = {
        "hoodie.table.keygenerator.type": kind,
        "hoodie.table.recordkey.fields": keys,
        "hoodie.table.partition.fields": partitions,
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    return config_of(raw)


def paths(of: KeyGenerator) -> list[str]:
    found: list[str] = of.partitions(ROWS, path="T").to_pylist()
    return found


def test_a_simple_key_is_the_value_and_an_empty_partition_has_a_name() -> None:
    simple = generator("SIMPLE")
    assert simple.keys(ROWS, path="T").to_pylist() == ["1", "2", "3"]
    assert paths(simple) == ["x/y", "__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"]
    with pytest.raises(FormatError, match="2 rows have no record key in id"):
        generator("SIMPLE", "id").keys(ROWS, path="T")


def test_paths_are_encoded_and_labelled_as_the_table_says() -> None:
    style = {"hoodie__datasource__write__hive_style_partitioning": "true"}
    code = {"hoodie__datasource__write__partitionpath__urlencode": "true"}
    assert paths(generator("SIMPLE", **style))[0] == "place=x/y"
    assert paths(generator("SIMPLE", **code))[0] == "x%2Fy"
    assert paths(generator("COMPLEX", "id,number", "place,day", **style, **code))[0] == "place=x%2Fy/day=2024-01-02"
    assert escaped_path_name("a b:c\u007f\u00e4") == "a b%3Ac%7F\u00e4"


def test_a_complex_key_names_its_fields() -> None:
    complex_key = generator("COMPLEX", "id,number")
    assert complex_key.keys(ROWS, path="T").to_pylist() == [
        "id:a,number:1",
        "id:__empty__,number:2",
        "id:__null__,number:3",
    ]
    assert generator("COMPLEX", labels_one=True).keys(ROWS, path="T").to_pylist()[0] == "number:1"
    assert generator("COMPLEX", labels_one=False).keys(ROWS, path="T").to_pylist()[0] == "1"


def test_a_complex_key_of_one_field_names_it_where_its_writers_do() -> None:
    assert generator("COMPLEX", labels_one=True).labelled
    assert not generator("COMPLEX", labels_one=False).labelled
    without_meta_fields = {"hoodie.populate.meta.fields": "false"}
    assert not generator("COMPLEX", labels_one=None, **without_meta_fields).labelled
    with pytest.raises(UnsupportedError, match="no row that shows it") as caught:
        generator("COMPLEX")
    assert NEW_ENCODING in str(caught.value.remedy)
    newer = {"hoodie__table__version": "9", "hoodie__timeline__layout__version": "2"}
    assert generator("COMPLEX", **newer).labelled
    assert not generator("COMPLEX", labels_one=False, **newer).labelled


@pytest.mark.parametrize("bare", [True, False])
def test_the_writers_option_decides_where_no_row_does(bare: bool) -> None:
    config = table("COMPLEX", "number", "place")
    options = {NEW_ENCODING: str(bare).lower()}
    for shown in (None, not bare):
        assert KeyGenerator.of(config, options, labels_one=shown).labelled is not bare
    with pytest.raises(ConfigError, match=f"unlike by {NEW_ENCODING}={options[NEW_ENCODING]}"):
        KeyGenerator.of(config, options, labels_one=bare)
    newer = table("COMPLEX", "number", "place", hoodie__table__version="9", hoodie__timeline__layout__version="2")
    assert KeyGenerator.of(newer, options, labels_one=None).labelled


def test_encodings_vary_for_complex_keys_of_one_field_alone() -> None:
    assert labels_vary(table("COMPLEX", "number", "place"))
    assert not labels_vary(table("COMPLEX", "number,id", "place"))
    assert not labels_vary(table("SIMPLE", "number", "place"))


def test_timestamps_are_local_time_where_spark_sql_writes_them() -> None:
    at = pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5, 6), None], pa.timestamp("us", "UTC"))
    batch = pa.record_batch({"id": ["a", "b"], "at": at, "place": ["x", "y"]})
    code = {"hoodie__datasource__write__partitionpath__urlencode": "true"}
    style = {"hoodie__datasource__write__hive_style_partitioning": "true"}
    local = SqlTimes("UTC", False)
    for more, expected in (
        (style, "place=x/at=2024-01-02 03%3A04%3A05"),
        (code, "x/2024-01-02 03%3A04%3A05"),
        ({}, "x/2024-01-02 03%3A04%3A05"),
    ):
        numbers = generator("COMPLEX", "id", "place,at", labels_one=True, **more)
        keys = replace(numbers, sql_times=local)
        assert keys.partitions(batch, path="T")[0].as_py() == expected
        assert keys.partitions(batch, path="T")[1].as_py().endswith("__HIVE_DEFAULT_PARTITION__")
        assert numbers.partitions(batch, path="T")[0].as_py().endswith("1704164645000006")
    slashed = batch.set_column(2, "place", pa.array(["x/y", "z"]))
    with pytest.raises(FormatError, match="a partition value holds a slash"):
        keys.partitions(slashed, path="T")


def test_a_table_without_partitions_has_one() -> None:
    assert paths(generator("NON_PARTITION", partitions="")) == ["", "", ""]
    assert generator("NON_PARTITION", "id,number", "").keys(ROWS, path="T").to_pylist()[0] == "id:a,number:1"


def test_a_custom_generator_needs_the_types_of_its_fields() -> None:
    assert paths(generator("CUSTOM", partitions="place:SIMPLE,day:SIMPLE"))[0] == "x/y/2024-01-02"
    plain = table("CUSTOM", "number", "place,day")
    with pytest.raises(ConfigError, match=r"partitionpath\.field=place:SIMPLE,day:SIMPLE"):
        KeyGenerator.of(plain, {}, labels_one=None)
    given = {"hoodie.datasource.write.partitionpath.field": "place:SIMPLE,day:SIMPLE"}
    assert paths(KeyGenerator.of(plain, given, labels_one=None))[0] == "x/y/2024-01-02"


@pytest.mark.parametrize("kind", ["GLOBAL_DELETE", "USER_PROVIDED"])
def test_other_generators_are_refused(kind: str) -> None:
    with pytest.raises(UnsupportedError, match=kind):
        generator(kind)


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"hoodie__table__keygenerator__class": "com.acme.OurKeys"}, "com.acme.OurKeys"),
        ({"hoodie__table__keygenerator__class": "org.apache.hudi.keygen.GlobalDeleteKeyGenerator"}, "GlobalDelete"),
    ],
)
def test_other_classes_are_refused(more: dict[str, str], name: str) -> None:
    with pytest.raises(UnsupportedError, match=name):
        generator("", **more)


def test_what_would_change_keys_or_rows_is_refused() -> None:
    config = table("SIMPLE", "number", "place")
    for option in (
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
        "hoodie.datasource.write.slash.separated.date.partitioning",
    ):
        with pytest.raises(UnsupportedError, match=option):
            KeyGenerator.of(config, {option: "true"}, labels_one=None)
    with pytest.raises(UnsupportedError, match="writers generate"):
        generator("SIMPLE", "")
    with pytest.raises(UnsupportedError, match="within a struct"):
        generator("SIMPLE", "a.b")


def test_columns_are_checked_before_rows_are_read() -> None:
    schema = ROWS.schema.append(pa.field("weight", pa.float64())).append(pa.field("at", pa.timestamp("us", "UTC")))
    generator("SIMPLE", "at").check(schema, path="T")
    generator("SIMPLE", partitions="elsewhere").check(schema, ["elsewhere"], path="T")
    with pytest.raises(UnsupportedError, match="'weight' of type double"):
        generator("SIMPLE", "weight").check(schema, path="T")
    with pytest.raises(ConfigError, match="no column 'gone'"):
        generator("SIMPLE", "gone").check(schema, path="T")


def test_an_unnamed_generator_follows_from_the_fields() -> None:
    assert not generator("").labelled
    assert generator("", "id,number").labelled
    assert generator("", partitions="").partition_fields == ()


@pytest.mark.parametrize("days", [-719163, 2932897])
@pytest.mark.parametrize("field", ["keys", "partitions"])
def test_dates_that_java_writes_with_a_sign_are_refused(days: int, field: str) -> None:
    columns = {
        "number": pa.array([1], pa.int32()),
        "place": ["x"],
        "day": pa.array([days], pa.int32()).cast(pa.date32()),
    }
    found = generator("SIMPLE", **{field: "day"})
    with pytest.raises(FormatError, match="'day' holds a date outside of the years 1 to 9999"):
        getattr(found, field)(pa.record_batch(columns), path="T")
