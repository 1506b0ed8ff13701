from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.filegroup.merge.record_keys import delete_flags, key_texts, record_keys
from hudi_core.filegroup.merge.table_policy import DeleteMark, MergePolicy


def test_one_key_field_is_its_text() -> None:
    batch = pa.record_batch({"id": [1, -2], "name": ["a", "b"]})
    assert record_keys(batch, ("id",), path="p").to_pylist() == ["1", "-2"]
    assert record_keys(batch, ("name",), path="p").to_pylist() == ["a", "b"]


def test_several_key_fields_are_named_and_joined() -> None:
    batch = pa.record_batch({"id": pa.array([1, None, 3], pa.int64()), "name": ["a:b,c", "x", ""]})
    assert record_keys(batch, ("id", "name"), path="p").to_pylist() == [
        "id:1,name:a:b,c",
        "id:__null__,name:x",
        "id:3,name:__empty__",
    ]
    with pytest.raises(CorruptFileError, match=r"log-7.*id, name"):
        record_keys(pa.record_batch({"id": pa.array([None], pa.int64()), "name": [""]}), ("id", "name"), path="log-7")


def test_key_fields_may_be_nested_or_absent() -> None:
    """As RecordContext.virtualKeyExtractor finds them."""
    batch = pa.record_batch({"s": [{"id": "k1"}, {"id": "k2"}], "last": ["x", "y"]})
    assert record_keys(batch, ("s.id",), path="p").to_pylist() == ["k1", "k2"]
    assert record_keys(batch, ("s.id", "gone"), path="p").to_pylist() == [
        "s.id:k1,gone:__null__",
        "s.id:k2,gone:__null__",
    ]
    for field in ("gone", "s.gone", "last.id"):
        with pytest.raises(CorruptFileError, match="2 records have no record key"):
            record_keys(batch, (field,), path="p")


def test_null_keys_are_refused_by_name() -> None:
    with pytest.raises(CorruptFileError, match="log-7"):
        key_texts(pa.array(["a", None]), path="log-7")
    with pytest.raises(UnsupportedError, match="double"):
        key_texts(pa.array([1.5]), path="p")


def flags(mark: DeleteMark, values: pa.Array) -> list[bool]:
    return delete_flags(pa.record_batch([values], ["c"]), MergePolicy(("id",), (), delete_marks=(mark,))).tolist()


def test_marks_are_texts_whatever_the_column() -> None:
    assert flags(DeleteMark("c", ("true",)), pa.array([True, False, None])) == [True, False, False]
    assert flags(DeleteMark("c", ("2",)), pa.array([2, 1, None])) == [True, False, False]
    assert flags(DeleteMark("c", ("D", "-U")), pa.array(["D", "-U", "d", "+U", None])) == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert flags(DeleteMark("c", ("D",), any_case=True), pa.array(["D", "d", "x", None])) == [True, True, False, False]
    assert flags(DeleteMark("gone", ("D",)), pa.array(["D"])) == [False]
    assert flags(DeleteMark("C", ("D",)), pa.array(["D"])) == [False], "Hudi's payloads look for the exact name"
    with pytest.raises(UnsupportedError, match="'c'"):
        flags(DeleteMark("c", ("D",)), pa.array([["D"]]))


def test_a_mark_may_be_in_a_nested_column() -> None:
    policy = MergePolicy(("id",), (), delete_marks=(DeleteMark("m.op", ("D",)),))
    batch = pa.record_batch({"m": pa.array([{"op": "D"}, {"op": "I"}, None], pa.struct([("op", pa.string())]))})
    assert delete_flags(batch, policy).tolist() == [True, False, False]
    assert delete_flags(pa.record_batch({"m": ["D"]}), policy).tolist() == [False]


def test_a_flag_column_that_is_no_boolean_flags_nothing() -> None:
    policy = MergePolicy(("id",), (), delete_marks=(DeleteMark("_hoodie_is_deleted", ("true",)),))
    assert delete_flags(pa.record_batch({"_hoodie_is_deleted": ["true"]}), policy).tolist() == [False]
