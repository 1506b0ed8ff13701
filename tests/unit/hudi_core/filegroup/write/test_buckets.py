"""Buckets of record keys, by what real Hudi did with its own rows and by Java's hash of a list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_core.codec.hashing import java_string_hash
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from hudi_core.filegroup.write.buckets import BUCKET_ID, Buckets, Ring, bucket_file_id, bucket_of, place_of
from hudi_core.filegroup.write.hashing_metadata import ring_of
from hudi_core.model.names import FileGroupId
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
ONE = Buckets(7, ("id",), ("id",))
OF_0_15 = Buckets(7, ("id",), ("id",), hashes_names=False)
TWO = Buckets(11, ("a", "b"), ("a", "b", "c"))


def java_list_bucket(values: list[str], count: int) -> int:
    """`(list.hashCode() & Integer.MAX_VALUE) % count`."""
    found = 1
    for value in values:
        found = (31 * found + java_string_hash(value)) & 0xFFFFFFFF
    return (found & 0x7FFFFFFF) % count


def joined_hash(text: str) -> int:
    return xxhash.xxh32_intdigest(text.encode()) & 0x7FFFFFFF


def numbers(buckets: Buckets, keys: list[str]) -> list[int]:
    found = buckets.places(pa.array([""] * len(keys), pa.string()), pa.array(keys, pa.string()), path="t").to_pylist()
    return [int(place_of(place)[1] or "") for place in found]


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
@pytest.mark.parametrize("case", ["bucket_index_cow", "bucket_index_mor"])
def test_real_hudi_put_each_row_into_the_bucket_of_its_key(golden: Golden, version: str, case: str) -> None:
    found = golden(version, case)
    buckets = Buckets.of(open_context(found.table).config, found.info["write_options"])
    assert buckets == Buckets(4, ("id",), ("id",), hashes_names=version != "6")
    rows = read_rows(found.table)
    # The name of a log file begins with a dot.
    names = [name.lstrip(".") for name in rows.column("_hoodie_file_name").to_pylist()]
    assert all(map(BUCKET_ID.match, names))
    assert numbers(buckets, rows.column("_hoodie_record_key").to_pylist()) == list(map(bucket_of, names))
    assert len(set(map(bucket_of, names))) == 4


@given(st.lists(st.text(st.characters(exclude_characters=":,", exclude_categories=["Cs"])), max_size=80))
@settings(max_examples=100, deadline=None)
def test_a_key_without_names_is_one_value(keys: list[str]) -> None:
    assert numbers(ONE, keys) == numbers(OF_0_15, keys) == [java_list_bucket([key], 7) for key in keys]


@given(st.lists(st.tuples(*[st.text(st.characters(exclude_characters=":,\n\r", codec="utf-8"))] * 3), max_size=40))
@settings(max_examples=100, deadline=None)
def test_a_key_with_names_has_the_values_of_the_hashed_fields(rows: list[tuple[str, str, str]]) -> None:
    keys = [f"a:{a},b:{b},c:{c}" for a, b, c in rows]
    absent = {"__null__": "", "__empty__": ""}
    assert numbers(TWO, keys) == [java_list_bucket([absent.get(a, a), absent.get(b, b)], 11) for a, b, _ in rows]


@pytest.mark.parametrize("key", ["a:1,b:2", "a:1,b:2,c:3:4", "a:1,b:2,3,c:4", "b:1,a:2,c:3"])
def test_a_key_that_releases_read_differently_is_refused(key: str) -> None:
    with pytest.raises(FormatError, match="depends on the release"):
        TWO.hashes(pa.array(["a:1,b:2,c:3", key]), path="t")
    with pytest.raises(FormatError, match="depends on the release"):
        OF_0_15.hashes(pa.array(["2024-01-01 10:00"]), path="t")


@pytest.mark.parametrize(
    ("key", "hash_field", "by_0_15", "by_1"),
    [
        ("k1", "id", (397, 134217728), (397, 134217728)),
        ("x,y", "id", (836, 1711276032), (836, 1711276032)),
        ("id:k1", "id", (397, 134217728), (940, 637534208)),
        ("10:30", "id", None, (895, 1711276032)),
        ("2024-01-01 10:00", "id", None, (658, 1241513984)),
        ("a:1,b:2,c:3", "b,a", (530, 1442840576), (530, 1442840576)),
        ("a:__null__,b:__empty__,c:3", "a,b", (961, 201326592), (961, 201326592)),
        ("a:__null__,b:__empty__,c:3", "b", (31, 67108864), (31, 67108864)),
    ],
)
def test_a_key_has_the_buckets_that_real_hudi_gives_it(
    key: str, hash_field: str, by_0_15: tuple[int, int] | None, by_1: tuple[int, int]
) -> None:
    """The first of 1000, by BucketIdentifier.getBucketId, and of 64 by ConsistentBucketIdentifier.getBucket the end of
    its range. 1.0.2 and 1.2.0 agree. What 0.15.0 makes of some keys is refused.
    """
    fields = "a,b,c" if key.startswith("a:") else "id"
    options = {"hoodie.bucket.index.num.buckets": "1000", "hoodie.bucket.index.hash.field": hash_field}
    ring = Ring(tuple(min(33554432 * (at + 1), 2**31 - 1) for at in range(64)), tuple(map(str, range(64))))
    for version, due in (("6", by_0_15), ("8", by_1), ("9", by_1)):
        of_table = config(**{"hoodie.table.version": version, "hoodie.table.recordkey.fields": fields})
        simple = Buckets.of(of_table, options)
        assert simple is not None
        hashed = replace(simple, by_hash=True, rings={"": ring})
        if due is None:
            with pytest.raises(FormatError, match="depends on the release"):
                simple.hashes(pa.array([key]), path="t")
            continue
        (place,) = hashed.places(pa.array([""]), pa.array([key]), path="t").to_pylist()
        assert (numbers(simple, [key]), ring.ends[int(place_of(place)[1] or "")]) == ([due[0]], due[1])


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_real_hudi_put_each_row_into_the_bucket_whose_range_has_its_hash(golden: Golden, version: str) -> None:
    table = golden(version, "bucket_index_consistent_mor").table
    context = open_context(table)
    view = context.view(context.active.load())
    rings = {name: ring_of(context.storage, view, name) for name in view.partitions()}
    rows = read_rows(table)
    keys, partitions = (rows.column(name).combine_chunks() for name in ("_hoodie_record_key", "_hoodie_partition_path"))
    buckets = replace(Buckets(4, ("id",), ("id",)), by_hash=True, rings=rings)
    names = [name.lstrip(".").partition("_")[0] for name in rows.column("_hoodie_file_name").to_pylist()]
    due = [buckets.place_of_group(FileGroupId(*of_row)) for of_row in zip(partitions.to_pylist(), names, strict=True)]
    assert buckets.places(partitions, keys, path="t").to_pylist() == due
    assert len(set(due)) == 12


@given(st.lists(st.tuples(st.sampled_from("pq"), st.text(st.characters(exclude_characters=":,", codec="utf-8")))))
@settings(max_examples=100, deadline=None)
def test_the_bucket_of_a_hash_is_the_next_on_the_ring(rows: list[tuple[str, str]]) -> None:
    """Behind the last end comes the first one, as Java's TreeMap.tailMap and firstEntry have it."""
    rings = {"p": Ring((1 << 29, 1 << 30), ("p1", "p2")), "q": Ring((joined_hash("a"),), ("q1",))}
    buckets = Buckets(4, ("id",), ("id",), by_hash=True, rings=rings)
    partitions, keys = (pa.array([row[at] for row in rows], pa.string()) for at in (0, 1))
    due = []
    for partition, key in rows:
        ring, hashed = rings[partition], joined_hash(key)
        later = [number for number, end in enumerate(ring.ends) if end >= hashed]
        due.append((partition, ring.prefixes[min(later, default=0)]))
    crossed = from_text(Buckets, to_text(buckets))
    assert list(map(place_of, crossed.places(partitions, keys, path="t").to_pylist())) == due


def test_a_hash_may_be_the_end_of_a_range() -> None:
    end = joined_hash("a")
    for ends, prefix in [((end, end + 1), "x"), ((end - 1, end), "y"), ((end - 2, end - 1), "x")]:
        buckets = Buckets(2, ("id",), ("id",), by_hash=True, rings={"": Ring(ends, ("x", "y"))})
        assert buckets.places(pa.array([""]), pa.array(["a"]), path="t").to_pylist() == [f"\0{prefix}"]


def test_hudi_5373_bucket_11_of_partition_30_is_not_bucket_1_of_301() -> None:
    """As texts that stand one behind the other they are the same."""
    places = {
        ONE.place_of_group(FileGroupId(partition, f"{bucket:08}-x"))
        for partition in ("30", "301", "3011")
        for bucket in (1, 11)
    }
    assert {place_of(place) for place in places} == {
        (partition, f"{bucket:08}") for partition in ("30", "301", "3011") for bucket in (1, 11)
    }
    same = ONE.places(pa.array(["30", "301"]), pa.array(["k1", "k1"]), path="t").to_pylist()
    assert len({*same}) == 2


def test_places() -> None:
    keys = pa.array(["k1", "k2"])
    places = ONE.places(pa.array(["2024/01", ""]), keys, path="t").to_pylist()
    found = numbers(ONE, ["k1", "k2"])
    assert [place_of(place) for place in places] == [("2024/01", f"{found[0]:08}"), ("", f"{found[1]:08}")]
    assert place_of("2024/01") == ("2024/01", None)
    random = "bb7e43d0-b4c2-6ec0-2746-aaf0c29a22c0"
    assert bucket_file_id(random, "00000012") == "00000012-b4c2-6ec0-2746-aaf0c29a22c0"
    assert bucket_file_id(random, random[::-1]) == random[::-1]
    assert bucket_of("00000012-b4c2") == 12


def config(**properties: str) -> TableConfig:
    given = {"hoodie.table.name": "t", "hoodie.table.version": "9", "hoodie.table.type": "COPY_ON_WRITE"}
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
        (
            {"hoodie.bucket.index.num.buckets": "3", "hoodie.bucket.index.hash.field": "b,a"},
            Buckets(3, ("a", "b"), ("a", "b")),
        ),
    ],
)
def test_options_of_writers(options: dict[str, str], expected: Any) -> None:
    assert Buckets.of(config(), options) == expected
    if expected is not None:
        old = config(**{"hoodie.table.version": "6"})
        assert Buckets.of(old, options) == replace(expected, hashes_names=False)
        given = {**options, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
        merged = config(**{"hoodie.table.type": "MERGE_ON_READ"})
        assert Buckets.of(merged, given) == replace(expected, by_hash=True)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"hoodie.index.type": "BUCKET"}, ConfigError, "without hoodie.bucket.index.num.buckets"),
        ({"hoodie.bucket.index.num.buckets": "0"}, ConfigError, "hoodie.bucket.index.num.buckets is '0'"),
        ({"hoodie.bucket.index.num.buckets": "3", "hoodie.bucket.index.hash.field": "c"}, ConfigError, "names 'c'"),
        (
            {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"},
            UnsupportedError,
            "consistent hashing in a copy-on-write table",
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
    none = pa.array([], pa.string())
    assert ONE.hashes(none, path="t").dtype == np.int64
    assert replace(ONE, by_hash=True).places(none, none, path="t").to_pylist() == []
