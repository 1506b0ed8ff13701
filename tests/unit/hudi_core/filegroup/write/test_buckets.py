"""Buckets of record keys, by what real Hudi did with its own rows and by Java's hash of a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.hashing import java_string_hash
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from hudi_core.filegroup.write.buckets import BUCKET_ID, Buckets, bucket_file_id, bucket_of, place_of, place_of_bucket
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
ONE = Buckets(7, ("id",), ("id",))
TWO = Buckets(11, ("b", "a"), ("a", "b", "c"))


def java_list_bucket(values: list[str], count: int) -> int:
    """`(list.hashCode() & Integer.MAX_VALUE) % count`."""
    found = 1
    for value in values:
        found = (31 * found + java_string_hash(value)) & 0xFFFFFFFF
    return (found & 0x7FFFFFFF) % count


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize("case", ["bucket_index_cow", "bucket_index_mor"])
def test_real_hudi_put_each_row_into_the_bucket_of_its_key(golden: Golden, version: str, case: str) -> None:
    found = golden(version, case)
    buckets = Buckets.of(open_context(found.table).config, found.info["write_options"])
    assert buckets == Buckets(4, ("id",), ("id",))
    rows = read_rows(found.table)
    # The name of a log file begins with a dot.
    names = [name.lstrip(".") for name in rows.column("_hoodie_file_name").to_pylist()]
    assert all(map(BUCKET_ID.match, names))
    keys = rows.column("_hoodie_record_key").combine_chunks()
    assert buckets.numbers(keys, path="t").tolist() == list(map(bucket_of, names))
    assert len(set(map(bucket_of, names))) == 4


@given(st.lists(st.text(st.characters(exclude_characters=":,", exclude_categories=["Cs"])), max_size=80))
@settings(max_examples=100, deadline=None)
def test_a_key_without_names_is_one_value(keys: list[str]) -> None:
    found = ONE.numbers(pa.array(keys, pa.string()), path="t")
    assert found.tolist() == [java_list_bucket([key], 7) for key in keys]


@given(st.lists(st.tuples(*[st.text(st.characters(exclude_characters=":,\n\r", codec="utf-8"))] * 3), max_size=40))
@settings(max_examples=100, deadline=None)
def test_a_key_with_names_has_the_values_of_the_hashed_fields(rows: list[tuple[str, str, str]]) -> None:
    keys = [f"a:{a},b:{b},c:{c}" for a, b, c in rows]
    found = TWO.numbers(pa.array(keys, pa.string()), path="t")
    assert found.tolist() == [java_list_bucket([b, a], 11) for a, b, _ in rows]


@pytest.mark.parametrize("key", ["a:1,b:2", "a:1,b:2,c:3:4", "a:1,b:2,3,c:4", "2024-01-01 10:00", "b:1,a:2,c:3"])
def test_a_key_that_releases_read_differently_is_refused(key: str) -> None:
    with pytest.raises(FormatError, match="depends on the release"):
        TWO.numbers(pa.array(["a:1,b:2,c:3", key]), path="t")


def test_keys_with_and_without_the_name_of_their_field() -> None:
    found = ONE.numbers(pa.array(["k1", "id:k1", "id"]), path="t").tolist()
    assert found[0] == found[1] == java_list_bucket(["k1"], 7)
    assert found[2] == java_list_bucket(["id"], 7)


def test_hudi_5373_bucket_11_of_partition_30_is_not_bucket_1_of_301() -> None:
    """As texts that stand one behind the other they are the same."""
    places = {place_of_bucket(partition, f"{bucket:08}-x") for partition in ("30", "301", "3011") for bucket in (1, 11)}
    assert {place_of(place) for place in places} == {
        (partition, f"{bucket:08}") for partition in ("30", "301", "3011") for bucket in (1, 11)
    }
    same = ONE.places(pa.array(["30", "301"]), pa.array(["k1", "k1"]), path="t").to_pylist()
    assert len({*same}) == 2


def test_places() -> None:
    keys = pa.array(["k1", "k2"])
    places = ONE.places(pa.array(["2024/01", ""]), keys, path="t").to_pylist()
    numbers = ONE.numbers(keys, path="t")
    assert [place_of(place) for place in places] == [("2024/01", f"{numbers[0]:08}"), ("", f"{numbers[1]:08}")]
    assert place_of("2024/01") == ("2024/01", None)
    random = "bb7e43d0-b4c2-6ec0-2746-aaf0c29a22c0"
    assert bucket_file_id(random, "00000012") == "00000012-b4c2-6ec0-2746-aaf0c29a22c0"
    assert bucket_of("00000012-b4c2") == 12


def config(**properties: str) -> TableConfig:
    given = {"hoodie.table.name": "t", "hoodie.table.version": "6", "hoodie.table.type": "COPY_ON_WRITE"}
    return TableConfig.of({**given, "hoodie.table.recordkey.fields": "a,b", **properties}, path="t")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, None),
        ({"hoodie.index.type": "BLOOM", "hoodie.bucket.index.num.buckets": "3"}, None),
        ({"hoodie.bucket.index.num.buckets": "3"}, Buckets(3, ("a", "b"), ("a", "b"))),
        (
            {
                "hoodie.index.type": "bucket",
                "hoodie.bucket.index.num.buckets": "3",
                "hoodie.bucket.index.hash.field": "b",
            },
            Buckets(3, ("b",), ("a", "b")),
        ),
    ],
)
def test_options_of_writers(options: dict[str, str], expected: Any) -> None:
    assert Buckets.of(config(), options) == expected


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"hoodie.index.type": "BUCKET"}, ConfigError, "without hoodie.bucket.index.num.buckets"),
        ({"hoodie.bucket.index.num.buckets": "0"}, ConfigError, "hoodie.bucket.index.num.buckets is '0'"),
        ({"hoodie.bucket.index.num.buckets": "3", "hoodie.bucket.index.hash.field": "c"}, ConfigError, "names 'c'"),
        (
            {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"},
            UnsupportedError,
            "consistent hashing",
        ),
        (
            {
                "hoodie.index.type": "BUCKET",
                "hoodie.bucket.index.num.buckets": "4",
                "hoodie.bucket.index.partition.expressions": "z,2",
                "hoodie.bucket.index.partition.rule.type": "regex",
            },
            UnsupportedError,
            r"hoodie\.bucket\.index\.partition\.expressions",
        ),
    ],
)
def test_options_that_name_no_buckets(options: dict[str, str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Buckets.of(config(), options)


def test_no_rows() -> None:
    assert ONE.numbers(pa.array([], pa.string()), path="t").dtype == np.int64
