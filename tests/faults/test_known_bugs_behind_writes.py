"""Bugs of what real Hudi does with the rows that were written: clustering, archival, overwrites (ids are Hudi's).

test_known_bugs_of_writes.py says where each bug of writers is tested. Each test holds with the guard in place, and
shows the loss when the named guard is taken away.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hudi_core.codec.avro.schema import add_meta_fields
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import HudiError
from hudi_core.filegroup.merge import base_merge
from hudi_core.filegroup.merge.winning_version import Step, base_step
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.model.names import META_FIELDS
from hudi_core.services.archive import planner as archive_rules
from hudi_core.services.overwrite import job as overwrite_job
from hudi_core.services.restore.savepoint import savepoint_create, savepoint_delete
from hudi_core.services.rewriting.job import commit_metadata
from hudi_core.timeline.actions.commit import SCHEMA_KEY
from hudi_core.timeline.instant import Action
from hudi_core.verbs.run import RunRequest
from tests.support import golden_clusterings
from tests.support.changed_tables import an_owner, open_context
from tests.support.golden_archives import TIGHT, active_of, archive
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import commit_of, delete, overwrite, put_source
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import read_rows
from tests.support.table_requests import perform
from tests.support.tiers import tiered
from tests.support.writes import Model, changed, like, own_columns, write

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ["6", "8", "9"]


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_hudi_3181_hudi_2059_a_clustering_keeps_the_newer_value(
    golden: Golden, tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a row in a base file and in a log. Guard: which of the two the merge takes for the older one."""

    def clustered(table: Path) -> None:
        model, rows = Model.of(table, event_time=version != "6"), own_columns(read_rows(table))
        newer = changed(rows.slice(0, 9), ts=lambda ts: ts + 10**6, qty=7)
        model.upsert(newer)
        write(table, "upsert", put_source(newer, tmp_path, name=f"{table.parent.name} rows"))
        golden_clusterings.cluster(table, golden_clusterings.plan_of_all(table, {}))
        model.check(table)

    clustered(golden(version, "mor_basic").table)

    def reversed_step(*given: Any, **named: Any) -> Step:
        found = base_step(*given, **named)
        return Step(np.zeros_like(found.replace), found.merge)

    monkeypatch.setattr(base_merge, "base_step", reversed_step)
    with pytest.raises((AssertionError, HudiError)):
        clustered(golden(version, "mor_basic").table)


@pytest.mark.parametrize("version", tiered(VERSIONS, ["9"]))
def test_hudi_11440_hudi_7779_replaced_rows_stay_so_when_their_savepoint_is_deleted(
    golden: Golden, tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guard: archival keeps the replacecommit while a file is there that it replaced."""
    table = golden(version, "cow_basic").table
    drop_metadata_table(open_context(table).storage)  # it does not hold archival back
    saved = savepoint_create(open_context(table), None, an_owner()).instant
    rows = own_columns(read_rows(table))
    days = sorted(set(rows.column("dt").to_pylist()))
    replaced = delete(table, days[0]).instant
    for number in range(5):
        more = like(own_columns(read_rows(table)), {"id": f"row {number}", "dt": "2031-01-01"})
        write(table, "insert", put_source(more, tmp_path, name=str(number)))
    context = open_context(table, {"hoodie.clean.commits.retained": "1"})
    perform(context, RunRequest(table=str(table), service="clean", schedule=True), LocalEngine(1), an_owner())
    expected = read_rows(table)
    beyond = {**TIGHT, "hoodie.archive.beyond.savepoint": "true"}
    archive(table, beyond)
    savepoint_delete(open_context(table), saved, an_owner())
    archive(table, beyond)
    assert (str(replaced), Action.REPLACE_COMMIT) in active_of(table)
    assert_same_rows(read_rows(table), expected)
    holds = archive_rules._holds
    for name in ("_replaced", "_savepointed_replaced"):
        monkeypatch.setattr(archive_rules, name, lambda *_: None)
    archive(table, beyond)
    assert (str(replaced), Action.REPLACE_COMMIT) in active_of(table), "the file alone holds it back"
    nothing = archive_rules.NOT_LISTED
    monkeypatch.setattr(archive_rules, "_holds", lambda inputs, config, _: holds(inputs, config, nothing))
    archive(table, beyond)
    assert read_rows(table).num_rows > expected.num_rows


@pytest.mark.parametrize("version", tiered(VERSIONS, ["6", "9"]))
def test_hudi_11522_hudi_7914_the_schema_of_a_replacecommit_has_no_meta_fields(
    golden: Golden, tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next writers take the table's schema from it. Guard: the schema that commit_metadata gets."""

    def schemas(table: Path) -> list[set[str]]:
        rows = own_columns(read_rows(table))
        first, *_ = sorted(set(rows.column("dt").to_pylist()))
        few = put_source(rows.slice(0, 3), tmp_path, name=f"{table.parent.name} rows")
        done = [overwrite(table, few).instant, delete(table, first).instant]
        return [
            {field["name"] for field in json.loads(str(commit_of(table, instant).extra_metadata[SCHEMA_KEY]))["fields"]}
            for instant in done
        ]

    own = {*own_columns(read_rows(golden(version, "cow_basic").table)).column_names}
    assert schemas(golden(version, "cow_basic").table) == [own, own]
    monkeypatch.setattr(
        overwrite_job,
        "commit_metadata",
        lambda job, stats, schema, *of, **named: commit_metadata(job, stats, add_meta_fields(schema), *of, **named),
    )
    assert schemas(golden(version, "cow_basic").table) == [own | {*META_FIELDS}] * 2
