"""A write from its first step to its commit: tokens, dry runs, the inflight file, and what may come in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConfigError, ConflictError, StorageError
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.write.staged_logs import STAGING
from hudi_core.services.clustering.planner import ClusteringService
from hudi_core.services.lifecycle import Run, run_instant
from hudi_core.services.rollback.verb import rollback
from hudi_core.services.source.count import counted_rows
from hudi_core.services.source.files import Source
from hudi_core.services.source.staged_rows import STAGED
from hudi_core.services.write import verb
from hudi_core.services.write.job import WriteJob
from hudi_core.services.write.plan import RowsWork
from hudi_core.services.write.route import produce_routed
from hudi_core.timeline.actions.commit import CommitMetadata, commit_of
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import METADATA, an_owner, data_files, open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, InjectedCrash, Operation
from tests.support.golden_data import PARTITIONED, GoldenCase, open_table
from tests.support.overwrites import BUCKETS, delete, overwrite, places, put_source, within
from tests.support.service_calls import dead_process
from tests.support.table_files import contents
from tests.support.table_invariants import assert_metadata_true, leftovers, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.support.writes import (
    APART,
    Model,
    SeenEngine,
    changed,
    like,
    marked,
    own_columns,
    staged,
    write,
)

Golden = Callable[[str, str], GoldenCase]
VERSIONS = tiered(["6", "8", "9"], ["9"])
CASES = tiered(
    [(version, case) for version in ("6", "8", "9") for case in ("cow_basic", "mor_basic", "bucket_index_cow")],
    [("6", "mor_basic"), ("9", "cow_basic"), ("9", "bucket_index_cow")],
)
BESIDE = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
TOKEN = "the day's work"


def options_of(case: str) -> dict[str, str]:
    return BUCKETS if case.startswith("bucket") else {}


def given_of(table: Path, scratch: Path, name: str = "source") -> tuple[Path, pa.Table]:
    """Rows that change some of a table, and new ones, of which one is of a new partition."""
    rows = own_columns(read_rows(table))
    newer = changed(rows.slice(0, 9), ts=lambda ts: ts + 1, qty=1)
    source = pa.concat_tables([newer, like(rows, {"id": "new 1"}, {"id": "new 2", "dt": "2031-01-01"})])
    return put_source(source, scratch, files=2, name=name), source


def pending(table: Path) -> list[str]:
    return [item.requested_time for item in open_context(table).active.load().pending()]


def killed(table: Path, given: Path, suffix: str, options: Mapping[str, str], token: str | None = TOKEN) -> None:
    """An upsert that dies once a file with this suffix is there."""

    def is_there(change: Operation) -> bool:
        return change.path.endswith(suffix) and not change.path.startswith(METADATA)

    plan = FaultPlan(when=is_there, timing="after", counts=MUTATIONS)
    with pytest.raises(InjectedCrash):
        write(table, "upsert", given, options, plan, dead_process(), token=token)


@pytest.mark.parametrize(("version", "case"), CASES)
def test_the_inflight_file_says_where_rows_come(golden: Golden, tmp_path: Path, version: str, case: str) -> None:
    """Other writers find conflicts by it."""
    table = golden(version, case).table
    given, source = given_of(table, tmp_path)
    is_mor = open_context(table).config.is_merge_on_read
    action = Action.DELTA_COMMIT if is_mor else Action.COMMIT
    killed(table, given, ".inflight", options_of(case))
    context = open_context(table)
    (instant,) = pending(table)
    raw = context.active.read_any(instant, action, State.INFLIGHT)
    metadata: CommitMetadata = commit_of(raw, path="inflight")
    assert metadata.operation_type == "UPSERT"
    found: dict[str, Counter[str]] = {}
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            what = "updates" if stat.file_id else "inserts"
            found.setdefault(partition, Counter())[what] += stat.num_update_writes if stat.file_id else stat.num_inserts
            assert bool(stat.file_id) is (stat.prev_commit != "null")
    days = Counter(source.slice(0, 9).column("dt").to_pylist())
    new_day = source.slice(9, 1).column("dt")[0].as_py()
    if case.startswith("bucket"):  # a bucket that is there takes its new rows
        days[new_day] += 1
    else:
        assert found[new_day]["inserts"] == 1
    assert {day: counts["updates"] for day, counts in found.items() if counts["updates"]} == days
    assert found["2031-01-01"] == {"inserts": 1}


@pytest.mark.parametrize(("version", "case"), CASES)
def test_the_same_token_does_it_once(golden: Golden, tmp_path: Path, version: str, case: str) -> None:
    table = golden(version, case).table
    model = Model.of(table, event_time=version != "6")
    given, source = given_of(table, tmp_path)
    model.upsert(source)
    looked = write(table, "upsert", given, options_of(case), token=TOKEN, dry_run=True)
    assert (looked.instant, looked.records, looked.partitions) == (None, 11, len(set(source["dt"].to_pylist())))
    assert str(looked.reason).startswith("a dry run")
    done = write(table, "upsert", given, options_of(case), token=TOKEN)
    model.check(table)
    before = contents(table)
    for dry_run in (False, True):
        again = write(table, "upsert", given, options_of(case), token=TOKEN, dry_run=dry_run)
        assert (again.instant, again.repeated) == (done.instant, True)
        assert (again.inserted, again.updated, again.files_written) == (done.inserted, done.updated, done.files_written)
    assert contents(table) == before
    with pytest.raises(ConfigError, match="the token is that of UPSERT"):
        write(table, "insert", given, options_of(case), token=TOKEN)
    other = write(table, "upsert", given, options_of(case), token="another day's")
    assert (other.repeated, other.instant == done.instant) == (False, False)
    model.check(table)
    assert staged(table) == []
    assert_metadata_true(table)


@pytest.mark.parametrize("died", [".requested", ".arrow", ".inflight", ".decision", "completed"])
@pytest.mark.parametrize(("version", "case"), tiered([("6", "mor_basic"), ("9", "cow_basic")], [("9", "cow_basic")]))
def test_the_token_of_an_attempt_that_died(golden: Golden, tmp_path: Path, version: str, case: str, died: str) -> None:
    """It is rolled back, or completed where it had decided to complete; a dry run only says so."""
    table = golden(version, case).table
    model = Model.of(table, event_time=version != "6")
    given, source = given_of(table, tmp_path)
    action = Action.DELTA_COMMIT if case.startswith("mor") else Action.COMMIT
    killed(table, given, f".{action}" if died == "completed" else died, {})
    before = contents(table)
    looked = write(table, "upsert", given, token=TOKEN, dry_run=True)
    assert contents(table) == before
    is_done = died in (".decision", "completed")
    assert looked.repeated is (died == "completed")
    if died != "completed":
        says = "would be completed instead" if is_done else "would be rolled back first"
        assert says in str(looked.reason)
    result = write(table, "upsert", given, token=TOKEN)
    assert result.repeated is is_done
    model.upsert(source)
    model.check(table)
    assert pending_instants(table) == set()
    assert leftovers(table, str(result.instant)) == []
    assert staged(table) == []
    assert write(table, "upsert", given, token=TOKEN).repeated
    model.check(table)
    assert_metadata_true(table)


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
def test_a_write_that_another_run_rolled_back_before_it_began_may_run_again(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """The other has the same token, and takes it for one that died: nobody has claimed the instant yet."""
    table = golden("9", "cow_basic").table
    given, _ = given_of(table, tmp_path)
    before = places(read_rows(table))

    def after_a_rollback(job: Any) -> Any:
        rollback(open_context(table), job.instant, Owner.current("another run"))
        return run_instant(job)

    monkeypatch.setattr(verb, "run_instant", after_a_rollback)
    run = partial(write, table, operation, given) if operation == "upsert" else partial(overwrite, table, given)
    with pytest.raises(ConflictError, match=r"another run has rolled \w+ \d+ back before it began"):
        run(token=TOKEN)
    assert places(read_rows(table)) == before
    assert pending_instants(table) == set()


def test_rows_of_a_live_write_are_not_forgotten(golden: Golden, tmp_path: Path) -> None:
    """Another one deletes those of dead ones alone."""
    table = golden("9", "cow_basic").table
    model = Model.of(table, event_time=True)
    given, source = given_of(table, tmp_path)
    other = like(source, {"id": "other", "dt": "2031-01-02"})
    left = table / STAGED / "write-20200101000000000" / "0-1-0.arrow"
    kept = table / STAGED / "4f0c" / "a.parquet"
    for path in (left, kept):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"rows")

    class Between(SeenEngine):
        def exchange(self, produce: Any, *given: Any, **named: Any) -> list[Any]:
            if produce is produce_routed:
                ours = [path for path in staged(table) if path not in (left, kept)]
                assert ours
                write(table, "upsert", put_source(other, tmp_path, name="other"), BESIDE)
                assert [path for path in staged(table) if path != kept] == ours
            return super().exchange(produce, *given, **named)

    write(table, "upsert", given, BESIDE, engine=Between())
    model.upsert(pa.concat_tables([source, other]))
    model.check(table)
    assert staged(table) == [kept]


@pytest.mark.parametrize("operation", ["bulk_insert", "insert", "upsert", "delete"])
def test_no_staged_rows_are_left(golden: Golden, tmp_path: Path, operation: str) -> None:
    """Nor where no row is written."""
    table = golden("9", "cow_basic").table
    rows = own_columns(read_rows(table))
    options = {"hoodie.combine.before.insert": "true"}
    for number, source in enumerate((rows.slice(0, 9), like(rows, {"id": "absent"}))):
        write(table, operation, put_source(source, tmp_path, name=str(number)), options)
        assert staged(table) == []
        assert leftovers(table, "") == []


def test_tagged_rows_that_cannot_be_deleted_stop_no_write(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "cow_basic").table
    given = put_source(own_columns(read_rows(table)).slice(0, 9), tmp_path)
    plan = FaultPlan(
        when=lambda operation: operation.kind == "delete" and f"{STAGED}/write-" in operation.path,
        error=lambda operation: StorageError("the storage is down", path=operation.path),
    )
    assert write(table, "upsert", given, plan=plan).updated == 9
    assert plan.fired is not None
    assert len(staged(table)) == 1
    write(table, "upsert", given)
    assert staged(table) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_an_instant_without_rows_is_not_run(golden: Golden, tmp_path: Path, version: str) -> None:
    """As by a service that runs what is pending: the rows are gone."""
    table = golden(version, "cow_basic").table
    given, _ = given_of(table, tmp_path)
    killed(table, given, ".requested", {})
    (instant,) = pending(table)
    with pytest.raises(ConfigError, match=f"commit {instant} has no rows"):
        run_instant(WriteJob(Run(open_context(table), instant, an_owner()), RowsWork("UPSERT")))
    assert pending(table) == [instant]


@pytest.mark.parametrize("died", ["claimed", "inflight"])
def test_no_attempt_is_continued(golden: Golden, tmp_path: Path, died: str) -> None:
    """What was claimed alone is done; what was inflight must be rolled back first."""
    table = golden("9", "cow_basic").table
    model = Model.of(table, event_time=True)
    given, source = given_of(table, tmp_path)
    killed(table, given, "000001.json" if died == "claimed" else ".inflight", {})
    (instant,) = pending(table)
    old = table / STAGING / instant / "1"
    old.mkdir(parents=True)
    (old / "block").write_bytes(b"of the first attempt")

    class Looking(SeenEngine):
        def exchange(self, *given: Any, **named: Any) -> list[Any]:
            assert not old.exists(), "records that a dead attempt staged"
            return super().exchange(*given, **named)

    context = open_context(table)
    needs = RowsWork("UPSERT").needs()
    rows = counted_rows(context, Source(str(given)), LocalEngine(1), needs)
    run = Run(context, instant, an_owner(), Looking())
    job = WriteJob(run, RowsWork("UPSERT", rows=rows, token=TOKEN))
    if died == "claimed":
        run_instant(job)
        model.upsert(source)
    else:
        with pytest.raises(ConflictError, match=f"an earlier attempt at commit {instant} died"):
            run_instant(job)
    model.check(table)
    again = write(table, "upsert", given, token=TOKEN)
    assert again.repeated is (died == "claimed")
    if died == "inflight":
        model.upsert(source)
    model.check(table)
    assert staged(table) == []
    assert pending(table) == []


def test_a_record_index_of_each_partition_gets_new_ones(tmp_path: Path) -> None:
    table = open_table("9", PARTITIONED, tmp_path)
    assert RECORD_INDEX in open_context(table).config.metadata_partitions
    model = Model.of(
        table,
        event_time=True,
        place=lambda row: (f"{row['region']}/{row['day']}", f"id:{row['id']}"),
        keeps_deletes=True,
    )
    rows = own_columns(read_rows(table))
    for number, days in enumerate((("2031-01-01", "2031-01-02"), ("2031-01-02", rows.column("day")[0].as_py()))):
        source = like(rows, *({"id": f"new {number} {day}", "day": day} for day in days))
        model.upsert(source)
        write(table, "upsert", put_source(source, tmp_path, name=str(number)))
        model.check(table)
        assert_metadata_true(table)
    model.delete(source)
    assert write(table, "delete", put_source(source, tmp_path, name="gone")).deleted == 2
    model.check(table)
    assert_metadata_true(table)


@pytest.mark.parametrize(
    ("version", "case"),
    tiered(
        [
            (version, case)
            for version in ("6", "8", "9")
            for case in ("mdt_all_cow", "mdt_all_mor", "mdt_record_index_lookup")
        ],
        [("6", "mdt_all_mor"), ("9", "mdt_all_cow")],
    ),
)
def test_all_indexes_are_kept(golden: Golden, tmp_path: Path, version: str, case: str) -> None:
    """Those of rows, too: of rows that come, change and go, also by a mark."""
    table = golden(version, case).table
    indexes = open_context(table).config.metadata_partitions
    model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
    new = like(rows, *({"id": f"new {at}", "dt": day} for at, day in enumerate(("2024-01-01", "2031-01-01") * 2)))
    source = pa.concat_tables([changed(rows.slice(0, 9), ts=lambda ts: ts + 9, qty=1, name="changed"), new])
    for number, gone in enumerate(((3, 11), (4, 12))):
        given = marked(changed(source, ts=lambda ts, by=number: ts + by), [at in gone for at in range(13)])
        model.upsert(given)
        write(table, "upsert", put_source(given, tmp_path, files=2, name=str(number)))
        model.check(table)
        assert_metadata_true(table)
    model.delete(rows.slice(20, 5))
    write(table, "delete", put_source(rows.slice(20, 5), tmp_path, name="gone"))
    model.check(table)
    assert_metadata_true(table)
    assert open_context(table).config.metadata_partitions == indexes


@pytest.mark.parametrize("version", VERSIONS)
def test_a_schema_that_changes_meanwhile_is_a_conflict(golden: Golden, tmp_path: Path, version: str) -> None:
    """Its columns would be lost from the table's schema."""
    table = golden(version, "cow_basic").table
    rows = read_rows(table)
    given = put_source(changed(own_columns(within(rows, "2024-01-01")), qty=1), tmp_path)
    other = own_columns(within(rows, "2024-01-02")).slice(0, 2).append_column("more", pa.array([1, 2]))

    class Between(SeenEngine):
        def exchange(self, produce: Any, *given: Any, **named: Any) -> list[Any]:
            if not self.units:
                write(table, "insert", put_source(other, tmp_path, name="other"), {**BESIDE, **APART})
            return super().exchange(produce, *given, **named)

    before = read_rows(table).num_rows
    with pytest.raises(ConflictError, match="the table's schema was changed since the work of"):
        write(table, "upsert", given, BESIDE, engine=Between())
    after = read_rows(table)
    assert (after.num_rows, "more" in after.schema.names) == (before + 2, True)
    assert pending(table) == []
    assert_metadata_true(table)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("moment", ["before tagging", "after tagging"])
def test_a_plan_that_comes_meanwhile_is_a_conflict(golden: Golden, tmp_path: Path, version: str, moment: str) -> None:
    """A clustering would not have our rows."""
    table = golden(version, "cow_basic").table
    model = Model.of(table, event_time=version != "6")
    given, _ = given_of(table, tmp_path)
    planned: list[str | None] = []

    class Between(SeenEngine):
        def exchange(self, produce: Any, *given: Any, **named: Any) -> list[Any]:
            if (produce is produce_routed) is (moment == "after tagging"):
                context = open_context(
                    table, {**BESIDE, "hoodie.clustering.plan.strategy.single.group.clustering": "1"}
                )
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr("hudi_core.services.rewriting.other_writers.alive_among", lambda *_: iter(()))
                    planned.append(ClusteringService().schedule(context, an_owner(), dry_run=False).instant)
            return super().exchange(produce, *given, **named)

    with pytest.raises(ConflictError, match="is pending on file groups"):
        write(table, "upsert", given, BESIDE, engine=Between())
    assert None not in planned
    model.check(table)
    assert pending(table) == planned
    assert staged(table) == []
    assert_metadata_true(table)


@pytest.mark.parametrize(
    ("version", "case"), tiered([("6", "cow_basic"), ("9", "cow_basic"), ("9", "mor_basic")], [("9", "cow_basic")])
)
def test_a_commit_between_the_request_and_the_plan(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, case: str
) -> None:
    """Its instant is the later one: readers would take its base files for newer than ours, which have its rows. Log
    files come beside them.
    """
    table = golden(version, case).table
    model = Model.of(table, event_time=version != "6")
    given, source = given_of(table, tmp_path)
    other = changed(source, ts=lambda ts: ts + 1, qty=7)
    between = put_source(other, tmp_path, name="between")

    def late(job: WriteJob) -> object:
        monkeypatch.setattr(verb, "run_instant", run_instant)
        write(table, "upsert", between, BESIDE)
        return run_instant(job)

    monkeypatch.setattr(verb, "run_instant", late)
    if case == "mor_basic":
        write(table, "upsert", given, BESIDE)
    else:
        with pytest.raises(ConflictError, match="has changed file group"):
            write(table, "upsert", given, BESIDE)
    model.upsert(other)
    model.check(table)
    assert pending(table) == []
    assert_metadata_true(table)


def test_a_deleted_partition_meanwhile_is_a_conflict(golden: Golden, tmp_path: Path) -> None:
    table = golden("9", "mor_basic").table
    model = Model.of(table, event_time=True)
    given, source = given_of(table, tmp_path)

    class Between(SeenEngine):
        def exchange(self, produce: Any, *given: Any, **named: Any) -> list[Any]:
            if produce is produce_routed:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr("hudi_core.services.write.verb.live_writer", lambda *_: None)
                    delete(table, "2024-01-01")
            return super().exchange(produce, *given, **named)

    with pytest.raises(ConflictError, match="has changed file group"):
        write(table, "upsert", given, engine=Between())
    model.delete(own_columns(within(read_rows(golden("9", "mor_basic").table), "2024-01-01")))
    model.check(table)
    model.upsert(source)
    write(table, "upsert", given)
    model.check(table)
    assert_metadata_true(table)


def test_a_bulk_insert_tags_nothing(golden: Golden, tmp_path: Path) -> None:
    """Its rows go from the source to new files."""
    table = golden("9", "cow_basic").table
    model, files = Model.of(table, event_time=True), set(data_files(table))
    given, source = given_of(table, tmp_path)
    model.insert(source)
    engine = SeenEngine()
    write(table, "bulk_insert", given, engine=engine)
    assert len(engine.units) == 1
    assert all(unit.part is not None for unit in engine.units[0])
    assert files < set(data_files(table))
    model.check(table)


def test_rows_that_another_writer_appends_before_the_clean_up_stay(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In version 6 its log file is named after the instant of the base file, which the clean-up looks for."""
    table = golden("6", "mor_basic").table
    model, rows = Model.of(table, event_time=False), own_columns(read_rows(table))
    made = like(rows, {"id": "made", "dt": "2031-01-01"})
    later = changed(made, qty=77)
    clean_up = WriteJob.clean_up

    def late(job: WriteJob, *done: Any) -> None:
        monkeypatch.setattr(WriteJob, "clean_up", clean_up)
        write(table, "upsert", put_source(later, tmp_path, name="later"))
        clean_up(job, *done)

    monkeypatch.setattr(WriteJob, "clean_up", late)
    write(table, "insert", put_source(made, tmp_path, name="made"), APART)
    model.insert(made)
    model.upsert(later)
    model.check(table)
    assert_metadata_true(table)
