"""A table restored to its savepoint by us and by real Hudi: the same files, timeline, metadata, rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hudi_core.errors import ConfigError, TimelineError
from hudi_core.services.restore.candidates import restorable_instants
from hudi_core.services.restore.savepoint import savepoint_create, savepoint_delete, savepoint_list
from hudi_core.services.restore.verb import restore
from hudi_core.services.rollback.verb import rollback
from hudi_core.timeline.instant import Action
from tests.support.changed_tables import (
    an_owner,
    assert_rows,
    data_files,
    decoded,
    file_names,
    index_records,
    known_times,
    leftovers,
    listed,
    open_context,
    planned,
    shown,
)
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import assert_metadata_true, has_metadata_table, read_rows
from tests.support.tiers import tiered

Golden = Callable[[str, str], GoldenCase]

CASES = [
    *((version, case) for version in ("6", "8", "9") for case in ("savepoint_cow", "savepoint_mor")),
    ("6-by-1.2.0", "savepoint_mor"),
    ("8-by-1.2.0", "savepoint_mor"),
]
IDS = [f"{version}-{case}" for version, case in CASES]


def savepoint_of(case: GoldenCase) -> str:
    (step,) = [step for step in case.info["operations"] if step["op"] == "savepoint"]
    return str(step["instant"])


@pytest.mark.parametrize(
    ("version", "name"),
    tiered(CASES, [("6", "savepoint_mor"), ("8", "savepoint_cow"), ("9", "savepoint_mor")]),
    ids=IDS,
)
def test_as_real_hudi(golden: Golden, version: str, name: str) -> None:
    case = golden(version, name)
    saved, known, after = savepoint_of(case), known_times(case.table), case.after()
    before = data_files(case.table)
    preview = restore(open_context(case.table), saved, an_owner(), dry_run=True).to_dict()
    assert data_files(case.table) == before
    result = restore(open_context(case.table), saved, an_owner())
    assert data_files(case.table) == data_files(after)
    assert shown(case.table, known) == shown(after, known)
    assert file_names(case.table, known) == file_names(after, known)
    assert planned(case.table, Action.RESTORE) == planned(after, Action.RESTORE)
    assert decoded(case.table, Action.RESTORE) == decoded(after, Action.RESTORE)
    assert_rows(case.table, read_rows(after, "off"))
    assert_metadata_true(case.table)
    assert leftovers(case.table, *preview["removed"]["instants"]) == []
    assert result.to_dict()["removed"] == preview["removed"]
    gone = set(before) - set(data_files(case.table))
    assert preview["removed"]["files"] == len(gone)
    assert preview["removed"]["bytes"] == sum(before[path] for path in gone)
    if has_metadata_table(case.table):
        assert index_records(case.table) == index_records(after)
        assert listed(case.table) == {
            path: size for path, size in data_files(case.table).items() if not path.endswith("_partition_metadata")
        }


@pytest.mark.parametrize(("version", "name"), CASES, ids=IDS)
def test_again_is_the_same(golden: Golden, version: str, name: str) -> None:
    case = golden(version, name)
    saved = savepoint_of(case)
    first = restore(open_context(case.table), saved, an_owner())
    snapshot = {path: path.read_bytes() for path in case.table.rglob("*") if path.is_file()}
    again = restore(open_context(case.table), saved, an_owner())
    assert (again.instant, again.reason) == (first.instant, "nothing was written after it")
    assert {path: path.read_bytes() for path in case.table.rglob("*") if path.is_file()} == snapshot


@pytest.mark.parametrize(("version", "name"), CASES, ids=IDS)
def test_our_savepoint_is_real_hudis(golden: Golden, version: str, name: str) -> None:
    """The golden savepoint is deleted and made again on the table as it was then: restored."""
    case = golden(version, name)
    saved = savepoint_of(case)
    context = open_context(case.table)
    restore(context, saved, an_owner())
    known = known_times(case.table)
    (theirs,) = decoded(case.table, Action.SAVEPOINT)
    (listing,) = savepoint_list(context)
    names = file_names(case.table, known)
    assert savepoint_delete(context, saved, an_owner()).deleted
    assert savepoint_list(context) == []
    assert [item for item in names if "savepoint" not in item] == file_names(case.table, known)
    owner = replace(an_owner(), text=str(theirs["savepointedBy"]))
    made = savepoint_create(context, saved, owner, comment=str(theirs["comments"]))
    assert (made.instant, made.comment, made.by, made.existed) == (listing.instant, listing.comment, listing.by, False)
    (ours,) = decoded(case.table, Action.SAVEPOINT)
    if version.startswith("6") and name == "savepoint_mor":
        assert_keeps(
            ours, theirs
        )  # the log files whose blocks the restore has rolled back are still there, and command blocks behind them
    else:
        assert ours == theirs
    assert len(file_names(case.table, known)) == len(names)
    again = savepoint_create(context, saved, an_owner())
    assert (again.existed, again.comment) == (True, listing.comment)
    assert leftovers(case.table, saved) == []


def assert_keeps(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    for partition, kept in theirs["partitionMetadata"].items():
        assert set(kept["savepointDataFile"]) <= set(ours["partitionMetadata"][partition]["savepointDataFile"])


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_savepoint_of_an_older_commit_keeps_its_files(golden: Golden, version: str) -> None:
    case = golden(version, "savepoint_mor")
    context = open_context(case.table)
    first = restorable_instants(context)[0].instant
    expected = {path for path in data_files(case.table) if path.endswith(f"_{first}.parquet")}
    made = savepoint_create(context, first, an_owner())
    assert made.files >= len(expected) > 0
    before = {path: path.stat().st_mtime_ns for path in case.table.rglob("*")}
    with pytest.raises(ConfigError, match="no completed commit"):
        savepoint_create(context, "20200101000000000", an_owner())
    with pytest.raises(ConfigError, match="no savepoint"):
        savepoint_delete(context, "20200101000000000", an_owner())
    with pytest.raises(ConfigError, match="no completed commit"):
        restore(context, "20200101000000000", an_owner())
    with pytest.raises(ConfigError, match="holds no instant"):
        rollback(context, "20200101000000000", an_owner())
    assert {path: path.stat().st_mtime_ns for path in case.table.rglob("*")} == before


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_what_can_be_restored_and_why_not(golden: Golden, version: str) -> None:
    case = golden(version, "savepoint_mor")
    saved = savepoint_of(case)
    context = open_context(case.table)
    found = restorable_instants(context)
    by_time = {item.instant: item for item in found}
    assert by_time[saved].savepoint
    assert by_time[saved].reason is None
    assert by_time[found[-1].instant].reason is None
    first = found[0].instant
    assert first < saved
    assert "savepointed; delete that savepoint first" in (by_time[first].reason or "")
    with pytest.raises(TimelineError, match="savepointed") as refused:
        restore(context, first, an_owner())
    assert saved in str(refused.value.remedy)
    with pytest.raises(ConfigError, match="no completed commit"):
        restore(context, "20200101000000000", an_owner())
    with pytest.raises(TimelineError, match="is savepointed"):
        rollback(context, saved, an_owner())
    savepoint_delete(context, saved, an_owner())
    assert restore(context, first, an_owner()).target == first
    assert [item.instant for item in restorable_instants(context)] == [first]


@pytest.mark.parametrize(
    ("version", "name"),
    [(version, name) for version in ("6", "8", "9") for name in ("cleaned_commits_mor", "cleaned_versions_cow")],
)
def test_what_cleans_took_cannot_be_restored(golden: Golden, version: str, name: str) -> None:
    case = golden(version, name)
    context = open_context(case.table)
    reasons = [item.reason for item in restorable_instants(context)]
    assert reasons[-1] is None
    assert any(reason is not None and "cleans may have removed files" in reason for reason in reasons)
    first = restorable_instants(context)[0].instant
    with pytest.raises(TimelineError, match="cleans may have removed"):
        restore(context, first, an_owner())
    with pytest.raises(TimelineError, match="cannot be kept"):
        savepoint_create(context, first, an_owner())
