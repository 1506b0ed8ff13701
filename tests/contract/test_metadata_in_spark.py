"""The metadata table's exchanges as Spark runs them: several tasks make records, several write file groups, and each
byte is the local engine's.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Consume, Engine, Produce
from hudi_core.metadata_table.initialize import exchange as exchange
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.records.file_statistics import DataFileRef
from hudi_core.metadata_table.write import staged_logs
from hudi_core.metadata_table.write.lifetime import drop_metadata_table
from hudi_core.metadata_table.write.staged_logs import Prepared, Workers
from hudi_core.model.names import BaseFileName, parse_base_file, parse_data_file
from hudi_core.services.compaction.planner import CompactionService
from hudi_core.services.metadata.maintain import create_metadata
from hudi_core.services.rewriting import job as rewrite
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.transaction.owner import Owner
from hudi_health.table import validate_metadata
from hudi_spark.engine import SparkEngine
from tests.support.changed_tables import open_context
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import assert_compacted, pending_instants, read_rows
from tests.unit.hudi_core.services.compaction.test_job_metadata import plan_all

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Golden = Callable[[str, str], GoldenCase]
OWNER = Owner.current("test")
OPTIONS = {
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.metadata.index.bloom.filter.file.group.count": "2",
    "hoodie.metadata.index.column.stats.file.group.count": "2",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
    "spark.sql.session.timeZone": "UTC",
}


class Counted(SparkEngine):
    """Notes how many units made rows and how many shards took them, exchange by exchange."""

    def __init__(self, spark: Any) -> None:
        super().__init__(spark)
        self.exchanges: list[tuple[int, int]] = []

    def exchange(
        self, produce: Produce[Any], units: Sequence[Any], consume: Consume[Any], *, shards: int, **more: Any
    ) -> list[Any]:
        self.exchanges.append((len(units), shards))
        return super().exchange(produce, units, consume, shards=shards, **more)


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """One file a task, however few there are, and no compaction so small that the driver makes its records."""
    monkeypatch.setattr(exchange, "_UNIT_FILES", 1)
    monkeypatch.setattr(staged_logs, "_UNIT_FILES", 1)
    monkeypatch.setattr(rewrite, "DRIVER_FILES", 0)


def twin(table: Path) -> Path:
    return Path(shutil.copytree(table, table.parent / "twin", symlinks=True))


def base_files(table: Path) -> Mapping[tuple[str, str], bytes]:
    """What the metadata table's base files hold, by partition and file group: only names tell who wrote them."""
    return {
        (path.parent.name, parse_base_file(path.name).file_id): path.read_bytes()
        for path in table.joinpath(ROOT).glob("*/*.hfile")
    }


def test_each_index_begins_with_the_same_bytes(golden: Golden, spark: Any) -> None:
    table = golden("9", "mdt_all_mor").table
    kinds = TableConfig.load(LocalStorage(table)).metadata_partitions
    drop_metadata_table(LocalStorage(table))
    other, engine = twin(table), Counted(spark)
    for path, by in ((table, engine), (other, LocalEngine(2))):
        create_metadata(open_context(path, OPTIONS), kinds, by, OWNER, 3)
    assert len(engine.exchanges) == len(kinds - {"files"})
    assert [exchange for exchange in engine.exchanges if exchange[0] < 2] == []
    assert sum(shards > 1 for _, shards in engine.exchanges) >= 3
    made = base_files(table)
    assert len([group for kind, group in made if kind == "record_index"]) == 3
    assert made == base_files(other)
    assert validate_metadata(HudiTable.open(str(table))).differences == ()


def staged_by(table: Path, engine: Engine, epoch: int) -> tuple[Prepared, dict[tuple[str, str], bytes]]:
    """The records of all the table's files staged for a compaction that is not there; what lies in each file group's
    log files.
    """
    context = open_context(table, OPTIONS)
    publisher = context.metadata_publisher(epoch)
    assert publisher is not None
    listing = [(path, parse_data_file(path.name)) for path in table.glob("[!.]*/[!.]*.parquet")]
    files = [
        DataFileRef(path.parent.name, path.name, path.stat().st_size, isinstance(name, BaseFileName))
        for path, name in listing
    ]
    workers = Workers(engine, epoch, context.uri, context.storage_options)
    requirements = publisher.commit_requirements()
    prepared = publisher.prepare_commit("29990101000000000", files, requirements, workers)
    staged = [(name, log) for name, logs in prepared.staged.items() for log in logs]
    return prepared, {(name, log.file_id): table.joinpath(log.path).read_bytes() for name, log in staged}


def test_records_are_staged_before_the_lock_with_the_same_bytes(golden: Golden, spark: Any) -> None:
    table, engine = golden("9", "mdt_all_mor").table, Counted(spark)
    ours, by_spark = staged_by(table, engine, 1)
    theirs, by_threads = staged_by(table, LocalEngine(2), 2)
    ((units, shards),) = engine.exchanges
    assert units > 1
    assert shards == sum(map(len, ours.groups.values())) + 1 > 3
    assert {name for name, _ in by_spark} >= {"column_stats", "bloom_filters"}
    assert by_spark == by_threads
    assert (ours.groups, ours.wholes) == (theirs.groups, theirs.wholes)


@pytest.mark.parametrize("version", [pytest.param("6", marks=pytest.mark.conformance), "9"])
def test_a_compaction_updates_every_partition_type(golden: Golden, spark: Any, version: str) -> None:
    table, engine = golden(version, "mdt_all_mor").table, Counted(spark)
    instant, pending, rows = plan_all(table), pending_instants(table), read_rows(table)
    CompactionService().run(open_context(table, OPTIONS), instant, engine, OWNER, None)
    assert len(engine.exchanges) == 1
    assert_compacted(table, instant, rows, pending)
