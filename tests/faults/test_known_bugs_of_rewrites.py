"""Bugs of real Hudi's clusterings and overwrites that lost or doubled rows, or never ended (ids are Hudi's).

Each test holds with the guard in place, and shows what happens when the named guard is taken away.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError
from hudi_core.request.requests import RunRequest
from hudi_core.services.clustering.clustered_alike import ClusteredAlike
from hudi_core.services.overwrite import count, job, plan, verb
from hudi_core.services.verbs import perform
from hudi_core.transaction.owner import Owner
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import delete, overwrite, own_rows, places, put_source, within
from tests.support.table_invariants import read_rows

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]
BY_ONE_KEY = [("6", "complex_keygen_single"), ("8", "complex_keygen_single"), ("9", "complex_keygen_single")]


def cluster(table: Path) -> Any:
    """Plans and runs clusterings until nothing is due, three at most."""
    request = RunRequest(table=str(table), service="clustering", schedule=True)
    context, owner = open_context(table), Owner.current("test")
    return [perform(context, request, LocalEngine(1), owner).instants for _ in range(3)]


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_13475_hudi_14086_what_was_clustered_is_not_clustered_for_ever(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: groups that an earlier clustering left as the next one would are passed over."""
    assert [len(done) for done in cluster(golden(version, "cow_basic").table)] == [1, 0, 0]
    monkeypatch.setattr(ClusteredAlike, "holds", lambda *_: False)
    assert [len(done) for done in cluster(golden(version, "cow_basic").table)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("version", "case"),
    [
        *((version, "mor_compaction_requested") for version in VERSIONS),
        *((version, "clustering_requested_cow") for version in ("6", "8")),  # 9 has another guard besides
    ],
)
def test_hudi_18830_rows_that_were_deleted_stay_so_behind_a_pending_plan(
    golden: Golden, version: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: plans on what is replaced are a conflict, when the overwrite begins and when it commits."""
    table = golden(version, case).table
    rows = read_rows(table)
    name = min(rows.column("_hoodie_partition_path").to_pylist())
    with pytest.raises(ConflictError, match="is pending on file groups"):
        delete(table, name)
    assert places(read_rows(table)) == places(rows)
    for module in (plan, verb, job):
        monkeypatch.setattr(module, "check_no_plans", lambda *_, **__: None)
    delete(table, name)
    assert len(open_context(table).active.load().pending()) == 1
    assert within(read_rows(table), name).num_rows == 0, "until the plan is run, whose files hold these rows"


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_6828_no_rows_replace_the_partitions_that_are_named(
    golden: Golden, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: an overwrite without rows replaces what it names, instead of what its rows belong to."""

    def left(table: Path, folder: Path) -> int:
        rows = read_rows(table)
        name = min(rows.column("_hoodie_partition_path").to_pylist())
        overwrite(table, put_source(own_rows(table, rows.slice(0, 0)), folder), partitions=(name,))
        return within(read_rows(table), name).num_rows

    assert left(golden(version, "cow_basic").table, tmp_path / "guarded") == 0
    of_rows = verb.Overwrite
    monkeypatch.setattr(verb, "Overwrite", lambda operation, _, rows, token: of_rows(operation, None, rows, token))
    assert left(golden(version, "cow_basic").table, tmp_path / "unguarded") > 0


@pytest.mark.parametrize(("version", "case"), BY_ONE_KEY)
def test_complex_keys_of_one_field_are_as_the_table_has_them(
    golden: Golden, version: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Release 1.1.0: `value` instead of `field:value` doubled rows at the next upsert. Guard: the table's own keys."""

    def keys(table: Path) -> tuple[pa.Table, pa.Table]:
        rows = read_rows(table)
        source = put_source(own_rows(table, rows), tmp_path, name=f"source{len(list(tmp_path.iterdir()))}")
        overwrite(table, source, whole_table=True)
        return rows, read_rows(table)

    before, after = keys(golden(version, case).table)
    assert places(after) == places(before)
    knows = count._labels_one
    monkeypatch.setattr(count, "_labels_one", lambda *given: not knows(*given))
    before, after = keys(golden(version, case).table)
    assert places(after) != places(before)
