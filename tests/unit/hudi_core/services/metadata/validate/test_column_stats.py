"""Column statistics of files that a clean deleted: Hudi 0.15's cleans leave them, later ones do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hudi_core.engine.local import LocalEngine
from hudi_core.request.model import RunRequest
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from tests.support.changed_tables import data_files
from tests.support.damaged_tables import DamagedTable
from tests.support.golden_data import GoldenCase

Golden = Callable[[str, str], GoldenCase]
BY_VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
TIGHT = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
COMPACT_AT_ONCE = {"hoodie.metadata.compact.max.delta.commits": "1"}
CASE = "mdt_all_cow_compacted"


def with_what_a_clean_leaves(table: Path) -> tuple[DamagedTable, set[str]]:
    """The table after a clean, whose deletions of statistics were taken back; the files that it deleted."""
    damaged = DamagedTable(table)
    stored = damaged.raw("column_stats")
    before = data_files(table)
    serve(table, "clean", BY_VERSIONS)
    gone = {path.rpartition("/")[2] for path in before.keys() - data_files(table).keys()}
    assert damaged.found() == []
    left = [(key, datum) for key, datum in stored.items() if datum["ColumnStatsMetadata"]["fileName"] in gone]
    assert {datum["ColumnStatsMetadata"]["fileName"] for _, datum in left} == gone
    damaged.write({"column_stats": left})
    return damaged, gone


def serve(table: Path, verb: str, options: dict[str, str]) -> None:
    """A verb, or the run of a service."""
    chosen = {"verb": verb} if verb == "metadata_update" else {"verb": "run", "service": verb}
    request = RunRequest(table=str(table), schedule=verb == "clean", owner="the tests", options=options, **chosen)
    assert HudiTable.open(str(table)).run(request, LocalEngine(1)).exit_code == 0


def test_cleans_of_version_6_leave_statistics(golden: Golden) -> None:
    table, gone = with_what_a_clean_leaves(golden("6", CASE).table)
    assert gone
    assert table.found() == []


def test_archived_cleans_of_version_6_count_too(golden: Golden) -> None:
    table, _ = with_what_a_clean_leaves(golden("6", CASE).table)
    (first, *_) = table.context.active.load().of_actions(Action.CLEAN)
    for _ in range(3):
        table.write({})
    serve(table.path, "metadata_update", COMPACT_AT_ONCE)
    serve(table.path, "archive", TIGHT)
    assert first not in table.context.active.load()
    assert table.found() == []


def test_later_cleans_do_not(golden: Golden) -> None:
    table, gone = with_what_a_clean_leaves(golden("8", CASE).table)
    assert {item.file for item in table.found()} == gone
    assert {(item.partition_type, item.what) for item in table.found()} == {
        ("column_stats", "has statistics, but `files` does not list it")
    }
