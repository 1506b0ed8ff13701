"""Golden tables without pending work that we cluster, overwrite and delete partitions of: real Hudi runs what we
planned, reads what we ran, and goes on with it as with the table as it was. `make test` takes one table, `make
soak` all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.errors import FormatError, UnsupportedError
from hudi_core.request.requests import RunRequest, ScheduleRequest
from hudi_core.table import HudiTable
from tests.interop.changes import user_columns, write_parquet
from tests.interop.judged import JUDGES, MOR, ON_TOP, QUICK
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.golden_data import GoldenCase, golden_cases, golden_root, unpack
from tests.support.overwrites import WRITERS_OPTIONS, delete, overwrite, own_rows, put_source, within
from tests.support.rows import assert_same_rows, rows_of
from tests.support.table_invariants import assert_metadata_true, read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow]

Golden = Callable[[str, str], GoldenCase]
PLAN = "hoodie.clustering.plan.strategy."
IN_TEST = ("8", "mor_basic")
NOT_REWRITTEN = (
    "no_meta_fields",
    "log_",
    "empty_table",
    "bucket_index_consistent",
    "cow_orc",
    "orc",
    "hfile",
    "lance",
    "bootstrap",
    "schema_on_read",
)
"""Without meta columns, damaged on purpose, without a commit, with buckets by consistent hashing, of other base
files.
"""


WITHOUT_ROWS = ("empty_commit", "only_deletes")
MILLIS = (("6", "types_timestamp_millis"), ("8", "types_timestamp_millis"))
"""Whose base files hold milliseconds, as Spark wrote them, and whose schema says microseconds: 0.15.0 and 1.0.2 take
one for the other when they merge such a file. Behind our overwrite a file holds what the schema says.
"""


def cases(leaving: tuple[str, ...] = ()) -> Iterator[Any]:
    for version in JUDGES:
        for name in golden_cases(version):
            expected = golden_root() / version / f"{name}.expected"
            info = json.loads((expected / "case.json").read_text())
            if not info.get("pending") and not name.startswith(NOT_REWRITTEN + leaving):
                yield pytest.param(version, name, marks=() if (version, name) == IN_TEST else pytest.mark.soak)


@dataclass
class Judge:
    """Real Hudi on a golden table. What it cannot do to the table as it was, it need not do behind us: `untouched` is a
    copy that goes through the same steps where one fails, or leaves other rows than the kept ones. `ours` and `theirs`
    are the rows that we and real Hudi read, whose releases differ in some; None of a table that it fails to read.
    """

    hudi: RealHudi
    case: GoldenCase
    untouched: Path
    ours: pa.Table
    theirs: pa.Table | None
    steps: list[Callable[[Path], object]] = field(default_factory=list)

    @staticmethod
    def of(hudi: RealHudi, case: GoldenCase) -> Judge:
        archive = golden_root() / case.version / f"{case.name}.zip"
        untouched = unpack(archive, case.scratch / "untouched")
        try:
            theirs = hudi.snapshot(untouched, metadata=True)
        except RealHudiError:
            theirs = None
        return Judge(hudi, case, untouched, read_rows(case.table), theirs)

    @property
    def base(self) -> Path:
        return self.case.table

    @property
    def options(self) -> dict[str, str]:
        of_writers = {**self.case.info.get("write_options", {}), **WRITERS_OPTIONS.get(self.case.name, {})}
        return {**of_writers, **ON_TOP, "hoodie.clean.automatic": "false"}

    def check(self) -> None:
        """Real Hudi and we read the rows due, and as many of base files alone; the metadata table is true."""
        assert_same_rows(user_columns(read_rows(self.base)), user_columns(self.ours))
        assert_metadata_true(self.base)
        if self.theirs is None:
            return
        answer = HudiTable.open(str(self.base)).read("read_optimized")
        of_base_files = pa.Table.from_batches(list(answer.batches), answer.schema)
        for metadata in (True, False):
            found = self.hudi.snapshot(self.base, metadata=metadata)
            assert_same_rows(user_columns(found), user_columns(self.theirs))
            found = self.hudi.snapshot(self.base, metadata=metadata, query="read_optimized")
            assert found.num_rows == of_base_files.num_rows

    def drop(self, partition: str) -> None:
        """The rows of a partition are no longer due."""
        self.ours = within(self.ours, partition, outside=True)
        if self.theirs is not None:
            self.theirs = within(self.theirs, partition, outside=True)

    def write(self, operation: str, rows: pa.Table) -> Callable[[Path], object]:
        given = write_parquet(rows, self.case.scratch, f"step{len(self.steps)}")
        options = {**self.options, "hoodie.metadata.enable": "true"}
        return lambda base: self.hudi.ask("write", base=str(base), operation=operation, parquet=given, options=options)

    def service(self, name: str, **options: str) -> Callable[[Path], object]:
        given = {**self.options, **options}

        def serve(base: Path) -> None:
            if name == "compaction":
                instant = self.hudi.ask("schedule_compaction", base=str(base), options=given)
                if instant is not None:
                    self.hudi.ask("compact", base=str(base), instant=instant, options=given)
            elif name == "clustering":
                instant = self.hudi.ask("service", base=str(base), name="schedule_clustering", options=given)
                if instant is not None:
                    self.hudi.ask("service", base=str(base), name="cluster", instant=instant, options=given)
            else:
                self.hudi.ask("service", base=str(base), name=name, options=given)

        return serve

    def step(self, does: Callable[[Path], object], due: pa.Table) -> bool:
        """One step behind us, after which the rows are `due`. False where real Hudi fails without us, too."""
        self.steps.append(does)
        found = self.after(self.base, [does])
        if isinstance(found, pa.Table) and rows_of(found, due.column_names) == rows_of(due, due.column_names):
            return True
        control = self.after(self.untouched, self.steps)
        if isinstance(control, RealHudiError) and isinstance(found, RealHudiError):
            return False
        assert isinstance(found, pa.Table), f"real Hudi fails behind us only: {found}"
        assert isinstance(control, pa.Table), f"real Hudi fails without us only: {control}"
        assert_same_rows(found, control)
        return True

    def after(self, base: Path, steps: list[Callable[[Path], object]]) -> pa.Table | RealHudiError:
        """The rows that real Hudi reads after these steps, or why it failed."""
        try:
            for each in steps:
                each(base)
            return user_columns(self.hudi.snapshot(base, metadata=True))
        except RealHudiError as error:
            return error

    def goes_on(self) -> None:
        """An upsert of rows as they are, a delete, a compaction, a clustering and a clean."""
        if self.theirs is None:
            return
        due, own = user_columns(self.theirs), own_rows(self.base, self.theirs)
        if not self.step(self.write("upsert", own.slice(0, 3)), due):
            return
        if own.num_rows > 4:
            due = due.slice(0, due.num_rows - 1)
            if not self.step(self.write("delete", own.slice(own.num_rows - 1)), due):
                return
        if self.case.info["table_config"].get("hoodie.table.type") == MOR and not self.step(
            self.service("compaction", **{"hoodie.compact.inline.max.delta.commits": "1"}), due
        ):
            return
        if self.step(self.service("clustering", **{f"{PLAN}small.file.limit": str(1 << 30)}), due):
            self.step(self.service("clean", **{"hoodie.cleaner.commits.retained": "1"}), due)


def judged(golden: Golden, request: pytest.FixtureRequest, version: str, name: str) -> Judge:
    judge = Judge.of(request.getfixturevalue(JUDGES[version]), golden(version, name))
    assert (judge.ours.num_rows > 0) != name.startswith(WITHOUT_ROWS)
    return judge


def clustering(base: Path, columns: str, *, run: bool) -> Any:
    """Our plan of a clustering of everything, run or left on the timeline; None where there is nothing to plan or the
    table is refused.
    """
    options = {
        **QUICK,
        f"{PLAN}small.file.limit": str(1 << 30),
        **({f"{PLAN}sort.columns": columns} if columns else {}),
        "spark.sql.session.timeZone": "UTC",
    }
    request: RunRequest | ScheduleRequest
    if run:
        request = RunRequest(str(base), service="clustering", owner="test", options=options, schedule=True)
    else:
        request = ScheduleRequest(str(base), service="clustering", owner="test", options=options)
    done = HudiTable.open(str(base)).run(request, LocalEngine(2))
    if run:
        return done.instants[0].instant if done.instants else None
    return (done.document or {})["instant"]


def key_of(case: GoldenCase) -> str:
    return str(case.info["table_config"].get("hoodie.table.recordkey.fields", "")).split(",")[0]


@pytest.mark.parametrize(("version", "name"), cases())
def test_real_hudi_runs_the_clustering_that_we_planned(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str
) -> None:
    judge = judged(golden, request, version, name)
    try:
        instant = clustering(judge.base, key_of(judge.case), run=False)
    except UnsupportedError:
        return
    if instant is None:
        return

    def cluster(base: Path) -> None:
        if base == judge.base:
            judge.hudi.ask("service", base=str(base), name="cluster", instant=instant, options=judge.options)
        else:
            judge.service("clustering", **{f"{PLAN}small.file.limit": str(1 << 30)})(base)

    if judge.theirs is not None and judge.step(cluster, user_columns(judge.theirs)):
        judge.check()


@pytest.mark.parametrize("order", [pytest.param("none", marks=pytest.mark.soak), "key"])
@pytest.mark.parametrize(("version", "name"), cases())
def test_real_hudi_goes_on_behind_our_clustering(
    golden: Golden, request: pytest.FixtureRequest, version: str, name: str, order: str
) -> None:
    judge = judged(golden, request, version, name)
    try:
        instant = clustering(judge.base, key_of(judge.case) if order == "key" else "", run=True)
    except UnsupportedError:
        return
    if instant is not None:
        judge.check()
        judge.goes_on()


@pytest.mark.parametrize(("version", "name"), cases(WITHOUT_ROWS))
def test_real_hudi_goes_on_behind_our_overwrites(
    golden: Golden, request: pytest.FixtureRequest, tmp_path: Path, version: str, name: str
) -> None:
    """The first partition is overwritten by its own rows, and the last one deleted where there are two."""
    judge = judged(golden, request, version, name)
    partitions = sorted(set(judge.ours.column("_hoodie_partition_path").to_pylist()))
    given = put_source(own_rows(judge.base, within(judge.ours, partitions[0])), tmp_path, files=2)
    try:
        overwrite(judge.base, given, WRITERS_OPTIONS.get(name, {}))
    except (UnsupportedError, FormatError):
        return
    if len(partitions) > 1:
        delete(judge.base, partitions[-1])
        delete(judge.untouched, partitions[-1])
        judge.drop(partitions[-1])
    judge.check()
    if (version, name) not in MILLIS:
        judge.goes_on()
        return
    assert judge.theirs is not None
    judge.write("upsert", own_rows(judge.base, within(judge.theirs, partitions[0])).slice(0, 3))(judge.base)
    found = judge.hudi.snapshot(judge.base, metadata=True)
    assert_same_rows(user_columns(found), user_columns(judge.theirs))
