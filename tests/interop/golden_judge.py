"""Real Hudi on a golden table that we served: it reads the rows due, and goes on with the table as with the table as
it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_core.table import HudiTable
from tests.interop.changes import user_columns, write_parquet
from tests.interop.judged import EVERY_JUDGE, JUDGES, MOR, ON_TOP
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.golden_data import GoldenCase, golden_cases, golden_root, unpack
from tests.support.overwrites import WRITERS_OPTIONS, own_rows, within
from tests.support.rows import assert_same_rows, rows_of
from tests.support.table_invariants import assert_metadata_true, has_metadata_table, read_rows

Golden = Callable[[str, str], GoldenCase]
Step = Callable[[Path], object]
PLAN = "hoodie.clustering.plan.strategy."
ALL_SMALL = {f"{PLAN}small.file.limit": str(1 << 30)}
NO_META = "no_meta_fields"
LOST = ("log_garbage", "log_truncated")
NOT_READ = {
    ("8", "mor_basic"),
    ("8", "mor_hfile_log"),
    ("8", "mor_parquet_log"),
    ("8", "sql_dml"),
    ("9", "mor_hfile_log"),
}
"""Tables whose log files the release native to their version fails to read (docs/reference/differences.md). Behind us
it must find the rows that we find.
"""
NEVER_READ = {("6", "timestamp_keygen_hive")}
"""0.15.0 casts the path of a partition to the column's type, and fails. It writes such a table, and we read it."""
NOT_CLUSTERED = ("bucket_index_cow", "mor_log_only")
"""With buckets by hash: we plan no clustering of them. Real Hudi plans one, and fails to run it."""
ENDS: dict[tuple[str, str], str] = {
    **{(version, name): "clustering" for version in JUDGES for name in NOT_CLUSTERED},
    **dict.fromkeys(NEVER_READ, "clustering"),
    **{(version, "types_3level_lists_cow"): "upsert" for version in JUDGES},
    ("6", "types_3level_lists_mor"): "compaction",
}
"""The step at which real Hudi fails on tables that we did not touch, too."""
ENDS_BEHIND_OVERWRITES = {**ENDS, ("6", "types_cow"): "delete", ("8", "types_cow"): "delete"}
"""0.15.0 and 1.0.2 do not merge into the files that they wrote of all types; a clustering leaves none of them."""
LOSES_SAVEPOINT = {
    ("9", "restored_then_written"),
    *((version, "savepoint_mor") for version in EVERY_JUDGE if version not in ("6", "8")),
}
"""1.2.0 cleans the files of a savepoint away, with the folder of a partition that was deleted
(docs/reference/hudi-notes.md).
"""
WITHOUT_COMMITS = "empty_table"
WITHOUT_ROWS = (WITHOUT_COMMITS, "empty_commit", "only_deletes")


def golden_tables() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Folder, name and case.json of each golden table without pending work."""
    for version in EVERY_JUDGE:
        for name in golden_cases(version):
            info = json.loads((golden_root() / version / f"{name}.expected" / "case.json").read_text())
            if not info.get("pending"):
                yield version, name, info


def is_mor(info: dict[str, Any]) -> bool:
    return bool(info["table_config"].get("hoodie.table.type") == MOR)


def changed(rows: pa.Table, held: Iterable[str]) -> pa.Table:
    """The rows with other values of one column, which is not among those held: of text where there is one."""
    free = [item for item in rows.schema if item.name not in {*held, "Op"} and not item.name.startswith("_hoodie_")]
    texts = [item for item in free if pa.types.is_string(item.type)]
    chosen = (texts or free)[0]
    values = rows[chosen.name]
    if texts:
        values = pc.binary_join_element_wise(pc.fill_null(values, "none"), "changed", " ")
    else:
        second = 1_000_000
        values = pc.add(pc.fill_null(values.cast(pa.int64()), 0), second).cast(chosen.type)
    return rows.set_column(rows.schema.get_field_index(chosen.name), chosen, values)


def some_rows(case: GoldenCase, schema: pa.Schema) -> pa.Table:
    """Rows for a table without any, by its schema."""
    count = 12
    columns = {}
    for item in schema:
        if item.name in case.info["partition_fields"]:
            columns[item.name] = pa.array([f"2024-01-0{1 + row % 2}" for row in range(count)])
        elif pa.types.is_string(item.type):
            columns[item.name] = pa.array([f"{item.name}-{row}" for row in range(count)])
        else:
            columns[item.name] = pa.array(range(count)).cast(item.type)
    return pa.table(columns)


@dataclass
class Judge:
    """Real Hudi on a golden table. What it cannot do to the table as it was, it need not do behind us: `untouched` is a
    copy that goes through the same steps where one fails, or leaves other rows than the due ones. `ours` and `theirs`
    are the rows that we and real Hudi must read, whose releases differ in some.
    """

    hudi: RealHudi
    case: GoldenCase
    untouched: Path
    ours: pa.Table
    theirs: pa.Table
    missing: list[Step] = field(default_factory=list)
    """Steps that `untouched` did not go through."""
    written: int = 0

    @staticmethod
    def of(golden: Golden, request: pytest.FixtureRequest, version: str, name: str) -> Judge:
        hudi: RealHudi = request.getfixturevalue(EVERY_JUDGE[version])
        case = golden(version, name)
        untouched = unpack(golden_root() / version / f"{name}.zip", case.scratch / "untouched")
        ours = read_rows(case.table)
        assert (ours.num_rows > 0) != name.startswith(WITHOUT_ROWS)
        judge = Judge(hudi, case, untouched, ours, ours)
        if (version, name) in NOT_READ | NEVER_READ:
            with pytest.raises(RealHudiError):
                hudi.snapshot(untouched, metadata=True)
        elif not name.startswith(WITHOUT_COMMITS):
            judge.theirs = hudi.snapshot(untouched, metadata=True)
        return judge

    @property
    def base(self) -> Path:
        return self.case.table

    @property
    def is_read(self) -> bool:
        """Real Hudi reads the table as it was."""
        return (self.case.version, self.case.name) not in NOT_READ

    @property
    def options(self) -> dict[str, str]:
        of_writers = {**self.case.info.get("write_options", {}), **WRITERS_OPTIONS.get(self.case.name, {})}
        if not self.is_read:
            of_writers.pop("hoodie.logfile.data.block.format", None)
        name = self.case.info["table_config"]["hoodie.table.name"]
        return {**of_writers, **ON_TOP, "hoodie.clean.automatic": "false", "hoodie.table.name": name}

    def snapshot(
        self, base: Path, *, metadata: bool, query: Literal["snapshot", "read_optimized"] = "snapshot"
    ) -> pa.Table:
        """What real Hudi reads, or we where it never does."""
        if (self.case.version, self.case.name) not in NEVER_READ:
            return self.hudi.snapshot(base, metadata=metadata, query=query)
        answer = HudiTable.open(str(base)).read(query, metadata="auto" if metadata else "off")
        return pa.Table.from_batches(list(answer.batches), answer.schema)

    # What must hold.

    def check(self, *, meta: bool, of_base_files: bool = False) -> None:
        """Real Hudi and we read the rows due, with their meta columns or without, and as many of base files alone, or
        the same; the metadata table is true.
        """

        def assert_due(found: pa.Table, due: pa.Table) -> None:
            assert_same_rows(*((found, due) if meta else (user_columns(found), user_columns(due))))

        assert_due(read_rows(self.base), self.ours)
        assert_metadata_true(self.base)
        answer = HudiTable.open(str(self.base)).read("read_optimized")
        read_optimized = pa.Table.from_batches(list(answer.batches), answer.schema)
        for metadata in (True, False):
            assert_due(self.snapshot(self.base, metadata=metadata), self.theirs)
            found = self.snapshot(self.base, metadata=metadata, query="read_optimized")
            assert found.num_rows == read_optimized.num_rows
            if of_base_files:
                assert_due(found, self.theirs)

    def drop(self, partition: str) -> None:
        """The rows of a partition are no longer due."""
        self.ours, self.theirs = (within(rows, partition, outside=True) for rows in (self.ours, self.theirs))

    # What real Hudi does.

    def write(self, operation: str, rows: pa.Table) -> Step:
        self.written += 1
        given = write_parquet(rows.replace_schema_metadata(None), self.case.scratch, f"step{self.written}")
        options = {**self.options, "hoodie.metadata.enable": "true"}
        return lambda base: self.hudi.ask("write", base=str(base), operation=operation, parquet=given, options=options)

    def service(self, name: str, **options: str) -> Step:
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

    def step(self, does: Step, due: pa.Table | None) -> pa.Table | None:
        """The rows after one step behind us: those due, or those that the step leaves without us. None where real Hudi
        fails without us, too.
        """
        self.missing.append(does)
        found = self.after(self.base, [does])
        if due is not None and isinstance(found, pa.Table):
            if rows_of(found, due.column_names) == rows_of(due, due.column_names):
                return found
            assert self.is_read, "other rows than those due, where nothing can be compared"
        missing, self.missing = self.missing, []
        control = self.after(self.untouched, missing)
        if isinstance(control, RealHudiError) and isinstance(found, RealHudiError):
            return None
        assert isinstance(found, pa.Table), f"real Hudi fails behind us only: {found}"
        assert isinstance(control, pa.Table), f"real Hudi fails without us only: {control}"
        assert_same_rows(found, control)
        return found

    def after(self, base: Path, steps: list[Step]) -> pa.Table | RealHudiError:
        """The rows that real Hudi reads after these steps, or why it failed."""
        try:
            for each in steps:
                each(base)
            return user_columns(self.snapshot(base, metadata=True))
        except RealHudiError as error:
            return error

    def goes_on(self, *, cleans: bool = True) -> str | None:
        """An upsert of other values, a delete, a compaction, a clustering and a clean. Both metadata tables are true
        then. The step at which real Hudi fails without us, too, if there is one.
        """
        rows, alike = user_columns(self.theirs), self.alike()
        if rows.num_rows == 0:
            rows = some_rows(self.case, rows.schema)
            if self.step(self.write("upsert", rows), rows) is None:
                return "upsert"
        own, ordered = own_rows(self.base, self.theirs), "keygen" not in self.case.name
        own = own if own.num_rows else rows
        upserted = changed(own.slice(0, 3), self.held())
        now = pa.concat_tables([upserted.select(rows.column_names), rows.slice(3)]) if ordered else None
        found = self.step(self.write("upsert", upserted), now)
        if found is None:
            return "upsert"
        assert rows_of(found, rows.column_names) != rows_of(rows, rows.column_names), "the upsert is lost"
        if own.num_rows > 4:
            as_due = now is not None and rows_of(found, rows.column_names) == rows_of(now, rows.column_names)
            now = now.slice(0, now.num_rows - 1) if now is not None and as_due else None
            rows, found = found, self.step(self.write("delete", own.slice(own.num_rows - 1)), now)
            if found is None:
                return "delete"
            assert found.num_rows == rows.num_rows - 1, "the delete is lost"
        services = {
            **({"compaction": {"hoodie.compact.inline.max.delta.commits": "1"}} if is_mor(self.case.info) else {}),
            "clustering": ALL_SMALL,
            "clean": {"hoodie.cleaner.commits.retained": "1"},
        }
        # A clean puts records of such an index into `column_stats`: without us, too.
        indexes = self.case.info["table_config"].get("hoodie.table.metadata.partitions", "")
        if not cleans or "expr_index_" in indexes:
            del services["clean"]
        for name, options in services.items():
            found = self.step(self.service(name, **options), found)
            if found is None:
                return name
        assert_same_rows(user_columns(self.snapshot(self.base, metadata=False)), found)
        assert_metadata_true(self.base)
        if alike:
            assert_same_rows(user_columns(read_rows(self.base)), found)
        if has_metadata_table(self.base):
            answer = self.hudi.ask("validate_metadata", base=str(self.base))
            assert answer["wrong"] == []
            assert answer["files"] > 0
        return None

    def alike(self) -> bool:
        """We and real Hudi read the same rows."""
        names = user_columns(self.theirs).column_names
        return rows_of(self.ours, names) == rows_of(self.theirs, names)

    def held(self) -> list[str]:
        """Columns that say what a row is and where it belongs."""
        info = self.case.info
        return [name for kind in ("record_key", "partition", "ordering") for name in info.get(f"{kind}_fields") or ()]
