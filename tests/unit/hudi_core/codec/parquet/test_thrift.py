"""The tree of Thrift's compact protocol: what is read is written byte for byte."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.codec.parquet.footer import footer_of
from hudi_core.codec.parquet.thrift import (
    BINARY,
    BYTE,
    DOUBLE,
    FALSE,
    I16,
    I32,
    I64,
    LIST,
    MAP,
    MAX_NESTING,
    SET,
    STRUCT,
    TRUE,
    CompactReader,
    Struct,
    ThriftList,
    encode_struct,
    read_struct,
)
from tests.support.golden_data import golden_root
from tests.support.random_parquet import random_file, random_table

WIDTHS = {I16: 15, I32: 31, I64: 63}


def values(kind: int) -> st.SearchStrategy[Any]:
    """Values of a type, as an element."""
    if kind in WIDTHS:
        return st.integers(-(1 << WIDTHS[kind]), (1 << WIDTHS[kind]) - 1)
    if kind in (BYTE, TRUE, FALSE):
        return st.integers(0, 255)
    if kind == DOUBLE:
        return st.binary(min_size=8, max_size=8)
    return st.binary(max_size=20)


SIMPLE = st.sampled_from([TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY])


def field(structs: st.SearchStrategy[Struct]) -> st.SearchStrategy[tuple[int, Any]]:
    """Type and value of a field."""

    def lists(kind: int) -> st.SearchStrategy[tuple[int, Any]]:
        return SIMPLE.flatmap(
            lambda inner: st.lists(values(inner), max_size=20).map(lambda found: (kind, ThriftList(inner, found)))
        )

    return st.one_of(
        SIMPLE.flatmap(
            lambda kind: (
                st.just((kind, None)) if kind in (TRUE, FALSE) else values(kind).map(lambda value: (kind, value))
            )
        ),
        st.sampled_from([LIST, SET]).flatmap(lists),
        structs.map(lambda found: (STRUCT, found)),
        st.lists(structs, max_size=20).map(lambda found: (LIST, ThriftList(STRUCT, found))),
    )


def sorted_fields(fields: dict[int, tuple[int, Any]]) -> Struct:
    return {number: fields[number] for number in sorted(fields)}


STRUCTS = st.recursive(
    st.just({}),
    lambda inner: st.dictionaries(st.integers(1, 400), field(inner), max_size=5).map(sorted_fields),
    max_leaves=12,
)


@given(STRUCTS)
def test_a_tree_comes_back(tree: Struct) -> None:
    data = encode_struct(tree)
    assert read_struct(b"xx" + data + b"yy", 2) == (tree, 2 + len(data))
    reader = CompactReader(data + b"y")
    reader.skip(STRUCT)
    assert reader.position == len(data)


def test_every_footer_of_golden_tables_comes_back_byte_for_byte() -> None:
    """Those of parquet-mr, by Avro and by Spark's rows."""
    seen = 0
    for archive in sorted(golden_root().glob("*/*.zip"))[::7]:
        with zipfile.ZipFile(archive) as zipped:
            for name in zipped.namelist():
                footer = footer_of(zipped.read(name))[1] if name.endswith(".parquet") else None
                if footer:
                    tree, end = read_struct(footer)
                    assert (end, encode_struct(tree)) == (len(footer), footer), (archive, name)
                    seen += 1
    assert seen > 100


def test_every_footer_of_arrow_comes_back_byte_for_byte() -> None:
    for seed in range(300):
        footer = footer_of(random_file(Random(seed), random_table(Random(seed))))[1]
        assert footer is not None
        tree, end = read_struct(footer)
        assert (end, encode_struct(tree)) == (len(footer), footer)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\x1d\x00", "no type 13"),
        (b"\x15\x02\x05\x02\x02\x00", "field 1 is there twice"),
        (b"\x16" + b"\xff" * 10 + b"\x01\x00", "longer than 64 bits"),
        (b"\x18\x7fab", "longer than all"),
        (b"\x19\xf8\x7f", "longer than all"),
        (b"\x1b\x00\x00", "no type 11"),
        (b"\x1c" * 60, "nested too deeply"),
        (b"\x19\x19" * 60, "nested too deeply"),
    ],
)
def test_what_is_none_is_refused(data: bytes, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        read_struct(data)


@pytest.mark.parametrize("entries", [b"\x00", b"\x02\x85\x02ab\x04\x01c\x06"])
def test_maps_are_passed_over_since_other_readers_do(entries: bytes) -> None:
    reader = CompactReader(b"\x1b" + entries + b"\x15\x02\x00y")
    reader.skip(STRUCT)
    assert reader.data[reader.position :] == b"y"
    with pytest.raises(ValueError, match="a map is longer than all"):
        CompactReader(b"\x1b\x7f").skip(STRUCT)


LEVELS: dict[str, tuple[int, Callable[[int, bytes], bytes]]] = {
    "list": (LIST, lambda kind, inner: bytes([16 | kind]) + inner),
    "struct": (STRUCT, lambda kind, inner: bytes([16 | kind]) + inner + b"\0"),
    "key of a map": (MAP, lambda kind, inner: bytes([1, kind << 4 | I32]) + inner + b"\0"),
    "value of a map": (MAP, lambda kind, inner: bytes([1, I32 << 4 | kind]) + b"\0" + inner),
}


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_of_what_is_passed_over_counts_once(level: str) -> None:
    own, wrapped = LEVELS[level]
    kind, data = I32, b"\0"
    for _ in range(MAX_NESTING):
        kind, data = own, wrapped(kind, data)
    reader = CompactReader(data + b"y")
    reader.skip(kind)
    assert reader.position == len(data)
    with pytest.raises(ValueError, match="nested too deeply"):
        CompactReader(wrapped(kind, data)).skip(own)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (lambda: read_struct(data), lambda: CompactReader(data).skip(STRUCT)):
        with suppress(ValueError, IndexError):
            read()


def test_the_values_of_a_tree_are_bounded() -> None:
    """A list of empty structs takes a byte each, and a hundred in memory."""
    data = b"\x19\xfc" + b"\x80\x80\x04" + b"\0" * (1 << 16) + b"\0"
    assert len(read_struct(data)[0][1][1].values) == 1 << 16
    with pytest.raises(ValueError, match="more than 1000 values"):
        CompactReader(data, most_values=1000).struct()
