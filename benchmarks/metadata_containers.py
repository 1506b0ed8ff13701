"""The same statistics in an HFile and in Parquet files, and what asking them costs: the trade-off of RFC-27.

The HFile is what the metadata table has: sorted by key, blocks of 1 MiB, GZ. The Parquet files hold the fields as
columns, sorted by the same key, so that row groups can be passed over by their bounds; gzip like the HFile, and zstd.
Answers are what a reader of statistics needs: names, bounds and counts; for the HFile they are decoded by the code that
reads the metadata table.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.metadata_tables import Dataset, statistics_of
from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.hfile.writer import HFileWriter
from hudi_core.config.versions import V6
from hudi_core.metadata_table.read.statistics import RUN, StatColumns
from hudi_core.metadata_table.record import RecordEncoder, stored_schema

KEYS = "keys.arrow"
HFILE = "statistics.hfile"
PARQUET = {"gzip": "gzip.parquet", "zstd": "zstd.parquet"}
ROW_GROUP = 10_000
FEW, WIDE = 10, 5_000
TURNS = 5
_COLUMNS = ("key", "fileName", "columnName", "minValue", "maxValue", "nullCount", "valueCount", "isTightBound")


def make(folder: Path, dataset: Dataset) -> dict[str, Any]:
    """Writes all three files; returns their sizes in bytes."""
    folder.mkdir(parents=True)
    records = sorted(
        ((key.encode(), datum) for key, datum in statistics_of(dataset) if isinstance(datum, Mapping)),
        key=lambda record: record[0],
    )
    encoder = RecordEncoder(stored_schema(V6))
    with (folder / HFILE).open("wb") as out:
        writer = HFileWriter(out)
        for key, datum in records:
            writer.add(key, encoder.value(datum))
        writer.finish(encoder.schema, {}, {})
    table = _columns(records)
    with pa.ipc.new_file(folder / KEYS, pa.schema([table.schema.field("key")])) as keys:
        keys.write_table(table.select(["key"]))
    for codec, name in PARQUET.items():
        level = {"gzip": 6, "zstd": 3}[codec]
        pq.write_table(
            table,
            folder / name,
            compression=codec,
            compression_level=level,
            row_group_size=ROW_GROUP,
            use_dictionary=["columnName"],
        )
    return {
        "rows": len(records),
        "bytes": {name: (folder / name).stat().st_size for name in (HFILE, *PARQUET.values())},
    }


def _columns(records: Sequence[tuple[bytes, Any]]) -> pa.Table:
    bodies = [datum["ColumnStatsMetadata"] for _, datum in records]
    plain = {name: [body[name] for body in bodies] for name in _COLUMNS[1:] if name not in ("minValue", "maxValue")}
    bounds = {name: pa.array([_number(body[name]) for body in bodies], pa.int64()) for name in ("minValue", "maxValue")}
    sizes = {name: [body[name] for body in bodies] for name in ("totalSize", "totalUncompressedSize", "isDeleted")}
    return pa.table({"key": pa.array([key for key, _ in records], pa.binary()), **plain, **bounds, **sizes})


def _number(wrapped: Any) -> int:
    """The long in a branch of the union: (name of the record, its fields)."""
    fields = wrapped[1] if isinstance(wrapped, tuple) else wrapped
    return int(fields["value"])


def ask(folder: Path, container: str) -> dict[str, Any]:
    """Wall milliseconds of each question (the median) and of processor time (the least), the file opened again for it.

    `container` is hfile, gzip or zstd.
    """
    keys = [key.as_py() for key in pa.ipc.open_file(folder / KEYS).read_all().column("key")]
    few, some = (sorted(Random(count).sample(keys, min(count, len(keys)))) for count in (FEW, WIDE))
    first = len(keys) // 3
    near = keys[first : first + WIDE]
    path = folder / HFILE if container == "hfile" else folder / PARQUET[container]
    look = _of_hfile if container == "hfile" else _of_parquet
    questions = {
        "full_scan": (None, len(keys)),
        "10_rows": (few, len(few)),
        "5k_rows_in_a_range": (near, len(near)),
        "5k_rows_anywhere": (some, len(some)),
    }
    found: dict[str, float] = {}
    for name, (requested, rows) in questions.items():
        taken, worked = [], []
        for _ in range(TURNS):
            started, work = time.perf_counter(), time.process_time()
            answer = look(path, requested)
            taken.append((time.perf_counter() - started) * 1000)
            worked.append((time.process_time() - work) * 1000)
            if answer.num_rows != rows:
                raise RuntimeError(f"{container}: {answer.num_rows} rows for {name}, not {rows}")
        found |= {f"{name}_ms": round(statistics.median(taken), 2), f"{name}_cpu_ms": round(min(worked), 2)}
    return {"rows": len(keys), "bytes": path.stat().st_size, **found}


def _of_hfile(path: Path, requested: Sequence[bytes] | None) -> pa.Table:
    how = StatColumns(pa.int64(), "us")
    with path.open("rb") as file:

        def read(offset: int, length: int) -> bytes:
            file.seek(offset)
            return file.read(length)

        reader = HFileReader(read, path.stat().st_size, path.name)
        cells = iter(reader.items() if requested is None else reader.lookup_many(requested))
        tables = []
        while run := list(islice(cells, RUN)):
            tables.append(
                how.of_cells(
                    reader.schema() or stored_schema(V6),
                    [key for key, _ in run],
                    [value for _, value in run],
                    path=path.name,
                )
            )
        return pa.concat_tables(tables)


def _of_parquet(path: Path, requested: Sequence[bytes] | None) -> pa.Table:
    """The rows of the wanted keys, by the row groups whose bounds let one of them in. One thread, as for the HFile."""
    with pq.ParquetFile(path) as file:
        if requested is None:
            return file.read(columns=list(_COLUMNS), use_threads=False)
        metadata = file.metadata
        groups = []
        at = 0
        for group in range(metadata.num_row_groups):
            bounds = metadata.row_group(group).column(0).statistics
            while at < len(requested) and requested[at] < bounds.min:
                at += 1
            if at < len(requested) and requested[at] <= bounds.max:
                groups.append(group)
        table = file.read_row_groups(groups, columns=list(_COLUMNS), use_threads=False)
    return table.filter(pc.is_in(table["key"], pa.array(requested, pa.binary())))
