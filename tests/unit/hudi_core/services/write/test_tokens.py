"""Tokens are found on the active timeline and in the archive."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hudi_core.errors import ConfigError, ConflictError
from hudi_core.history import log_archive, lsm
from hudi_core.history.lsm import LsmHistory
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.services.overwrite.plan import Overwrite
from hudi_core.services.write import verb
from hudi_core.services.write.tokens import find_token
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.actions.replacecommit import TOKEN_KEY
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.verbs.write import DeletePartitionRequest
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import delete, overwrite, own_rows, put_source, within
from tests.support.table_invariants import read_rows
from tests.support.table_requests import nothing_to_do
from tests.support.tiers import tiered
from tests.support.writes import APART, archive, archive_behind, like, own_columns, write

Golden = Callable[[str, str], GoldenCase]
VERSIONS = tiered(["6", "8", "9"], ["6", "9"])


def work_of(token: str | None) -> Overwrite:
    return Overwrite(Operation.DELETE_PARTITION, token=token)


def new_row(table: Path) -> Path:
    return put_source(like(own_columns(read_rows(table)), {"id": "new", "dt": "2031-01-01"}), table.parent)


def test_no_token_is_no_instant(golden: Golden) -> None:
    context = open_context(golden("9", "insert_overwrite_table").table)
    assert find_token(context, context.active.load(), work_of(None)) is None
    assert find_token(context, context.active.load(), work_of("unknown")) is None


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_each_token_is_its_own_work(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    first, second = sorted(set(read_rows(table).column("_hoodie_partition_path").to_pylist()))[:2]
    results = [delete(table, first, token="a"), delete(table, second, token="b")]
    context = open_context(table)
    for token, result in zip("ab", results, strict=True):
        found = find_token(context, context.active.load(), work_of(token))
        assert found is not None
        assert found.instant.requested_time == result.instant
        assert found.metadata is not None


def test_a_token_of_other_work_is_bad_input(golden: Golden, tmp_path_factory: pytest.TempPathFactory) -> None:
    table = golden("9", "cow_basic").table
    rows = read_rows(table)
    delete(table, min(rows.column("_hoodie_partition_path").to_pylist()), token="a")
    given = put_source(own_rows(table, rows), tmp_path_factory.mktemp("given"))
    with pytest.raises(ConfigError, match="the token is that of DELETE_PARTITION"):
        overwrite(table, given, token="a")


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["9"]))
def test_a_token_of_other_partitions_is_bad_input(
    golden: Golden, version: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For both verbs, in a look too, and of a partition that had no rows left."""
    table = golden(version, "cow_basic").table
    rows = read_rows(table)
    first, second, third = sorted(set(rows.column("_hoodie_partition_path").to_pylist()))[:3]
    context = open_context(table)
    for token in ("full", "empty"):
        done = delete(table, first, token=token)
        for others in ((second,), (first, second)):
            with pytest.raises(
                ConfigError, match=f"whose partitions are others: '{second if len(others) == 2 else first}'"
            ):
                delete(table, *others, token=token)
            with pytest.raises(ConfigError, match="whose partitions are others"):
                nothing_to_do(context, DeletePartitionRequest(str(table), partitions=others, token=token))
        again = delete(table, first, token=token)
        assert (again.instant, again.repeated) == (done.instant, True)
    assert within(read_rows(table), second).num_rows > 0
    given = put_source(own_rows(table, within(rows, second)), tmp_path_factory.mktemp("given"))
    done = overwrite(table, given, partitions=(third, second), token="static")
    with pytest.raises(ConfigError, match=f"whose partitions are others: '{third}'"):
        overwrite(table, given, partitions=(second,), token="static")
    again = overwrite(table, given, partitions=(second, third), token="static")
    assert (again.instant, again.repeated) == (done.instant, True)


def test_a_write_reads_the_archive_once(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has all commits of the table's past. Twice only where an archival came while the rows were counted."""
    table = golden("9", "cow_basic").table
    first, second = sorted(set(read_rows(table).column("_hoodie_partition_path").to_pylist()))[:2]
    reads: list[bool] = []
    commits = LsmHistory.commits

    def read(self: LsmHistory, instants: Any, *, stats: bool = True, having: Any = ()) -> Any:
        reads.append(stats)
        return commits(self, instants, stats=stats, having=having)

    monkeypatch.setattr(LsmHistory, "commits", read)
    delete(table, first, token="a")
    assert reads == [False]
    begun = iter("122")
    monkeypatch.setattr(verb, "begin_of_writes", lambda timeline: next(begun))
    delete(table, second, token="b")
    assert reads == [False] * 3


@pytest.mark.parametrize("token", ["old", 'the "day" of \u00e9\\t/\U0001f600'])
@pytest.mark.parametrize("version", ["6", "9"])
def test_an_archived_token_is_found(golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, token: str) -> None:
    """Other commits of the archive are not decoded."""
    table = golden(version, "cow_basic").table
    drop_metadata_table(open_context(table).storage)  # else instants stay until it is compacted
    parts = sorted(set(read_rows(table).column("_hoodie_partition_path").to_pylist()))
    first = delete(table, parts[0], token=token)
    for number, name in enumerate(parts[1:]):
        delete(table, name, token=f"later {number}")
    archive(table)
    assert not open_context(table).active.load().contains(str(first.instant)), "it was to be archived"
    decoded: list[CommitMetadata] = []
    for module, name in ((lsm, "decode_commit"), (log_archive, "commit_of")):
        monkeypatch.setattr(module, name, partial(recorded, getattr(module, name), decoded))
    again = delete(table, parts[0], token=token)
    assert (again.instant, again.repeated) == (first.instant, True)
    assert again.replaced_file_groups == first.replaced_file_groups
    assert [metadata.extra_metadata[TOKEN_KEY] for metadata in decoded] == [token] * 2


def recorded(decode: Callable[..., CommitMetadata], decoded: list[CommitMetadata], *given: Any, **named: Any) -> Any:
    decoded.append(decode(*given, **named))
    return decoded[-1]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_archival_between_listing_and_reading_hides_no_token(golden: Golden, version: str) -> None:
    table = golden(version, "cow_basic").table
    row = new_row(table)
    first = write(table, "insert", row, token="old")
    context = open_context(table)
    timeline = context.active.load()
    archive_behind(table)
    found = find_token(open_context(table), timeline, work_of("old"), archived=False)
    assert (found and found.instant.requested_time, found and found.metadata is not None) == (first.instant, True)


@pytest.mark.parametrize("version", VERSIONS)
def test_another_run_with_the_token_that_is_archived_before_the_request(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Also while this run waits for the lock."""
    table = golden(version, "cow_basic").table
    row, request, others = new_row(table), verb._request, []

    def after_another(*given: Any) -> Any:
        monkeypatch.setattr(verb, "_request", request)
        others.append(write(table, "insert", row, token="the work").instant)
        archive_behind(table)
        return request(*given)

    monkeypatch.setattr(verb, "_request", after_another)
    result = write(table, "insert", row, token="the work")
    assert (result.instant, result.repeated) == (others[0], True)
    assert read_rows(table)["id"].to_pylist().count("new") == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_a_lock_that_is_lost_before_the_request_doubles_no_row(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    table = golden(version, "cow_basic").table
    row, create = new_row(table), ActiveTimeline.create_requested
    options = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control", **APART}

    def behind_another(active: ActiveTimeline, *given: Any) -> None:
        monkeypatch.setattr(ActiveTimeline, "create_requested", create)
        for lock in (table / ".hoodie").rglob("lock*"):
            lock.unlink()
        write(table, "insert", row, options, token="the work")
        create(active, *given)

    monkeypatch.setattr(ActiveTimeline, "create_requested", behind_another)
    with pytest.raises(ConflictError, match="has done the work of the token 'the work'"):
        write(table, "insert", row, options, token="the work")
    assert write(table, "insert", row, options, token="the work").repeated
    assert read_rows(table)["id"].to_pylist().count("new") == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_work_that_is_archived_meanwhile_was_done(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Right after its completion, and between the moment it is found and the look at what it left."""
    table = golden(version, "cow_basic").table
    row, run_instant = new_row(table), verb.run_instant

    def then_archived(*given: Any, before: bool) -> Any:
        monkeypatch.setattr(verb, "run_instant", run_instant)
        result = None if before else run_instant(*given)
        archive_behind(table)
        return run_instant(*given) if before else result

    monkeypatch.setattr(verb, "run_instant", partial(then_archived, before=False))
    first = write(table, "insert", row, token="the work")
    assert (first.inserted, first.repeated) == (1, False)
    second = write(table, "insert", row, token="more work")
    monkeypatch.setattr(verb, "run_instant", partial(then_archived, before=True))
    again = write(table, "insert", row, token="more work")
    assert (again.instant, again.repeated) == (second.instant, True)
