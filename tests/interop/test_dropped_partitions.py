"""Cleans of partitions that were deleted: real Hudi goes on with a table of which ours dropped one whose files an
earlier clean had deleted, and ours keeps what a savepoint names.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.services.clean import job as clean_run
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.clean import CleanPlan, encode_clean_plan
from hudi_core.timeline.instant import Action
from hudi_core.verbs.run import RunRequest
from hudi_health.table import validate_metadata
from tests.interop.changes import write_parquet
from tests.interop.judged import COW, KEEP_ONE, ON_TOP, Judged
from tests.interop.real_hudi import RealHudi
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import own_rows, within
from tests.support.table_invariants import assert_metadata_true, read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]


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


def test_ours_keeps_the_files_of_a_savepoint_with_which_hudis_deletes_the_folder(
    golden: Callable[[str, str], GoldenCase], hudi_1_2: RealHudi, tmp_path: Path
) -> None:
    """It runs the plan that 1.2.0 made, which names the folder and no file in it."""
    case = golden("9", "savepoint_mor")
    rows = read_rows(case.table)
    gone = max(rows["_hoodie_partition_path"].to_pylist())
    options = {**case.info["write_options"], **ON_TOP, "hoodie.cleaner.commits.retained": "1"}
    options["hoodie.table.name"] = case.info["table_config"]["hoodie.table.name"]
    user = own_rows(case.table, within(rows, gone, outside=True)).replace_schema_metadata(None)

    def write(operation: str, given: pa.Table, **more: str) -> None:
        parquet = write_parquet(given, tmp_path, operation)
        hudi_1_2.ask("write", base=str(case.table), operation=operation, parquet=parquet, options={**options, **more})

    write("delete_partition", user.slice(0, 1), **{"hoodie.datasource.write.partitions.to.delete": gone})
    for _ in range(3):
        write("upsert", user.slice(0, 3))
    named = {path.name for path in (case.table / gone).glob("*.parquet")}
    assert named
    ours = Path(shutil.copytree(case.table, tmp_path / "ours"))
    hudi_1_2.ask("service", base=str(case.table), name="clean", options=options)
    assert not (case.table / gone).exists()
    assert not validate_metadata(HudiTable.open(str(case.table))).is_clean
    (plan,) = case.table.glob(".hoodie/timeline/*.clean.requested")
    shutil.copy(plan, ours / ".hoodie" / "timeline")
    request = RunRequest(str(ours), service="clean", owner="test", instant=plan.name.partition(".")[0])
    (done,) = HudiTable.open(str(ours)).run(request, LocalEngine(1)).instants
    assert done.state == "completed"
    assert {path.name for path in (ours / gone).glob("*.parquet")} == named
    assert_metadata_true(ours)
