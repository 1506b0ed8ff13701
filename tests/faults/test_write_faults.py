"""Writes of rows are killed after every operation that changes the storage; the same token again must bring them
to the same end, once, and leave nothing behind.

`make test` kills one upsert before each of its changes, and two others after some operations of each class; `make
conformance` some more of these, `make soak` each before every change.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.model.names import IS_DELETED, BaseFileName, LogFileName, parse_data_file
from hudi_core.services.source.staged_rows import STAGED
from hudi_core.services.write.work import WriteResult
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import data_files, open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, InjectedCrash, Operation
from tests.support.golden_data import PARTITIONED, open_table
from tests.support.kill_points import executors_make_records, kill_at, stages_statistics
from tests.support.overwrites import BUCKETS, BY_HASH, own_rows, put_source
from tests.support.rows import assert_same_rows
from tests.support.service_calls import Timing, dead_process, one_of_each_class
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.support.writes import changed, like, staged, write

TOKEN = "the day's work"
STEPS = 4
"""The sweep of one table in `make soak` is cut into so many tests."""
CASES = (
    "mdt_disabled",
    "cow_basic",
    "mor_basic",
    "bucket_index_cow",
    "bucket_index_mor",
    "bucket_index_consistent_mor",
    "mor_compaction_requested",
    "mdt_all_cow",
    "mdt_all_mor",
    "cdc_cow",
    "cdc_mor",
)
KINDS = ("upsert", "delete", "upsert, staged")
"""Staged: executors make the records of new files for the metadata table."""
SWEPT = [
    ("9", PARTITIONED, "upsert"),
    *(
        (version, case, kind)
        for version in ("6", "8", "9")
        for case in CASES
        for kind in KINDS
        if case.startswith("mdt_all") or kind != "upsert, staged"
    ),
    *(
        (version, *given)
        for version in ("6", "8", "9")
        for given in (
            ("cow_basic", "insert"),
            ("mdt_all_mor", "insert"),
            ("bucket_index_mor", "insert"),
            ("mdt_all_cow", "bulk_insert"),
            ("mor_basic", "bulk_insert"),
            ("mdt_all_cow", "delete where"),
            ("mor_basic", "delete where"),
        )
    ),
]


@dataclass(frozen=True)
class Work:
    """A table, what is done to it, and the table's own columns of what its readers see before and after. `stages`:
    executors make the records of the new files.
    """

    source: Path
    operation: str
    given: Path
    options: dict[str, str]
    before: pa.Table
    after: pa.Table
    pending: frozenset[str]
    stages: bool = False
    where: str = ""

    def run(self, table: Path, plan: FaultPlan | None = None, owner: Owner | None = None) -> WriteResult:
        with executors_make_records(self.stages):
            return write(table, self.operation, self.given, self.options, plan, owner, token=TOKEN, where=self.where)

    def copy(self, target: Path) -> Path:
        return Path(shutil.copytree(self.source, target, symlinks=True))


def work_of(version: str, case: str, kind: str, scratch: Path) -> Work:
    """An upsert of rows that change, go by a mark, and come, to file groups that are there and to new ones; an insert
    or bulk_insert of those that come; or a delete of some rows, by their keys or by a predicate.
    """
    path = open_table(version, case, scratch)
    rows = own_rows(path, read_rows(path))
    day = "day" if case == PARTITIONED else "dt"
    first = changed(rows.slice(0, 3), ts=lambda ts: ts + 1)
    later = rows.slice(3)
    operation, _, is_staged = kind.partition(", ")
    operation, _, by_predicate = operation.partition(" ")
    gone, new, where = rows.slice(3, 1), like(rows, {"id": "new 1"}, {"id": "new 2", day: "2031-01-01"}), ""
    if operation == "delete":
        source, after = pa.concat_tables([rows.slice(0, 4), like(rows, {"id": "absent"})]), rows.slice(4)
        where = f"id IN {tuple(source.column('id').to_pylist())}" if by_predicate else ""
    elif operation != "upsert":
        source, after = new, pa.concat_tables([rows, new])
    else:
        source, after = pa.concat_tables([first, new]), pa.concat_tables([first, later, new])
        if IS_DELETED in rows.schema.names:
            source = pa.concat_tables([source, changed(gone, **{IS_DELETED: True, "ts": 10**15})])
            after = after.filter(pc.not_equal(after.column("id"), gone.column("id")[0]))
    given = put_source(source, scratch, files=2, name=f"{kind} of {case}")
    options = {} if not case.startswith("bucket") else BY_HASH if "consistent" in case else BUCKETS
    return Work(path, operation, given, options, rows, after, pending(path), bool(is_staged), where)


def pending(path: Path) -> frozenset[str]:
    return open_context(path).active.load().pending().requested_times


def changes_of(work: Work, scratch: Path) -> list[Operation]:
    """All changes of an undisturbed run, in order."""
    plan = FaultPlan(counts=MUTATIONS)
    path = work.copy(scratch / "undisturbed")
    assert not work.run(path, plan, dead_process()).repeated
    assert_done(path, work)
    assert any(map(stages_statistics, plan.mutations())) is work.stages
    if work.source.name == "cdc_cow":
        assert any(change.path.endswith(".cdc") for change in plan.mutations())
    return plan.mutations()


def distinct(changes: Sequence[Operation]) -> list[int]:
    """The numbers of the changes, without those that go on with a file as the one before them."""
    return [number for number, change in enumerate(changes) if number == 0 or change != changes[number - 1]]


def seen(path: Path, listing: str) -> pa.Table:
    return own_rows(path, read_rows(path, listing))


def assert_done(path: Path, work: Work) -> None:
    """As if it had been written once, with nothing left."""
    for listing in ("off", "auto"):
        assert_same_rows(seen(path, listing), work.after, ignore=())
    assert_metadata_true(path)
    assert pending(path) == work.pending
    active = open_context(path).active
    commits = [active.read_commit(item) for item in active.load().commits()]
    (done,) = (metadata for metadata in commits if metadata.extra_metadata.get("airflow_hudi.token") == TOKEN)
    stats = [stat for stat in done.write_stats() if active.layout > 1 or stat.log_version is None]
    written = {path for stat in stats for path in stat.sizes}
    assert data_of(path, active.layout) - data_of(work.source, active.layout) == written
    selected = [name for name in left(path) if name.startswith(f"{STAGED}/") and "/write-" not in name]
    # Rows that a killed run selected go after a week, when another selects some.
    assert left(path) == (selected if work.where else [])


def data_of(path: Path, layout: int) -> set[str]:
    """The data files of a table. A rollback of layout 1 leaves log files, with a block that makes them void, but no
    change logs.
    """
    names = {name: parse_data_file(name.rpartition("/")[2]) for name in data_files(path)}
    kinds = (BaseFileName,) if layout == 1 else (BaseFileName, LogFileName)
    return {name for name, parsed in names.items() if isinstance(parsed, kinds) or name.endswith(".cdc")}


def all_files(path: Path) -> dict[str, int]:
    """Every file below the table's folder, with its time of change in nanoseconds."""
    return {str(file): file.stat().st_mtime_ns for file in path.rglob("*") if file.is_file()}


def left(path: Path) -> list[str]:
    """Files that no finished run leaves: markers, heartbeats, claims, locks, staged rows and staged records."""
    folders = (".temp", ".heartbeat", ".airflow_hudi/claims", ".airflow_hudi/metadata", "lock")
    found = [file for folder in folders for file in (path / ".hoodie" / folder).rglob("*") if file.is_file()]
    found += [file for file in path.rglob("*.tmp") if file.is_file()]
    return sorted(file.relative_to(path).as_posix() for file in [*found, *staged(path)])


def assert_survives(work: Work, number: int, timing: Timing, scratch: Path) -> None:
    path = work.copy(scratch / f"killed-{number}")
    kill_at(number, timing, lambda plan: work.run(path, plan, dead_process()))
    is_done = seen(path, "off").num_rows == work.after.num_rows
    for listing in ("off", "auto"):
        assert_same_rows(seen(path, listing), work.after if is_done else work.before, ignore=())
    result = work.run(path)
    assert result.repeated or not is_done
    assert_done(path, work)
    files = all_files(path)
    assert work.run(path).repeated
    assert all_files(path) == files
    shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "case"),
    tiered(
        [
            ("6", "mor_basic"),
            ("6", "cdc_mor"),
            ("8", "bucket_index_mor"),
            ("9", "cow_basic"),
            ("9", "bucket_index_cow"),
            ("9", "cdc_cow"),
        ],
        [("9", "cdc_cow")],
    ),
)
def test_killed_before_each_change_of_the_storage(version: str, case: str, tmp_path: Path) -> None:
    """But once in each file that is written in several pieces."""
    work = work_of(version, case, "upsert", tmp_path)
    points = distinct(changes_of(work, tmp_path))
    assert len(points) > 30
    for number in points:
        assert_survives(work, number, "before", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "case", "kind"),
    tiered(
        [
            ("6", "mor_basic", "upsert"),
            ("6", "mdt_all_cow", "upsert, staged"),
            ("6", "mor_compaction_requested", "upsert"),
            ("8", "bucket_index_mor", "upsert"),
            ("8", "mdt_all_mor", "delete"),
            ("9", "mdt_all_mor", "upsert, staged"),
            ("9", PARTITIONED, "upsert"),
            ("8", "cow_basic", "insert"),
            ("9", "mor_basic", "bulk_insert"),
            ("6", "mdt_all_cow", "delete where"),
        ],
        [("6", "mor_basic", "upsert"), ("8", "bucket_index_mor", "upsert")],
    ),
)
def test_killed_after_one_operation_of_each_class(version: str, case: str, kind: str, tmp_path: Path) -> None:
    work = work_of(version, case, kind, tmp_path)
    points = one_of_each_class(changes_of(work, tmp_path))
    assert len(points) > 20
    for number in list(points.values())[::6]:
        assert_survives(work, number, "after", tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(STEPS))
@pytest.mark.parametrize(("version", "case", "kind"), SWEPT)
def test_killed_at_every_change(version: str, case: str, kind: str, part: int, tmp_path: Path) -> None:
    """Before each, which is what a kill after the one before it leaves, and after the last."""
    work = work_of(version, case, kind, tmp_path)
    points = range(len(changes_of(work, tmp_path)))
    for number in points[part::STEPS]:
        assert_survives(work, number, "before", tmp_path)
    if part == 0:
        assert_survives(work, points[-1], "after", tmp_path)


@pytest.mark.parametrize(
    ("version", "case"),
    tiered([("6", "mor_basic"), ("8", "bucket_index_cow"), ("9", "cow_basic")], [("6", "mor_basic")]),
)
@pytest.mark.parametrize("died", [".arrow", ".inflight", ".decision"])
def test_other_work_ends_what_died(version: str, case: str, died: str, tmp_path: Path) -> None:
    """It rolls it back, or completes it where it had decided to; then the same token cleans up behind it."""
    work = work_of(version, case, "upsert", tmp_path)
    plan = FaultPlan(when=lambda change: change.path.endswith(died), timing="after", counts=MUTATIONS)
    with pytest.raises(InjectedCrash):
        work.run(work.source, plan, dead_process())
    assert bool(staged(work.source)) is (died != ".decision")
    other = like(work.before, {"id": "other", "dt": "2031-02-02"})
    assert write(work.source, "upsert", put_source(other, tmp_path, name="other"), work.options).inserted == 1
    rows = pa.concat_tables([work.after if died == ".decision" else work.before, other])
    assert_same_rows(seen(work.source, "auto"), rows, ignore=())
    assert pending(work.source) == frozenset()
    assert staged(work.source) == []
    assert work.run(work.source).repeated is (died == ".decision")
    assert_same_rows(seen(work.source, "auto"), pa.concat_tables([work.after, other]), ignore=())
    assert left(work.source) == []
    assert_metadata_true(work.source)
