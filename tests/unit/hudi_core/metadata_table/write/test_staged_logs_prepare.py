"""A compaction of many files: executors make the metadata table's records before the lock, and what it holds in the end
is the same.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.publish import MetadataPublisher
from hudi_core.metadata_table.write.staged_logs import STAGING, Prepared, staged_instants
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.rewriting import job as rewrite
from hudi_core.services.rollback.verb import rollback
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from tests.support.damaged_tables import DamagedTable
from tests.support.golden_compactions import compact, context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table, comparable
from tests.support.table_invariants import assert_compacted, pending_instants, read_rows
from tests.unit.hudi_core.services.compaction.test_job_metadata import plan_all

Golden = Callable[[str, str], GoldenCase]
INDEXES = {"bloom_filters", "column_stats"}
SAME_BYTES = {"airflow_hudi.parquet.gzip.library": "pyarrow"}
"""ISA-L makes other bytes of the same page now and then, and statistics hold the size of a column."""


@pytest.fixture(autouse=True)
def prepares(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few files there are."""
    monkeypatch.setattr(rewrite, "DRIVER_FILES", 0)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_the_records_are_those_that_the_driver_makes(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = golden(version, "mdt_all_mor").table
    instant = plan_all(path)
    other = Path(shutil.copytree(path, path.parent / "other", symlinks=True))
    rows, pending = read_rows(path), pending_instants(path)
    seen: list[Prepared] = []
    published = MetadataPublisher.publish_commit

    def watched(self: MetadataPublisher, at: str, metadata: Any, prepared: Any, *rest: Any, **options: Any) -> None:
        if isinstance(prepared, Prepared):
            assert staged_instants(context_of(path).storage) == {instant}
            assert not Table(path).metadata_timeline.load().contains(instant), (
                "nothing of it is in the metadata table before the lock is held"
            )
            seen.append(prepared)
        published(self, at, metadata, prepared, *rest, **options)

    monkeypatch.setattr(MetadataPublisher, "publish_commit", watched)
    compact(path, SAME_BYTES)
    assert_compacted(path, instant, rows, pending)
    (prepared,) = seen
    assert prepared.staged.keys() == prepared.groups.keys() >= INDEXES
    assert all(any(logs) for logs in prepared.staged.values())
    assert not (path / STAGING / instant).exists()
    monkeypatch.setattr(rewrite, "DRIVER_FILES", 64)
    compact(other, SAME_BYTES)
    assert len(seen) == 1
    ours, theirs = comparable(Table(path).live()), comparable(Table(other).live())
    for name in theirs:
        assert ours[name] == theirs[name], name
    assert DamagedTable(path).found() == []


def test_an_index_that_was_rebuilt_meanwhile_stops_the_publication(golden: Golden) -> None:
    """Its keys may be in other file groups now."""
    path = golden("9", "mdt_all_mor").table
    instant = plan_all(path)
    listed = MetadataTimeline.latest_slices
    with pytest.MonkeyPatch.context() as patch:
        prepared = MetadataPublisher.prepare_commit

        def then_rebuilt(self: MetadataPublisher, *args: Any) -> Prepared:
            found = prepared(self, *args)
            patch.setattr(MetadataTimeline, "latest_slices", lambda *requested: listed(*requested)[1:])
            return found

        patch.setattr(MetadataPublisher, "prepare_commit", then_rebuilt)
        with pytest.raises(ConflictError, match="was rebuilt while this ran"):
            compact(path)
    assert not Table(path).metadata_timeline.load().contains(instant)
    assert staged_instants(context_of(path).storage) == {instant}
    compact(path, instant=instant)
    assert staged_instants(context_of(path).storage) == frozenset()
    assert DamagedTable(path).found() == []


def test_staged_blocks_that_are_not_whole_are_not_published(golden: Golden) -> None:
    path = golden("8", "mdt_all_mor").table
    instant = plan_all(path)
    engine = CutEngine(path / STAGING / instant)
    with pytest.raises(ConflictError, match="bytes were staged"):
        CompactionService().run(context_of(path), instant, engine, Owner.current("test"), None)
    rows, pending = read_rows(path), pending_instants(path)
    compact(path, instant=instant)
    assert_compacted(path, instant, rows, pending)


class CutEngine(LocalEngine):
    """Cuts what was staged."""

    def __init__(self, folder: Path) -> None:
        super().__init__(2)
        self._folder = folder

    def exchange(self, *args: Any, **more: Any) -> Any:
        found = super().exchange(*args, **more)
        for file in self._folder.rglob("column_stats_*"):
            file.write_bytes(file.read_bytes()[:-1])
        return found


def test_a_rollback_of_the_instant_takes_what_was_staged(golden: Golden) -> None:
    path = golden("9", "mdt_all_mor").table
    instant = plan_all(path)
    with pytest.raises(ConflictError):
        CompactionService().run(
            context_of(path), instant, CutEngine(path / STAGING / instant), Owner.current("test"), None
        )
    assert staged_instants(context_of(path).storage) == {instant}
    rollback(context_of(path), instant, Owner.current("test"))
    assert staged_instants(context_of(path).storage) == frozenset()
    assert not Table(path).data.load().get(instant, Action.COMPACTION).is_completed
