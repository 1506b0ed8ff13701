"""Arrow schemas as Avro: what comes back by arrow_schema is what went in."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.from_arrow import avro_schema
from hudi_core.errors import UnsupportedError

_LEAVES = st.sampled_from(
    [
        pa.bool_(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.binary(),
        pa.string(),
        pa.date32(),
        pa.time32("ms"),
        pa.time64("us"),
        pa.timestamp("us", tz="UTC"),
        pa.timestamp("ms", tz="UTC"),
        pa.timestamp("us"),
        pa.timestamp("ms"),
        pa.decimal128(10, 2),
    ]
)


def _fields(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[list[pa.Field]]:
    pairs = st.lists(st.tuples(kinds, st.booleans()), min_size=1, max_size=4)
    return pairs.map(
        lambda found: [pa.field(f"c{index}", kind, nullable) for index, (kind, nullable) in enumerate(found)]
    )


def _nested(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.one_of(
        _fields(kinds).map(pa.struct),
        st.tuples(kinds, st.booleans()).map(lambda item: pa.list_(pa.field("element", *item))),
        st.tuples(kinds, st.booleans()).map(lambda item: pa.map_(pa.string(), pa.field("value", *item))),
    )


@given(_fields(st.recursive(_LEAVES, _nested, max_leaves=8)).map(pa.schema))
def test_schemas_come_back(schema: pa.Schema) -> None:
    avro = avro_schema(schema, path="x")
    DatumCodec(avro)
    assert arrow_schema(avro) == schema


def test_wide_and_narrow_forms_are_the_plain_ones() -> None:
    wide = [pa.large_string(), pa.large_binary(), pa.int8(), pa.large_list(pa.int16()), pa.binary(4)]
    plain = [pa.string(), pa.binary(), pa.int32(), pa.list_(pa.field("element", pa.int32())), pa.binary(4)]
    assert arrow_schema(avro_schema(pa.schema(list(zip("abcde", wide, strict=True))), path="x")).types == plain


@pytest.mark.parametrize(
    "kind",
    [
        pa.uint64(),
        pa.timestamp("ns"),
        pa.map_(pa.int32(), pa.string()),
        pa.null(),
        pa.decimal256(50, 2),
        pa.duration("s"),
    ],
)
def test_what_avro_has_no_form_of(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match=r"^f\.parquet: column 'record_s_x'"):
        avro_schema(pa.schema([("s", pa.struct([("x", kind)]))]), path="f.parquet")
