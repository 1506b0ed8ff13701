"""Statistics of single columns added and dropped, on golden tables: as if the index had been built with them, whatever
writers do meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.engine.local import LocalEngine, Progress
from hudi_core.engine.protocol import UnitTask
from hudi_core.errors import ConfigError, ConflictError, HudiError, MetadataUnavailableError, UnsupportedError
from hudi_core.metadata_table.indexed_table import load_index_definitions
from hudi_core.metadata_table.partition_type import STATISTICS
from hudi_core.metadata_table.records.bounds import Bound, ValueType
from hudi_core.metadata_table.records.column_stats import partition_record
from hudi_core.metadata_table.records.file_statistics import ColumnRange
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.restore_reach import reach_of
from hudi_core.model.names import WriteToken
from hudi_core.services.context import TableContext
from hudi_core.services.metadata.columns import add_columns, drop_columns
from hudi_core.services.metadata.index_drop import drop_metadata
from hudi_core.services.metadata.maintain import create_metadata, update_metadata
from hudi_core.storage.base import Storage
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from hudi_core.transaction.instant_generator import InstantClock
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.run import RunRequest
from hudi_health.table import validate_metadata
from tests.support.golden_cleans import context_of
from tests.support.golden_clusterings import cluster, plan_of_all
from tests.support.golden_data import GoldenCase
from tests.support.kill_points import killed_at_each_change
from tests.support.metadata_records import Records, Table
from tests.support.overwrites import put_source
from tests.support.table_invariants import assert_metadata_true, read_rows
from tests.support.tiers import tiered
from tests.support.writes import own_columns, write

Golden = Callable[[str, str], GoldenCase]
OWNER = Owner.current("test")
LIST = "hoodie.metadata.index.column.stats.column.list"
ADDED = ("qty", "name")


class CountingEngine(LocalEngine):
    """Counts the files that its tasks read; `meanwhile` happens once, after the first of them."""

    def __init__(self, meanwhile: Callable[[], object] | None = None) -> None:
        super().__init__(2)
        self.files = 0
        self._meanwhile = meanwhile

    def run(
        self, task: UnitTask[Any, Any], units: Sequence[Any], *, run_epoch: int, progress: Progress | None = None
    ) -> list[Any]:
        self.files += sum(len(unit.files) for unit in units)
        done = super().run(task, units, run_epoch=run_epoch, progress=progress)
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return done


def context(table: Table, options: Mapping[str, str] | None = None, storage: Storage | None = None) -> TableContext:
    return context_of(table.path, {"spark.sql.session.timeZone": "UTC", **(options or {})}, storage)


def index_only(table: Table, *columns: str) -> None:
    """Rebuilds the statistics of files and partitions, of some columns alone."""
    names = table.config.metadata_partitions & {"column_stats", "partition_stats"}
    drop_metadata(context(table), names, OWNER)
    create_metadata(context(table, {LIST: ",".join(columns)}), names, LocalEngine(2), OWNER, 2)


def add(
    table: Table, *columns: str, engine: LocalEngine | None = None, storage: Storage | None = None
) -> tuple[str, ...]:
    return add_columns(context(table, None, storage), columns, engine or CountingEngine(), OWNER, 5)


def statistics(table: Table) -> Records:
    """Without whether ranges are tight: what is added to an index widens it."""
    live = table.live()
    return {
        name: {key: replace(item, is_tight=False) for key, item in live[name].items()}
        for name in STATISTICS & live.keys()
    }


def findings(table: Table) -> list[Any]:
    return list(
        validate_metadata(HudiTable.open(str(table.path), options={"airflow_hudi.read.zone": "UTC"})).differences
    )


def indexed(table: Table) -> tuple[str, ...]:
    return load_index_definitions(table.storage, table.config)["column_stats"].source_fields


def rows(table: Table, where: str | None = None) -> list[dict[str, Any]]:
    result = HudiTable.open(str(table.path)).read("snapshot", where=where)
    return sorted(
        (row for batch in result.batches for row in batch.to_pylist()), key=lambda row: str(row["_hoodie_record_key"])
    )


def assert_found(table: Table, requirements: list[dict[str, Any]]) -> None:
    """Some of the rows are found by their `qty`."""
    some = [row for row in requirements if row["qty"] is not None][::7][:5]
    assert some
    for row in some:
        assert row in rows(table, f"qty = {row['qty']}")


@pytest.mark.slow
@pytest.mark.parametrize("case", ["mdt_all_mor", "mdt_all_cow"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_added_columns_are_as_if_the_index_was_initialized_with_them(golden: Golden, version: str, case: str) -> None:
    table = Table(golden(version, case).table)
    index_only(table, "id", *reversed(ADDED))
    whole = statistics(table)
    index_only(table, "id")
    narrow, names, folder = statistics(table), table.metadata_timeline.names(), table.config.metadata_partitions
    assert len(narrow["column_stats"]) < len(whole["column_stats"])
    engine = CountingEngine()
    done = add(table, *ADDED, engine=engine)
    assert statistics(table) == whole
    assert done == ADDED
    assert len(set(table.metadata_timeline.names()) - set(names)) == 3, "one deltacommit"
    assert engine.files == len({key[12:] for key in narrow["column_stats"]}), "each file once"
    assert table.config.metadata_partitions == folder
    if version != "6":
        assert indexed(table) == ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key", "id", *ADDED)
    assert findings(table) == []
    names, again = table.metadata_timeline.names(), CountingEngine()
    assert add(table, *ADDED, engine=again) == ()
    assert table.metadata_timeline.names() == names
    if version != "6":
        assert again.files == 0, "the index has them all"


@pytest.mark.slow
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_dropped_column_costs_its_definition_and_comes_back_without_a_read(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    before, fields, names = statistics(table), indexed(table), table.metadata_timeline.names()
    done = drop_columns(context(table), ["QTY", "not indexed"], OWNER)
    assert done == ("qty",)
    assert indexed(table) == (left := tuple(name for name in fields if name != "qty"))
    assert table.metadata_timeline.names() == names
    assert findings(table) == []
    assert drop_columns(context(table), ["qty"], OWNER) == ()
    engine = CountingEngine()
    assert add(table, "qty", engine=engine) == ("qty",)
    assert indexed(table) == (*left, "qty")
    assert engine.files == 0
    assert statistics(table)["column_stats"] == before["column_stats"]
    assert findings(table) == []


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_old_ranges_of_a_dropped_column_rule_nothing_out(golden: Golden, version: str) -> None:
    """Writers record nothing of it any more, so that the range of a partition is outdated."""
    table = Table(golden(version, "mdt_all_mor").table)
    index_only(table, "id")
    one = next(row for row in rows(table) if row["qty"] is not None)
    add(table, "qty")
    drop_columns(context(table), ["qty"], OWNER)
    with_wrong_range(table, "qty", one["qty"])
    where = f"qty = {one['qty']}"
    assert one in rows(table, where)


def with_wrong_range(table: Table, column: str, but: int) -> None:
    """Records in `partition_stats` that no row of any partition has the value `but` in a column, as an older state of
    the table may have been.
    """
    version = load_index_definitions(table.storage, table.config)["column_stats"].version
    bound = Bound("int", but + 1000)
    found = ColumnRange(column, bound, bound, 0, 1, 0, 0, ValueType(0) if version == 1 else ValueType(3))
    records = [
        item
        for name in HudiTable.open(str(table.path)).view().partitions()
        if (item := partition_record(name, found)) is not None
    ]
    metadata_timeline = MetadataTimeline(table.storage, table.config, InstantClock(table.config.timezone, 0))
    DeltaWriter(metadata_timeline, WriteToken(0, 9, 0)).write(
        metadata_timeline.clock.next(metadata_timeline.active.load()), {"partition_stats": records}
    )


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_commit_that_completes_while_files_are_read_is_recorded_too(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    index_only(table, "id", *reversed(ADDED))
    whole = statistics(table)["column_stats"]
    index_only(table, "id")
    complete = with_late_commit(table)
    engine = CountingEngine(complete)
    add(table, *ADDED, engine=engine)
    assert statistics(table)["column_stats"] == whole
    assert findings(table) == []


def with_late_commit(table: Table) -> Callable[[], object]:
    """Makes the last commit pending again, without a trace on the metadata table that readers would count; what
    completes it.
    """
    last = table.data.load().completed().of_actions(Action.DELTA_COMMIT, Action.COMMIT).instants[-1]
    [done] = [path for path in (table.path / ".hoodie").rglob(f"{last.requested_time}*") if _is_completed(path, table)]
    kept = done.with_suffix(".kept")
    done.rename(kept)
    return lambda: kept.rename(done)


def _is_completed(path: Path, table: Table) -> bool:
    return "metadata" not in path.parts and path.suffix in (".deltacommit", ".commit")


@pytest.mark.slow
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_write_that_is_pending_all_the_while_keeps_its_rows(golden: Golden, version: str) -> None:
    """One that counts as dead, and that no other process may roll back."""
    table = Table(golden(version, "mdt_all_mor").table)
    every = rows(table)
    drop_columns(context(table), ["qty"], OWNER)
    complete = with_late_commit(table)
    older = rows(table)
    assert older != every
    add_columns(context(table, {"hoodie.cleaner.policy.failed.writes": "NEVER"}), ["qty"], CountingEngine(), OWNER, 5)
    assert rows(table) == older
    complete()
    assert rows(table) == every
    assert_found(table, every)
    assert findings(table) == []


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_a_pending_clean_comes_first(golden: Golden, version: str) -> None:
    table = Table(golden(version, "clean_requested_cow").table)
    create_metadata(context(table, {LIST: "id,name"}), ["column_stats"], LocalEngine(2), OWNER, 2)
    names, before = table.metadata_timeline.names(), set(statistics(table)["column_stats"])
    drop_columns(context(table), ["name"], OWNER)
    with pytest.raises(ConflictError, match=r"clean \d+ is pending"):
        add(table, "name")
    assert table.metadata_timeline.names() == names
    HudiTable.open(str(table.path)).run(RunRequest(str(table.path), "clean"), LocalEngine(2))
    cleaned = set(statistics(table)["column_stats"])
    assert cleaned < before
    assert add(table, "name") == ("name",)
    assert set(statistics(table)["column_stats"]) < cleaned, "the dropped column still had records of cleaned files"
    assert findings(table) == []


def test_version_6_adds_beside_a_pending_clean(golden: Golden, tmp_path: Path) -> None:
    table = Table(golden("6", "clean_requested_cow").table)
    [planned] = (table.path / ".hoodie").glob("*.clean.requested")
    held = planned.rename(tmp_path / planned.name)
    create_metadata(context(table, {LIST: "id"}), ["column_stats"], LocalEngine(2), OWNER, 2)
    held.rename(planned)
    assert add(table, "name") == ("name",)
    HudiTable.open(str(table.path)).run(RunRequest(str(table.path), "clean"), LocalEngine(2))
    assert findings(table) == []


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
def test_a_restore_to_before_it_keeps_no_column_without_records(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mor_compaction_requested").table)
    drop_metadata(context(table), ["files"], OWNER)
    create_metadata(context(table, {LIST: "id"}), ["column_stats", "partition_stats"], LocalEngine(2), OWNER, 2)
    HudiTable.open(str(table.path)).run(RunRequest(str(table.path), "compaction"), LocalEngine(2))
    target = table.data.load().completed().of_actions(Action.COMMIT).instants[-1].requested_time

    def late() -> frozenset[str]:
        found = reach_of(table.storage, table.config, MetadataTimeline(table.storage, table.config), target)
        assert found.reason is None
        return found.late

    assert late() == frozenset()
    add(table, "name")
    assert late() == {"column_stats", "partition_stats"}


EVERYWHERE = [("8", 4), *(pytest.param(version, 1, marks=pytest.mark.conformance) for version in ("6", "8"))]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "step"), EVERYWHERE)
def test_killed_before_each_change_it_is_run_again(golden: Golden, version: str, step: int) -> None:
    origin = golden(version, "mdt_all_cow").table
    index_only(Table(origin), "id", *reversed(ADDED))
    whole = statistics(Table(origin))
    index_only(Table(origin), "id")
    narrow = rows(Table(origin))
    crashes = 0
    for at, table in killed_at_each_change(origin, step, lambda table, storage: add(table, *ADDED, storage=storage)):
        crashes += 1
        assert rows(table, "qty >= 0 or qty < 0 or qty is null") == narrow
        if crashes % 2:
            update_metadata(context(table), LocalEngine(2), OWNER, 6)
        add(table, *ADDED)
        assert statistics(table) == whole, at
        assert findings(table) == [], at
    assert crashes > 2


REFUSED: list[tuple[str, str, dict[str, str], type[HudiError], str]] = [
    ("8", "no_such", {}, ConfigError, "no column 'no_such'"),
    ("6", "no_such", {}, ConfigError, "no column 'no_such'"),
    ("9", "qty", {LIST: "id,name"}, ConfigError, "does not name qty"),
]


@pytest.mark.parametrize(("version", "column", "options", "error", "message"), REFUSED)
def test_what_cannot_be_added_is_refused_first(
    golden: Golden, version: str, column: str, options: dict[str, str], error: type[HudiError], message: str
) -> None:
    table = Table(golden(version, "mdt_all_cow").table)
    names = table.metadata_timeline.names()
    with pytest.raises(error, match=message) as caught:
        add_columns(context(table, options), [column], LocalEngine(1), OWNER)
    assert caught.value.remedy
    assert table.metadata_timeline.names() == names
    with pytest.raises(ConfigError, match="no column is named"):
        add_columns(context(table), [], LocalEngine(1), OWNER)


def test_what_cannot_be_dropped_is_refused(golden: Golden) -> None:
    old, table = Table(golden("6", "mdt_all_cow").table), Table(golden("8", "mdt_all_cow").table)
    with pytest.raises(UnsupportedError, match="version 6 does not record"):
        drop_columns(context(old), ["qty"], OWNER)
    fields = indexed(table)
    with pytest.raises(ConfigError, match="every index of Hudi's has"):
        drop_columns(context(table), ["_hoodie_record_key"], OWNER)
    with pytest.raises(ConfigError, match=f"{LIST} names qty"):
        drop_columns(context(table, {LIST: "id,qty"}), ["qty"], OWNER)
    assert indexed(table) == fields
    drop_metadata(context(table), ["column_stats"], OWNER)
    with pytest.raises(MetadataUnavailableError, match="no statistics of columns"):
        drop_columns(context(table), ["qty"], OWNER)
    with pytest.raises(MetadataUnavailableError, match="no statistics of columns"):
        add(table, "qty")


def test_nested_values_have_no_statistics(golden: Golden) -> None:
    table = Table(golden("8", "types_cow").table)
    nested = [
        field["name"] for field in HudiTable.open(str(table.path)).schema()["fields"] if "array" in str(field["type"])
    ]
    create_metadata(context(table), ["column_stats"], LocalEngine(2), OWNER, 2)
    with pytest.raises(UnsupportedError, match="of which the index holds nothing"):
        add(table, nested[0])


@pytest.mark.parametrize(
    ("version", "name"),
    tiered(
        [(version, name) for version in ("8", "9") for name in ("mdt_all_cow", "mdt_all_mor")], [("9", "mdt_all_mor")]
    ),
)
def test_a_write_indexes_the_columns_that_it_adds(golden: Golden, tmp_path: Path, version: str, name: str) -> None:
    """The next writer of Hudi names them in the definition: of a file without statistics of them it would lose rows."""
    table = Table(golden(version, name).table)
    rows = own_columns(read_rows(table.path)).slice(0, 4).append_column("extra", pa.array([5, 2, None, 7]))
    write(table.path, "upsert", put_source(rows, tmp_path))
    before = load_index_definitions(table.storage, table.config)["column_stats"].source_fields
    assert before[-1] == "extra"
    write(table.path, "upsert", put_source(rows.slice(1, 2), tmp_path, name="later"))
    assert load_index_definitions(table.storage, table.config)["column_stats"].source_fields == before
    assert_metadata_true(table.path)
    cluster(table.path, plan_of_all(table.path, {}))
    assert_metadata_true(table.path)
