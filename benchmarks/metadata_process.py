"""One measurement of the metadata benchmark in its own process: `python -m benchmarks.metadata_process` …

The arguments are WORK FOLDER JSON. Prints a line of JSON. Times are milliseconds in this process, unless a name says
otherwise: the median of wall time, and under `cpu` the least of processor time, which other work on the machine changes
little. Each query is measured in three ways: `cold`, on a metadata table that was just opened (properties, timeline,
listing, trailer and index are read); `open`, after other queries, so that only blocks are read; `cached`, the same
query again. The operating system caches the files in all three.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import metadata_containers
from benchmarks.measure import peak_mib
from benchmarks.metadata_tables import (
    PLACES,
    Dataset,
    bytes_of,
    column_names,
    make_column_stats,
    make_listing,
    make_record_index,
    new_table,
    some_record_keys,
)
from hudi_core.codec.hashing import file_group_indexes
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.config.table_config import TableConfig
from hudi_core.metadata_table.partition_type import COLUMN_STATS, FILES_PARTITION, RECORD_INDEX
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import FileGroupId
from hudi_core.storage.base import ByteRange
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import FileSystemView

TURNS = 7
FEW_TURNS = 3
"""Of batches, each of which asks for nearly every block."""
SINGLES = 50
BATCHES = (100, 1_000, 10_000, 100_000)
WIDE = 5_000


def uncompacted_slices(view: FileSystemView, partition: str) -> list[FileSlice]:
    """The newest slice of each file group, or that which a pending compaction takes."""
    newest: dict[FileGroupId, FileSlice] = {}
    for item in view.all_slices(partition):
        compaction = view.pending.compaction_of(item.file_group)
        if compaction is None or item.base_instant < compaction:
            newest.setdefault(item.file_group, item)
    return list(newest.values())


VERBS = {
    "getAllBaseFiles": FileSystemView.all_base_files,
    "getAllFileGroups": FileSystemView.all_file_groups,
    "getAllFileSlices": FileSystemView.all_slices,
    "getLatestBaseFiles": FileSystemView.latest_base_files,
    "getLatestFileSlices": FileSystemView.latest_slices,
    "getLatestUnCompactedFileSlices": uncompacted_slices,
}


def milliseconds(work: Callable[[], object]) -> float:
    """The wall time of one call."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


class Turns:
    """The times of a query by the way it was run."""

    def __init__(self) -> None:
        self._wall: dict[str, list[float]] = {}
        self._cpu: dict[str, list[float]] = {}

    def take(self, name: str, work: Callable[[], object]) -> None:
        """Runs the query once."""
        started = time.process_time()
        wall = milliseconds(work)
        self._cpu.setdefault(name, []).append((time.process_time() - started) * 1000)
        self._wall.setdefault(name, []).append(wall)

    def figures(self, per: float = 1, *, cpu: Callable[[list[float]], float] = min) -> dict[str, Any]:
        """Milliseconds, divided by `per`, rounded for storing.

        `cpu` is the median where it was another question each time.
        """
        walls = {name: round(statistics.median(times) / per, 3) for name, times in self._wall.items()}
        return {**walls, "cpu": {name: round(cpu(times) / per, 3) for name, times in self._cpu.items()}}


def middle(times: Sequence[float]) -> float:
    """The median, rounded for storing."""
    return round(statistics.median(times), 3)


class Opened:
    """A table and what opens its metadata table again.

    The data table's own timeline is read once, as a query has it anyway.
    """

    def __init__(self, folder: Path) -> None:
        self.storage = LocalStorage(folder)
        self.config = TableConfig.load(self.storage)
        self.timeline = ActiveTimeline(self.storage, self.config).load()

    def table(self) -> MetadataTable:
        """A metadata table of which nothing was read."""
        return MetadataTable(self.storage, self.config, self.timeline)

    def view(self, table: MetadataTable) -> FileSystemView:
        """A view over its listing."""
        return FileSystemView(table, self.timeline)

    def three(
        self, ask: Callable[[MetadataTable], object], between: Callable[[MetadataTable], object]
    ) -> dict[str, Any]:
        """The figures of a query cold, opened before and cached; `between` queries other blocks."""
        turns = Turns()
        for _ in range(TURNS):
            table = self.table()
            turns.take("cold", partial(ask, table))
            between(table)
            turns.take("open", partial(ask, table))
            turns.take("cached", partial(ask, table))
        return turns.figures()


def create(folder: Path, requested: dict[str, Any]) -> dict[str, Any]:
    """Makes a metadata table with `files` and `partitions`, and the requested records.

    `entries` and `groups`, or `statistics`.
    """
    dataset = Dataset(requested["files"], requested["partitions"])
    started, cpu = time.perf_counter(), time.process_time()
    storage = new_table(folder)
    make_listing(storage, dataset)
    made = FILES_PARTITION
    if "entries" in requested:
        started, cpu, made = time.perf_counter(), time.process_time(), RECORD_INDEX
        make_record_index(storage, requested["entries"], requested["groups"], requested.get("places", PLACES))
    if requested.get("statistics"):
        started, cpu, made = time.perf_counter(), time.process_time(), COLUMN_STATS
        make_column_stats(storage, dataset)
    return {
        "seconds": round(time.perf_counter() - started, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        **bytes_of(storage, made),
    }


def listing(folder: Path, requested: dict[str, Any]) -> dict[str, Any]:
    """All partitions, and the files of one: the middle one by name; asked between are partitions at the two ends."""
    metadata_snapshot = Opened(folder)
    names = metadata_snapshot.table().partitions()
    name, others = names[len(names) // 2], (names[0], names[-1])

    def between(table: MetadataTable) -> None:
        for other in others:
            table.list_files(other)

    found = len(metadata_snapshot.table().list_files(name))
    if len(names) != requested["partitions"] or found not in (
        requested["files"] // requested["partitions"] + add for add in (0, 1)
    ):
        raise RuntimeError(f"{len(names)} partitions, {found} files in {name}: not what was made")
    return {
        "files_of_the_partition": found,
        "all_partitions": metadata_snapshot.three(MetadataTable.partitions, between),
        "files_in_partition": metadata_snapshot.three(lambda table: table.list_files(name), between),
    }


def verbs(folder: Path, requested: dict[str, Any]) -> dict[str, Any]:
    """The verbs of a file-system view over one partition.

    `cold`: the metadata table is opened for it; `open`: a new view over an open one; `cached`: the same view again.
    """
    metadata_snapshot = Opened(folder)
    names = metadata_snapshot.table().partitions()
    name = names[len(names) // 2]
    found: dict[str, Any] = {}
    for verb, ask in VERBS.items():
        turns = Turns()
        for _ in range(TURNS):
            table = metadata_snapshot.table()
            turns.take("cold", lambda table=table, ask=ask: ask(metadata_snapshot.view(table), name))  # type: ignore[misc]
            table.list_files(names[0])
            view = metadata_snapshot.view(table)
            turns.take("open", lambda view=view, ask=ask: ask(view, name))  # type: ignore[misc]
            turns.take("cached", lambda view=view, ask=ask: ask(view, name))  # type: ignore[misc]
        found[verb] = turns.figures()
    return found


def keys(folder: Path, requested: dict[str, Any]) -> dict[str, Any]:
    """Record keys singly and batched, all present, in one file group: blocks as creation makes them, of 1 MiB."""
    entries = requested["entries"]
    metadata_snapshot = Opened(folder)
    sample = some_record_keys(entries, min(BATCHES[-1], entries // 10))
    stored = bytes_of(metadata_snapshot.storage, RECORD_INDEX)
    single = Turns()
    for _ in range(TURNS):
        single.take("cold", partial(metadata_snapshot.table().record_locations, sample[:1]))
    table = metadata_snapshot.table()
    table.record_locations(sample[:1])
    for key in sample[:SINGLES]:
        single.take("open", partial(table.record_locations, [key]))
    for _ in range(TURNS):
        single.take("cached", partial(table.record_locations, [sample[SINGLES - 1]]))
    batched: dict[str, Any] = {}
    for count in BATCHES:
        batch = sample[:count]
        if len(batch) == count:
            batched[str(count)] = _batch(metadata_snapshot, table, batch)
    return {
        "entries": entries,
        "bytes_per_mapping": round(stored["bytes"] / entries, 2),
        "every_block": _every_block(metadata_snapshot),
        "single_us": single.figures(1 / 1000, cpu=statistics.median),
        "batched_us_per_key": batched,
    }


def _every_block(metadata_snapshot: Opened) -> dict[str, Any]:
    """The cost of reading and inflating all blocks and of cutting them into cells: the floor of a batch over all."""
    info = next(
        info
        for info in metadata_snapshot.storage.list_files(f".hoodie/metadata/{RECORD_INDEX}")
        if info.name.endswith(".hfile")
    )
    reader = HFileReader(
        lambda start, length: metadata_snapshot.storage.read_range(info.path, ByteRange(start, length)),
        info.size,
        info.path,
    )
    turns = Turns()
    for _ in range(FEW_TURNS):
        turns.take("ms", lambda: sum(map(len, reader.blocks())))
    return {"blocks": reader.trailer.data_index_count, **turns.figures()}


def _batch(metadata_snapshot: Opened, table: MetadataTable, batch: list[str]) -> dict[str, Any]:
    """Microseconds per key. There is no cached: one block is kept, and a batch needs many."""
    if len(table.record_locations(batch)) != len(batch):
        raise RuntimeError("a key of the record index was not found")
    turns = Turns()
    for _ in range(FEW_TURNS):
        turns.take("cold", partial(metadata_snapshot.table().record_locations, batch))
        turns.take("open", partial(table.record_locations, batch))
    return turns.figures(len(batch) / 1000)


def groups(folder: Path, requested: dict[str, Any]) -> dict[str, Any]:
    """M keys over N file groups against RFC-8's model K + M/N times the cost of a key.

    K is the time to open a group, for one key. `widest_group_ms`: the slowest of the N queries that N executors would
    run in parallel, each of a group just opened; `one_process_ms`: all of them one after the other, as a reader of a
    near storage does.
    """
    entries, count = requested["entries"], requested["groups"]
    metadata_snapshot = Opened(folder)
    sample = some_record_keys(entries, min(BATCHES[-1], entries // 10))
    found: dict[str, Any] = {"entries": entries, "groups": count}
    one = [
        milliseconds(partial(metadata_snapshot.table().record_locations, sample[index : index + 1]))
        for index in range(TURNS)
    ]
    for asked_for in BATCHES:
        batch = sample[:asked_for]
        if len(batch) < asked_for:
            continue
        whole, by_group = Turns(), _by_group(batch, count)
        widest = []
        for _ in range(FEW_TURNS):
            whole.take("one_process_ms", partial(metadata_snapshot.table().record_locations, batch))
            widest.append(
                max(milliseconds(partial(metadata_snapshot.table().record_locations, part)) for part in by_group)
            )
        found[str(asked_for)] = {
            **whole.figures(),
            "widest_group_ms": middle(widest),
            "keys_of_the_widest": max(map(len, by_group)),
        }
    return {**found, "open_for_one_key_ms": middle(one)}


def _by_group(batch: list[str], count: int) -> list[list[str]]:
    parts: dict[int, list[str]] = {}
    for key, group in zip(batch, file_group_indexes(batch, count).tolist(), strict=True):
        parts.setdefault(group, []).append(key)
    return list(parts.values())


def ranges(folder: Path, requested: dict[str, Any]) -> dict[str, Any]:
    """The statistics of one column, a row for each file.

    Of 10 and of 5,000 files, by name or from anywhere; of all files by the column's prefix.
    """
    metadata_snapshot = Opened(folder)
    column, other = column_names()[0], column_names()[-1]
    table = metadata_snapshot.table()
    partitions = table.partitions()
    files = {name: sorted(table.list_files(name)) for name in partitions}
    every = [(partition, name) for partition, names in files.items() for name in names]
    found: dict[str, Any] = {
        **bytes_of(metadata_snapshot.storage, COLUMN_STATS),
        "rows": len(every) * len(column_names()),
    }
    for title, chosen in {
        "10_rows_ms": _grouped(every[:10]),
        f"{WIDE}_rows_ms": _grouped(every[:WIDE]),
        "10_rows_anywhere_ms": _grouped(Random(10).sample(every, 10)),
        f"{WIDE}_rows_anywhere_ms": _grouped(Random(WIDE).sample(every, min(WIDE, len(every)))),
    }.items():
        found[title] = metadata_snapshot.three(
            lambda table, chosen=chosen: _rows(
                table.column_stats([column], files=chosen)[column].num_rows, sum(map(len, chosen.values()))
            ),  # type: ignore[misc]
            lambda table: table.column_stats([other], files={partitions[-1]: files[partitions[-1]][-1:]}),
        )
    found["whole_column_ms"] = metadata_snapshot.three(
        lambda table: _rows(table.column_stats([column])[column].num_rows, len(every)),
        lambda table: table.column_stats([other], files={partitions[-1]: files[partitions[-1]][-1:]}),
    )
    return found


def _grouped(chosen: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Files by their partition."""
    found: dict[str, list[str]] = {}
    for partition, name in chosen:
        found.setdefault(partition, []).append(name)
    return found


def _rows(found: int, requested: int) -> None:
    if found != requested:
        raise RuntimeError(f"{found} rows of statistics were found, not {requested}")


def trade_off(folder: Path, requested: dict[str, Any]) -> dict[str, Any]:
    """The same records in an HFile and in Parquet: made, or asked of one container."""
    if "container" in requested:
        return metadata_containers.ask(folder, requested["container"])
    return metadata_containers.make(folder, Dataset(requested["files"], requested["partitions"]))


WORK = {
    "create": create,
    "listing": listing,
    "verbs": verbs,
    "keys": keys,
    "groups": groups,
    "ranges": ranges,
    "containers": trade_off,
}

if __name__ == "__main__":
    answer = WORK[sys.argv[1]](Path(sys.argv[2]), json.loads(sys.argv[3]))
    print(json.dumps({**answer, "peak_mib": peak_mib(os.getpid())}))
