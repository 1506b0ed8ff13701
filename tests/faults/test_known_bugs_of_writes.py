"""Bugs of real writers that lost or doubled rows (ids are Hudi's). WHERE says where the tests of the others are, and
why some bugs cannot be here.

Each test of this module holds with the guard in place, and shows the loss when the named guard is taken away.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from hudi_core.codec.parquet.statistics import leaf_columns
from hudi_core.errors import ConflictError, ExecutionError, HudiError
from hudi_core.metadata_table.instants import valid_instants
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.metadata_table.read import snapshot
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.model.names import RECORD_KEY
from hudi_core.services.rewriting.job import Attempt
from hudi_core.services.rollback.verb import rollback
from hudi_core.services.source import count
from hudi_core.services.write import job, shard_files, verb
from hudi_core.services.write.row_shards import newest
from hudi_core.services.write.tagging import keys, tag
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.transaction import commit
from hudi_core.view.slicing import Slicing
from tests.faults.test_races_of_writes import At
from tests.support.changed_tables import METADATA, an_owner, data_files, index_records, open_context
from tests.support.fault_storage import MUTATIONS, FaultPlan, InjectedCrash, Operation
from tests.support.golden_archives import active_of
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import own_rows, put_source
from tests.support.rows import assert_same_rows
from tests.support.service_calls import dead_process
from tests.support.table_invariants import assert_metadata_true, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.support.writes import APART, Model, changed, file_ids, like, marked, of_id, own_columns, write
from tests.unit.hudi_core.services.write.test_upsert_failures import TwiceEngine

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
ROOT = Path(__file__).parents[2]
DAY = "2031-01-01"
LAZY = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
}
WRITES = "tests/unit/hudi_core/services/write"
WHERE = {
    "8474 11527 19763": f"{WRITES}/test_upsert_failures.py",
    "5373": "tests/unit/hudi_core/filegroup/write/test_buckets.py",
    "9303 10899 10894 12245 9742": f"{WRITES}/test_plan_buckets.py",
    "7838 19763": "tests/unit/hudi_core/services/test_concurrent_changes.py",
    "8263 5822": f"{WRITES}/test_route_small_files.py",
    "19067": f"{WRITES}/test_append.py",
    "8416 7454 2970": "tests/hostile/test_sources.py",
    "13729 9536 6946 7745 7828 5686 7757 8681 6098 4389 8570 4858 1127 2752 9666 5689 8263 5822 26": (
        "tests/faults/test_known_bugs_of_writes.py"
    ),
    "3181 2059 11440 7779 11522 7914": "tests/faults/test_known_bugs_behind_writes.py",
}
"""Where each id is in the name of a test. 26 is the row of the facts about hudi-rs, which has no id.

hudi#11959 cannot be here: nothing here upgrades a table, and one of before version 6 is refused
(tests/unit/hudi_core/config/test_versions.py). hudi#18045 is a refusal of Spark's speculation, which hudi#11527 makes
unnecessary here. The native logs of hudi#19067 are of table version 10, which is refused, too; its test is about our
delete blocks.
"""


def test_each_bug_has_a_test_that_is_named_after_it() -> None:
    named = {
        path: " ".join(re.findall(r"^def (test_\w+)", (ROOT / path).read_text(), re.MULTILINE))
        for path in WHERE.values()
    }
    absent = [id_ for ids, path in WHERE.items() for id_ in ids.split() if f"hudi_{id_}_" not in named[path]]
    assert absent == []


def killed(table: Path, given: Path, options: dict[str, str], suffix: str, **more: Any) -> str:
    """An upsert or insert that dies once a file with this suffix is there, or `before` it is; its instant."""

    def is_it(change: Operation) -> bool:
        return change.path.endswith(suffix) and not change.path.startswith(METADATA)

    plan = FaultPlan(when=is_it, timing=more.pop("timing", "after"), counts=MUTATIONS)
    before = {item.requested_time for item in open_context(table).active.load()}
    with pytest.raises(InjectedCrash):
        write(table, more.pop("operation", "upsert"), given, options, plan, dead_process(), **more)
    (instant,) = {item.requested_time for item in open_context(table).active.load()} - before
    return instant


def new_rows(table: Path, folder: Path, *ids: str, day: str = DAY) -> tuple[Path, pa.Table]:
    rows = like(own_columns(read_rows(table)), *({"id": name, "dt": day} for name in ids))
    return put_source(rows, folder, name=f"{table.parent.name} {ids[0]}"), rows


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_hudi_13729_a_row_that_was_not_written_is_in_no_index(
    golden: Golden, tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is marked as deleted, or its write dies once the index is written. Guards: the index has the keys of the files
    that were written; what a metadata table has of an instant counts once the table has it.
    """
    table = golden(version, "mdt_all_cow").table
    given = put_source(marked(new_rows(table, tmp_path, "gone", "there")[1], [True, False]), tmp_path)
    write(table, "insert", given)
    indexed = index_records(table)[RECORD_INDEX]
    assert ("gone" in indexed, "there" in indexed) == (False, True)
    instant = killed(table, new_rows(table, tmp_path, "dead")[0], {}, ".decision", timing="before")
    assert index_records(table)[RECORD_INDEX].keys() == indexed.keys()
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "valid_instants", lambda *of, **named: valid_instants(*of, **named) | {instant})
        assert "dead" in index_records(table)[RECORD_INDEX]
    write(table, "insert", new_rows(table, tmp_path, "next")[0])
    assert index_records(table)[RECORD_INDEX].keys() == indexed.keys() | {"next"}
    assert_metadata_true(table)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_hudi_9536_hudi_6946_ranges_are_those_of_record_keys(
    golden: Golden, tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key of several fields begins with the name of one: by the range of that field no file has it. Guard: the column
    of the ranges.
    """

    def inserted(table: Path) -> int:
        rows = own_rows(table, read_rows(table))
        options = {"hoodie.index.type": "GLOBAL_BLOOM", **APART}  # a small file group would merge them
        return write(table, "upsert", put_source(rows, tmp_path, name=f"{table.parent.name} rows"), options).inserted

    assert inserted(golden(version, "complex_keygen").table) == 0
    monkeypatch.setattr(keys, "leaf_columns", lambda footer: {(RECORD_KEY,): leaf_columns(footer)[("id",)]})
    assert inserted(golden(version, "complex_keygen").table) > 0


def test_hudi_7745_two_writers_that_insert_one_key_at_once_both_add_a_row(golden: Golden, tmp_path: Path) -> None:
    """As Hudi allows, and our page says. A later write changes and deletes both. Where both would write one file group,
    one of them fails (test_races_of_writes.py).
    """
    table = golden("9", "cow_basic").table
    given, rows = new_rows(table, tmp_path, "twice")
    meanwhile = partial(write, table, "upsert", given, LAZY)
    write(table, "upsert", given, LAZY, engine=At("once written", meanwhile))
    assert len(file_ids(table)[of_id(rows.to_pylist()[0])]) == 2
    newer = put_source(changed(rows, ts=lambda ts: ts + 1, qty=7), tmp_path, name="newer")
    assert write(table, "upsert", newer, LAZY).updated == 2
    assert write(table, "delete", given, LAZY).deleted == 2
    assert_metadata_true(table)
    page = " ".join((ROOT / "docs" / "use" / "writing.md").read_text().split())
    assert "two writers that insert the same new key at the same time both add a row" in page


@pytest.mark.parametrize("other", ["rolls it back", "writes and dies"])
def test_hudi_7828_hudi_5686_hudi_7757_rows_are_not_hidden_by_a_later_instant(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """Readers of version 6 stop at a log block that is newer than the last commit, and so at the rollback of a failed
    write. Guards: a write draws its instant after its rollbacks, and conflicts with what others did meanwhile.
    """

    def written(*, meanwhile: bool) -> None:
        table = golden("6", "mor_basic").table
        model, rows = Model.of(table, event_time=False), own_columns(read_rows(table)).slice(0, 20)
        first = changed(rows, ts=lambda ts: ts + 10**6, qty=1)
        lost = put_source(first, tmp_path, name=f"{table.parent.name} lost")
        failed = killed(table, lost, {}, ".decision", timing="before")
        second = changed(first, qty=2)
        given = put_source(second, tmp_path, name=f"{table.parent.name} second")

        def another() -> None:
            if other == "rolls it back":
                rollback(open_context(table), failed, an_owner())
            else:
                killed(table, lost, LAZY, ".decision", timing="before")

        if not meanwhile:
            instant = write(table, "upsert", given).instant
            assert new_rollbacks(table) < [str(instant)]
        else:
            with monkeypatch.context() as patch:
                patch.setattr(verb, "_roll_failed_writes_back", lambda *_, **__: [])
                try:
                    write(table, "upsert", given, LAZY, engine=At("before writing", another))
                except ConflictError:
                    model.check(table)
                    raise
        model.upsert(second)
        model.check(table)

    written(meanwhile=False)
    with pytest.raises(ConflictError, match="would hide its rows"):
        written(meanwhile=True)
    monkeypatch.setattr(job, "check_not_hidden", lambda *_, **__: None)
    with pytest.raises(AssertionError, match="lost"):
        written(meanwhile=True)


def new_rollbacks(table: Path) -> list[str]:
    return [item.requested_time for item in open_context(table).active.load().of_actions(Action.ROLLBACK)]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_hudi_8681_the_next_write_takes_the_files_of_one_that_failed(
    golden: Golden, tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: failed writes are rolled back first."""

    def left(table: Path) -> set[str]:
        model, before = Model.of(table, event_time=True), set(data_files(table))
        instant = killed(table, new_rows(table, tmp_path, "dead")[0], {}, ".parquet", operation="insert")
        given, rows = new_rows(table, tmp_path, "next", day="2031-01-02")
        write(table, "insert", given)
        model.insert(rows)
        model.check(table)
        return {name for name in set(data_files(table)) - before if name.endswith(f"_{instant}.parquet")}

    assert left(golden(version, "cow_basic").table) == set()
    monkeypatch.setattr(verb, "_roll_failed_writes_back", lambda *_, **__: [])
    monkeypatch.setattr(verb, "live_writer", lambda *_: None)
    assert len(left(golden(version, "cow_basic").table)) == 1


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_hudi_8263_hudi_5822_a_file_group_of_a_failed_write_is_not_filled(
    golden: Golden, tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows yet that it failed. New rows would go with it when it is rolled back. Guard: files of pending
    instants are invisible.
    """
    monkeypatch.setattr(verb, "_roll_failed_writes_back", lambda *_, **__: [])

    def kept(table: Path) -> bool:
        drop_metadata_table(open_context(table).storage)  # it does not list the file
        given, _ = new_rows(table, tmp_path, "dead")
        killed(table, given, LAZY, ".decision", timing="before", operation="insert")
        write(table, "insert", new_rows(table, tmp_path, "next")[0], LAZY)
        groups = [path.name.partition("_")[0] for path in (table / DAY).glob("*.parquet")]
        return len(set(groups)) == len(groups) == 2

    assert kept(golden(version, "cow_basic").table)
    monkeypatch.setattr(Slicing, "file_visible", lambda self, instant: True)
    monkeypatch.setattr(Slicing, "slice_visible", lambda self, instant: True)
    assert not kept(golden(version, "cow_basic").table)


def test_hudi_6098_hudi_4389_hudi_8570_a_batch_that_is_replayed_is_written_once(golden: Golden, tmp_path: Path) -> None:
    """Its writer died when the commit was there, and does not know. Guard: the token."""
    table = golden("9", "mor_basic").table
    model = Model.of(table, event_time=True)
    given, rows = new_rows(table, tmp_path, "one", "two")
    killed(table, given, {}, ".deltacommit", operation="insert", token="batch 7")
    for _ in range(2):
        assert write(table, "insert", given, token="batch 7").repeated
    model.insert(rows)
    model.check(table)
    write(table, "insert", given)
    with pytest.raises(AssertionError):
        model.check(table)


@pytest.mark.parametrize("case", ["cow_basic", "mor_basic"])
def test_hudi_4858_hudi_1127_hudi_2752_of_a_delete_and_an_insert_in_one_batch_the_last_counts(
    golden: Golden, tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the ordering value, or where that is equal by the place in the source. Guard: tag.newest."""

    def there(table: Path) -> list[str]:
        row = own_columns(read_rows(table)).sort_by("id").slice(0, 1)
        rows = [changed(row, id=f"key {number}") for number in range(4)]
        write(table, "insert", put_source(pa.concat_tables(rows), tmp_path, name=f"{table.parent.name} old"))
        changes = [
            marked(changed(rows[at], ts=lambda ts, by=by: ts + by), [gone])
            for at, by, gone in (
                *((0, 1, True), (0, 2, False)),
                *((1, 2, True), (1, 1, False)),
                *((2, 1, True), (2, 1, False)),
                *((3, 1, False), (3, 1, True)),
            )
        ]
        write(table, "upsert", put_source(pa.concat_tables(changes), tmp_path, name=f"{table.parent.name} changes"))
        return sorted(key for key in read_rows(table).column("id").to_pylist() if key.startswith("key "))

    assert there(golden("9", case).table) == ["key 0", "key 2"]
    monkeypatch.setattr(tag, "newest", lambda tables, *of, **named: newest(map(_reversed, tables), *of, **named))
    assert there(golden("9", case).table) == ["key 1", "key 3"]


def _reversed(table: pa.Table) -> pa.Table:
    """The rows of a few keys, with those of each key in the other order."""
    keys = table.column(RECORD_KEY).to_pylist()
    order = sorted(range(len(keys)), key=lambda at: (keys.index(keys[at]), -at))
    return table.take(order)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_hudi_9666_keys_of_one_field_are_as_the_table_has_them(
    golden: Golden, tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`value` or `field:value`: by the wrong one each row is new. Guard: the table's own keys."""

    def counts(table: Path) -> tuple[int, int]:
        rows = own_rows(table, read_rows(table))
        result = write(table, "upsert", put_source(rows, tmp_path, name=f"{table.parent.name} rows"))
        return result.inserted, result.updated - rows.num_rows

    assert counts(golden(version, "complex_keygen_single").table) == (0, 0)
    knows = count._labels_one
    monkeypatch.setattr(count, "_labels_one", lambda *given: not knows(*given))
    inserted, missed = counts(golden(version, "complex_keygen_single").table)
    assert inserted == -missed > 0


def test_hudi_5689_an_upsert_finds_what_a_repeated_task_inserted(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards: no task draws a file id, and files that no result names go before the commit."""

    def twice(table: Path) -> None:
        drop_metadata_table(open_context(table).storage)  # it would not list the others
        model = Model.of(table, event_time=True)
        given, rows = new_rows(table, tmp_path, *(f"row {number}" for number in range(9)))
        write(table, "insert", given, engine=TwiceEngine())
        model.insert(rows)
        model.check(table)
        newer = changed(rows, ts=lambda ts: ts + 1, qty=7)
        model.upsert(newer)
        result = write(table, "upsert", put_source(newer, tmp_path, name=f"{table.parent.name} newer"))
        assert (result.updated, result.inserted) == (9, 0)
        model.check(table)

    twice(golden("9", "mor_basic").table)
    monkeypatch.setattr(Attempt, "_remove_losers", lambda self, winners: winners)
    monkeypatch.setattr("hudi_core.services.rewriting.job.remove_losers", lambda *_, **__: {})
    monkeypatch.setattr(shard_files, "uuid5", lambda *_: UUID(int=next(_DRAWN)))
    with pytest.raises(AssertionError):
        twice(golden("9", "mor_basic").table)


_DRAWN = iter(range(1 << 100, 1 << 101, 1 << 90))


@pytest.mark.parametrize(
    ("version", "case"),
    tiered(
        [(version, case) for version in VERSIONS for case in ("cow_basic", "mor_basic")],
        [("6", "mor_basic"), ("9", "cow_basic")],
    ),
)
def test_hudi_26_a_write_whose_instant_another_writer_rolled_back_is_not_committed(
    golden: Golden, tmp_path: Path, version: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hudi-rs rolls back what it finds pending, also as the write completes. Guards: check_inflight, under
    the lock, and ActiveTimeline.complete.
    """

    def rolled_back(table: Path, *, at: str) -> None:
        rows = own_columns(read_rows(table))
        newer = changed(rows.slice(0, 9), ts=lambda ts: ts + 1, qty=7)
        given = put_source(newer, tmp_path, name=f"{table.parent.name} {at}")
        complete = commit.Completer.complete

        def late(completer: Any, instant: str, *of: Any, **named: Any) -> Any:
            foreign_rollback(table, instant)
            return complete(completer, instant, *of, **named)

        def meanwhile() -> None:
            (item,) = open_context(table).active.load().pending()
            foreign_rollback(table, item.requested_time)

        with monkeypatch.context() as patch:
            if at == "the completion":
                patch.setattr(commit.Completer, "complete", late)
                write(table, "upsert", given)
            else:
                write(table, "upsert", given, engine=At(at, meanwhile))

    for at in ("before writing", "once written", "the completion"):
        table = golden(version, case).table
        before, instants = read_rows(table), active_of(table)
        with pytest.raises(HudiError) as caught:
            rolled_back(table, at=at)
        assert isinstance(caught.value, (ConflictError, ExecutionError))
        assert active_of(table) == instants
        assert pending_instants(table) == set()
        assert_same_rows(read_rows(table, "off"), before, ignore=())
        assert_metadata_true(table)
    monkeypatch.setattr(commit, "check_inflight", lambda *_: None)
    monkeypatch.setattr(ActiveTimeline, "_require", lambda *_: None)
    table = golden(version, case).table
    rolled_back(table, at="the completion")
    assert len(active_of(table)) == len(instants) + 1, "a commit whose files are gone"


def foreign_rollback(table: Path, instant: str) -> None:
    """What is left once hudi-rs has rolled an instant back, and its rollback is archived."""
    for pattern in ("20*/*{}*", ".hoodie/{}.*", ".hoodie/timeline/{}*"):
        for path in table.glob(pattern.format(instant)):
            path.unlink()
    shutil.rmtree(table / ".hoodie" / ".temp" / instant, ignore_errors=True)
