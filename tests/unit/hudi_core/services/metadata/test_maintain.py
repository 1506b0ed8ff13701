"""The metadata table created, updated and dropped as whole verbs, on golden tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Consume, Produce, UnitTask
from hudi_core.engine.serializer import to_text
from hudi_core.errors import ConfigError, ConflictError, LockError, UnsupportedError
from hudi_core.metadata_table.indexed_table import load_index_definitions
from hudi_core.metadata_table.initialize.initialize import Initialization
from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.services.context import TableContext
from hudi_core.services.metadata import index_drop, maintain
from hudi_core.services.metadata.index_drop import drop_metadata
from hudi_core.services.metadata.maintain import create_metadata, update_metadata
from hudi_core.services.waiting import wait_for_writers
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from hudi_health.table import validate_metadata
from tests.support.fault_storage import MUTATIONS, FaultPlan, FaultStorage, InjectedCrash
from tests.support.golden_cleans import context_of
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import Table
from tests.support.tiers import tiered
from tests.unit.hudi_core.metadata_table.initialize.test_exchange import groups_of, timeless, without_filters
from tests.unit.hudi_core.services.metadata.test_columns_concurrent_writers import AT_ONCE, BEATS, at_work

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("6", "8", "9")
OWNER = Owner.current("test")
ENGINE = LocalEngine(2)


def context(table: Table, options: Mapping[str, str] | None = None) -> TableContext:
    return context_of(table.path, {"spark.sql.session.timeZone": "UTC", **(options or {})})


def as_real(groups: dict[str, int]) -> dict[str, str]:
    """Hudi's options for as many file groups as a table has."""
    return {
        "hoodie.metadata.index.bloom.filter.file.group.count": str(groups["bloom_filters"]),
        "hoodie.metadata.record.index.min.filegroup.count": str(groups["record_index"]),
    }


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_everything_is_created_updated_and_dropped(golden: Golden, version: str) -> None:
    table = Table(golden(version, "mdt_all_mor").table)
    real, listed, groups = timeless(table.live()), table.config.metadata_partitions, groups_of(table)
    drop_metadata_table(table.storage)
    config = create_metadata(context(table, as_real(groups)), listed, ENGINE, OWNER, 4)
    assert config.metadata_partitions == listed == table.config.metadata_partitions
    ours = timeless(table.live())
    for name in listed:
        if name.startswith("expr_index_"):
            assert without_filters(ours[name]).items() <= without_filters(real[name]).items()
        else:
            assert ours[name] == real[name], name
    made = {name: count for name, count in groups_of(table).items() if not name.startswith("secondary_index_")}
    assert made == {name: count for name, count in groups.items() if name in made}
    assert validate_metadata(HudiTable.open(str(table.path))).is_clean
    done = update_metadata(context(table, {"hoodie.metadata.compact.max.delta.commits": "1"}), ENGINE, OWNER, 5)
    assert done.applied == ()
    assert done.upkeep.compacted.files > len(listed)
    assert timeless(table.live()) == ours
    names = table.metadata_timeline.names()
    assert create_metadata(context(table), listed, ENGINE, OWNER, 6).metadata_partitions == listed
    assert table.metadata_timeline.names() == names, "done already"
    kept = {"files", "column_stats"}
    assert drop_metadata(context(table), listed - kept, OWNER).metadata_partitions == kept
    assert not (table.path / ROOT / "record_index").exists()
    assert load_index_definitions(table.storage, table.config).keys() <= kept
    assert drop_metadata(context(table), ["files"], OWNER).metadata_partitions == frozenset()
    assert not (table.path / ROOT).exists()
    with pytest.raises(ConfigError, match="no metadata table"):
        update_metadata(context(table), ENGINE, OWNER)


def test_what_cannot_be_kept_is_refused_first(golden: Golden) -> None:
    table = Table(golden("8", "non_partitioned_mor").table)
    with pytest.raises(UnsupportedError, match="without partitions"):
        create_metadata(context(table), ["partition_stats"], ENGINE, OWNER)
    with pytest.raises(UnsupportedError, match="makes no metadata partition `unheard_of`") as caught:
        create_metadata(context(table), ["files", "unheard_of"], ENGINE, OWNER)
    assert caught.value.remedy == (
        "it makes: files, column_stats, bloom_filters, record_index, partition_stats, expr_index_<name>, "
        "secondary_index_<name>"
    )
    assert not (table.path / ROOT).exists()
    config = create_metadata(context(table), ["column_stats"], ENGINE, OWNER)
    assert config.metadata_partitions == {"files", "column_stats"}
    assert validate_metadata(HudiTable.open(str(table.path))).is_clean


@pytest.mark.slow
@pytest.mark.parametrize("version", ["8", "9"])
def test_partition_stats_go_with_column_stats(golden: Golden, version: str) -> None:
    """They are made of these, and a commit could not update them any more."""
    table = Table(golden(version, "mdt_all_cow").table)
    listed = table.config.metadata_partitions
    after = drop_metadata(context(table), ["column_stats"], OWNER).metadata_partitions
    assert after == listed - {"column_stats", "partition_stats"}
    assert "column_stats" not in load_index_definitions(table.storage, table.config)
    with pytest.raises(UnsupportedError, match="partition_stats is made of column_stats"):
        create_metadata(context(table), ["partition_stats"], ENGINE, OWNER)
    assert (
        create_metadata(context(table), ["partition_stats", "column_stats"], ENGINE, OWNER).metadata_partitions
        == listed
    )
    assert validate_metadata(HudiTable.open(str(table.path))).is_clean


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_is_initialized_beside_an_indexing(golden: Golden, version: str) -> None:
    table = Table(golden(version, "indexing_requested").table)
    (indexing,) = table.data.load().pending().of_actions(Action.INDEXING)
    table.data.to_inflight(indexing.requested_time, Action.INDEXING)
    listed = table.config.metadata_partitions
    with pytest.raises(ConflictError, match=f"indexing {indexing.requested_time} is building"):
        create_metadata(context(table), ["record_index"], ENGINE, OWNER)
    assert table.config.metadata_partitions == listed
    drop_metadata(context(table), ["files"], OWNER)
    assert not table.data.load().contains(indexing.requested_time), "abandoned with what it would have built"
    assert create_metadata(context(table), listed, ENGINE, OWNER).metadata_partitions == listed


@pytest.mark.parametrize("name", ["files", "record_index"])
@pytest.mark.parametrize("version", tiered(["6", "9"], ["6"]))
def test_nothing_is_listed_when_another_writer_has_broken_the_lock(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, version: str, name: str
) -> None:
    """As Hudi's file-system lock is broken that has expired: it is not renewed."""
    table = Table(golden(version, "cow_basic").table)
    drop_metadata_table(table.storage)
    write = Initialization.write

    def slow(self: Initialization, target: NewPartition) -> list[NewBaseFile]:
        if self.name == name:
            table.storage.write(".hoodie/lock", b"")
        return write(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Initialization, "write", slow)
        with pytest.raises(LockError):
            create_metadata(context(table), ["record_index"], ENGINE, OWNER)
    assert name not in table.config.metadata_partitions
    table.storage.delete(".hoodie/lock")
    config = create_metadata(context(table), ["record_index"], ENGINE, OWNER)
    assert config.metadata_partitions == {"files", "record_index"}
    assert validate_metadata(HudiTable.open(str(table.path))).is_clean


@pytest.mark.parametrize("version", tiered(["8", "9"], ["9"]))
@pytest.mark.parametrize("name", ["record_index", "partition_stats"])
def test_an_index_of_all_rows_does_not_begin_beside_a_write(golden: Golden, version: str, name: str) -> None:
    """A writer of Hudi 1.1 or later records its rows in the indexes that the table had when it began."""
    table = Table(golden(version, "cow_basic").table)
    create_metadata(context(table), ["column_stats"], ENGINE, OWNER)
    listed = table.config.metadata_partitions
    drop_metadata(context(table), [name], OWNER)
    writer = at_work(table)
    with pytest.raises(ConflictError, match=f"{writer}, which began before, is still at work") as caught:
        create_metadata(context(table, AT_ONCE), [name], ENGINE, OWNER)
    assert "hudictl run indexing TABLE --schedule" in str(caught.value.remedy)
    assert name not in table.config.metadata_partitions
    assert (
        "bloom_filters"
        in create_metadata(context(table, AT_ONCE), ["bloom_filters"], ENGINE, OWNER).metadata_partitions
    )
    table.data.delete_instant(writer, Action.COMMIT)
    config = create_metadata(context(table, AT_ONCE), [name], ENGINE, OWNER)
    assert config.metadata_partitions == listed | {name, "bloom_filters"}
    assert validate_metadata(HudiTable.open(str(table.path))).is_clean


def test_a_write_that_ends_is_waited_for(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next one, which began meanwhile, too."""
    table = Table(golden("9", "cow_basic").table)
    create_metadata(context(table), ["column_stats"], ENGINE, OWNER)
    drop_metadata(context(table), ["record_index"], OWNER)
    writers = [at_work(table)]

    def ends(_: float) -> None:
        assert "record_index" not in table.config.metadata_partitions
        table.data.delete_instant(writers[-1], Action.COMMIT)
        if len(writers) < 3:
            writers.append(at_work(table, instant=str(int(writers[-1]) + 1)))

    def wait(*given: Any, **rules: Any) -> frozenset[str]:
        return wait_for_writers(*given, sleep=ends, **rules)

    monkeypatch.setattr(maintain, "wait_for_writers", wait)
    assert "record_index" in create_metadata(context(table, BEATS), ["record_index"], ENGINE, OWNER).metadata_partitions
    assert len(writers) == 3


def test_an_indexing_that_starts_while_its_index_is_dropped_stays(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(golden("9", "indexing_requested").table)
    (indexing,) = table.data.load().pending().of_actions(Action.INDEXING)
    monkeypatch.setattr(
        index_drop, "abandon_builds", lambda *_: table.data.to_inflight(indexing.requested_time, Action.INDEXING)
    )
    with pytest.raises(ConflictError, match=f"indexing {indexing.requested_time} began meanwhile"):
        drop_metadata(context(table), ["column_stats"], OWNER)
    assert table.data.load().contains(indexing.requested_time)


@pytest.mark.parametrize("version", ["6", "9"])
def test_no_index_is_dropped_beside_a_pending_compaction(golden: Golden, version: str) -> None:
    """Its plan names the index's files: it could never be finished."""
    table = Table(golden(version, "mdt_all_mor").table)
    often = {"spark.sql.session.timeZone": "UTC", "hoodie.metadata.compact.max.delta.commits": "1"}
    plan = FaultPlan(when=lambda operation: operation.path.endswith(".compaction.inflight"), counts=MUTATIONS)
    with pytest.raises(InjectedCrash):
        update_metadata(context_of(table.path, often, FaultStorage(table.storage, plan)), ENGINE, OWNER, 3)
    with pytest.raises(ConflictError, match="of the metadata table is pending"):
        drop_metadata(context(table), ["record_index"], OWNER)
    assert "record_index" in table.config.metadata_partitions
    update_metadata(context(table, often), ENGINE, OWNER, 4)
    assert "record_index" not in drop_metadata(context(table), ["record_index"], OWNER).metadata_partitions
    assert validate_metadata(HudiTable.open(str(table.path))).is_clean


class Watched(LocalEngine):
    """Keeps the size of all that comes back to the driver."""

    def __init__(self) -> None:
        super().__init__(2)
        self.results = 0
        self.units = 0

    def run(self, task: UnitTask[Any, Any], units: Sequence[Any], **arguments: Any) -> list[Any]:
        found = super().run(task, units, **arguments)
        self.results += sum(len(to_text(item)) for item in found)
        return found

    def exchange(
        self, produce: Produce[Any], units: Sequence[Any], consume: Consume[Any], **arguments: Any
    ) -> list[Any]:
        found = super().exchange(produce, units, consume, **arguments)
        self.results += sum(len(to_text(item)) for item in found)
        self.units += len(units)
        return found


def test_the_records_of_files_stay_with_the_tasks(golden: Golden) -> None:
    """Bloom filters above all: 430 KB each with Hudi's defaults."""
    table = Table(golden("8", "mdt_all_cow").table)
    listed = table.config.metadata_partitions
    drop_metadata_table(table.storage)
    engine = Watched()
    create_metadata(context(table), listed, engine, OWNER)
    stored = sum(path.stat().st_size for name in listed for path in (table.path / ROOT / name).glob("*.hfile"))
    assert engine.units >= len(listed) - 1
    assert engine.results < stored / 20
