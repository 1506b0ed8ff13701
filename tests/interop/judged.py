"""A table that we and real Hudi serve in turns, with the rows that it must hold after each step."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.request.results import Result
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant
from hudi_core.verbs.request import verb_class
from tests.interop.changes import after_upsert, upsert_rows, user_columns, write_parquet
from tests.interop.real_hudi import RealHudi
from tests.support.changed_tables import data_files, listed
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import has_metadata_table, read_rows

JUDGES = {"6": "hudi_0_15", "8": "hudi_1_0", "9": "hudi_1_2"}
"""The real Hudi that a table version is native to: a fixture of tests/conftest.py."""
OTHERS = {"6-by-1.2.0": "hudi_1_2", "8-by-1.2.0": "hudi_1_2"}
EVERY_JUDGE = {**JUDGES, **OTHERS}
"""By the folder of a golden table: those of OTHERS are written by that release, too."""
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
KINDS = (COW, MOR)

BASE_OPTIONS = {
    "hoodie.table.name": "judged",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "dt",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
}
ON_TOP = {"hoodie.metadata.enable": "true", "hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
QUICK = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
"""All on one clock: we need not wait for another's."""

KEEP_ONE = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
"""A clean that leaves the newest slices alone."""


def first_rows(count: int = 60) -> pa.Table:
    """Rows of a table with two partitions."""
    return pa.table(
        {
            "id": [f"key-{row:04d}" for row in range(count)],
            "dt": [f"2024-01-0{1 + row % 2}" for row in range(count)],
            "ts": pa.array(range(1_000, 1_000 + count), pa.int64()),
            "name": [f"name {row}" for row in range(count)],
            "amount": [row / 4 for row in range(count)],
        }
    )


@dataclass
class Judged:
    """`base` is the table's folder, `rows` what it must hold, without meta columns. Steps of real Hudi are methods
    named after what it does.
    """

    hudi: RealHudi
    base: Path
    rows: pa.Table
    options: dict[str, str] = field(default_factory=dict)
    steps: int = 0

    @staticmethod
    def create(
        hudi: RealHudi,
        base: Path,
        kind: str,
        version: str,
        options: Mapping[str, str] | None = None,
        rows: pa.Table | None = None,
    ) -> Judged:
        """A table of one insert by real Hudi, of `first_rows` where none are given. `version` is the table version."""
        base.parent.mkdir(parents=True, exist_ok=True)
        rows = first_rows() if rows is None else rows
        pinned = (
            {}
            if hudi.version.startswith("0.")
            else {"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"}
        )
        chosen = {
            **BASE_OPTIONS,
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.operation": "insert",
            **pinned,
            **(options or {}),
        }
        hudi.ask(
            "create", base=str(base), parquet=write_parquet(rows, base.parent, f"{base.name}-rows"), options=chosen
        )
        table = Judged(hudi, base, rows, {**ON_TOP, **(options or {})})
        assert f"hoodie.table.version={version}" in (base / ".hoodie" / "hoodie.properties").read_text()
        assert has_metadata_table(base)
        return table

    def copy(self, base: Path) -> Judged:
        """The same table in another folder; its modification times are kept, which Hudi 1.x takes for completion times
        of version 6.
        """
        shutil.copytree(self.base, base)
        return Judged(self.hudi, base, self.rows, dict(self.options), self.steps)

    @property
    def config(self) -> TableConfig:
        return TableConfig.load(LocalStorage(self.base))

    @property
    def is_mor(self) -> bool:
        return self.config.raw["hoodie.table.type"] == MOR

    # What real Hudi does.

    def upsert(self, count: int = 6, *, fresh: bool = True, options: Mapping[str, str] | None = None) -> None:
        """Changes `count` rows and, with `fresh`, adds as many: new rows go to base files, changes of a MOR table to
        logs.
        """
        rows = self.next_rows(count, fresh=fresh)
        self.write(rows, options)
        self.rows = after_upsert(self.rows, rows)

    def next_rows(self, count: int = 6, *, fresh: bool = True) -> pa.Table:
        """The rows of the next upsert."""
        self.steps += 1
        ordered = self.rows.sort_by("id")
        offset = 7 * self.steps % (ordered.num_rows - count)
        rows = upsert_rows(ordered.slice(offset), count, f"s{self.steps}")
        return rows if fresh else rows.slice(0, count)

    def write(self, rows: pa.Table, options: Mapping[str, str] | None = None) -> None:
        """Upserts the rows; `rows` of the table stay what they are."""
        parquet = write_parquet(rows, self.base.parent, f"{self.base.name}-step{self.steps}")
        self.hudi.ask(
            "write",
            base=str(self.base),
            operation="upsert",
            parquet=parquet,
            options={**self.options, **(options or {})},
        )

    def schedule_compaction(self) -> str:
        instant = self.hudi.ask("schedule_compaction", base=str(self.base), options=self.options)
        assert instant is not None
        return str(instant)

    def compact(self) -> None:
        self.hudi.ask("compact", base=str(self.base), instant=self.schedule_compaction(), options=self.options)

    def clean(self, options: Mapping[str, str] | None = None) -> int:
        """A clean of real Hudi; how many cleans it completed."""
        before = len(self.instants(Action.CLEAN))
        self.hudi.ask("service", base=str(self.base), name="clean", options={**self.options, **(options or {})})
        return len(self.instants(Action.CLEAN)) - before

    def roll_back(self, instant: str) -> None:
        self.hudi.ask("service", base=str(self.base), name="rollback", instant=instant, options=self.options)

    # What we do.

    def run(self, verb: str = "run", *, options: Mapping[str, str] | None = None, **request: Any) -> Result:
        """One request to this engine; fails when an instant does."""
        chosen = {**QUICK, **(options or {})}
        requested = verb_class(verb)(str(self.base), owner="the tests", options=chosen, **request)
        result = HudiTable.open(str(self.base)).run(requested, LocalEngine(2))
        assert result.exit_code == 0, result
        return result

    # What must hold.

    def instants(self, action: str | None = None, *, completed: bool = True, base: str = "") -> list[Instant]:
        """The completed (or all) instants of the timeline, of one action or all; `base` ROOT is the metadata
        table's.
        """
        timeline = ActiveTimeline(LocalStorage(self.base), self.config, base).load()
        return [item for item in timeline if (item.is_completed or not completed) and action in (None, item.action)]

    def times(self, action: str | None = None, **which: Any) -> list[str]:
        return [item.requested_time for item in self.instants(action, **which)]

    def check(self) -> None:
        """Real Hudi and we read the rows due, by the metadata table and by listing; both listings are equal, by our
        reader and by real Hudi.
        """
        ours = read_rows(self.base, "off")
        assert_same_rows(user_columns(ours), self.rows)
        assert_same_rows(read_rows(self.base, "on"), ours)
        for metadata in (True, False):
            assert_same_rows(self.hudi.snapshot(self.base, metadata=metadata), ours)
        assert listed(self.base) == {
            path: size for path, size in data_files(self.base).items() if not path.endswith("_partition_metadata")
        }
        answer = self.hudi.ask("validate_metadata", base=str(self.base))
        assert answer["wrong"] == []
        assert answer["files"] > 0

    def goes_on(self) -> None:
        """Real Hudi upserts twice, compacts (MOR) and cleans; the rows are right afterwards, nothing is rolled back and
        nothing left pending.
        """
        before = self.times(Action.ROLLBACK, completed=False)
        self.upsert()
        self.upsert(fresh=False)
        if self.is_mor:
            self.compact()
        assert self.clean(KEEP_ONE) == 1
        self.check()
        assert self.times(Action.ROLLBACK, completed=False) == before
        assert [item for item in self.instants(completed=False) if not item.is_completed] == []

    def slices(self) -> set[str]:
        """The paths of the files that a snapshot query reads."""
        return {file.path for item in HudiTable.open(str(self.base)).files() for file in item.files}

    def metadata_files(self) -> dict[str, tuple[int, int]]:
        """The completed instants on the metadata table's timeline, with size and modification time: a rebuilt one has
        others.
        """
        folder = self.base / ".hoodie" / "metadata" / ".hoodie"
        folder = folder / "timeline" if (folder / "timeline").is_dir() else folder
        found = {}
        for path in folder.iterdir():
            if re.fullmatch(r"\d+(_\d+)?\.(commit|deltacommit|rollback|clean|replacecommit)", path.name):
                status = path.stat()
                found[path.name] = (status.st_size, status.st_mtime_ns)
        return found

    def assert_metadata_kept(self, before: Mapping[str, tuple[int, int]], *, but: tuple[str, ...] = ()) -> None:
        """What was on the metadata table's timeline `before` is there still, except for instants that were rolled
        back.
        """
        after = self.metadata_files()
        kept = {name: state for name, state in before.items() if not name.startswith(but)} if but else before
        assert kept.items() <= after.items(), sorted(kept.items() - after.items())
        assert has_metadata_table(self.base)
