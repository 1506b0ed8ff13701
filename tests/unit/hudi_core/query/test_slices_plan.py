"""What a query over slices plans: its reader, the columns, the partitions that are listed and the files to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_core.engine.serializer import from_text
from hudi_core.errors import ConfigError
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.model.names import FileGroupId
from hudi_core.query import slices_plan
from hudi_core.query.context import ReadContext, reader_spec
from hudi_core.query.request import ReadRequest
from hudi_core.query.slices_plan import SlicesPlanner
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.splits import slice_of

Golden = Callable[[str, str], GoldenCase]
DAY = "2024-01-02"


def spec_of(context: ReadContext, **more: Any) -> ReaderSpec:
    timeline = context.active.load()
    schema = table_schema(context.storage, context.config, timeline)
    return reader_spec(context, schema, timeline, merge_logs=True, **more)


def planner_of(context: ReadContext, request: ReadRequest) -> SlicesPlanner:
    return SlicesPlanner(context, request, spec_of(context), None, current=True)


def test_a_predicate_is_bound_to_the_columns_of_the_query(golden: Golden) -> None:
    context = open_context(golden("9", "cow_basic").table)
    assert planner_of(context, ReadRequest()).spec.bound is None
    bound = planner_of(context, ReadRequest(columns=("id",), where="QTY > 3")).spec.bound
    assert bound is not None
    assert set(bound.columns) == {"qty"}
    for where in ("other = 1", "id >", "qty = 'x'"):
        with pytest.raises(ConfigError):
            planner_of(context, ReadRequest(where=where))


def test_the_reader_of_a_query(golden: Golden) -> None:
    context = open_context(golden("8", "mor_basic").table)
    first, *_, last = context.active.load().commits()
    assert spec_of(context).latest_instant == last.requested_time
    assert spec_of(context, up_to=first.requested_time).latest_instant == first.requested_time
    times = frozenset({first.requested_time})
    assert spec_of(context, commit_times=times).commit_times == times


def test_columns_that_the_table_lacks(golden: Golden) -> None:
    context = open_context(golden("9", "cow_basic").table)
    assert planner_of(context, ReadRequest(columns=("qty", "id"))).schema.names == ["qty", "id"]
    with pytest.raises(ConfigError, match=r"'nope'.*_hoodie_commit_time"):
        planner_of(context, ReadRequest(columns=("id", "nope")))


def test_of_many_partitions_only_those_that_may_match_are_listed(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = open_context(golden("9", "cow_basic").table)
    names = context.view(context.active.load()).partitions()
    chosen = [name for name in names if DAY in name]
    assert 0 < len(chosen) < len(names)
    request = ReadRequest(where=f"dt = '{DAY}'")
    assert planner_of(context, request).partitions(names) == names, "few partitions are all counted"
    monkeypatch.setattr(slices_plan, "COUNTED_PARTITIONS", 1)
    assert planner_of(context, request).partitions(names) == chosen
    assert planner_of(context, ReadRequest()).partitions(names) == names


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_slices_that_the_predicate_rules_out_are_not_read(golden: Golden, version: str) -> None:
    context = open_context(golden(version, "cow_basic").table)
    view = context.view(context.active.load())
    slices = [item for name in view.partitions() for item in view.latest_merged_slices(name)]
    whole = planner_of(context, ReadRequest()).plan(slices)
    assert [slice_of(split) for split in whole.splits] == slices
    assert (whole.files_read, whole.files_pruned) == (sum(len(item.data_files) for item in slices), 0)
    request = ReadRequest(columns=("id",), where=f"dt = '{DAY}'")
    plan = planner_of(context, request).plan(slices)
    kept: list[FileGroupId] = [slice_of(split).file_group for split in plan.splits]
    assert kept == [item.file_group for item in slices if DAY in item.file_group.partition]
    assert plan.files_read + plan.files_pruned == whole.files_read
    spec = from_text(ReaderSpec, plan.common["reader"])
    assert (spec.columns, spec.predicate is None) == (("id",), False), "a task filters rows by the same predicate"
