from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.expr.bind import bind
from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import Column, Compare, Expr, In, IsNull, Literal, Not, StartsWith
from hudi_core.index.skipping import SkippingPlan
from tests.support.predicate_text import to_sql
from tests.support.random_predicates import holds
from tests.support.slice_readers import made_up_spec
from tests.support.table_configs import VERSION_9, config_of

SCHEMA = pa.schema(
    [
        pa.field("_hoodie_partition_path", pa.string()),
        pa.field("dt", pa.string()),
        pa.field("n", pa.int32()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("v", pa.int64()),
    ]
)


def left(
    text: str,
    partitions: list[str],
    fields: str,
    schema: pa.Schema = SCHEMA,
    merged: bool = True,
    zone: str | None = None,
    **properties: str,
) -> list[str]:
    config = config_of(
        {
            "hoodie.table.partition.fields": fields,
            **{name.replace("__", "."): value for name, value in properties.items()},
        }
    )
    bound = bind(parse_predicate(text), schema, zone=zone)
    return SkippingPlan(bound, made_up_spec(config, merged=merged), current=True).partitions(partitions)


@pytest.mark.parametrize("merge_on_read", [False, True])
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("dt = 'b'", ["b"]),
        ("dt > 'a'", ["b", "c d"]),
        ("dt LIKE 'c%'", ["c d"]),
        ("dt IN ('a', 'x')", ["a"]),
        ("dt <> 'a'", ["b", "c d"]),
        ("dt = 'b' OR v = 1", ["a", "b", "c d"]),
        ("dt = 'b' AND v = 1", ["b"]),
        ("dt IS NULL", []),
        ("NOT (dt = 'b')", ["a", "c d"]),
        ("_hoodie_partition_path = 'a'", ["a"]),
    ],
)
def test_partitions_by_their_paths(text: str, kept: list[str], merge_on_read: bool) -> None:
    properties = {"hoodie__table__type": "MERGE_ON_READ"} if merge_on_read else {}
    assert left(text, ["a", "b", "c d"], "dt", **properties) == kept


def test_typed_values_of_paths() -> None:
    assert left("n >= 10", ["9", "10", "-1"], "n") == ["10"]
    assert left("day < DATE '2024-02-01'", ["2024-01-31", "2024-02-01"], "day") == ["2024-01-31"]
    assert left("n = 1 AND dt = 'b'", ["1/a", "1/b", "2/b"], "n,dt") == ["1/b"]
    assert left("n = 1", ["n=1", "n=2"], "n") == ["n=1"]


def test_a_path_that_does_not_say_it_keeps_the_partition() -> None:
    """Values of another type or depth: reading the partition raises the error."""
    assert left("n = 1", ["one", "2"], "n") == ["one"]
    assert left("n = 1 AND dt = 'b'", ["1/b/c", "2/b"], "n,dt") == ["1/b/c"]
    merge_on_read = {"hoodie__table__type": "MERGE_ON_READ"}
    assert left("n = 1", ["one", "2"], "n", **merge_on_read) == ["one"]
    assert left("n = 1 AND dt = 'b'", ["1/b/c", "2/b"], "n,dt", **merge_on_read) == ["1/b/c"]
    assert left("dt = 'x'", [""], "dt") == [""]


def test_escapes_are_resolved_as_spark_does() -> None:
    assert left("dt = 'a/b'", ["a%2Fb", "c"], "dt") == ["a%2Fb"]
    # Rows of a merge hold what was written: the value may be either.
    for value in ("a/b", "a%2Fb"):
        assert left(f"dt = '{value}'", ["a%2Fb", "c"], "dt", hoodie__table__type="MERGE_ON_READ") == ["a%2Fb"]


def test_the_default_partition_holds_null_and_in_rows_the_empty_text() -> None:
    paths = ["__HIVE_DEFAULT_PARTITION__", "a"]
    assert left("dt IS NULL", paths, "dt") == paths[:1]
    assert left("dt = 'b'", paths, "dt") == []
    for text in ("dt IS NULL", "dt = ''", "dt < 'a'"):
        assert left(text, paths, "dt", hoodie__table__type="MERGE_ON_READ") == paths[:1]


def test_times_that_a_key_generator_formats_are_no_values_of_the_column() -> None:
    keys = {"hoodie__table__keygenerator__class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator"}
    paths = ["2024/01/01", "2024/01/02"]
    stored = pa.schema([pa.field("at", pa.int64())])
    assert left("at = 5", paths, "at", stored, hoodie__table__type="MERGE_ON_READ", **keys) == paths
    # Hudi 0.15 reads the path's text for the column where nothing is merged.
    as_text = pa.schema([pa.field("at", pa.string())])
    assert left("at = '2024/01/01'", paths, "at", as_text, **keys) == paths[:1]
    newer = {
        "hoodie__table__keygenerator__type": "TIMESTAMP",
        **{name.replace(".", "__"): value for name, value in VERSION_9.items()},
    }
    assert left("at = '2024/01/01'", paths, "at", as_text, **newer) == paths


def test_types_of_a_custom_key_generator() -> None:
    custom = {
        "hoodie__table__keygenerator__class": "org.apache.hudi.keygen.CustomKeyGenerator",
        "hoodie__table__type": "MERGE_ON_READ",
    }
    paths = ["a/20240101", "b/20240101"]
    schema = pa.schema([pa.field("dt", pa.string()), pa.field("v", pa.int64())])
    assert left("v = 5", paths, "dt:SIMPLE,v:TIMESTAMP", schema, **custom) == paths
    assert left("dt = 'a' AND v = 5", paths, "dt:SIMPLE,v:TIMESTAMP", schema, **custom) == paths[:1]
    assert (
        left("dt = 'a'", paths, "dt,v", schema, **custom) == paths
    )  # an older table does not say which of them is a time


def test_wall_times_in_paths_are_not_compared_where_rows_hold_the_value() -> None:
    assert left("at = '2024-01-01 00:00:00'", ["2024-01-01 00:00:00.0"], "at", hoodie__table__type="MERGE_ON_READ") == [
        "2024-01-01 00:00:00.0"
    ]


def test_times_in_paths_are_those_of_the_query_s_zone() -> None:
    paths = ["at=2024-06-01 00%3A00%3A00", "at=2024-06-01 02%3A00%3A00", "1717200000000000"]
    assert left("at = '2024-06-01 00:00:00Z'", paths, "at") == paths[:1]
    assert left("at = '2024-06-01 00:00:00Z'", paths, "at", zone="Europe/Berlin") == paths[1:2]
    assert left("at IS NULL", paths, "at") == paths[2:], "microseconds are no timestamp to Spark"
    first = ["0001-01-01 00:00:00 +05:00"]
    assert left("at < '2024-06-01 00:00:00Z'", first, "at") == first, "before any time of Python"


def test_dates_with_slashes() -> None:
    slashed = {"hoodie__datasource__write__slash__separated__date__partitioning": "true"}
    paths = ["2026/01/05", "2026/01/06"]
    for text, fields in (("dt = '2026-01-05'", "dt"), ("day = DATE '2026-01-05'", "day")):
        assert left(text, paths, fields, **slashed) == paths[:1]
        assert paths[0] in left(text, paths, fields, hoodie__table__type="MERGE_ON_READ", **slashed)
    for value in ("2026-01-05", "2026/01/05"):
        assert paths[0] in left(f"dt = '{value}'", paths, "dt", hoodie__table__type="MERGE_ON_READ", **slashed)
    assert left("dt = '2027-01-05'", paths, "dt", hoodie__table__type="MERGE_ON_READ", **slashed) == []


def test_a_predicate_that_nothing_satisfies_leaves_nothing() -> None:
    assert left("1 = 2", ["a"], "dt") == []


_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "dt": st.none()
    | st.text("ab%2F/ =:ä", max_size=5)
    | st.sampled_from(["dt=a", "%2F", "a%20b", "__HIVE_DEFAULT_PARTITION__"]),
    "n": st.none() | st.integers(-20, 20),
    "day": st.none() | st.dates(dt.date(1969, 12, 1), dt.date(1970, 2, 1)),
}


def _path(name: str, value: Any, hive_style: bool, escaped: bool) -> str:
    """KeyGenUtils.getPartitionPath."""
    text = "" if value is None else str(value)
    text = "".join(f"%{ord(char):02X}" if char in "%/=:" else char for char in text) if escaped else text
    text = text or "__HIVE_DEFAULT_PARTITION__"
    return f"{name}={text}" if hive_style else text


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(sorted(_VALUES)), hive_style=st.booleans(), escaped=st.booleans(), data=st.data())
def test_a_partition_whose_rows_match_is_never_ruled_out(
    name: str, hive_style: bool, escaped: bool, data: st.DataObject
) -> None:
    """Of rows that hold the value, as in a merge by Hudi 0.15, whichever writer made the path."""
    value, other = data.draw(_VALUES[name]), data.draw(_VALUES[name])
    column = Column((name,))
    exprs: list[Expr] = [
        Compare(operator, column, Literal.of(other)) for operator in ("=", "<>", "<", "<=", ">", ">=", "<=>")
    ]
    exprs += [In(column, (Literal.of(other), Literal.of(value))), IsNull(column), Not(In(column, (Literal.of(other),)))]
    if name == "dt" and other is not None:
        exprs += [StartsWith(column, other[:1]), Not(StartsWith(column, other[:1]))]
    path = _path(name, value, hive_style, escaped)
    for expr in exprs:
        if holds(expr, {name: value}):
            assert left(to_sql(expr), [path], name, hoodie__table__type="MERGE_ON_READ") == [path], expr


class PartitionStatistics:
    """As metadata_table.read.metadata_table.MetadataTable with statistics of whole partitions alone."""

    may_have_narrow_ranges = False

    def __init__(self, **tables: pa.Table) -> None:
        self._tables = tables

    def has_index(self, name: str) -> bool:
        return name == "partition_stats"

    @property
    def definitions(self) -> dict[str, Any]:
        return {}

    def partition_stats(self, columns: list[str]) -> dict[str, pa.Table]:
        return {name: self._tables.get(name, whole(pa.string(), ("", "", "", 0, 0))) for name in columns}


def whole(kind: pa.DataType, *rows: tuple[Any, ...]) -> pa.Table:
    """Partition, bounds, nulls and values, 5 of them where it is not said; all of 5000 bytes."""
    filled = [(*row, 5)[:5] for row in rows]
    partitions, low, high, nulls, values = (list(column) for column in zip(*filled, strict=True))
    columns: dict[str, Any] = {"partition": partitions, "min": pa.array(low, kind), "max": pa.array(high, kind)}
    counts = {"null_count": nulls, "value_count": values, "uncompressed_size": [5000] * len(rows)}
    return pa.table({**columns, **counts})


def test_ranges_that_hudi_may_have_merged_with_false_ones_rule_no_partition_out() -> None:
    """Of a file with NaN it merges 0.0, of one with long texts nothing but nulls (records.false_ranges)."""
    metadata: Any = PartitionStatistics(
        d=whole(pa.float64(), ("a", 0.0, 0.0, 0), ("b", -0.0, 9.0, 0), ("c", 1.0, 9.0, 0), ("e", -9.0, -1.0, 5)),
        t=whole(pa.string(), ("a", "a", "c", 2), ("b", "a", "c", 0), ("c", None, None, 2), ("e", "x", "z", 2)),
        _hoodie_record_key=whole(pa.string(), *((name, "k", "l", 0) for name in "abce")),
    )
    schema = pa.schema([pa.field("d", pa.float64()), pa.field("t", pa.string())])
    config = config_of({"hoodie.table.partition.fields": "dt"})

    def kept(text: str) -> list[str]:
        bound = bind(parse_predicate(text), schema)
        plan = SkippingPlan(bound, made_up_spec(config), current=True, metadata=metadata)
        return plan.partitions(["a", "b", "c", "e"])

    assert kept("d > 100") == ["a", "b"]
    assert kept("d < -100") == ["a", "b"]
    assert kept("t = 'b'") == ["a", "b", "c", "e"]
    assert kept("t = 'd'") == ["a", "c", "e"]


@pytest.mark.parametrize("key", ["_hoodie_record_key", "id"])
def test_ranges_that_lack_values_under_an_older_name_rule_no_partition_out(key: str) -> None:
    metadata: Any = PartitionStatistics(
        v=whole(pa.int64(), ("a", 1, 2, 0, 5), ("b", 1, 2, 0, 4), ("c", 1, 2, 0, 5)),
        **{key: whole(pa.string(), ("a", "k", "l", 0, 5), ("b", "k", "l", 0, 5))},
    )
    meta = "true" if key.startswith("_") else "false"
    names = {"hoodie.table.partition.fields": "dt", "hoodie.table.recordkey.fields": "id"}
    config = config_of({**names, "hoodie.populate.meta.fields": meta})
    bound = bind(parse_predicate("v = 7"), pa.schema([pa.field("v", pa.int64())]))
    plan = SkippingPlan(bound, made_up_spec(config), current=True, metadata=metadata)
    assert plan.partitions(["a", "b", "c"]) == ["b", "c"], "of c the number of rows is not known"
