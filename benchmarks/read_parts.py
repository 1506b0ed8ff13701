"""The parts of a read, measured in this process: HFile point lookups, decoding of log blocks, opening of timelines."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.codec.avro.arrow import arrow_schema, decode_records
from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.writer import write_hfile
from hudi_core.codec.log.content import avro_block_records, encode_avro_block
from hudi_core.history.archived import load_history
from hudi_core.table import HudiTable

PLAIN = {
    "type": "record",
    "name": "plain",
    "fields": [
        *(
            {"name": name, "type": ["null", "string"], "default": None}
            for name in ("_hoodie_commit_time", "_hoodie_record_key", "name", "text")
        ),
        *({"name": name, "type": ["null", "long"], "default": None} for name in ("ts", "a")),
        {"name": "b", "type": ["null", "double"], "default": None},
        {"name": "flag", "type": ["null", "boolean"], "default": None},
    ],
}
PROPERTIES = (
    "hoodie.table.name=long\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version={version}\nhoodie.timeline.layout.version={layout}\n"
    "hoodie.table.recordkey.fields=id\nhoodie.populate.meta.fields=true\n"
)


def seconds_of(work: Callable[[], object], turns: int) -> float:
    """The median of some runs, in CPU seconds of this process."""
    taken = []
    for _ in range(turns):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return statistics.median(taken)


class Counted:
    """A file's ranges, and how many of them and of its bytes were read."""

    def __init__(self, path: Path) -> None:
        self.size = path.stat().st_size
        self.reads = self.bytes = 0
        self._file = path.open("rb")

    def __call__(self, offset: int, length: int) -> bytes:
        self.reads += 1
        self.bytes += length
        self._file.seek(offset)
        return self._file.read(length)

    def reader(self) -> HFileReader:
        """A reader that has read nothing."""
        return HFileReader(self, self.size, "benchmark")


def lookups(scratch: Path, entries: int, block_kib: int) -> dict[str, Any]:
    """Point lookups in a gzip HFile of record-index size: keys of 20 bytes, values of 60.

    Hudi's blocks have 1 MiB, HBase's 64 KiB.
    """
    path = scratch / f"{block_kib}-{entries}.hfile"
    if not path.is_file():
        items = ((b"key-%016d" % index, (b"%012d" % index) * 5) for index in range(entries))
        path.write_bytes(write_hfile(items, schema='"bytes"', block_size=block_kib << 10))
    random = Random(7)
    keys = [b"key-%016d" % random.randrange(entries) for _ in range(100_000)]

    def cold() -> None:
        assert list(Counted(path).reader().lookup_many(keys[:1]))

    cold_source = Counted(path)
    list(cold_source.reader().lookup_many(keys[:1]))
    opened_source = Counted(path)
    metadata_snapshot = opened_source.reader()
    list(metadata_snapshot.lookup_many(keys[:1]))
    opened_source.reads = opened_source.bytes = 0
    single = keys[:300]
    single_seconds = seconds_of(lambda: [list(metadata_snapshot.lookup_many([key])) for key in single], 3)
    single_bytes = opened_source.bytes // (3 * len(single))
    batches = {}
    for count in (100, 1_000, 10_000, 100_000):
        batch = sorted(set(keys[:count]))
        opened_source.bytes = 0
        seconds = seconds_of(lambda batch=batch: list(metadata_snapshot.lookup_many(batch)), 3)  # type: ignore[misc]
        assert len(list(metadata_snapshot.lookup_many(batch))) == len(batch)
        batches[str(count)] = {
            "us_per_key": round(seconds / len(batch) * 1e6, 2),
            "bytes_per_key": opened_source.bytes // (4 * len(batch)),
        }
    return {
        "entries": entries,
        "file_mib": round(path.stat().st_size / 2**20, 1),
        "cold": {"us": round(seconds_of(cold, 5) * 1e6, 1), "bytes": cold_source.bytes, "reads": cold_source.reads},
        "open_single": {"us_per_key": round(single_seconds / len(single) * 1e6, 1), "bytes_per_key": single_bytes},
        "open_batched": batches,
    }


def log_decode(records: int) -> dict[str, Any]:
    """Decoding an Avro log block of eight plain columns to Arrow, on one core, by both routes."""
    codec = DatumCodec(PLAIN)
    datum = [
        codec.encode(
            {
                "_hoodie_commit_time": "20260101000000000",
                "_hoodie_record_key": f"key-{index:012d}",
                "name": f"name-{index % 5000}",
                "text": f"text of the record {index * 7919 % 100_003}",
                "ts": 1_700_000_000_000 + index,
                "a": index * 31,
                "b": index / 7,
                "flag": index % 3 == 0,
            }
        )
        for index in range(min(records, 20_000))
    ]
    content = encode_avro_block([datum[index % len(datum)] for index in range(records)])
    schema = arrow_schema(PLAIN)
    found: dict[str, Any] = {"records": records, "bytes_per_record": len(content) // records}
    pa.set_cpu_count(1)
    for route in ("polars", "fastavro"):

        def decode(route: str = route) -> None:
            count, body = avro_block_records(content, path="benchmark")
            assert decode_records(body, count, PLAIN, schema, path="benchmark", route=route).num_rows == records  # type: ignore[arg-type]

        decode()
        started = time.perf_counter()
        cpu = seconds_of(decode, 3)
        found[route] = {
            "records_per_cpu_second": round(records / cpu),
            "wall_per_cpu": round((time.perf_counter() - started) / (3 * cpu), 2),
        }
    return found


def instant(index: int) -> str:
    """The index-th instant of a timeline, a second apart."""
    day = f"2026{1 + index // 2_332_800:02d}{1 + index // 86_400 % 27:02d}"
    return f"{day}{index // 3600 % 24:02d}{index // 60 % 60:02d}{index % 60:02d}000"


def long_timeline(scratch: Path, layout: int, active: int, archived: int) -> Path:
    """A table with only a timeline: `active` completed commits, and in layout 2 `archived` ones in the history."""
    table = scratch / f"timeline-{layout}-{active}-{archived}"
    if table.is_dir():
        return table
    fresh = table.with_suffix(".tmp")
    folder = fresh / ".hoodie" if layout == 1 else fresh / ".hoodie" / "timeline"
    folder.mkdir(parents=True)
    (fresh / ".hoodie" / "hoodie.properties").write_text(
        PROPERTIES.format(version=6 if layout == 1 else 9, layout=layout)
    )
    for index in range(archived, archived + active):
        time_ = instant(index)
        completed = f"{time_}.commit" if layout == 1 else f"{time_}_{instant(index + 1)}.commit"
        for name in (f"{time_}.commit.requested", f"{time_}.inflight", completed):
            (folder / name).write_bytes(b"{}" if name == completed else b"")
    if archived:
        _archive(folder / "history", archived)
    fresh.rename(table)
    return table


def _archive(history: Path, archived: int) -> None:
    """The files of LSMTimeline: ten thousand instants each, sorted by requested time."""
    history.mkdir()
    names = []
    for first in range(0, archived, 10_000):
        last = min(first + 10_000, archived)
        columns = {
            "instantTime": [instant(index) for index in range(first, last)],
            "completionTime": [instant(index + 1) for index in range(first, last)],
            "action": ["commit"] * (last - first),
            "metadata": [b"{}" * 200] * (last - first),
            "plan": [b""] * (last - first),
            "version": [1] * (last - first),
        }
        names.append(f"{instant(first)}_{instant(last - 1)}_1.parquet")
        pq.write_table(pa.table(columns), history / names[-1])
    (history / "manifest_1").write_text(
        json.dumps({"files": [{"fileName": name, "fileLen": (history / name).stat().st_size} for name in names]})
    )
    (history / "_version_").write_text("1")


def openings(scratch: Path, active: int, archived: int, turns: int = 9) -> dict[str, Any]:
    """Wall and CPU milliseconds from the address to a loaded timeline, medians of some runs after a first one."""
    found: dict[str, Any] = {}
    for name, layout, count in (("layout_1", 1, 0), ("layout_2", 2, 0), ("layout_2_archived", 2, archived)):
        table = long_timeline(scratch, layout, active, count)
        walls, cpus = [], []
        for _ in range(turns + 1):
            started, cpu = time.perf_counter(), time.process_time()
            assert len(HudiTable.open(str(table)).timeline()) == active
            walls.append((time.perf_counter() - started) * 1000)
            cpus.append((time.process_time() - cpu) * 1000)
        middle = {"ms": round(statistics.median(walls[1:]), 1), "cpu_ms": round(statistics.median(cpus[1:]), 1)}
        found[name] = {"active": active, "archived": count, **middle}
    metadata_snapshot = HudiTable.open(str(table))
    started = time.perf_counter()
    context = metadata_snapshot.context
    assert len(load_history(context.storage, context.config).instants()) == archived
    found["listing_all_archived_ms"] = round((time.perf_counter() - started) * 1000, 1)
    return found


def pruned(queries: Sequence[tuple[str, Path, str]]) -> list[dict[str, Any]]:
    """For each query, the base and log files that are opened and those that the predicate rules out."""
    found = []
    for name, table, where in queries:
        metadata_snapshot = HudiTable.open(str(table))
        started = time.perf_counter()
        plan = metadata_snapshot.plan(where=where)
        rows = sum(batch.num_rows for batch in plan.batches())
        seconds = time.perf_counter() - started
        everything = metadata_snapshot.plan()
        found.append(
            {
                "table": name,
                "where": where,
                "files": everything.files_read,
                "files_opened": plan.files_read,
                "files_pruned": plan.files_pruned,
                "rows": rows,
                "ms": round(seconds * 1000, 1),
            }
        )
    return found
