"""Real Hudi goes on with a table of which our clean dropped a partition whose files an earlier clean had deleted."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from hudi_core.services.clean import job as clean_run
from hudi_core.timeline.actions.clean import CleanPlan, encode_clean_plan
from hudi_core.timeline.instant import Action
from tests.interop.changes import write_parquet
from tests.interop.judged import COW, KEEP_ONE, Judged
from tests.interop.real_hudi import RealHudi
from tests.support.golden_cleans import context_of
from tests.support.table_invariants import assert_metadata_true

pytestmark = [pytest.mark.hudi, pytest.mark.slow]


@pytest.mark.parametrize(("version", "writer"), [("6", "hudi_0_15"), ("9", "hudi_1_2")])
def test_hudi_reads_a_clean_of_a_partition_without_files(
    version: str, writer: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hudi: RealHudi = request.getfixturevalue(writer)
    table = Judged.create(hudi, tmp_path / "table", COW, version)
    gone = str(table.rows["dt"][0])
    hudi.ask(
        "write",
        base=str(table.base),
        operation="delete_partition",
        parquet=write_parquet(table.rows.slice(0, 1), tmp_path, "any"),
        options={**table.options, "hoodie.datasource.write.partitions.to.delete": gone},
    )
    table.rows = table.rows.filter(pc.not_equal(table.rows["dt"], gone))
    with monkeypatch.context() as patched:
        patched.setattr(clean_run, "drop_partitions", lambda *_: frozenset())  # as beside a pending write
        planned = table.run("schedule", service="clean", options=KEEP_ONE).document
        assert planned is not None
        table.run(service="clean", instant=planned["instant"])
    assert [path.name for path in (table.base / gone).glob("*.parquet")] == []

    active = context_of(table.base).active
    timeline = active.load()
    last = timeline.commits().instants[-1].requested_time
    plan = CleanPlan("KEEP_LATEST_FILE_VERSIONS", {}, last_completed=last, dropped_partitions=(gone,))
    instant = context_of(table.base).new_instant(timeline)
    active.create_requested(instant, Action.CLEAN, encode_clean_plan(plan, str))
    table.run(service="clean", instant=instant)
    assert not (table.base / gone).exists()
    assert_metadata_true(table.base)
    table.check()
    table.goes_on()
