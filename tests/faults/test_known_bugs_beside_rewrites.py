"""Bugs of real Hudi that lost or doubled rows while a rewrite was at work, or planned (ids are Hudi's). Those of
compactions alone are in test_known_bugs.py.

Each test holds with the guard in place, and shows what happens when the named guard is taken away.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import ConflictError, FormatError, HudiError
from hudi_core.filegroup.read.planned_slices import PlanCheck
from hudi_core.services.clustering import job as clustering_job
from hudi_core.services.rewriting import job as rewrite
from hudi_core.timeline.actions.replacecommit import (
    ClusteringGroup,
    ClusteringPlan,
    encode_clustering_plan,
)
from hudi_core.transaction import claim, claim_file
from hudi_core.view.file_system_view import FileSystemView
from hudi_core.view.slicing import Slicing
from tests.faults.test_known_bugs import keeps_losers, read_optimized
from tests.faults.test_races_of_rewrites import VERSIONS, WORKS, due, files, finished, run_beside
from tests.support.changed_tables import open_context
from tests.support.golden_clusterings import cluster, clustering_action, slice_of
from tests.support.golden_compactions import compact
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import places
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
REWRITES = [(version, work) for version in VERSIONS for work in WORKS if work != "compaction"]
OF_NEW_FILES = [(version, work) for version in VERSIONS for work in ("clustering", "sorted clustering", "overwrite")]


@pytest.mark.parametrize(("version", "work"), tiered(REWRITES, [("9", "log compaction"), ("6", "overwrite")]))
def test_hudi_7503_no_second_run_rolls_back_what_a_live_one_writes(
    golden: Golden, version: str, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: the claim's signs of life. Without it the files go under the first run's hands; no row is lost even so,
    as its completion is fenced besides.
    """
    table = golden(version, "mor_basic").table
    rows, known, run = read_rows(table), files(table), WORKS[work].begin(table)

    def refused() -> None:
        with pytest.raises(ConflictError, match="is run by"):
            run(None, "the second")

    run_beside(run, refused)
    finished(table, lambda: None, due(work, rows), known)

    table = golden(version, "mor_basic").table
    rows, known, run = read_rows(table), files(table), WORKS[work].begin(table)
    written: set[Path] = set()

    def takes_over() -> None:
        written.update(files(table) - known)
        run(None, "the second")

    for module in (claim, claim_file):
        monkeypatch.setattr(module, "silence", lambda *_: None)
    with pytest.raises(ConflictError):
        run_beside(run, takes_over)
    assert bool(written) == (work != "delete")
    assert not written & files(table)
    finished(table, lambda: None, due(work, rows), known)


@pytest.mark.parametrize(("version", "work"), tiered(OF_NEW_FILES, [("9", "clustering"), ("6", "overwrite")]))
def test_hudi_4308_hudi_4810_new_files_of_a_live_run_are_not_read(
    golden: Golden, version: str, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: files of instants that are pending are invisible (view.slicing)."""
    table = golden(version, "mor_basic").table
    rows, bases, run = read_rows(table), read_optimized(table), WORKS[work].begin(table)

    def reads() -> None:
        for listing in ("off", "auto"):
            assert_same_rows(read_rows(table, listing), rows)
        assert_same_rows(read_optimized(table), bases)
        with monkeypatch.context() as unguarded:
            unguarded.setattr(Slicing, "file_visible", lambda *_: True)
            unguarded.setattr(Slicing, "slice_visible", lambda *_: True)
            assert read_rows(table, "off").num_rows == 2 * rows.num_rows
            assert read_optimized(table).num_rows > bases.num_rows

    run_beside(run, reads)
    assert places(read_rows(table)) == places(rows)


@pytest.mark.parametrize(
    ("version", "work"),
    tiered(OF_NEW_FILES, [("6", "clustering"), ("8", "sorted clustering"), ("9", "overwrite")]),
)
def test_hudi_9244_hudi_697_hudi_9615_files_of_retried_and_speculative_tasks_go(
    golden: Golden, version: str, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A losing attempt left a parquet file of 4 bytes and a double. Guard: remove_losers."""

    def run_with_losers() -> tuple[Path, Any, frozenset[Path]]:
        table = golden(version, "mor_basic").table
        rows, known, run = read_rows(table), files(table), WORKS[work].begin(table)

        def lose() -> None:
            (winner, *_) = sorted(files(table) - known)
            group, _, instant = winner.name.split("_")
            winner.with_name(f"{group}_9-1-9_{instant}").write_bytes(b"PAR1")
            shutil.copy(winner, winner.with_name(f"00000000-0000-0000-0000-000000000000-0_9-1-9_{instant}"))

        run_beside(run, lose)
        return table, rows, known

    table, rows, known = run_with_losers()
    finished(table, lambda: None, rows, known)
    monkeypatch.setattr(rewrite, "remove_losers", keeps_losers)
    table, rows, _ = run_with_losers()
    with pytest.raises((AssertionError, HudiError)):
        assert places(read_rows(table, "off")) == places(rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_3692_hudi_5110_what_was_written_behind_a_plan_is_compacted_and_read(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: the slice that a compaction is pending on and the logs since are read as one, whichever listing a view is
    of.
    """
    table = golden(version, "mor_compaction_requested").table
    rows = read_rows(table, "off")
    assert_same_rows(read_rows(table, "on"), rows)
    with monkeypatch.context() as unguarded:
        unguarded.setattr(FileSystemView, "_merged", lambda self, group, as_of: group.latest_slice())
        assert read_rows(table, "on").num_rows < rows.num_rows
    compact(table)
    for listing in ("on", "off"):
        assert_same_rows(read_rows(table, listing), rows)
    assert_metadata_true(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_5110_no_clustering_of_what_was_written_behind_a_pending_compaction(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The latest slice of such a file group holds that alone, and the rows below would be replaced with it. Guards:
    check_no_plans_on, and in layout 2 what a plan is compared with.
    """
    table = golden(version, "mor_compaction_requested").table
    rows = read_rows(table)
    instant = plan_behind_compactions(table)
    with pytest.raises(ConflictError, match="is pending on file groups"):
        cluster(table, instant)
    assert_same_rows(read_rows(table), rows)
    monkeypatch.setattr(clustering_job, "check_no_plans_on", lambda *_: None)
    if version != "6":
        with pytest.raises(FormatError, match="does not name the file slice"):
            cluster(table, instant)
        monkeypatch.setattr(PlanCheck, "check", lambda *_, **__: None)
    cluster(table, instant)
    assert places(read_rows(table)) != places(rows)


def plan_behind_compactions(table: Path) -> str:
    """Requests a clustering of the latest slices of file groups with a pending compaction."""
    context = open_context(table)
    view = context.view(context.active.load())
    slices = tuple(
        slice_of(item)
        for name in view.partitions()
        for item in view.latest_slices(name)
        if item.data_files and item.file_group in view.pending.compacting
    )
    assert slices
    instant = context.new_instant(context.active.load())
    plan = ClusteringPlan((ClusteringGroup(slices, 1),), strategy_params={}, preserves_metadata=True)
    content = encode_clustering_plan(plan, lambda path: f"{table}/{path}")
    context.active.create_requested(instant, clustering_action(context.active.layout), content)
    return instant
