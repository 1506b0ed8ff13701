"""Hudi 1.2 takes what is archived behind an older instant for pending, and plans compactions without its log files: our
archival leaves none behind.

Hudi's own does, behind an indexing; the doctor finds that, and our archival mends it (docs/reference/hudi-notes.md,
Timeline). Real Hudi goes on with a table whose restore is in the archive, where its own archival never puts one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from hudi_health.table import doctor_report
from tests.interop.judged import JUDGES, MOR, QUICK, Judged
from tests.interop.real_hudi import RealHudi
from tests.support.changed_tables import data_files, open_context

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

BLOOM = {"hoodie.metadata.index.bloom.filter.enable": "true", "airflow_hudi.timeline.zone": "UTC"}
KEEP = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
    **BLOOM,
}
COMPACT_METADATA = {"hoodie.metadata.compact.max.delta.commits": "1", **BLOOM}
CHANGES = 4


def with_logs_behind_an_index(hudi: RealHudi, base: Path) -> Judged:
    """An insert, an index that we built, and changes that lie in log files; nothing but the number of commits keeps
    them from the archive.
    """
    table = Judged.create(hudi, base, MOR, "9", {"hoodie.archive.automatic": "false"})
    planned = table.run("schedule", service="indexing", options=BLOOM).document
    assert planned is not None
    table.run(service="indexing", instant=planned["instant"], options=BLOOM)
    table.options |= BLOOM
    write_logs(table)
    return table


def with_logs_behind_a_restore(hudi: RealHudi, base: Path, version: str) -> Judged:
    """As with_logs_behind_an_index, with a restore by us in its place."""
    table = Judged.create(hudi, base, MOR, version, {"hoodie.archive.automatic": "false"})
    saved, rows = table.run("savepoint_create").document, table.rows
    assert saved is not None
    table.upsert()
    table.run("restore", instant=saved["instant"])
    table.rows = rows
    table.run("savepoint_delete", instant=saved["instant"])
    write_logs(table)
    return table


def write_logs(table: Judged) -> None:
    """Changes in log files, and the compaction of the metadata table that lets them be archived."""
    for _ in range(CHANGES):
        table.upsert(fresh=False)
    done = table.run("metadata_update", options=COMPACT_METADATA).document
    assert done is not None
    assert done["compacted"]["files"] > 0


def planned(table: Judged) -> set[str]:
    """The names of the log files in a compaction that real Hudi plans."""
    plan = HudiTable.open(str(table.base)).show(table.schedule_compaction(), action=Action.COMPACTION).plan
    assert plan is not None
    return {name for operation in plan["operations"] for name in operation["deltaFilePaths"]}


def log_files(table: Judged) -> set[str]:
    return {path.rsplit("/", 1)[-1] for path in data_files(table.base) if ".log." in path}


def findings(table: Judged) -> list[str]:
    found = doctor_report(HudiTable.open(str(table.base), options={**QUICK, **BLOOM})).findings
    return [finding.rule for finding in found if finding.severity == "error"]


def test_real_hudi_compacts_all_log_files_behind_our_archival(hudi_1_2: RealHudi, tmp_path: Path) -> None:
    ours = with_logs_behind_an_index(hudi_1_2, tmp_path / "ours")
    theirs = ours.copy(tmp_path / "theirs")
    ours.run(service="archive", options=KEEP)
    assert Action.INDEXING not in {item.action for item in ours.instants()}
    assert findings(ours) == []
    assert planned(ours) == log_files(ours)
    theirs.hudi.ask("service", base=str(theirs.base), name="archive", options={**theirs.options, **KEEP})
    assert theirs.instants()[0].action == Action.INDEXING
    assert findings(theirs) == ["archive_overtook"]
    lossy = theirs.copy(tmp_path / "lossy")
    assert planned(lossy) < log_files(lossy)
    theirs.run(service="archive", options=KEEP)
    assert findings(theirs) == []
    assert planned(theirs) == log_files(theirs)
    for table in (ours, theirs):
        table.hudi.ask(
            "compact",
            base=str(table.base),
            instant=table.times(Action.COMPACTION, completed=False)[0],
            options=table.options,
        )
        table.check()


@pytest.mark.parametrize("version", ["8", "9"])
def test_real_hudi_goes_on_behind_a_restore_that_we_archived(
    request: pytest.FixtureRequest, tmp_path: Path, version: str
) -> None:
    table = with_logs_behind_a_restore(request.getfixturevalue(JUDGES[version]), tmp_path / "table", version)
    assert Action.RESTORE in {item.action for item in table.instants()}
    table.run(service="archive", options=KEEP)
    assert table.instants()[0].action == Action.DELTA_COMMIT
    assert Action.RESTORE in {item.action for item in open_context(table.base).history().instants()}
    assert findings(table) == []
    table.check()
    table.goes_on()
