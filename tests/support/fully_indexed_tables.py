"""Services on tables whose metadata table has all partition types: how a table gets to where each begins, and what is
done to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.model.names import HUDI_HEARTBEATS
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.restore.savepoint import savepoint_create
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import State
from hudi_core.transaction.claim_file import forget_claims
from tests.support.changed_tables import an_owner, data_files, index_records, listed, open_context
from tests.support.fault_storage import FaultPlan, FaultStorage, InjectedCrash, Operation
from tests.support.golden_archives import TIGHT
from tests.support.rows import assert_same_rows
from tests.support.service_calls import (
    Act,
    archive_act,
    clean_act,
    dead_process,
    delete_savepoint_act,
    failed_writes_act,
    perform,
    restore_act,
    rollback_act,
    savepoint_act,
    takeover_act,
    unschedule_act,
)
from tests.support.table_invariants import assert_metadata_true, has_metadata_table, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.compaction.test_job_metadata import plan_all

VERSIONS: Final = ("6", "8", "9")
ALL_KINDS: Final = (
    "mdt_all_cow",
    "mdt_all_mor",
    "mdt_all_cow_compacted",
    "mdt_all_mor_compacted",
    "mdt_record_index_lookup",
)
ON_LOGS: Final = ("mdt_all_mor", "mdt_all_mor_compacted", "mdt_record_index_lookup")
BY_VERSIONS: Final = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
BY_COMMITS: Final = {"hoodie.clean.commits.retained": "1"}
QUICK: Final = {"hoodie.index.bloom.num_entries": "100", "spark.sql.session.timeZone": "UTC"}


def commits(table: Path) -> list[str]:
    return [item.requested_time for item in open_context(table).active.load().commits()]


def newest(table: Path) -> str:
    return commits(table)[-1]


def last_but_one(table: Path) -> str:
    return commits(table)[-2]


def failed_write(table: Path) -> str:
    """The newest commit as it was when its writer died after it had written to the metadata table."""
    context = open_context(table)
    last = context.active.load().commits().instants[-1]
    context.active.remove(last.requested_time, last.action, State.COMPLETED)
    return last.requested_time


def planned_clean(options: Mapping[str, str]) -> Callable[[Path], str]:
    def plan(table: Path) -> str:
        done = CleanService().schedule(open_context(table, dict(options)), an_owner(), dry_run=False)
        assert done.instant is not None, done.reason
        return done.instant

    return plan


def saved_and_cleaned(table: Path) -> str:
    """A savepoint that a clean has passed by, so that the cleaned files are not what it goes back to."""
    target = last_but_one(table)
    savepoint_create(open_context(table), target, an_owner())
    perform(table, clean_act(planned_clean(BY_VERSIONS)(table)), an_owner())
    return target


def saved(table: Path) -> str:
    savepoint_create(open_context(table), newest(table), an_owner())
    return newest(table)


def died_compacting(table: Path) -> str:
    """A compaction whose process died when it had written to the metadata table; without the claim by which a run of
    ours would be completed.
    """
    instant = plan_all(table)

    def completes(operation: Operation) -> bool:
        return (
            operation.kind == "create_exclusive"
            and operation.path.rpartition("/")[2].startswith(instant)
            and operation.path.endswith(".commit")
        )

    storage = FaultStorage(LocalStorage(table), FaultPlan(when=completes))
    with pytest.raises(InjectedCrash):
        CompactionService().run(open_context(table, QUICK, storage), instant, LocalEngine(1), dead_process(), None)
    forget_claims(LocalStorage(table), instant)
    for left in (".hoodie/lock", f"{HUDI_HEARTBEATS}/{instant}"):
        table.joinpath(left).unlink()
    return instant


def compacted(table: Path) -> str:
    instant = plan_all(table)
    CompactionService().run(open_context(table, QUICK), instant, LocalEngine(1), an_owner(), None)
    return instant


@dataclass(frozen=True)
class Subject:
    """`begins` brings a golden table to where the service begins, and returns the instant that it is about. `one` is
    the case of tests that have one.
    """

    begins: Callable[[Path], str]
    act: Callable[[str], Act]
    one: str = "mdt_all_mor"
    cases: tuple[str, ...] = ALL_KINDS
    options: Mapping[str, str] = field(default_factory=dict)
    keeps_rows: bool = True
    may_drop: bool = False
    """A metadata table that was compacted since cannot go back, and is dropped as real Hudi does."""


SUBJECTS: Final[dict[str, Subject]] = {
    "clean by versions": Subject(planned_clean(BY_VERSIONS), clean_act),
    "clean by commits": Subject(planned_clean(BY_COMMITS), clean_act, "mdt_all_cow"),
    "rollback of the newest commit": Subject(newest, rollback_act, keeps_rows=False),
    "rollback of a failed write": Subject(failed_write, lambda _: failed_writes_act(), keeps_rows=False),
    "rollback of a compaction": Subject(compacted, rollback_act, cases=ON_LOGS),
    "rollback of an attempt": Subject(died_compacting, rollback_act, cases=ON_LOGS),
    "restore": Subject(last_but_one, restore_act, "mdt_all_cow", keeps_rows=False, may_drop=True),
    "restore behind a clean": Subject(saved_and_cleaned, restore_act, "mdt_all_cow", keeps_rows=False, may_drop=True),
    "savepoint": Subject(newest, savepoint_act),
    "savepoint deleted": Subject(saved, delete_savepoint_act),
    # Nothing is archived before the metadata table was compacted.
    "archive": Subject(
        newest,
        lambda _: archive_act(),
        "mdt_all_cow_compacted",
        ("mdt_all_cow_compacted", "mdt_all_mor_compacted"),
        TIGHT,
    ),
    "unschedule": Subject(died_compacting, unschedule_act, cases=ON_LOGS),
    "takeover": Subject(died_compacting, takeover_act, cases=ON_LOGS),
}


RUNS: Final = tiered(
    [(name, version, case) for name, subject in SUBJECTS.items() for version in VERSIONS for case in subject.cases],
    [
        ("clean by versions", "8", "mdt_all_mor"),
        ("rollback of the newest commit", "6", "mdt_all_mor"),
        ("rollback of a failed write", "9", "mdt_all_mor"),
        ("rollback of a compaction", "8", "mdt_all_mor"),
        ("rollback of an attempt", "6", "mdt_all_mor"),
        ("restore", "6", "mdt_all_cow"),
        ("restore behind a clean", "9", "mdt_all_cow"),
        ("archive", "9", "mdt_all_cow_compacted"),
        ("unschedule", "6", "mdt_all_mor"),
        ("takeover", "9", "mdt_all_mor"),
    ],
)
"""Every subject on every table that it has."""


def assert_true(table: Path) -> None:
    """The metadata table lists what is there, has no wrong record, and leads to the rows that the storage has."""
    if not has_metadata_table(table):
        return
    assert_same_rows(read_rows(table, "on"), read_rows(table, "off"))
    assert_metadata_true(table)


def end_of(table: Path) -> dict[str, Any]:
    """What must not depend on who died: the data files, the rows, every record of every partition type."""
    context = open_context(table)
    found: dict[str, Any] = {
        "files": data_files(table),
        "pending": {time for _, time in pending_instants(table)},
        "kinds": context.config.metadata_partitions,
        "rows": sorted(
            map(repr, read_rows(table, "off").drop_columns(["_hoodie_file_name", "_hoodie_commit_seqno"]).to_pylist())
        ),
    }
    if has_metadata_table(table):
        found |= {"listed": listed(table), "records": index_records(table)}
    return found
