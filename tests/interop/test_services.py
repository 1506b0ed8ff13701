"""Real Hudi judges our services on tables of versions 6, 8 and 9: it runs our plans as we do, and goes on with the
tables that we served.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any
from unittest.mock import patch

import pytest

from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.services.clean.planner import make_plan
from hudi_core.timeline.instant import Action
from hudi_core.timeline.instant_time import parse_instant
from tests.interop.dying_writers import LAZY, MOMENTS, left_by_a_killed_writer
from tests.interop.judged import EVERY_JUDGE, KEEP_ONE, KINDS, MOR, Judged
from tests.interop.real_hudi import RealHudi
from tests.support.changed_tables import data_files, decoded, file_names, known_times, listed, shown
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

RETAINED = {
    "KEEP_LATEST_COMMITS": {"hoodie.cleaner.commits.retained": "1"},
    "KEEP_LATEST_FILE_VERSIONS": {"hoodie.cleaner.fileversions.retained": "1"},
    "KEEP_LATEST_BY_HOURS": {"hoodie.cleaner.hours.retained": "1"},
}
PATCHING = Lock()
ALONE = {"hoodie.cleaner.policy.failed.writes": "EAGER"}
"""No other process writes: a writer that is pending is dead."""


@dataclass(frozen=True)
class Case:
    """One scenario of this module on one table: `how` is the scenario's own choice, a policy or a moment."""

    scenario: str
    label: str
    kind: str
    how: str = ""

    @property
    def text(self) -> str:
        return " ".join(filter(None, (self.scenario, self.label, self.kind, self.how)))


class Sources:
    """Tables of real Hudi with an insert, upserts and, where there are logs, a compaction: made once, to be copied."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[str, str], Judged] = {}

    def of(self, hudi: RealHudi, case: Case) -> Judged:
        """The table that the case starts from."""
        key = (case.label, case.kind)
        if key not in self._made:
            table = Judged.create(hudi, self._folder / "-".join(key), case.kind, case.label[0])
            table.upsert()
            table.upsert(fresh=False)
            if case.kind == MOR:
                table.compact()
            table.upsert(fresh=False)
            self._made[key] = table
        return self._made[key]


def served_by_both(
    table: Judged, ours: Callable[[Judged], object], theirs: Callable[[Judged], object], action: str
) -> None:
    """`theirs` and `ours` on two copies of the table, at the same path since plans hold it: fails unless they come to
    the same. Ours stays.
    """
    known, backup, judged = known_times(table.base), table.base.with_name("before"), table.base.with_name("theirs")
    shutil.copytree(table.base, backup)
    theirs(table)
    table.base.rename(judged)
    backup.rename(table.base)
    ours(table)
    # A writer that dies as it begins a log file leaves no byte: real Hudi keeps that file and lists it with the size 1,
    # we delete it.
    empty = {path for path, size in data_files(judged).items() if size == 0}
    assert not empty & (data_files(table.base).keys() | listed(table.base).keys())
    assert data_files(table.base) == without(empty, data_files(judged))
    assert listed(table.base) == without(empty, listed(judged))
    for base in ("", ROOT):
        assert shown(table.base, known, base) == shown(judged, known, base)
        assert file_names(table.base, known, base) == file_names(judged, known, base)
    ours_says, theirs_says = (
        [without_deletions(empty, item) for item in decoded(base, action)] for base in (table.base, judged)
    )
    assert without_provenance(ours_says) == without_provenance(theirs_says)
    assert_same_rows(read_rows(table.base), read_rows(judged))


def without(paths: Set[str], sizes: dict[str, int]) -> dict[str, int]:
    return {path: size for path, size in sizes.items() if path not in paths}


def without_deletions(paths: Set[str], rollback: dict[str, Any]) -> dict[str, Any]:
    """A rollback's metadata without what it says of the deletion of `paths`; only rollbacks leave such paths behind."""
    if not paths:
        return rollback
    parts = rollback["partitionMetadata"]
    kept = {
        name: {**part, "successDeleteFiles": [path for path in part["successDeleteFiles"] if path not in paths]}
        for name, part in parts.items()
    }
    gone = sum(len(parts[name]["successDeleteFiles"]) - len(part["successDeleteFiles"]) for name, part in kept.items())
    return {**rollback, "partitionMetadata": kept, "totalFilesDeleted": rollback["totalFilesDeleted"] - gone}


def without_provenance(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Metadata without our entries among those that writers are free to make."""
    extra = "extraMetadata"
    return [
        {
            **item,
            extra: {key: value for key, value in (item[extra] or {}).items() if not key.startswith("airflow_hudi.")},
        }
        if extra in item
        else item
        for item in documents
    ]


def planned_clean(table: Judged, options: dict[str, str]) -> str:
    """Our plan, made an hour after the last commit: that one is an hour old then, and the others older."""
    newest = parse_instant(table.times()[-1], "UTC")
    later = partial(make_plan, now=newest + timedelta(hours=1))
    with PATCHING, patch("hudi_core.services.clean.planner.make_plan", later):
        planned = table.run("schedule", service="clean", options=options).document
    assert planned is not None
    assert planned["instant"] is not None, planned
    return str(planned["instant"])


def clean(source: Judged, base: Path, policy: str) -> None:
    """Our plan is run by real Hudi as by us, and real Hudi goes on."""
    table = source.copy(base)
    options = {"hoodie.cleaner.policy": policy, **RETAINED[policy]}
    metadata, files = table.metadata_files(), len(data_files(table.base))
    instant = planned_clean(table, options)
    alone = {"hoodie.clean.allow.multiple": "false", **options}
    served_by_both(
        table,
        lambda it: it.run(service="clean", instant=instant, options=options),
        lambda it: it.clean(alone),
        Action.CLEAN,
    )
    assert table.times(Action.CLEAN) == [instant]
    assert len(data_files(table.base)) < files
    table.check()
    table.goes_on()
    table.assert_metadata_kept(metadata)


def rollback(source: Judged, base: Path, moment: str) -> None:
    """Our plan for a writer that died is run by real Hudi as by us, and real Hudi goes on and rolls nothing back
    again.
    """
    table, failed = left_by_a_killed_writer(source, base, moment)
    metadata = table.metadata_files()
    planned = table.run("schedule", service="rollback", options=ALONE).document
    assert planned is not None
    rollback = planned["instant"]
    assert rollback is not None, planned
    served_by_both(
        table, lambda it: it.run(service="rollback", instant=rollback), lambda it: it.roll_back(failed), Action.ROLLBACK
    )
    assert table.times(Action.ROLLBACK) == [rollback]
    table.check()
    table.goes_on()
    table.assert_metadata_kept(metadata, but=(failed,))


def lazy_writer(source: Judged, base: Path, moment: str) -> None:
    """A writer that left a heartbeat: once that has expired, the instant need not be named, and real Hudi rolls nothing
    back again.
    """
    table, failed = left_by_a_killed_writer(source, base, moment, LAZY)
    time.sleep(2.5)
    done = table.run("rollback", options=LAZY).document
    assert done is not None
    assert done["target"] == failed
    table.upsert(options=LAZY)
    assert table.clean({**LAZY, **KEEP_ONE}) == 1
    assert table.times(Action.ROLLBACK, completed=False) == [done["instant"]]
    table.check()


def restore(source: Judged, base: Path, _how: str) -> None:
    """Real Hudi goes on after our restore, keeps what our savepoint names, and cleans it once we deleted that."""
    table = source.copy(base)
    saved = table.run("savepoint_create", comment="before the tests").document
    assert saved is not None
    files, rows, metadata = data_files(table.base), table.rows, table.metadata_files()
    kept = table.slices()
    table.upsert()
    if table.is_mor:
        table.schedule_compaction()
        table.upsert(fresh=False)
    later = {item.requested_time for item in table.instants(completed=False) if item.requested_time > saved["instant"]}
    result = table.run("restore", instant=saved["instant"]).document
    assert result is not None
    assert set(result["removed"]["instants"]) == later
    table.rows = rows
    extra = data_files(table.base).keys() - files.keys()
    assert files.items() <= data_files(table.base).items()
    assert all(".log." in name for name in extra)
    assert not extra or table.config.layout_version == 1, extra  # version 6 rolls blocks back, and keeps the log files
    table.check()
    table.assert_metadata_kept(metadata)
    table.goes_on()
    assert kept <= set(data_files(table.base))
    table.run("savepoint_delete", instant=saved["instant"])
    table.upsert()
    assert table.clean(KEEP_ONE) == 1
    assert not kept & set(data_files(table.base))
    table.check()


def unschedule(source: Judged, base: Path, _how: str) -> None:
    """Real Hudi goes on after we dropped a compaction that it had planned, and written on top of."""
    table = source.copy(base)
    metadata, instant = table.metadata_files(), table.schedule_compaction()
    table.upsert(fresh=False)
    dropped = table.run("unschedule", instant=instant).document
    assert dropped is not None
    assert dropped["instant"] == instant
    table.check()
    table.goes_on()
    assert instant not in table.times(completed=False)
    table.assert_metadata_kept(metadata)


SCENARIOS = {function.__name__: function for function in (clean, rollback, lazy_writer, restore, unschedule)}
CASES = [
    *(Case("clean", label, kind, policy) for label in EVERY_JUDGE for kind in KINDS for policy in RETAINED),
    *(Case("rollback", label, kind, moment) for label in EVERY_JUDGE for kind in KINDS for moment in MOMENTS),
    *(Case("lazy_writer", label, kind, moment) for label in EVERY_JUDGE for kind in KINDS for moment in MOMENTS),
    *(Case("restore", label, kind) for label in EVERY_JUDGE for kind in KINDS),
    *(Case("unschedule", label, MOR) for label in EVERY_JUDGE if label[0] != "6"),
]
Outcomes = Mapping[Case, Future[None]]


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    """What becomes of every case that is to be run: one after another with each version of Hudi, the versions side by
    side.
    """
    sources, found = Sources(tmp_path_factory.mktemp("sources")), {}
    requested = {
        item.callspec.params["case"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path
    }
    with ExitStack() as stack:
        queues: dict[str, ThreadPoolExecutor] = {}
        for case in (case for case in CASES if case in requested):
            name = EVERY_JUDGE[case.label]
            hudi: RealHudi = request.getfixturevalue(name)
            if name not in queues:
                queues[name] = ThreadPoolExecutor(max_workers=1)
                stack.callback(queues[name].shutdown, cancel_futures=True)
            found[case] = queues[name].submit(
                run, hudi, sources, case, tmp_path_factory.mktemp(case.scenario) / "table"
            )
        yield found


def run(hudi: RealHudi, sources: Sources, case: Case, base: Path) -> None:
    """One scenario on a table of its own."""
    SCENARIOS[case.scenario](sources.of(hudi, case), base, case.how)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_real_hudi_judges(outcomes: Outcomes, case: Case) -> None:
    outcomes[case].result()
