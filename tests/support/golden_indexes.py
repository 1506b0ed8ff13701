"""Golden tables with several kinds of metadata, opened, and what their data files themselves say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.config.table_config import TableConfig
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from tests.support.golden_data import GoldenCase

VERSIONS = ("6", "8", "9")
ALL_KINDS = ("mdt_all_cow", "mdt_all_cow_compacted", "mdt_all_mor", "mdt_all_mor_compacted")
MANY = [(version, case) for version in VERSIONS for case in ALL_KINDS]
WITH_RECORD_INDEX = [*MANY, *((version, "mdt_record_index_lookup") for version in VERSIONS)]


@dataclass(frozen=True)
class Opened:
    """A table, its metadata table, and the rows that real Hudi's snapshot query returns."""

    path: Path
    storage: LocalStorage
    config: TableConfig
    metadata: MetadataTable
    snapshot: pa.Table

    def base_files(self) -> Iterator[tuple[str, str, Path]]:
        """Partition, name and path of every live base file."""
        for partition in self.metadata.partitions():
            for name in self.metadata.list_files(partition):
                if name.endswith(".parquet"):
                    yield partition, name, self.path / partition / name


def open_table(case: GoldenCase) -> Opened:
    """The case's table as it is on disk."""
    storage = LocalStorage(case.table)
    config = TableConfig.load(storage)
    metadata = MetadataTable(storage, config, ActiveTimeline(storage, config).load())
    found = [case.expected / "snapshot.by-1.2.0.parquet", case.expected / "snapshot.parquet"]
    return Opened(case.table, storage, config, metadata, pq.read_table(next(path for path in found if path.exists())))


def values_of(path: Path, column: str) -> list[Any]:
    """A column of a parquet file as plain values."""
    return pq.ParquetFile(path).read(columns=[column]).column(0).to_pylist()
