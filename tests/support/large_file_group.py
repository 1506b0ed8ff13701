"""A file group of any size, made fast: a base file, and log files that update a tenth of its rows and add some.

As a program, reads the file group in a process of its own and prints rows, checksums and the peak of anonymous memory
as JSON. Arguments: folder, memory budget in bytes.
"""

from __future__ import annotations

import io
import json
import struct
import sys
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import add_meta_fields
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.config.table_config import TableConfig
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.model.names import FileGroupId
from hudi_core.storage.local import LocalStorage
from hudi_core.view.file_group import DataFile, FileSlice
from tests.support.peak_memory import measured

LIBRARIES = (polars,)
"""Imported before the first measurement: the engine imports polars late, and what libraries take up is no data."""
FILE_ID, BASE = "f-0", "20260101000000000"
LOG_FILES = 5
TEXT = 40
CHUNK = 100_000
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "big_record",
    "fields": [
        {"name": name, "type": ["null", kind], "default": None}
        for name, kind in (("id", "string"), ("ts", "long"), ("text", "string"))
    ],
}
FULL = add_meta_fields(SCHEMA)
PROPERTIES = {
    "hoodie.table.name": "big",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "6",
    "hoodie.table.precombine.field": "ts",
    "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}


def digits(numbers: np.ndarray, width: int) -> np.ndarray:
    """Numbers as rows of ASCII digits."""
    return ((numbers[:, None] // 10 ** np.arange(width - 1, -1, -1)) % 10 + ord("0")).astype(np.uint8)


def texts(rows: np.ndarray) -> pa.Array:
    """Rows of bytes as strings of one length."""
    count, width = rows.shape
    return pa.StringArray.from_buffers(
        count, pa.py_buffer((np.arange(count + 1) * width).astype(np.int32)), pa.py_buffer(rows.tobytes())
    )


def letters(count: int, rng: np.random.Generator) -> np.ndarray:
    """Random letters, so that nothing gets small by compression or dictionaries."""
    return rng.integers(97, 123, (count, TEXT), dtype=np.uint8)


def log_block(instant: str, numbers: np.ndarray, rng: np.random.Generator) -> bytes:
    """An Avro block of one record per number. All records are equally long, so one is encoded and the others are it
    with other bytes.
    """
    row = {field["name"]: None for field in FULL["fields"]} | {
        "_hoodie_commit_time": instant,
        "_hoodie_record_key": "K" * 10,
        "id": "I" * 10,
        "ts": 7,
        "text": "T" * TEXT,
    }
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(json.dumps(FULL))), row)
    datum = buffer.getvalue()
    block = np.tile(np.frombuffer(struct.pack(">i", len(datum)) + datum, dtype=np.uint8), (len(numbers), 1))
    for mark, values in (
        (b"K" * 10, digits(numbers, 10)),
        (b"I" * 10, digits(numbers, 10)),
        (b"T" * TEXT, letters(len(numbers), rng)),
    ):
        start = datum.index(mark) + 4
        block[:, start : start + len(mark)] = values
    content = struct.pack(">ii", 3, len(numbers)) + block.tobytes()
    return encode_block(
        BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: json.dumps(FULL)}, content
    )


def make_group(folder: Path, rows: int) -> dict[str, int]:
    """Writes the file group and returns what reading it must find: rows, updated rows, and the sum of `ts`."""
    rng = np.random.default_rng(0)
    partition = folder / "p"
    partition.mkdir()
    schema = arrow_schema(FULL)
    with pq.ParquetWriter(
        partition / f"{FILE_ID}_0-1-2_{BASE}.parquet", schema, compression="none", use_dictionary=False
    ) as writer:
        for start in range(0, rows, CHUNK):
            count = min(CHUNK, rows - start)
            keys = texts(digits(np.arange(start, start + count), 10))
            none = pa.nulls(count, pa.string())
            columns = [
                pa.repeat(BASE, count),
                none,
                keys,
                none,
                none,
                keys,
                pa.repeat(pa.scalar(1, pa.int64()), count),
                texts(letters(count, rng)),
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    share = rows // 10 // LOG_FILES
    updated = rng.choice(rows, share * LOG_FILES, replace=False)
    for number in range(LOG_FILES):
        added = np.arange(rows + number * 100, rows + number * 100 + 100)
        numbers = np.concatenate([updated[number * share : (number + 1) * share], added])
        (partition / f".{FILE_ID}_{BASE}.log.{number + 1}_0-1-2").write_bytes(
            log_block(f"2026010{number + 2}000000000", numbers, rng)
        )
    changed = share * LOG_FILES
    return {
        "rows": rows + 100 * LOG_FILES,
        "changed": changed + 100 * LOG_FILES,
        "ts": rows - changed + 7 * (changed + 100 * LOG_FILES),
    }


def read_group(folder: Path, budget: int) -> dict[str, int]:
    """Reads all columns of the file group, batch by batch, and sums up what make_group returns."""
    storage = LocalStorage(str(folder))
    committed = CommittedInstants(frozenset(), frozenset(), "20270101000000000")
    spec = ReaderSpec(
        TableConfig.of(PROPERTIES),
        SCHEMA,
        committed,
        "20260131000000000",
        merge_logs=True,
        options={"airflow_hudi.memory.bytes": str(budget)},
    )
    files = [DataFile("p", info.name, info.size) for info in storage.list_files("p")]
    logs = tuple(sorted((file for file in files if ".log." in file.name), key=lambda file: file.name))
    (base,) = (file for file in files if ".log." not in file.name)
    found = {"rows": 0, "changed": 0, "ts": 0}
    reader = SliceReader(storage, spec)
    for batch in reader.read(FileSlice(FileGroupId("p", FILE_ID), BASE, base, logs)):
        stamps = batch.column(batch.schema.get_field_index("ts"))
        found["rows"] += batch.num_rows
        found["changed"] += pc.sum(pc.equal(stamps, 7)).as_py() or 0
        found["ts"] += pc.sum(stamps).as_py() or 0
    return found


def main(folder: str, budget: int) -> None:
    """Reads the file group in the folder and prints what it took."""
    found, peak, seconds = measured(lambda: read_group(Path(folder), budget))
    print(json.dumps({**found, "peak": peak, "seconds": round(seconds, 2)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
