"""Makes the tables of the metadata benchmark: metadata tables of data files that do not exist, by our creation code.

Properties and a timeline are all that the data table has; the listing is invented, and so are keys and statistics.
Everything is seeded, so that a table of one size is always the same.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import TaskAttempt
from hudi_core.metadata_table.initialize.exchange import IndexShards, write_base_shard
from hudi_core.metadata_table.initialize.initialize import Initialization, MetadataCreation
from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition
from hudi_core.metadata_table.partition_type import COLUMN_STATS, RECORD_INDEX
from hudi_core.metadata_table.partitions.protocol import numbered_file_ids
from hudi_core.metadata_table.partitions.row_exchange import RowsOfIndex
from hudi_core.metadata_table.partitions.row_indexes import RecordIndexRows
from hudi_core.metadata_table.partitions.row_level import RecordGroups
from hudi_core.metadata_table.records.bounds import Bound, ValueType
from hudi_core.metadata_table.records.column_stats import file_record
from hudi_core.metadata_table.records.file_statistics import ColumnRange, DataFileRef, Record
from hudi_core.model.names import WriteToken
from hudi_core.model.partition import join
from hudi_core.storage.base import FileInfo
from hudi_core.storage.local import LocalStorage

INSTANTS: Final = ("20260101000000000", "20260102000000000")
TOKEN: Final = WriteToken(0, 7, 0)
ZONE: Final = "UTC"
PLACES: Final = 100
"""File groups of the data table that the rows of a record index are in, in ten partitions by date."""
COLUMNS: Final = 20
"""Columns with statistics."""
_KEYS_AT_ONCE: Final = 1 << 17
_PROPERTIES: Final = (
    "hoodie.table.name=invented\nhoodie.table.version=6\nhoodie.timeline.layout.version=1\n"
    "hoodie.table.recordkey.fields=id\nhoodie.table.partition.fields=dt\nhoodie.table.base.file.format=PARQUET\n"
    "hoodie.populate.meta.fields=true\nhoodie.table.timeline.timezone=UTC\nhoodie.archivelog.folder=archived\n"
)
_COMMIT: Final = {"partitionToWriteStats": {}, "compacted": False, "extraMetadata": {}, "operationType": "BULK_INSERT"}


@dataclass(frozen=True)
class Dataset:
    """A table by the number of its files and partitions."""

    files: int
    partitions: int

    def scaled(self, scale: float) -> Dataset:
        """A smaller one: fewer partitions, with as many files in each."""
        partitions = max(round(self.partitions * scale), 2)
        return Dataset(round(self.files / self.partitions * partitions), partitions)


DATASETS: Final = {"C": Dataset(1_050, 719), "M": Dataset(283_675, 3_617), "E": Dataset(2_275_402, 497)}
"""Those of RFC-15, whose figures are METADATA_PERF in benchmarks.metadata."""


class InventedListing:
    """view.listing.FileListing of a dataset.

    Every file group has a base file of each of INSTANTS, but the last of a partition with odd files.
    """

    def __init__(self, dataset: Dataset) -> None:
        least, more = divmod(dataset.files, dataset.partitions)
        self._counts = {_partition(index): least + (index < more) for index in range(dataset.partitions)}

    def partitions(self) -> list[str]:
        """The partitions by date."""
        return sorted(self._counts)

    def files(self, partition: str) -> list[FileInfo]:
        """Names as real writers make them, sizes as they come."""
        random = Random(partition)
        found = []
        group = ""
        for index in range(self._counts.get(partition, 0)):
            if index % 2 == 0:
                group = f"{uuid.UUID(int=random.getrandbits(128))}-0"
            name = f"{group}_{index // 2}-{31 + index % 2}-{index // 2 + 4000}_{INSTANTS[index % 2]}.parquet"
            found.append(FileInfo(join(partition, name), random.randrange(1 << 20, 1 << 27), 0.0))
        return sorted(found, key=lambda info: info.path)


class LoggedListing(InventedListing):
    """Of a merge-on-read table of version 6: a log file in place of each second base file."""

    def files(self, partition: str) -> list[FileInfo]:
        """The names and sizes of InventedListing."""
        found = []
        for info in super().files(partition):
            group, token, tail = info.name.split("_")
            log = f".{group}_{INSTANTS[0]}.log.1_{token}"
            name = info.name if tail.startswith(INSTANTS[0]) else log
            found.append(FileInfo(join(partition, name), info.size, 0.0))
        return sorted(found, key=lambda info: info.path)


def _partition(index: int) -> str:
    return f"dt={2000 + index // 336:04d}-{1 + index // 28 % 12:02d}-{1 + index % 28:02d}"


def new_table(folder: Path, *, merge_on_read: bool = False) -> LocalStorage:
    """A data table with properties and two commits, in a folder that is not there yet."""
    kind, action = ("MERGE_ON_READ", "deltacommit") if merge_on_read else ("COPY_ON_WRITE", "commit")
    timeline = folder / ".hoodie"
    timeline.mkdir(parents=True)
    fields = [
        {"name": name, "type": "long" if name in column_names() else "string"} for name in ("id", "dt", *column_names())
    ]
    schema = json.dumps({"type": "record", "name": "invented", "fields": fields})
    properties = f"{_PROPERTIES}hoodie.table.type={kind}\nhoodie.table.create.schema={schema}\n"
    (timeline / "hoodie.properties").write_text(properties)
    for instant in INSTANTS:
        for name, content in (
            (f"{instant}.{action}.requested", ""),
            (f"{instant}.deltacommit.inflight" if merge_on_read else f"{instant}.inflight", ""),
            (f"{instant}.{action}", json.dumps(_COMMIT)),
        ):
            (timeline / name).write_text(content)
    return LocalStorage(folder)


def make_listing(storage: LocalStorage, dataset: Dataset, *, logged: bool = False) -> None:
    """The metadata table with its partition `files`."""
    listing = LoggedListing(dataset) if logged else InventedListing(dataset)
    MetadataCreation(storage, TOKEN).initialize_table(listing=listing)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Numbers of rows."""

    first: int
    count: int


def make_record_index(storage: LocalStorage, entries: int, groups: int, places: int) -> None:
    """A record index of random UUIDs as keys, of rows in `places` file groups of the data table; needs `files`.

    It is made through the exchange that initializes any record index.
    """
    units = [KeyRange(first, min(_KEYS_AT_ONCE, entries - first)) for first in range(0, entries, _KEYS_AT_ONCE)]

    def fill(target: NewPartition) -> Sequence[NewBaseFile]:
        rows = RecordIndexRows(RecordGroups({None: groups}), target.schema, ZONE)
        shards = IndexShards(storage.uri, {}, target, RowsOfIndex.of(rows))
        made = LocalEngine(2).exchange(
            partial(_produce, rows, places), units, partial(write_base_shard, shards), shards=groups, run_epoch=0
        )
        return [item.file for item in made if item.file is not None]

    ids = RecordGroups({None: groups}).file_ids()
    MetadataCreation(storage, TOKEN).begin(Initialization(RECORD_INDEX, ids, fill))


def record_keys(first: int, count: int) -> list[str]:
    """The keys of some rows: random UUIDs, as text."""
    octets = np.random.default_rng(7 + first).bytes(16 * count)
    return [str(uuid.UUID(bytes=octets[at : at + 16], version=4)) for at in range(0, len(octets), 16)]


def some_record_keys(entries: int, count: int) -> list[str]:
    """`count` of the keys of a record index with so many entries, in no order."""
    keys: list[str] = []
    for first in range(0, entries, _KEYS_AT_ONCE):
        held = min(_KEYS_AT_ONCE, entries - first)
        # An equal share of every part of the index.
        share = (first + held) * count // entries - first * count // entries
        keys += Random(first).sample(record_keys(first, held), share)
    Random(count).shuffle(keys)
    return keys


def _produce(rows: RecordIndexRows, places: int, unit: KeyRange, attempt: TaskAttempt) -> Iterator[pa.RecordBatch]:
    keys = pa.array(record_keys(unit.first, unit.count), pa.string())
    place_of_row = np.random.default_rng(unit.first).integers(0, places, len(keys))
    for place in range(places):
        mine = keys.filter(pa.array(place_of_row == place))
        if len(mine):
            yield rows.came(
                _partition(place % 10), f"{uuid.UUID(int=Random(place).getrandbits(128))}-0", INSTANTS[place % 2], mine
            )


def make_column_stats(storage: LocalStorage, dataset: Dataset) -> None:
    """Statistics of COLUMNS columns of every file of a dataset, in one file group; `files` must be there."""

    def fill(target: NewPartition) -> Sequence[NewBaseFile]:
        return target.write(storage, statistics_of(dataset))

    MetadataCreation(storage, TOKEN).begin(Initialization(COLUMN_STATS, numbered_file_ids("col-stats-", 1), fill))


def statistics_of(dataset: Dataset) -> Iterator[Record]:
    """The records: ranges of longs, narrow ones in a wide domain."""
    listing = InventedListing(dataset)
    random = Random(11)
    for partition in listing.partitions():
        for info in listing.files(partition):
            file = DataFileRef(partition, info.name, info.size, is_base=True)
            for column in column_names():
                least = random.randrange(1 << 40)
                bounds = Bound("long", least), Bound("long", least + random.randrange(1 << 20))
                record = file_record(
                    file, ColumnRange(column, *bounds, random.randrange(100), 500_000, 1 << 20, 1 << 22, ValueType(0))
                )
                if record is not None:
                    yield record


def column_names() -> list[str]:
    """The columns with statistics."""
    return [f"column_{index:02d}" for index in range(COLUMNS)]


def bytes_of(storage: LocalStorage, name: str) -> dict[str, Any]:
    """The base files of a partition of the metadata table: how many, and their bytes."""
    sizes = [info.size for info in storage.list_files(f".hoodie/metadata/{name}") if info.name.endswith(".hfile")]
    return {"base_files": len(sizes), "bytes": sum(sizes)}
