"""A write of rows is killed between its decision to complete and its put, and something comes between that and the next
owner.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.model.names import ClaimFolder, FileGroupId, parse_base_file
from hudi_core.services.decided_completion import why_not_completed
from hudi_core.services.write import verb
from hudi_core.services.write.work import WriteResult
from hudi_core.timeline.actions.commit import decode_commit
from hudi_core.timeline.instant import Action
from hudi_core.transaction import commit as commits
from hudi_core.transaction.claim_file import Decision, find_decision
from tests.support.changed_tables import open_context
from tests.support.decided_runs import decided, foreign_upsert, foreign_write
from tests.support.golden_cleans import without_metadata_table
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import BUCKETS, BY_HASH, own_rows, put_source
from tests.support.pending_operations import Operations
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.support.writes import APART, changed, like, write

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


@pytest.fixture(autouse=True)
def no_wait_for_late_puts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The put of the killed run cannot arrive any more."""
    monkeypatch.setattr(commits, "LATE_SECONDS", 0)


def upsert_decided(
    table: Path, rows: pa.Table, scratch: Path, options: Mapping[str, str] | None = None
) -> tuple[str, Callable[[], WriteResult]]:
    """The instant of our upsert of these rows, and what makes it again."""
    given = put_source(rows, scratch)

    def again() -> WriteResult:
        return write(table, "upsert", given, options, token="t")

    decided(again)
    *_, pending = open_context(table).active.load().pending().of_actions(Action.COMMIT, Action.DELTA_COMMIT)
    return pending.requested_time, again


def decision_on(table: Path, instant: str) -> Decision:
    decision = find_decision(open_context(table).storage, ClaimFolder(instant), 1)
    assert decision is not None
    return decision


def reason_now(table: Path, instant: str) -> str:
    """Why the next owner would abandon the decision; empty where it would not."""
    context = open_context(table)
    return why_not_completed(context, instant, decision_on(table, instant), context.active.load()) or ""


def written_by(table: Path, instant: str) -> list[FileGroupId]:
    """The file groups of a decided write."""
    stats = decode_commit(decision_on(table, instant).content, path="").write_stats()
    return [FileGroupId(stat.partition_path, stat.file_id) for stat in stats]


def some_rows(table: Path) -> pa.Table:
    """Changed rows of one base file."""
    rows = read_rows(table)
    of_file = rows.filter(pc.equal(rows.column("_hoodie_file_name"), rows.column("_hoodie_file_name")[0]))
    return changed(own_rows(table, of_file.slice(0, 3)), qty=1)


@pytest.mark.parametrize("requested", ["before", "after"])
@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_an_upsert_is_made_again_where_another_wrote_its_file_group(
    golden: Golden, version: str, requested: str, tmp_path: Path
) -> None:
    """The rows of the one would be behind the base file of the other."""
    table = without_metadata_table(golden(version, "cow_basic").table)
    count, given = read_rows(table).num_rows, some_rows(table)
    instant, again = upsert_decided(table, given, tmp_path)
    (group,) = written_by(table, instant)
    files = open_context(table).view(open_context(table).active.load()).latest_base_files(group.partition)
    (base,) = (file.name for file in files if parse_base_file(file.name).file_id == group.file_id)
    time = str(int(instant) - 1) if requested == "before" else None
    foreign_upsert(table, group.partition, base, time)
    assert f"has changed file group {group.file_id}" in reason_now(table, instant)
    retried = again()
    assert not retried.repeated
    assert retried.instant != instant
    assert not open_context(table).active.load().contains(instant)
    rows = own_rows(table, read_rows(table))
    assert rows.num_rows == count
    assert_same_rows(rows.filter(pc.is_in(rows.column("id"), given.column("id"))), given, ignore=())


@pytest.mark.parametrize("version", VERSIONS)
def test_an_upsert_goes_on_only_where_no_reader_has_passed_it(golden: Golden, version: str, tmp_path: Path) -> None:
    """Another commit was to another file group. Incremental queries of version 6 read by instants."""
    table = without_metadata_table(golden(version, "cow_basic").table)
    instant, again = upsert_decided(table, some_rows(table), tmp_path)
    other = foreign_write(table, FileGroupId("2031-01-01", "another-0"))
    assert (f"commit {other} completed since" in reason_now(table, instant)) == (version != "6")
    assert again().repeated == (version == "6")
    assert open_context(table).active.load().contains(instant) == (version == "6")


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_an_upsert_that_adds_a_column_is_made_again_behind_a_later_instant(
    golden: Golden, version: str, tmp_path: Path
) -> None:
    """The table's schema is that of the later instant, so queries would not show the column."""
    table = without_metadata_table(golden(version, "cow_basic").table)
    rows = some_rows(table)
    rows = rows.append_column("added", pa.array([7] * rows.num_rows, pa.int32()))
    instant, again = upsert_decided(table, rows, tmp_path)
    assert reason_now(table, instant) == ""
    foreign_write(table, FileGroupId("2031-01-01", "another-0"))
    assert version != "6" or "another schema was written since" in reason_now(table, instant)
    assert not again().repeated
    assert read_rows(table)["added"].to_pylist().count(7) == rows.num_rows


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6"]))
def test_an_insert_is_made_again_where_another_run_did_the_work_of_its_token(
    golden: Golden, version: str, tmp_path: Path
) -> None:
    """Both requested an instant, since a lock was lost. In layout 2 readers may have passed it as well."""
    table = without_metadata_table(golden(version, "cow_basic").table)
    row = put_source(like(own_rows(table, read_rows(table)), {"id": "new", "dt": "2031-01-01"}), tmp_path)
    decided(lambda: write(table, "insert", row, APART, token="t"))
    (pending,) = open_context(table).active.load().pending()
    with pytest.MonkeyPatch.context() as unseen:
        for name in ("find_token", "live_writer"):
            unseen.setattr(verb, name, lambda *_, **__: None)
        unseen.setattr(verb, "clean_failed_writes", lambda *_, **__: [])
        other = write(table, "insert", row, APART, token="t").instant
    reason = reason_now(table, pending.requested_time)
    assert f"commit {other} has done the work of its token 't' since" in reason
    again = write(table, "insert", row, APART, token="t")
    assert (again.instant, again.repeated) == (other, True)
    assert read_rows(table)["id"].to_pylist().count("new") == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_decided_upsert_of_base_files_is_compared_with(golden: Golden, version: str, tmp_path: Path) -> None:
    """A clustering of its file group, done or planned, a compaction that is planned, and a rollback."""
    table = without_metadata_table(golden(version, "cow_basic").table)
    instant, _ = upsert_decided(table, some_rows(table), tmp_path)
    (group,), context = written_by(table, instant), open_context(table)
    other, plans, time = replace(group, file_id="another-0"), Operations(context.active), int(instant)
    assert reason_now(table, instant) == ""
    plans.compact(str(time + 1), other, started=False)
    plans.cluster(str(time + 2), other, started=False)
    assert reason_now(table, instant) == ""
    plans.compact(str(time + 3), group, started=False)
    assert f"compaction {time + 3} is pending on file groups of partition" in reason_now(table, instant)
    plans.cluster(str(time + 4), group, completed=str(time + 5))
    assert f"replacecommit {time + 4} has changed file group {group.file_id}" in reason_now(table, instant)
    decision, timeline = decision_on(table, instant), context.active.load()
    known = timeline.commits().requested_times | {"20200101000000000"}
    reason = why_not_completed(context, instant, replace(decision, known=known, completion_time=None), timeline)
    assert f"commit 20200101000000000 was rolled back since {instant} began" in str(reason)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_decided_upsert_of_log_files_is_compared_with(golden: Golden, version: str, tmp_path: Path) -> None:
    """Other log files come beside its own, and in layout 1 no base file does."""
    table = without_metadata_table(golden(version, "mor_basic").table)
    instant, _ = upsert_decided(table, some_rows(table), tmp_path)
    (group,), time = written_by(table, instant), int(instant)
    (stat,) = decode_commit(decision_on(table, instant).content, path="").write_stats()
    assert stat.log_version is not None
    plans = Operations(open_context(table).active)
    plans.compact(str(time + 1), replace(group, file_id="another-0"), started=False)
    assert reason_now(table, instant) == ""
    copies = {name: Path(shutil.copytree(table, tmp_path / name)) for name in ("logs", "base", "clustered", "planned")}

    other = foreign_write(copies["logs"], group, log_version=9)
    assert (f"commit {other} completed since" in reason_now(copies["logs"], instant)) == (version != "6")
    other = foreign_write(copies["base"], group)
    is_hidden = f"commit {other} has changed file group {group.file_id}" in reason_now(copies["base"], instant)
    assert is_hidden == (version == "6")
    Operations(open_context(copies["clustered"]).active).cluster(str(time + 2), group, started=False)
    assert f"clustering {time + 2} is pending on file groups" in reason_now(copies["clustered"], instant)
    Operations(open_context(copies["planned"]).active).compact(str(time + 2), group, started=False)
    reason = reason_now(copies["planned"], instant)
    assert (f"compaction {time + 2} was planned on file group {group.file_id}" in reason) == (version == "6")
    assert (reason == "") == (version != "6")


def test_an_upsert_of_log_files_completes_beside_other_log_files(golden: Golden, tmp_path: Path) -> None:
    table = without_metadata_table(golden("6", "mor_basic").table)
    given = some_rows(table)
    instant, again = upsert_decided(table, given, tmp_path)
    (group,) = written_by(table, instant)
    foreign_write(table, group, log_version=9)
    retried = again()
    assert (retried.repeated, retried.instant) == (True, instant)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_an_upsert_that_made_a_bucket(golden: Golden, version: str, tmp_path: Path) -> None:
    """Another writer made the bucket, too: a key of it would be in two file groups (hudi#9303)."""
    table = without_metadata_table(golden(version, "bucket_index_cow").table)
    rows = like(own_rows(table, read_rows(table)), {"dt": "2031-01-01"})
    instant, _ = upsert_decided(table, rows, tmp_path, BUCKETS)
    (group,) = written_by(table, instant)
    other = replace(group, file_id=f"{group.file_id[:8]}-64c6-4d82-bc70-3d88ba276ea1-0")
    foreign_write(table, replace(other, file_id=f"0000000{(int(group.file_id[:8]) + 1) % 4}{other.file_id[8:]}"))
    foreign_write(table, replace(other, partition="2031-01-02"))
    assert "has changed file group" not in reason_now(table, instant)
    foreign_write(table, other)
    assert f"has changed file group {other.file_id}" in reason_now(table, instant)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_an_upsert_beside_a_clustering_that_resizes_buckets(golden: Golden, version: str, tmp_path: Path) -> None:
    """It may have resized a bucket that had no file group yet."""
    table = without_metadata_table(golden(version, "bucket_index_consistent_mor").table)
    instant, _ = upsert_decided(table, some_rows(table), tmp_path, BY_HASH)
    (group,), time = written_by(table, instant), int(instant)
    plans = Operations(open_context(table).active)
    plans.cluster(str(time + 1), FileGroupId("2031-01-01", "another-0"), started=False)
    assert reason_now(table, instant) == ""
    plans.cluster(str(time + 2), replace(group, file_id="another-0"), started=False)
    assert f"clustering {time + 2} is pending" in reason_now(table, instant)


@pytest.mark.parametrize("version", VERSIONS)
def test_compactions_are_not_compared_as_writes_of_rows(golden: Golden, version: str) -> None:
    """They were planned on their file groups, and log files may come beside them."""
    table = without_metadata_table(golden(version, "mor_compacted").table)
    context = open_context(table)
    timeline = context.active.load()
    (compaction,) = (item for item in timeline.commits() if context.active.read_commit(item).compacted)
    content = (table / context.active.path_of(compaction)).read_bytes()
    for action, is_compared in ((Action.COMPACTION, False), (Action.LOG_COMPACTION, False), (Action.COMMIT, True)):
        decision = Decision(action, None, content, frozenset())
        reason = why_not_completed(context, "20990101000000000", decision, timeline)
        assert ("has changed file group" in str(reason)) == is_compared == (reason is not None)
