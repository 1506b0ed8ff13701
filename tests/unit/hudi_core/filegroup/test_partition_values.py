from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import UnsupportedError
from hudi_core.filegroup.partition_values import path_columns, path_values, with_values

SCHEMA = pa.schema([("id", pa.string()), ("country", pa.string()), ("day", pa.int64())])


def config(fields: str, **more: str) -> TableConfig:
    """Properties of a table with these partition fields."""
    lines = {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "6", "hoodie.table.partition.fields": fields}
    lines |= {"hoodie.table.keygenerator.class": more.get("keygen", "org.apache.hudi.keygen.SimpleKeyGenerator")}
    return TableConfig.parse("\n".join(f"{key}={value}" for key, value in lines.items()).encode())


def values(fields: str, partition: str) -> dict[str, object]:
    """What a path says, as Python values."""
    return {name: value.as_py() for name, value in path_values(partition, path_columns(config(fields), SCHEMA)).items()}


def test_values_are_typed_unescaped_and_stripped_of_their_name() -> None:
    assert values("country,day", "a%2Fb/20240101") == {"country": "a/b", "day": 20240101}
    assert values("country,day", "country=%C3%A9/day=7") == {"country": "é", "day": 7}
    assert values("country", "2024/01/02") == {"country": "2024/01/02"}, "one column takes the whole path"


def test_default_partition_is_null() -> None:
    assert values("country,day", "country=__HIVE_DEFAULT_PARTITION__/__HIVE_DEFAULT_PARTITION__") == {"country": None, "day": None}


@pytest.mark.parametrize("partition", ["", "a", "a/b/c"])
def test_a_path_of_another_depth_says_nothing(partition: str) -> None:
    assert values("country,day", partition) == {}


def test_value_of_another_type_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="day=x"):
        values("country,day", "a/day=x")


def test_dropped_columns_and_timestamp_keys_are_text() -> None:
    assert path_columns(config("gone"), SCHEMA) == [pa.field("gone", pa.string())]
    generator = "org.apache.hudi.keygen.TimestampBasedKeyGenerator"
    assert path_columns(config("day", keygen=generator), SCHEMA) == [pa.field("day", pa.string())]


def test_constants_replace_columns() -> None:
    batch = pa.record_batch([pa.array(["1", "2"]), pa.array(["x", "y"])], ["id", "country"])
    output = pa.schema([("id", pa.string()), ("country", pa.string()), ("day", pa.int64())])
    found = with_values(batch, {"country": pa.scalar("z"), "day": pa.scalar(None, pa.int64())}, output)
    assert found.to_pylist() == [{"id": "1", "country": "z", "day": None}, {"id": "2", "country": "z", "day": None}]
