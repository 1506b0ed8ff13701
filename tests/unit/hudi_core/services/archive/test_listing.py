"""Files that archival would make visible: of instants that never completed, of rollbacks gone, of replaced file groups
(hudi#18783).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.errors import OrphanFilesError
from hudi_core.model.names import parse_base_file, parse_log_file
from hudi_core.services.archive import planner as rules
from hudi_core.services.archive.job import ArchiveService
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.run import schedule
from tests.support.changed_tables import an_owner
from tests.support.golden_archives import TIGHT, active_of, archive, history_of
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_health.doctor.test_examine import findings

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
LEAVE = {**TIGHT, "airflow_hudi.archive.orphans": "leave"}
TIGHTER = {
    **TIGHT,
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.keep.min.commits": "1",
    "hoodie.keep.max.commits": "2",
}
"""With a cleaner that keeps no commits from archival itself."""
IGNORE = {**TIGHT, "airflow_hudi.archive.orphans": "ignore"}


def between(table: Path) -> str:
    """An instant right after the second commit of the timeline, which no timeline holds."""
    second = context_of(table).active.load().commits().instants[1]
    return str(int(second.requested_time) + 1)


def late_base_file(table: Path) -> tuple[str, Path]:
    """A base file of a new file group whose instant was rolled back before its PUT came through; the instant and the
    file.
    """
    instant = between(table)
    source = sorted(path for path in table.glob("2024*/*.parquet"))[-1]
    name = parse_base_file(source.name)
    target = source.with_name(f"{'0' * 8}{name.file_id[8:]}_{name.token}_{instant}.parquet")
    shutil.copyfile(source, target)
    return instant, target


def copy_of(table: Path) -> Path:
    return Path(shutil.copytree(table, table.with_name("unguarded")))


@pytest.mark.parametrize("folder", tiered(VERSIONS, ["6", "9"]))
def test_hudi_18783_a_late_file_of_a_rolled_back_instant(golden: Golden, folder: str) -> None:
    """The null control comes last: with the guard off, the rows of the file appear."""
    table = golden(folder, "archived_timeline_cow").table
    rows = read_rows(table)
    instant, orphan = late_base_file(table)
    assert_same_rows(read_rows(table), rows)
    before = active_of(table)
    with pytest.raises(OrphanFilesError, match="never completed") as caught:
        archive(table)
    path = orphan.relative_to(table).as_posix()
    assert path in str(caught.value)
    assert instant in str(caught.value)
    assert "airflow_hudi.archive.orphans=leave" in str(caught.value)
    assert caught.value.exit_code == 1
    assert active_of(table) == before
    preview = schedule(context_of(table, TIGHT), "archive", an_owner(), dry_run=True)
    assert preview.plan is None
    assert path in str(preview.reason)

    went = archive(table, LEAVE)
    assert [time for time, action in went if action == "commit"] == [
        time for time, action in before if action == "commit"
    ][:1]
    assert_same_rows(read_rows(table), rows)
    held = ArchiveService().schedule(context_of(table, {**LEAVE, **TIGHTER}), Owner.current("test"), dry_run=True)
    assert path in str(held.reason)

    unguarded = copy_of(table)
    archive(unguarded, {**IGNORE, **TIGHTER})
    assert read_rows(unguarded).num_rows > rows.num_rows, "without the guard, the file counts as committed"

    orphan.unlink()
    assert archive(table, TIGHTER)
    assert_same_rows(read_rows(table), rows)


@pytest.mark.parametrize("folder", ["8", "9"])
def test_a_log_file_of_layout_2_by_its_name(golden: Golden, folder: str) -> None:
    table = golden(folder, "archived_timeline_mor").table
    (source, *_) = sorted(table.glob("2024*/.*.log.*"))
    name = parse_log_file(source.name)
    orphan = source.with_name(f".{name.file_id}_{between(table)}.log.1_{name.token}")
    shutil.copyfile(source, orphan)
    with pytest.raises(OrphanFilesError) as caught:
        archive(table)
    assert orphan.name in str(caught.value)
    orphan.rename(orphan.with_name(orphan.name + ".cdc"))
    assert archive(table), "a CDC file counts only where a commit names it"


@pytest.mark.parametrize("folder", ["8", "9"])
def test_a_log_file_that_is_named_after_a_clustering_by_its_blocks(golden: Golden, folder: str) -> None:
    """As a write beside the resizing of consistent hashing buckets makes it."""
    table = golden(folder, "archived_timeline_mor").table
    (source, *_) = sorted(table.glob("2024*/.*.log.*"))
    name, timeline = parse_log_file(source.name), context_of(table).active.load()
    (clustering,) = timeline.of_actions(Action.REPLACE_COMMIT)
    log = source.with_name(f".{name.file_id}_{clustering.requested_time}.log.1_{name.token}")
    for instant, is_orphan in ((between(table), True), (timeline.commits().instants[-1].requested_time, False)):
        log.write_bytes(source.read_bytes().replace(name.instant.encode(), instant.encode()))
        assert [item.path for item in findings(table) if item.rule == "orphan_hidden"] == (
            [log.relative_to(table).as_posix()] if is_orphan else []
        )
        if is_orphan:
            with pytest.raises(OrphanFilesError, match=log.name.replace(".", r"\.")):
                archive(table)
        else:
            assert archive(table)


class TestBlocksOfVersion6:
    """The name of a log file says nothing of who wrote it: its blocks do."""

    @staticmethod
    def _append(table: Path, kind: BlockType, headers: dict[HeaderKey, str], number: int) -> Path:
        (source, *_) = sorted(table.glob("2024*/.*.log.1_*"))
        name = parse_log_file(source.name)
        target = source.with_name(f".{name.file_id}_{name.instant}.log.{number}_7-7-7")
        content = b"\x00\x00\x00\x03\x00\x00\x00\x02\x00\x00" if kind is BlockType.DELETE else b""
        target.write_bytes(encode_block(kind, headers, content))
        return target

    def test_a_block_that_never_committed_until_it_is_rolled_back(self, golden: Golden) -> None:
        table = golden("6", "archived_timeline_mor").table
        time = between(table)
        orphan = self._append(table, BlockType.DELETE, {HeaderKey.INSTANT_TIME: time, HeaderKey.SCHEMA: '"int"'}, 97)
        with pytest.raises(OrphanFilesError) as caught:
            archive(table)
        assert orphan.name in str(caught.value)
        assert time in str(caught.value)
        command = {
            HeaderKey.INSTANT_TIME: str(int(time) + 5),
            HeaderKey.TARGET_INSTANT_TIME: time,
            HeaderKey.COMMAND_BLOCK_TYPE: "0",
        }
        self._append(table, BlockType.COMMAND, command, 98)
        assert archive(table)

    def test_a_block_appended_to_a_file_that_a_commit_wrote(self, golden: Golden) -> None:
        table = golden("6", "archived_timeline_mor").table
        time = between(table)
        (source, *_) = sorted(table.glob("2024*/.*.log.1_*"))
        with source.open("ab") as file:
            file.write(
                encode_block(
                    BlockType.DELETE,
                    {HeaderKey.INSTANT_TIME: time, HeaderKey.SCHEMA: '"int"'},
                    b"\x00\x00\x00\x03\x00\x00\x00\x00",
                )
            )
        with pytest.raises(OrphanFilesError) as caught:
            archive(table)
        assert source.name in str(caught.value)

    def test_files_that_commits_account_for_are_not_read(self, golden: Golden) -> None:
        table = golden("6", "archived_timeline_mor").table
        for path in table.glob("2024*/.*.log.*"):
            path.write_bytes(b"x" * path.stat().st_size)
        assert archive(table)


@pytest.mark.parametrize("folder", tiered(VERSIONS, ["6", "9"]))
def test_files_of_replaced_groups_hold_their_replacecommit(
    golden: Golden, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HUDI-6352, and what a clean failed to delete: whatever cleans say, the file would come back to life, as the null
    control shows.
    """
    table = golden(folder, "archived_timeline_mor").table
    rows = read_rows(table)
    context = context_of(table)
    (replacing,) = context.active.load().of_actions(Action.REPLACE_COMMIT)
    (group,) = context.active.read_commit(replacing).replaced_file_groups()
    source = sorted((table / group.partition).glob("*.parquet"))[-1]
    first = min(item.requested_time for item in context.history().timeline().commits())
    old = source.with_name(f"{group.file_id}_1-1-1_{first}.parquet")
    shutil.copyfile(source, old)
    assert_same_rows(read_rows(table), rows)
    for options in (TIGHT, IGNORE):
        preview = ArchiveService().schedule(context_of(table, options), Owner.current("test"), dry_run=True)
        gone = [] if preview.plan is None else [item["action"] for item in preview.plan["instants"]]
        assert "replacecommit" not in gone
        assert "deltacommit" not in gone, "nothing newer goes before it"
    archive(table)
    assert (replacing.requested_time, "replacecommit") in active_of(table)
    assert_same_rows(read_rows(table), rows)
    unguarded = copy_of(table)
    with monkeypatch.context() as patch:
        holds = rules._holds
        patch.setattr(
            rules,
            "_holds",
            lambda inputs, config, found: holds(
                inputs, config, rules.Findings(orphans=found.orphans, hidden=found.hidden)
            ),
        )
        archive(unguarded, IGNORE)
    assert read_rows(unguarded).num_rows > rows.num_rows
    old.unlink()
    archive(table)
    assert (replacing.requested_time, "replacecommit") in history_of(table)
    assert_same_rows(read_rows(table), rows)


@pytest.mark.parametrize("folder", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
@pytest.mark.parametrize("kind", ["clustering", "commit"])
def test_hudi_4163_no_archival_passes_a_pending_write(
    golden: Golden, folder: str, state: State, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hudi#4163, HUDI-2892, HUDI-5728: what it has written so far stays invisible.

    With the guard off the timeline begins behind it, and a file of it that outlives its rollback counts as committed.
    """
    table = golden(folder, "archived_timeline_cow").table
    rows = read_rows(table)
    instant, _ = late_base_file(table)
    active = context_of(table).active
    action = Action.REPLACE_COMMIT if kind == "clustering" and active.layout == 1 else kind
    active.create_requested(instant, action, b"")
    if state is State.INFLIGHT:
        active.to_inflight(instant, action)
    went = archive(table, {**TIGHTER, "hoodie.keep.max.commits": "3"})
    assert len([time for time, done in went if done == "commit"]) == 1, "the commit before it stays"
    assert_same_rows(read_rows(table), rows)
    preview = ArchiveService().schedule(context_of(table, TIGHTER), Owner.current("test"), dry_run=True)
    assert f"{action} {instant} is pending" in str(preview.reason)

    with monkeypatch.context() as patch:
        patch.setattr(rules, "_of_pending", lambda inputs: iter(()))
        archive(table, {**IGNORE, **TIGHTER})
    start = context_of(table).active.load().commits().start
    assert start is not None
    assert start > instant
    active.delete_instant(instant, action)
    assert read_rows(table).num_rows > rows.num_rows


@pytest.mark.parametrize("folder", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("name", ["archived_timeline_cow", "archived_timeline_mor"])
def test_beyond_a_savepoint_only_what_has_no_files_any_more(golden: Golden, folder: str, name: str) -> None:
    """Hudi archives the others as well, and their rows are gone, as the null control shows
    (hoodie.archive.beyond.savepoint).
    """
    table = golden(folder, name).table
    rows = read_rows(table)
    context = context_of(table)
    first, *later = context.active.load().commits().instants
    saved = context.active.path(first.requested_time, Action.SAVEPOINT, State.COMPLETED, first.completed_at)
    for path in (context.active.path(first.requested_time, Action.SAVEPOINT, State.INFLIGHT), saved):
        (table / path).write_bytes(b"")
    assert (
        ArchiveService().schedule(context_of(table, TIGHTER), Owner.current("test"), dry_run=True).plan is None
        or folder == "6"
    ), "up to the savepoint there are only cleans"
    beyond = {**TIGHTER, "hoodie.archive.beyond.savepoint": "true"}
    unguarded = copy_of(table)
    archive(unguarded, {**IGNORE, **beyond})
    assert len(context_of(unguarded).active.load().commits()) <= 3
    before = {item.requested_time for item in later}
    archive(table, beyond)
    gone = before - {time for time, _ in active_of(table)}
    assert_same_rows(read_rows(table), rows)
    for time in gone:
        assert not [path for path in table.glob("2024*/*") if time in path.name]
    assert read_rows(unguarded).sort_by("_hoodie_record_key") != rows.sort_by("_hoodie_record_key")
