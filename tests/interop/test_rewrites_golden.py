"""Golden tables without pending work that we cluster, overwrite and delete partitions of: real Hudi runs what we
planned, reads what we ran, and goes on with it as with the table as it was.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.rows_config import ALLOW_CORRUPT
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import CorruptFileError
from hudi_core.table import HudiTable
from hudi_core.verbs.run import RunRequest, ScheduleRequest
from tests.interop.changes import user_columns
from tests.interop.golden_judge import (
    ALL_SMALL,
    ENDS,
    ENDS_BEHIND_OVERWRITES,
    LOSES_SAVEPOINT,
    LOST,
    NEVER_READ,
    NO_META,
    NOT_CLUSTERED,
    NOT_READ,
    PLAN,
    WITHOUT_COMMITS,
    WITHOUT_ROWS,
    Golden,
    Judge,
    changed,
    golden_tables,
    some_rows,
)
from tests.interop.judged import QUICK
from tests.interop.real_hudi import RealHudiError
from tests.support.golden_data import GoldenCase
from tests.support.overwrites import WRITERS_OPTIONS, delete, overwrite, own_rows, put_source, within
from tests.support.rows import rows_of

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

NEVER_CLUSTERED = {("6", f"only_deletes_{kind}") for kind in ("cow", "mor")}
MILLIS = (("6", "types_timestamp_millis"), ("8", "types_timestamp_millis"))
"""Whose base files hold milliseconds, as Spark wrote them, and whose schema says microseconds: 0.15.0 and 1.0.2 take
one for the other when they merge such a file. Behind our overwrite a file holds what the schema says.
"""
CASES = [(version, name) for version, name, _ in golden_tables() if not name.startswith(NO_META)]


def clustering(case: GoldenCase, columns: str, *, run: bool) -> str | None:
    """Our plan of a clustering of everything, run or left on the timeline; None where there is nothing to plan. A run
    over lost bytes of a commit is refused without an option.
    """
    base = str(case.table)
    options = {
        **QUICK,
        **ALL_SMALL,
        **({f"{PLAN}sort.columns": columns} if columns else {}),
        "spark.sql.session.timeZone": "UTC",
    }

    def ask(request: RunRequest | ScheduleRequest) -> Any:
        return HudiTable.open(base).run(request, LocalEngine(2))

    planned = ask(ScheduleRequest(base, service="clustering", owner="test", options=options)).document["instant"]
    if planned is not None and run:
        execute = RunRequest(base, service="clustering", owner="test", options=options, instant=planned)
        if case.name.startswith(LOST):
            with pytest.raises(CorruptFileError):
                ask(execute)
            execute = replace(execute, options={**options, ALLOW_CORRUPT.name: "true"})
        assert [item.state for item in ask(execute).instants] == ["completed"]
    return None if planned is None else str(planned)


def key_of(case: GoldenCase) -> str:
    return str(case.info["table_config"].get("hoodie.table.recordkey.fields", "")).split(",")[0]


def assert_none_runs(judge: Judge) -> None:
    """Real Hudi plans no clustering, too; one of buckets it plans, and fails to run."""
    assert judge.case.name.startswith((*WITHOUT_ROWS, *NOT_CLUSTERED))
    if judge.case.name.startswith(NOT_CLUSTERED):
        with pytest.raises(RealHudiError, match="not compatible with table layout HoodieSimpleBucketLayout"):
            judge.service("clustering", **ALL_SMALL)(judge.base)
    elif not judge.case.name.startswith(WITHOUT_COMMITS):
        judge.service("clustering", **ALL_SMALL)(judge.base)
        assert list(judge.base.glob("**/*.replacecommit*")) == []


@pytest.mark.parametrize(("version", "name"), CASES)
def test_real_hudi_runs_the_clustering_that_we_planned(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str
) -> None:
    """It runs no plan, its own neither, where it fails to read the logs, and 0.15.0 none of files without rows."""
    judge = Judge.of(golden, request, version, name)
    instant = clustering(judge.case, key_of(judge.case), run=False)
    if instant is None:
        assert_none_runs(judge)
        return

    def cluster(base: Path) -> None:
        if base == judge.base:
            judge.hudi.ask("service", base=str(base), name="cluster", instant=instant, options=judge.options)
        else:
            judge.service("clustering", **ALL_SMALL)(base)

    found = judge.step(cluster, user_columns(judge.theirs))
    assert (found is None) == ((version, name) in NOT_READ | NEVER_READ | NEVER_CLUSTERED)
    if found is not None:
        judge.check(meta=True)


@pytest.mark.parametrize("order", ["none", "key"])
@pytest.mark.parametrize(("version", "name"), CASES)
def test_real_hudi_goes_on_behind_our_clustering(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str, order: str
) -> None:
    judge = Judge.of(golden, request, version, name)
    if clustering(judge.case, key_of(judge.case) if order == "key" else "", run=True) is None:
        assert_none_runs(judge)
        return
    judge.check(meta=True)
    assert judge.goes_on() == ENDS.get((version, name))


@pytest.mark.parametrize(("version", "name"), CASES)
def test_real_hudi_goes_on_behind_our_overwrites(
    golden: Golden, request: pytest.FixtureRequest, tmp_path: Path, version: str, name: str
) -> None:
    """The first partition is overwritten by its own rows, and the last one deleted where there are two. All partitions
    where real Hudi does not read the table as it was, some rows where it has none.
    """
    judge = Judge.of(golden, request, version, name)
    partitions = sorted(set(judge.ours.column("_hoodie_partition_path").to_pylist())) if judge.ours.num_rows else []
    options = WRITERS_OPTIONS.get(name, {})
    if not partitions:
        judge.ours = judge.theirs = rows = some_rows(judge.case, user_columns(judge.ours).schema)
        judge.write("insert_overwrite", rows)(judge.untouched)
    elif judge.is_read:
        rows = own_rows(judge.base, within(judge.ours, partitions[0]))
    else:
        rows = own_rows(judge.base, judge.ours)
    overwrite(judge.base, put_source(rows, tmp_path, files=2), options)
    if len(partitions) > 1 and judge.is_read:
        delete(judge.base, partitions[-1])
        delete(judge.untouched, partitions[-1])
        judge.drop(partitions[-1])
    judge.check(meta=False)
    if (version, name) not in MILLIS:
        cleans = (version, name) not in LOSES_SAVEPOINT
        assert judge.goes_on(cleans=cleans) == ENDS_BEHIND_OVERWRITES.get((version, name))
        return
    some = user_columns(within(judge.theirs, partitions[0])).slice(0, 3)
    upserted = changed(some, judge.held())
    judge.write("upsert", upserted)(judge.base)
    found, due = user_columns(judge.hudi.snapshot(judge.base, metadata=True)), user_columns(judge.theirs)
    rows, before, after, read = (rows_of(item, due.column_names) for item in (due, some, upserted, found))
    assert read == rows - before + after
