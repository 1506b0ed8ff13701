"""Containers of one record."""

from __future__ import annotations

import pytest

from hudi_core.codec.avro.container import read_container, write_container
from hudi_core.errors import CorruptFileError
from hudi_core.timeline.actions.content import decode_any, decode_datum, decode_record, encode_datum, load_schema

PLAN = {
    "operations": [],
    "extraMetadata": None,
    "version": 2,
    "strategy": None,
    "preserveHoodieMetadata": None,
}
LATER = {"name": "later", "type": ["null", "string"], "default": None}


def test_a_record_in_the_schema_of_0_15_and_with_later_fields() -> None:
    data = encode_datum("HoodieCompactionPlan", PLAN, metadata={"more": b"1"})
    assert decode_datum(data, path="p") == PLAN
    assert read_container(data, path="p")[0] == load_schema("HoodieCompactionPlan")
    later = encode_datum("HoodieCompactionPlan", {**PLAN, "later": "x"}, later_fields=[LATER])
    assert decode_datum(later, path="p") == {**PLAN, "later": "x"}
    assert "later" not in [item["name"] for item in load_schema("HoodieCompactionPlan")["fields"]]


def test_fields_are_passed_over() -> None:
    data = encode_datum("HoodieCompactionPlan", PLAN)
    rest = {name: value for name, value in PLAN.items() if name != "operations"}
    assert decode_datum(data, path="p", without=frozenset({"operations", "other"})) == rest
    assert decode_datum(data, path="p", without=frozenset({"other"})) == PLAN
    assert decode_any(b'{"a": 1, "b": 2}', path="p", without=frozenset({"a"})) == {"b": 2}


def test_what_is_no_single_record_is_refused_by_name() -> None:
    two = write_container(load_schema("HoodieCompactionPlan"), [PLAN, PLAN])
    with pytest.raises(CorruptFileError, match="2 Avro records") as caught:
        decode_datum(two, path="file")
    assert caught.value.path == "file"
    with pytest.raises(CorruptFileError, match="no cleaner plan"):
        decode_record(encode_datum("HoodieCompactionPlan", PLAN), "policy", "cleaner plan", path="file")


def test_any_file_of_a_timeline() -> None:
    assert decode_any(b"", path="p") == {}
    assert decode_any(b'{"a": 1}', path="p") == {"a": 1}
    assert decode_any(encode_datum("HoodieCompactionPlan", PLAN), path="p") == PLAN
