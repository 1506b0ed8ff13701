from __future__ import annotations

import contextlib
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudi_core.codec.avro.container as container
from hudi_core.codec.avro.datum import IS_PURE, DatumCodec, codec_of
from hudi_core.errors import CorruptFileError, FormatError
from tests.support.avro_columns import tables
from tests.support.avro_data import decode_datum, encode_datum

WRAPPERS = [
    {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}
    for name, kind in (("Int", "int"), ("Long", "long"))
]
SCHEMA = {
    "type": "record",
    "name": "r",
    "namespace": "n",
    "fields": [{"name": "v", "type": ["null", *WRAPPERS]}, {"name": "d", "type": "string", "default": "x"}],
}


@settings(max_examples=25, deadline=None)
@given(tables())
def test_encoding_what_was_decoded_gives_the_same_bytes(
    case: tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    schema, rows, _ = case
    codec = DatumCodec(schema)
    for row in rows:
        data = codec.encode(row)
        assert codec.decode(data) == row
        assert codec.encode(codec.decode(data)) == data


@settings(max_examples=25, deadline=None)
@given(tables(), st.data())
def test_fields_that_are_not_asked_for_are_passed_over(
    case: tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]], data: st.DataObject
) -> None:
    schema, rows, _ = case
    names = data.draw(st.sets(st.sampled_from([entry["name"] for entry in schema["fields"]])))
    whole, some = DatumCodec(schema), DatumCodec(schema, only=names)
    for row in rows:
        encoded = whole.encode(row)
        expected = {name: value for name, value in row.items() if name in names}
        assert some.decode(encoded) == expected
        with pytest.raises(CorruptFileError, match="Avro datum"):
            some.decode(encoded + b"0")
        with contextlib.suppress(CorruptFileError):
            assert some.decode(encoded[:-1]) == expected, "a field that was passed over is cut"


def test_a_field_of_a_type_that_a_field_passed_over_defines_is_refused() -> None:
    named = {"type": "fixed", "name": "f", "size": 1}
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": named}, {"name": "b", "type": "f"}]}
    with pytest.raises(FormatError, match="not an Avro schema"):
        DatumCodec(schema, only=["b"])


def test_the_branch_of_a_union_of_records_is_kept() -> None:
    for name in ("n.Int", "n.Long"):
        data = encode_datum(SCHEMA, {"v": (name, {"value": 1})})
        assert decode_datum(SCHEMA, data) == {"v": (name, {"value": 1}), "d": "x"}
    assert decode_datum(SCHEMA, encode_datum(SCHEMA, {"v": None})) == {"v": None, "d": "x"}


def test_logical_types_do_not_convert() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "t", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]}],
    }
    far = {"t": -(1 << 63)}
    assert decode_datum(schema, encode_datum(schema, far)) == far


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x06",
        b"\x02",
        b"\x00\x04a",
        b"\x00\x02a\x00",
        b"\x00\x02\xff",
        b"\x01\x00",
        b"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    ],
)
def test_broken_data_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="plan: Avro datum"):
        decode_datum(SCHEMA, data, path="plan")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_give_a_value_or_a_typed_error(data: bytes) -> None:
    with contextlib.suppress(CorruptFileError):
        assert set(decode_datum(SCHEMA, data, path="plan")) == {"v", "d"}


@pytest.mark.parametrize("value", [{"v": ("n.No", {})}, {"v": 3}, {"v": None, "d": None}, 5])
def test_values_that_do_not_fit_are_refused(value: Any) -> None:
    with pytest.raises(FormatError, match="does not fit"):
        encode_datum(SCHEMA, value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": "b.c"}]},
        {"type": "record"},
        7,
    ],
)
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(FormatError, match="not an Avro schema"):
        DatumCodec(schema)


NOTHING = {"type": "record", "name": "nothing", "fields": []}


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "null"},
        NOTHING,
        {"type": "record", "name": "nothing"},
        {"type": "fixed", "name": "nothing", "size": 0},
        {"type": "record", "name": "pair", "fields": [{"name": "a", "type": "null"}, {"name": "b", "type": NOTHING}]},
    ],
)
def test_arrays_of_items_without_bytes_are_refused(items: Any) -> None:
    """Found by fuzzing a compaction plan: a damaged schema made records of nothing, and ten bytes of data claimed 2^40
    of them.
    """
    array = {"type": "array", "items": items}
    for schema in (
        array,
        {"type": "record", "name": "r", "fields": [{"name": "v", "type": ["null", {"type": "map", "values": array}]}]},
    ):
        with pytest.raises(FormatError, match="no bytes"):
            decode_datum(schema, b"\x80\x80\x80\x80\x80\x80\x01\x00")


def test_a_name_stands_for_what_it_was_given_to() -> None:
    fields = [{"name": "a", "type": NOTHING}, {"name": "b", "type": {"type": "array", "items": "n.nothing"}}]
    with pytest.raises(FormatError, match="no bytes"):
        DatumCodec({"type": "record", "name": "r", "namespace": "n", "fields": fields})


def test_codecs_are_cached_by_schema_object() -> None:
    schema = {"type": "record", "name": "r", "fields": []}
    assert codec_of(schema) is codec_of(schema)
    assert codec_of(dict(schema)) is not codec_of(schema)
    for index in range(300):
        codec_of({"type": "record", "name": f"r{index}", "fields": []})
    assert codec_of(schema).schema is schema


def test_the_compiled_fastavro_is_in_use_here() -> None:
    assert not IS_PURE


SCRIPT = """
import sys
kept = [entry for entry in sys.path if "site-packages" not in entry and not entry.endswith("spark_jobs")]
sys.path = [sys.argv[1]] + kept
names = [type(finder).__module__ + getattr(finder, "__name__", "") for finder in sys.meta_path]
sys.meta_path = [finder for finder, name in zip(sys.meta_path, names) if "editable" not in name]
from hudi_core.codec.avro.datum import IS_PURE
from hudi_core.codec.avro.container import read_container, write_container
import fastavro
assert IS_PURE and "_vendor" in fastavro.__file__, fastavro.__file__
fields = [{"name": "a", "type": ["null", "long"]}, {"name": "m", "type": {"type": "map", "values": "string"}}]
schema = {"type": "record", "name": "r", "fields": fields}
records = [{"a": 1 << 40, "m": {"k": "zü"}}, {"a": None, "m": {}}]
assert read_container(write_container(schema, records), path="x") == (schema, records)
try:
    read_container(write_container(schema, records)[:-20], path="x")
except Exception as error:
    print(type(error).__name__)
"""


def test_a_zip_brings_its_own_fastavro(tmp_path: Path) -> None:
    core = Path(container.__file__).parents[2]
    spec = find_spec("fastavro")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    wheel = Path(spec.submodule_search_locations[0])
    archive = tmp_path / "job.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in core.rglob("*.py"):
            zipped.write(path, Path("hudi_core") / path.relative_to(core))
        for path in wheel.rglob("*.py"):
            zipped.write(path, Path("_vendor/fastavro") / path.relative_to(wheel))
    done = subprocess.run(
        [sys.executable, "-S", "-c", SCRIPT, str(archive)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={},
    )
    assert (done.returncode, done.stdout.strip()) == (0, "CorruptFileError"), done.stderr
