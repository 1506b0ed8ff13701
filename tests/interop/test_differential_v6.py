"""Our executor against real Hudi's, on the same plan: every merge-on-read golden table of version 6 that real Hudi
0.15.0 can plan a compaction for.

Real Hudi schedules; it executes the plan on one copy of the table, we on another; what it reads from both must be the
same rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest
from tests.interop.real_hudi import RealHudi
from tests.support.golden_data import GoldenCase
from tests.support.rows import assert_same_rows
from tests.support.tiers import tiered

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

SAME = [
    "bucket_index_mor",
    "cleaned_commits_mor",
    "clustered_mor",
    "complex_keygen_nonpart_mor",
    "insert_overwrite_partition_mor",
    "mdt_all_mor",
    "mor_basic",
    "mor_compacted",
    "mor_log_only",
    "multilevel_plain_mor",
    "non_partitioned_mor",
    "only_deletes_mor",
    "payload_default",
    "payload_dms",
    "payload_event_time",
    "payload_overwrite_nondefaults",
    "payload_partial_update",
    "restored_then_written",
    "rolled_back_mor",
    "savepoint_mor",
    "schema_evolution_mor",
    "sql_dml",
    "types_mor",
]
QUICK = {"mdt_all_mor"}
"""Those of `make test`."""
Golden = Callable[[str, str], GoldenCase]


def scheduled(golden: Golden, hudi: RealHudi, case: str) -> tuple[GoldenCase, str]:
    """A golden table with a compaction that real Hudi planned, now or when the corpus was made."""
    chosen = golden("6", case)
    pending = sorted(path.name.split(".")[0] for path in (chosen.table / ".hoodie").glob("*.compaction.requested"))
    pending = [instant for instant in pending if not (chosen.table / ".hoodie" / f"{instant}.commit").exists()]
    instant = (
        pending[0]
        if pending
        else hudi.ask(
            "schedule_compaction", base=str(chosen.table), options={"hoodie.metadata.enable": metadata_of(chosen)}
        )
    )
    assert instant is not None, "real Hudi planned nothing"
    return chosen, instant


def metadata_of(chosen: GoldenCase) -> str:
    """Whether the table has a metadata table, as Hudi's option says it."""
    return str((chosen.table / ".hoodie" / "metadata" / ".hoodie").is_dir()).lower()


@pytest.mark.parametrize("case", tiered(SAME, QUICK))
def test_our_execution_equals_real_hudis(golden: Golden, hudi_0_15: RealHudi, tmp_path: Path, case: str) -> None:
    chosen, instant = scheduled(golden, hudi_0_15, case)
    theirs = tmp_path / "theirs" / case
    shutil.copytree(chosen.table, theirs)
    hudi_0_15.ask("compact", base=str(theirs), instant=instant, options={"hoodie.metadata.enable": metadata_of(chosen)})
    result = HudiTable.open(str(chosen.table)).run(
        RunRequest(table=str(chosen.table), service="compaction", instant=instant, owner="test"), LocalEngine(1)
    )
    assert [done.state for done in result.instants] == ["completed"]
    for query in ("snapshot", "read_optimized"):
        expected = hudi_0_15.snapshot(theirs, metadata=False, query=query)
        for metadata in (True, False):
            assert_same_rows(hudi_0_15.snapshot(chosen.table, metadata=metadata, query=query), expected)


@pytest.mark.conformance
def test_lists_of_three_levels_that_real_hudi_cannot_merge_by_default(golden: Golden, hudi_0_15: RealHudi) -> None:
    """Hudi 0.15 fails to write null list elements unless 3-level lists are configured; what it read before must be what
    it reads afterwards.
    """
    chosen, instant = scheduled(golden, hudi_0_15, "types_3level_lists_mor")
    before = hudi_0_15.snapshot(chosen.table, metadata=False)
    HudiTable.open(str(chosen.table)).run(
        RunRequest(table=str(chosen.table), service="compaction", instant=instant, owner="test"), LocalEngine(1)
    )
    for query in ("snapshot", "read_optimized"):
        assert_same_rows(hudi_0_15.snapshot(chosen.table, metadata=False, query=query), before)
