"""Golden merge-on-read tables without pending work: we plan a compaction, and real Hudi runs it; or we run it, and real
Hudi reads the rows. `make test` takes one table of a version, `make soak` all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.request.requests import RunRequest, ScheduleRequest
from hudi_core.table import HudiTable
from tests.interop.judged import JUDGES, MOR, QUICK
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.golden_data import GoldenCase, golden_cases, golden_root
from tests.support.rows import assert_same_rows, read_parquet
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

Golden = Callable[[str, str], GoldenCase]
IN_TEST = "mdt_all_mor"
NOT_COMPACTED = ("no_meta_fields", "log_", "empty_table")
"""Without meta columns, damaged on purpose, without a commit."""
HUDI_FAILS = {("6", "types_3level_lists_mor"): "Failed to merge old record into new file"}
"""0.15 compacts three-level lists only with the Hadoop option they were written with; so it does its own plan."""
NOTHING = ("no file group has log files", "0 delta commits since the last compaction")
OPTIONS = {**QUICK, "hoodie.compact.inline.max.delta.commits": "1", "spark.sql.session.timeZone": "UTC"}


def cases() -> Iterator[Any]:
    for version in JUDGES:
        for name in golden_cases(version):
            expected = golden_root() / version / f"{name}.expected"
            info = json.loads((expected / "case.json").read_text())
            is_mor = info["table_config"].get("hoodie.table.type") == MOR
            if (
                is_mor
                and not info.get("pending")
                and not name.startswith(NOT_COMPACTED)
                and (expected / "snapshot.parquet").exists()
            ):
                yield pytest.param(version, name, marks=() if name == IN_TEST else pytest.mark.soak)


def ours(chosen: GoldenCase, request: ScheduleRequest | RunRequest) -> Any:
    return HudiTable.open(str(chosen.table)).run(request, LocalEngine(2))


def check(hudi: RealHudi, chosen: GoldenCase) -> None:
    """Real Hudi and we read the rows that were there before, from base files alone as well."""
    expected = read_parquet(chosen.expected / "snapshot.parquet")
    assert_same_rows(read_rows(chosen.table), expected)
    for metadata in (True, False):
        for query in ("snapshot", "read_optimized"):
            assert_same_rows(hudi.snapshot(chosen.table, metadata=metadata, query=query), expected)


@pytest.mark.parametrize(("version", "name"), cases())
def test_real_hudi_runs_what_we_planned(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str
) -> None:
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    chosen = golden(version, name)
    base = str(chosen.table)
    planned = ours(chosen, ScheduleRequest(base, service="compaction", owner="test", options=OPTIONS)).document
    if planned["instant"] is None:
        assert any(reason in planned["reason"] for reason in NOTHING)
        return
    options = {**chosen.info.get("write_options", {}), "hoodie.compact.inline": "false"}
    fails = HUDI_FAILS.get((version, name))
    if fails is not None:
        with pytest.raises(RealHudiError, match=fails):
            hudi.ask("compact", base=base, instant=planned["instant"], options=options)
        return
    hudi.ask("compact", base=base, instant=planned["instant"], options=options)
    check(hudi, chosen)


@pytest.mark.parametrize(("version", "name"), cases())
def test_real_hudi_reads_what_we_planned_and_ran(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str
) -> None:
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    chosen = golden(version, name)
    run = RunRequest(str(chosen.table), service="compaction", owner="test", options=OPTIONS, schedule=True)
    done = ours(chosen, run)
    if not done.instants:
        assert any(reason in done.reason for reason in NOTHING)
        return
    assert [item.state for item in done.instants] == ["completed"]
    check(hudi, chosen)
