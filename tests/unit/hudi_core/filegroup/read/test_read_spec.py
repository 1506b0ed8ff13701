"""A spec survives JSON, and what is rebuilt from it reads the same; what whole tables hold is in tests/golden."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields

import pyarrow as pa
import pytest

from hudi_core.engine.serializer import from_text, to_text
from hudi_core.errors import ConfigError
from hudi_core.expr.tree import Column, Compare, Literal
from hudi_core.filegroup.read.read_spec import ReaderSpec, RowFilter, of_commit_times, of_predicate
from hudi_core.filegroup.read.slice_reader import SliceReader
from tests.support.golden_data import GoldenCase
from tests.support.slice_readers import opened, rows

Golden = Callable[[str, str], GoldenCase]
PREDICATE = Compare(">", Column(("ts",)), Literal.of(0))


def rebuilt(spec: ReaderSpec) -> ReaderSpec:
    """The spec after a journey as text."""
    return from_text(ReaderSpec, to_text(spec))


@pytest.mark.parametrize(
    ("version", "case"),
    [("6", "types_mor"), ("8", "types_mor"), ("9", "drop_partition_columns"), ("9", "no_meta_fields_mor")],
)
def test_a_rebuilt_reader_reads_the_same(golden: Golden, version: str, case: str) -> None:
    reader, slices = opened(golden(version, case).table, options={"hoodie.some.option": "é\n="})
    again = SliceReader(reader.storage, rebuilt(reader.spec))
    assert again.spec == reader.spec
    assert rows(again, slices) == rows(reader, slices)


def test_every_field_travels(golden: Golden) -> None:
    reader, _ = opened(
        golden("8", "mor_basic").table,
        columns=("id",),
        commit_times=frozenset({"1", "2"}),
        predicate=PREDICATE,
        zone="Asia/Tokyo",
    )
    spec = reader.spec.up_to("3")
    assert rebuilt(spec) == spec
    assert (spec.columns, spec.commit_times, spec.latest_instant, spec.zone) == (("id",), {"1", "2"}, "3", "Asia/Tokyo")


def test_json_of_another_kind_is_refused(golden: Golden) -> None:
    raw = json.loads(to_text(opened(golden("6", "mor_log_only").table)[0].spec))
    names = [item.name for item in fields(ReaderSpec)]
    columns, config = names.index("columns"), names.index("config")
    for broken in (
        {},
        [],
        [*raw, 1],
        [*raw[:columns], 5, *raw[columns + 1 :]],
        [*raw[:config], None, *raw[config + 1 :]],
        raw[:-1],
    ):
        with pytest.raises(ConfigError):
            from_text(ReaderSpec, json.dumps(broken))


BATCH = pa.record_batch(
    [pa.array(["001", "002", None, "003"]), pa.array([1, 2, 3, None])], ["_hoodie_commit_time", "n"]
)


def test_null_in_the_mask_drops_the_row() -> None:
    rows = RowFilter(frozenset({"n"}), lambda batch: pa.array([True, None, False, True])).apply(BATCH)
    assert rows["_hoodie_commit_time"].to_pylist() == ["001", "003"]


def test_commit_times() -> None:
    keeps = of_commit_times(frozenset({"003", "001"}))
    assert keeps.columns == {"_hoodie_commit_time"}
    assert keeps.apply(BATCH)["_hoodie_commit_time"].to_pylist() == ["001", "003"]
    assert of_commit_times(frozenset()).apply(BATCH).num_rows == 0


def test_predicate() -> None:
    keeps = of_predicate(Compare(">", Column(("N",)), Literal.of(1)), BATCH.schema)
    assert keeps.columns == {"n"}, "spelled as in the schema"
    assert keeps.apply(BATCH)["n"].to_pylist() == [2, 3]
    with pytest.raises(ConfigError, match="other"):
        of_predicate(Compare(">", Column(("other",)), Literal.of(1)), BATCH.schema)
