"""A compaction that died, rolled back to its plan by us and by real Hudi: the same plan and metadata of the rollback.

Real Hudi ran the compaction again right afterwards, so the golden table shows its files and rows as those of the second
attempt.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.services.rollback.verb import rollback
from hudi_core.timeline.instant import Action
from tests.support.changed_tables import (
    an_owner,
    assert_rows,
    data_files,
    decoded,
    known_times,
    new_instants,
    open_context,
    planned,
)
from tests.support.golden_data import GoldenCase
from tests.support.rows import read_parquet

Golden = Callable[[str, str], GoldenCase]
LISTED = {"hoodie.rollback.using.markers": "false"}


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_as_real_hudi(golden: Golden, version: str) -> None:
    case = golden(version, "compaction_inflight")
    context, after, known = open_context(case.table, LISTED), case.after(), known_times(case.table)
    (compaction,) = context.active.load().pending_compactions()
    instant = compaction.requested_time
    rollback(context, instant, an_owner())
    assert len(new_instants(case.table, known)) == len(new_instants(after, known)) == 1
    assert planned(case.table, Action.ROLLBACK) == planned(after, Action.ROLLBACK)
    assert decoded(case.table, Action.ROLLBACK) == decoded(after, Action.ROLLBACK)
    others = {path: size for path, size in data_files(after).items() if not path.endswith(f"_{instant}.parquet")}
    assert data_files(case.table) == others
    assert_rows(case.table, read_parquet(case.expected / "snapshot.parquet"))
