"""A write that died, rolled back by us and by real Hudi: the same files, timeline, plan, metadata, rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.services.rollback.verb import rollback
from hudi_core.timeline.instant import Action
from tests.support.changed_tables import (
    METADATA,
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

INFLIGHT = [f"failed_inflight_{kind}{markers}" for kind in ("cow", "mor") for markers in ("", "_direct_markers")]
AFTER_METADATA = ["failed_after_metadata_cow", "failed_after_metadata_mor"]
CASES = [
    *((version, case) for version in ("6", "8", "9") for case in (*INFLIGHT, *AFTER_METADATA)),
    ("6-by-1.2.0", "failed_inflight_mor"),
    ("8-by-1.2.0", "failed_inflight_mor"),
]
LISTED = {"hoodie.rollback.using.markers": "false"}


def failed_instant(case: GoldenCase) -> str:
    (step,) = [step for step in case.info["operations"] if step["op"] == "execute rollback"]
    (instant,) = step["instants"]
    return str(instant)


@pytest.mark.parametrize(
    ("version", "name"),
    tiered(
        CASES,
        [
            ("6", "failed_inflight_cow_direct_markers"),
            ("6", "failed_inflight_mor"),
            ("6", "failed_after_metadata_mor"),
            ("8", "failed_inflight_cow"),
            ("8", "failed_inflight_mor_direct_markers"),
            ("9", "failed_inflight_mor"),
            ("9", "failed_after_metadata_cow"),
        ],
    ),
    ids=[f"{version}-{case}" for version, case in CASES],
)
def test_as_real_hudi(golden: Golden, version: str, name: str) -> None:
    case = golden(version, name)
    failed, known, after = failed_instant(case), known_times(case.table), case.after()
    context = open_context(case.table, LISTED if name in AFTER_METADATA else None)
    before = data_files(case.table)
    result = rollback(context, failed, an_owner())
    assert data_files(case.table) == data_files(after)
    assert shown(case.table, known) == shown(after, known)
    assert file_names(case.table, known) == file_names(after, known)
    assert planned(case.table, Action.ROLLBACK) == planned(after, Action.ROLLBACK)
    assert decoded(case.table, Action.ROLLBACK) == decoded(after, Action.ROLLBACK)
    assert_rows(case.table, read_rows(after, "off"))
    assert_metadata_true(case.table)
    assert leftovers(case.table, failed) == []
    gone = set(before) - set(data_files(case.table))
    assert result.to_dict()["removed"] == {
        "files": len(gone),
        "bytes": sum(before[path] for path in gone),
        "instants": [failed],
    }
    assert result.target == failed
    if has_metadata_table(case.table):
        assert index_records(case.table) == index_records(after)
        assert shown(case.table, known, METADATA) == shown(after, known, METADATA)
        assert listed(case.table) == {
            path: size for path, size in data_files(case.table).items() if not path.endswith("_partition_metadata")
        }


@pytest.mark.parametrize(("version", "name"), CASES, ids=[f"{version}-{case}" for version, case in CASES])
def test_a_dry_run_changes_nothing(golden: Golden, version: str, name: str) -> None:
    case = golden(version, name)
    failed = failed_instant(case)
    snapshot = {path: path.read_bytes() for path in case.table.rglob("*") if path.is_file()}
    preview = rollback(open_context(case.table), failed, an_owner(), dry_run=True).to_dict()
    assert {path: path.read_bytes() for path in case.table.rglob("*") if path.is_file()} == snapshot
    done = rollback(open_context(case.table), failed, an_owner()).to_dict()
    assert done["removed"] == preview["removed"]
    assert preview["instant"] is None


@pytest.mark.parametrize(("version", "name"), CASES, ids=[f"{version}-{case}" for version, case in CASES])
def test_without_an_instant_the_failed_write_is_found(golden: Golden, version: str, name: str) -> None:
    case = golden(version, name)
    assert rollback(open_context(case.table), None, an_owner()).target == failed_instant(case)
    nothing = rollback(open_context(case.table), None, an_owner())
    assert nothing.target is None
    assert nothing.reason is not None
    assert "EAGER" in nothing.reason


@pytest.mark.parametrize(("version", "name"), CASES, ids=[f"{version}-{case}" for version, case in CASES])
def test_again_is_the_same(golden: Golden, version: str, name: str) -> None:
    case = golden(version, name)
    failed = failed_instant(case)
    first = rollback(open_context(case.table), failed, an_owner())
    snapshot = {path: path.read_bytes() for path in case.table.rglob("*") if path.is_file()}
    again = rollback(open_context(case.table), failed, an_owner())
    assert (again.instant, again.target) == (first.instant, failed)
    assert {path: path.read_bytes() for path in case.table.rglob("*") if path.is_file()} == snapshot
