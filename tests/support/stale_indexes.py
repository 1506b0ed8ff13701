"""Tables of tests/golden/make_stale_indexes.py: what a query finds by their indexes, and what it has to find."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.services.metadata.maintain import Updated, update_metadata
from hudi_core.table import HudiTable
from hudi_core.transaction.owner import Owner
from hudi_health.table import validate_metadata
from tests.support.golden_cleans import context_of
from tests.support.golden_data import STALE, unpacked_once
from tests.support.metadata_records import Table

INDEX = "secondary_index_by_name"
NEVER = {"hoodie.metadata.compact.max.delta.commits": "1000", "spark.sql.session.timeZone": "UTC"}
"""No compaction of the metadata table, so that a test sees what was written."""
BULK = "name = 'bulk name 3'"
"""A row of the bulk_insert."""


@dataclass(frozen=True)
class StaleTable:
    """A table on disk, and its rows."""

    path: Path
    rows: pa.Table

    @property
    def table(self) -> Table:
        return Table(self.path)

    def metadata(self) -> MetadataTable:
        """The metadata table as it is now."""
        table = self.table
        return MetadataTable(table.storage, table.config, table.data.load())

    def found(self, where: str) -> list[str]:
        """The record keys of a query."""
        batches = HudiTable.open(str(self.path)).read(where=where).batches
        return sorted(key for batch in batches for key in batch.column("_hoodie_record_key").to_pylist())

    def due(self, column: str, *values: object) -> list[str]:
        """The record keys of the rows with one of the values."""
        mask = pc.is_in(self.rows[column], value_set=pa.array(values, self.rows.schema.field(column).type))
        return sorted(self.rows.filter(mask)["_hoodie_record_key"].to_pylist())

    def update(self, options: Mapping[str, str] | None = None) -> Updated:
        """`metadata update`."""
        context = context_of(self.path, {**NEVER, **(options or {})})
        return update_metadata(context, LocalEngine(2), Owner.current("test"), 3)

    def differences(self) -> list[str]:
        """What `metadata validate` finds in the indexes."""
        report = validate_metadata(HudiTable.open(str(self.path)))
        return [f"{item.partition_type} {item.partition}: {item.what}" for item in report.differences]

    def archive(self) -> None:
        """Takes all instants but the last commit off the timeline, as archivals do."""
        active = self.table.data
        active.forget(active.load().completed().instants[:-1])

    def copied_later(self) -> None:
        """Gives the files of the secondary index other times, as a copy of the table does."""
        for path in (self.path / ".hoodie" / "metadata" / INDEX).iterdir():
            os.utime(path, (1, 1))


def stale_table(name: str, folder: Path) -> StaleTable:
    """A fresh copy of a table below `folder`, and the rows that real Hudi reads of it without its metadata table."""
    tables = unpacked_once(STALE, "stale")
    shutil.copytree(tables / name, folder / name)
    return StaleTable(folder / name, pq.read_table(tables / f"{name}.snapshot.parquet"))
