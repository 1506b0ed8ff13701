"""A build of planned indexes: as many file groups as planned, and files that are cleaned meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, StorageNotFoundError
from hudi_core.metadata_table.initialize.indexing import IndexBuild
from hudi_core.services.indexing.build import IndexBuilder
from hudi_core.services.indexing.planner import IndexingService
from hudi_core.services.lifecycle import Run
from hudi_core.transaction.owner import Owner
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
OWNER = Owner.current("test")


def builder_of(table: Path, counts: dict[str, int], progress: list[tuple[int, int]]) -> IndexBuilder:
    context = context_of(table, {"hoodie.metadata.record.index.enable": "true"})
    instant = IndexingService().schedule(context, OWNER, dry_run=False).instant
    assert instant is not None
    run = Run(context, instant, OWNER, LocalEngine(1), lambda done, all_: progress.append((done, all_)))
    return IndexBuilder(run, counts, 1)


@pytest.mark.parametrize("version", ["8", "9"])
def test_an_index_gets_the_planned_number_of_file_groups(golden: Golden, version: str) -> None:
    progress = list[tuple[int, int]]()
    builder = builder_of(golden(version, "mor_basic").table, {"record_index": 3}, progress)
    assert builder.rows(["record_index"]) == {}, "no estimate is needed"
    _, written = builder.rebuilt(["record_index"], lambda: None)
    assert len(written["record_index"]) == 3
    assert progress == [(1, 1)]


def test_a_clean_of_a_file_ends_the_build(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = builder_of(golden("8", "mor_basic").table, {}, [])

    def fill(*_: object) -> None:
        raise StorageNotFoundError("there is no such file", path="p/a.parquet")

    monkeypatch.setattr(IndexBuild, "fill", fill)
    assert sum(builder.rows(["record_index"]).values()) > 0
    started = builder.start(["record_index"], lambda: None)
    with pytest.raises(ConflictError, match="cleaned while the index was built") as caught:
        builder.fill(started)
    assert caught.value.path == "p/a.parquet"
