"""Clustering plans of real Hudi in the golden tables: encoded again they are the same bytes, and ours of the same table
are the same groups.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from hudi_core.config.services.clustering_config import LAYOUT, SORT_COLUMNS, TARGET_FILE_BYTES
from hudi_core.services.clustering.planner import Planned, make_plan
from hudi_core.services.context import TableContext
from hudi_core.services.service import Nothing
from hudi_core.timeline.actions.replacecommit import (
    ClusteringGroup,
    ClusteringPlan,
    decode_clustering_plan,
    encode_clustering_plan,
)
from hudi_core.timeline.timeline import Timeline
from tests.support.golden_clustering_plans import clustered_tables, requested_clustering
from tests.support.golden_compactions import context_of
from tests.support.golden_views import load_table

SYNC_BYTES = 16
NOW = datetime(2026, 1, 1)
SORTED = {SORT_COLUMNS.name: "name,qty"}
"""As all clusterings of the golden tables were planned."""


def context(name: str, options: dict[str, str] | None = None) -> TableContext:
    return context_of(Path(name), options or SORTED, load_table(name))


def plan(context: TableContext, timeline: Timeline, instant: str) -> Planned | Nothing:
    return make_plan(context, timeline, instant, now=NOW)


def by_partition(context: TableContext, found: ClusteringPlan) -> list[ClusteringGroup]:
    """The groups by partition; slices of one size in any order, as Hudi keeps file groups in a hash map."""

    def size(base_file: str | None, partition: str) -> int:
        return 0 if base_file is None else context.storage.stat(f"{partition}/{base_file}").size

    groups = (
        replace(
            group,
            slices=tuple(sorted(group.slices, key=lambda item: (-size(item.base_file, item.partition), item.file_id))),
        )
        for group in found.groups
    )
    return sorted(groups, key=lambda group: group.slices[0].partition)


@pytest.mark.parametrize("name", clustered_tables())
def test_a_plan_is_encoded_as_real_hudi_did(name: str) -> None:
    found = requested_clustering(name)
    assert found is not None
    _, path, data = found
    plan = decode_clustering_plan(data, path=path)
    assert plan is not None
    first = plan.slices[0]
    names_it = f"/{first.partition}/{first.base_file}".encode()
    root = data[: data.index(names_it)].rpartition(b"/warehouse")
    scheme = b"file:" if root[0].endswith(b"file:") else b""
    base = (scheme + root[1] + root[2]).decode()

    ours = encode_clustering_plan(plan, lambda relative: f"{base}/{relative}")

    assert ours.replace(ours[-SYNC_BYTES:], data[-SYNC_BYTES:]) == data, "but for the sync marker, which is random"


def is_cleaned(name: str) -> bool:
    """Whether the files that were clustered are gone."""
    return "cleaned" in name


@pytest.mark.parametrize("name", [name for name in clustered_tables() if not is_cleaned(name)])
def test_our_plan_is_the_one_that_real_hudi_made(name: str) -> None:
    found = requested_clustering(name)
    assert found is not None
    instant, path, data = found
    real = decode_clustering_plan(data, path=path)
    assert real is not None
    table = context(name)

    made = plan(table, table.active.load().before(instant), instant)

    assert isinstance(made, Planned), made
    assert by_partition(table, made.plan) == by_partition(table, real)
    sizes = [[table.storage.stat(f"{i.partition}/{i.base_file}").size for i in g.slices] for g in made.plan.groups]
    assert sizes == [sorted(group, reverse=True) for group in sizes], "the largest come first"
    assert made.plan.strategy_params == {**real.strategy_params, TARGET_FILE_BYTES.name: str(1 << 30)}
    assert real.missing_partitions in ((), None)
    assert made.plan.missing_partitions == ()
    assert replace(made.plan, groups=(), strategy_params={}, missing_partitions=None) == replace(
        real, groups=(), strategy_params={}, missing_partitions=None
    )


@pytest.mark.parametrize("name", [name for name in clustered_tables() if name.endswith(".after")])
def test_what_real_hudi_clustered_is_not_planned_again(name: str) -> None:
    """Real Hudi would rewrite each of its files (hudi#13475, hudi#14086)."""
    table = context(name)
    made = plan(table, table.active.load(), "20990101000000000")
    assert made == Nothing(
        "no file group is to be clustered in 3 partitions, beside 3 that an earlier clustering left as this one would "
        f"({SORT_COLUMNS.name}, {LAYOUT.name}, {TARGET_FILE_BYTES.name})"
    )
    other = context(name, {SORT_COLUMNS.name: "qty"})
    again = plan(other, other.active.load(), "20990101000000000")
    assert isinstance(again, Planned)
    assert len(again.plan.slices) == 3, "in another order they are"
