"""What a rollback finds of a failed write: by its markers and by listing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.errors import FormatError
from hudi_core.model.names import FileGroupId
from hudi_core.services.restore.verb import restore
from hudi_core.services.rollback.files_to_roll_back import rollback_steps
from hudi_core.services.rollback.verb import request_rollback, rollback
from hudi_core.timeline.actions.rollback import decode_rollback_plan
from hudi_core.timeline.instant import Action, State
from tests.support.changed_tables import an_owner, assert_rows, data_files, listed, open_context, pending_write
from tests.support.golden_data import GoldenCase
from tests.support.pending_operations import clustering_plan
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
LISTED = {"hoodie.rollback.using.markers": "false"}


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
@pytest.mark.parametrize("name", ["failed_inflight_mor", "failed_inflight_cow"])
def test_markers_and_listing_find_the_same(golden: Golden, version: str, name: str) -> None:
    by_markers, by_listing, without = (
        golden(version, name).table,
        golden(version, name).table,
        golden(version, name).table,
    )
    failed = pending_write(by_markers)
    rollback(open_context(by_markers), failed, an_owner())
    rollback(open_context(by_listing, LISTED), failed, an_owner())
    # Real Hudi finds nothing there and leaves the files behind.
    for marker in (without / ".hoodie" / ".temp" / failed).iterdir():
        marker.unlink()
    rollback(open_context(without), failed, an_owner())
    assert data_files(by_markers) == data_files(by_listing) == data_files(without)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_markers_count_beside_a_type_file_that_a_crash_left_empty(golden: Golden, version: str) -> None:
    case = golden(version, "failed_inflight_mor")
    failed, expected = pending_write(case.table), case.after()
    (kind,) = (case.table / ".hoodie" / ".temp" / failed).glob("MARKERS.type")
    kind.write_bytes(b"")
    rollback(open_context(case.table), failed, an_owner())
    assert data_files(case.table) == data_files(expected)
    assert_rows(case.table, read_rows(expected, "off"))


def test_blocks_of_a_writer_without_profile_are_found(golden: Golden) -> None:
    """Table version 6: the inflight file is empty, as other engines write it, and the markers are gone."""
    case, expected = golden("6", "failed_inflight_mor"), golden("6", "failed_inflight_mor").after()
    failed = pending_write(case.table)
    (case.table / ".hoodie" / f"{failed}.deltacommit.inflight").write_bytes(b"")
    rollback(open_context(case.table, LISTED), failed, an_owner())
    assert data_files(case.table) == data_files(expected)
    assert_rows(case.table, read_rows(expected, "off"))


def test_a_log_file_that_began_a_file_group_is_deleted(golden: Golden) -> None:
    """Table version 6: a log file named after the failed instant holds no other writer's rows."""
    case = golden("6", "failed_inflight_mor")
    failed = pending_write(case.table)
    name = f".00000000-0000-0000-0000-000000000000-0_{failed}.log.1_0-1-0"
    (case.table / "2024-01-01" / name).write_bytes(b"")
    with (case.table / ".hoodie" / ".temp" / failed / "MARKERS0").open("a") as markers:
        markers.write(f"2024-01-01/{name}.marker.APPEND\n")
    rollback(open_context(case.table), failed, an_owner())
    assert not (case.table / "2024-01-01" / name).exists()


def test_a_writer_that_died_as_it_began_a_log_file(golden: Golden) -> None:
    """Table version 6: the log file is there without a byte; the metadata table could not list it."""
    case = golden("6", "failed_inflight_mor")
    failed, rows = pending_write(case.table), read_rows(case.table, "off")
    for log in case.table.glob("*/.*.log.2_*"):
        log.write_bytes(b"")
    rollback(open_context(case.table), failed, an_owner())
    assert not list(case.table.glob("*/.*.log.2_*"))
    assert_rows(case.table, rows)
    assert listed(case.table) == {
        path: size for path, size in data_files(case.table).items() if not path.endswith("_partition_metadata")
    }


def test_the_plan_gives_a_log_file_without_a_byte_a_size(golden: Golden) -> None:
    """Real Hudi writes to its metadata table the sizes of the plan, and refuses to list a file of 0 bytes."""
    case = golden("6", "failed_inflight_mor")
    failed = pending_write(case.table)
    for log in case.table.glob("*/.*.log.2_*"):
        log.write_bytes(b"")
    context = open_context(case.table)
    (pending,) = (item for item in context.active.load().pending() if item.requested_time == failed)
    path = context.active.path(request_rollback(context, pending, an_owner()), Action.ROLLBACK, State.REQUESTED)
    requests = decode_rollback_plan(context.storage.read(path), path=path).requests
    assert {size for request in requests for size in request.log_blocks.values()} == {1}


def test_an_append_marker_with_the_base_files_name_is_understood(golden: Golden) -> None:
    """Before HUDI-1517 that is how the marker of an append was named."""
    case = golden("6", "failed_inflight_mor")
    failed, after = pending_write(case.table), case.after()
    folder = case.table / ".hoodie" / ".temp" / failed
    for file in sorted(folder.glob("MARKERS[0-9]*")):
        lines = []
        for line in file.read_text().splitlines():
            partition, _, marked = line.rpartition("/")
            if marked.endswith(".marker.APPEND"):
                file_id = marked[1:].split("_")[0]
                (base,) = (case.table / partition).glob(f"{file_id}_*.parquet")
                line = f"{partition}/{base.name}.marker.APPEND"
            lines.append(line)
        file.write_text("\n".join(lines) + "\n")
    rollback(open_context(case.table), failed, an_owner())
    assert data_files(case.table) == data_files(after)


def _named_after(table: Path, failed: str, other: str) -> Path:
    """A log file of the failed write, renamed with its marker after another instant: what a write beside the resizing
    of consistent hashing buckets leaves in the new bucket.
    """
    log = sorted(table.glob(f"*/.*_{failed}.log.*"))[0]
    renamed = log.with_name(f".00000000-0000-0000-0000-000000000000-0_{other}.log.1_0-1-0")
    (marker,) = (table / ".hoodie" / ".temp" / failed).glob(f"*/{log.name}.marker.*")
    log.rename(renamed)
    marker.rename(marker.with_name(marker.name.replace(log.name, renamed.name)))
    return renamed


def _planned_names(table: Path, failed: str, log: Path) -> list[str]:
    """How a plan to roll the write back names the log file."""
    context = open_context(table)
    (pending,) = (item for item in context.active.load().pending() if item.requested_time == failed)
    steps = rollback_steps(context, pending, context.active.load())
    return [name for step in steps for name in step.delete if name == log.name]


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_log_file_that_is_named_after_a_clustering_is_deleted(golden: Golden, version: str) -> None:
    """And a plan of real Hudi, which names it, is run so, also where another owner has deleted it before."""
    table, planned = (golden(version, "failed_inflight_mor_direct_markers").table for _ in range(2))
    failed, rows = pending_write(table), read_rows(table, "off")
    for gone in (False, True):
        copy = planned if gone else table
        log = _named_after(copy, failed, "20990101000000000")
        context = open_context(copy)
        if gone:
            (pending,) = (item for item in context.active.load().pending() if item.requested_time == failed)
            request_rollback(context, pending, an_owner())
            log.unlink()
        assert rollback(context, failed, an_owner())
        assert not log.exists()
        assert_rows(copy, rows)


@pytest.mark.parametrize("version", ["8", "9"])
def test_it_is_found_without_markers_where_the_timeline_has_the_clustering(golden: Golden, version: str) -> None:
    """Also by a restore; a log file of others with such a name stays."""
    for restoring in (False, True):
        table = golden(version, "failed_inflight_mor_direct_markers").table
        failed, rows = pending_write(table), read_rows(table, "off")
        context = open_context(table)
        target = context.active.load().commits().instants[-1].requested_time
        clustering = str(int(target) - 1)
        log = _named_after(table, failed, clustering)
        other = log.with_name(log.name.replace("00000000-0000", "11111111-1111"))
        other.write_bytes(next(path for path in table.glob("*/.*.log.*") if failed not in path.name).read_bytes())
        shutil.rmtree(table / ".hoodie" / ".temp" / failed)
        context.active.create_requested(clustering, Action.CLUSTERING, clustering_plan(FileGroupId("p", "none")))
        if restoring:
            restore(context, target, an_owner())
        else:
            rollback(context, failed, an_owner())
        assert (log.exists(), other.exists()) == (False, True)
        other.unlink()
        assert_same_rows(read_rows(table, "off"), rows)


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_log_file_of_others_is_left_alone(golden: Golden, version: str) -> None:
    table = golden(version, "failed_inflight_mor_direct_markers").table
    failed = pending_write(table)
    log = _named_after(table, failed, "20990101000000000")
    others = next(path for path in table.glob("*/.*.log.*") if failed not in path.name and path != log)
    blocks = log.read_bytes()
    log.write_bytes(others.read_bytes())
    assert _planned_names(table, failed, log) == []
    log.write_bytes(others.read_bytes() + blocks)
    with pytest.raises(FormatError, match="of other instants") as caught:
        rollback(open_context(table), failed, an_owner())
    assert caught.value.path == log.relative_to(table).as_posix()
