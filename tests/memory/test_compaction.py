"""A compaction's memory is bounded by its options: a file group several times larger than the budget stays within the
bound.
"""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import add_meta_fields
from hudi_core.codec.log.blocks import BlockType, HeaderKey, encode_block
from hudi_core.config.engine_config import Extent
from hudi_core.config.rows_config import WriteConfig
from hudi_core.engine.serializer import to_text
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.services.compaction.merge_slice import CompactionUnit
from hudi_core.services.engine_choice import task_memory
from hudi_core.services.rewriting.new_file_groups import NewFiles
from hudi_core.services.rewriting.slice_rows import SliceTarget
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.compaction import CompactionOperation
from tests.support.running_attempts import let_run

MIB = 1 << 20
BASE_ROWS, LOG_ROWS, LOG_FILES, TEXT = 100_000, 100_000, 10, 1500
REPEATED_ROWS, REPEATED = 4_000, 100_000
"""Rows of repeat_text, and characters of their text."""
BUDGET = 16 * MIB
ROW_GROUP = 8 * MIB
BOUND = 240 * MIB
"""The budget, batches of an eighth of it, a row group being written, pieces of a log block and the keys come to about
50 MiB here; the rest is what the allocators of Arrow, polars and glibc keep back. It does not grow with the file group:
four times the rows gave the same peak.
"""
FILE_ID, BASE = "f-0", "20260101000000000"
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "big_record",
    "fields": [
        {"name": name, "type": ["null", kind], "default": None}
        for name, kind in (("id", "string"), ("ts", "long"), ("text", "string"))
    ],
}


def digits(numbers: np.ndarray, width: int) -> np.ndarray:
    """Numbers as rows of ASCII digits."""
    return ((numbers[:, None] // 10 ** np.arange(width - 1, -1, -1)) % 10 + ord("0")).astype(np.uint8)


def keys_of(numbers: np.ndarray) -> list[str]:
    """Record keys of ten digits."""
    return [row.tobytes().decode() for row in digits(numbers, 10)]


def log_block(instant: str, numbers: np.ndarray, rng: np.random.Generator) -> bytes:
    """An Avro block of one record per number. All records are equally long, so one is encoded and the others are it
    with other bytes.
    """
    schema = add_meta_fields(SCHEMA)
    row = dict.fromkeys(field["name"] for field in schema["fields"]) | {
        "_hoodie_commit_time": instant,
        "_hoodie_commit_seqno": "s",
        "_hoodie_record_key": "K" * 10,
        "_hoodie_partition_path": "p",
        "_hoodie_file_name": FILE_ID,
        "id": "I" * 10,
        "ts": 7,
        "text": "T" * TEXT,
    }
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(json.loads(json.dumps(schema))), row)
    datum = buffer.getvalue()
    record = np.frombuffer(struct.pack(">i", len(datum)) + datum, dtype=np.uint8)
    block = np.tile(record, (len(numbers), 1))
    for letter, bytes_of in (
        (b"K" * 10, digits(numbers, 10)),
        (b"I" * 10, digits(numbers, 10)),
        (b"T" * TEXT, letters(len(numbers), rng)),
    ):
        start = datum.index(letter) + 4
        block[:, start : start + len(letter)] = bytes_of
    content = struct.pack(">ii", 3, len(numbers)) + block.tobytes()
    return encode_block(
        BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: json.dumps(schema)}, content
    )


def letters(count: int, rng: np.random.Generator) -> np.ndarray:
    """Random letters, so that nothing gets small by compression or dictionaries."""
    return rng.integers(97, 123, (count, TEXT), dtype=np.uint8)


def repeat_text(folder: Path) -> None:
    """Puts one long text into all rows of the base file of make_table, which holds it once, in a dictionary: between
    two short ones, so that no statistics tell of it.
    """
    (path,) = (folder / "p").glob("*.parquet")
    codes = pa.array([0, 2, *[1] * (REPEATED_ROWS - 2)], pa.int32())
    text = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "m" * REPEATED, "z"]))
    with pq.ParquetFile(path) as file:
        rows, schema = file.read().slice(0, REPEATED_ROWS), file.schema_arrow
    rows = rows.set_column(rows.column_names.index("text"), "text", text)
    path.unlink()  # it may be a link to another table's
    pq.write_table(rows, path, compression="none", use_dictionary=["text"], store_schema=False)
    assert path.stat().st_size < REPEATED + 300 * REPEATED_ROWS
    assert pq.read_schema(path).equals(schema)


def make_table(
    folder: Path, *, base_rows: int = BASE_ROWS, log_rows: int = LOG_ROWS, recent: bool = False
) -> CompactionUnit:
    """A base file of one row group, log files with updates and inserts, and the unit that compacts them. `recent`: 20
    row groups, of which updates meet the last two.
    """
    rng = np.random.default_rng(0)
    partition = folder / "p"
    partition.mkdir()
    base = f"{FILE_ID}_0-1-2_{BASE}.parquet"
    schema = arrow_schema(add_meta_fields(SCHEMA))
    with pq.ParquetWriter(partition / base, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, base_rows, 5000):
            count = min(5000, base_rows - start)
            text = pa.StringArray.from_buffers(
                count,
                pa.py_buffer((np.arange(count + 1) * TEXT).astype(np.int32)),
                pa.py_buffer(letters(count, rng).tobytes()),
            )
            keys = pa.array(keys_of(np.arange(start, start + count)))
            same = [pa.repeat(value, count) for value in (BASE, "s", "p", base)]
            columns = [same[0], same[1], keys, same[2], same[3], keys, pa.repeat(pa.scalar(1, pa.int64()), count), text]
            batch = pa.record_batch(columns, schema=schema)
            if recent:
                writer.write_table(pa.Table.from_batches([batch]))
            else:
                writer.write_batch(batch)
    logs = []
    for number in range(LOG_FILES):
        instant = f"2026010{number + 2}000000000"
        logs.append(f".{FILE_ID}_{BASE}.log.{number + 1}_0-1-2")
        first = BASE_ROWS - 8000 if recent else 0
        updated = first + rng.choice(BASE_ROWS + 10_000 - first, log_rows // LOG_FILES, replace=False)
        (partition / logs[-1]).write_bytes(log_block(instant, updated, rng))
    config = WriteConfig.of({"hoodie.parquet.block.size": str(ROW_GROUP)})
    requirements = StatisticsRequirements(add_meta_fields(SCHEMA), ("_hoodie_record_key", "ts", "text"), bloom=True)
    config = replace(config, parquet_codec="UNCOMPRESSED")
    files = NewFiles("20260201000000000", SCHEMA, config, sys.maxsize, as_hudi_1=False, requirements=requirements)
    committed = CommittedInstants(frozenset(), frozenset(), "20270101000000000")
    target = SliceTarget(str(folder), {}, files, committed, MergePolicy(("_hoodie_record_key",), ("ts",)))
    unit = CompactionUnit(target, CompactionOperation("p", FILE_ID, BASE, base, tuple(logs)))
    (folder / "unit.json").write_text(to_text(unit))
    let_run(LocalStorage(folder), files.instant, 0, 1)
    return unit


def run(folder: Path, budget: int) -> dict[str, Any]:
    """The probe's answer."""
    probe = Path(__file__).with_name("compaction_probe.py")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "POLARS_MAX_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(probe), str(folder), str(budget)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=env,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_memory_stays_within_the_bound_when_the_file_group_does_not(
    large_group: Callable[[Path], CompactionUnit], tmp_path: Path
) -> None:
    folder = tmp_path / "group"
    large_group(folder)
    size = sum(file.stat().st_size for file in (folder / "p").iterdir())
    done = run(folder, BUDGET)
    assert (done["records"]["base"], done["stat"]["totalLogRecords"]) == (BASE_ROWS, LOG_ROWS)
    assert done["peak"] < BOUND < (BASE_ROWS + LOG_ROWS) * TEXT
    assert done["peak"] < task_memory(
        Extent(1, size, size), WriteConfig(memory_bytes=BUDGET, row_group_bytes=ROW_GROUP)
    )


@pytest.mark.conformance
def test_the_same_work_without_spilling_is_out_of_bounds(
    large_group: Callable[[Path], CompactionUnit], tmp_path: Path
) -> None:
    """So the measurement sees what is in memory."""
    large_group(tmp_path / "group")
    tight, roomy = run(tmp_path / "group", BUDGET), run(tmp_path / "group", 1 << 30)
    assert tight["records"] == roomy["records"]
    assert roomy["peak"] > 1.4 * BOUND


@pytest.mark.conformance
def test_copied_row_groups_need_no_memory_of_their_own(tmp_path: Path) -> None:
    make_table(tmp_path, recent=True)
    done = run(tmp_path, BUDGET)
    assert done["copied"] == 18 * 5000
    assert done["stat"]["numWrites"] == BASE_ROWS + done["records"]["inserted"] > BASE_ROWS
    assert done["peak"] < BOUND


def test_a_long_text_that_is_repeated_needs_no_memory_for_each_row(tmp_path: Path) -> None:
    make_table(tmp_path, base_rows=REPEATED_ROWS, log_rows=REPEATED_ROWS)
    repeat_text(tmp_path)
    done = run(tmp_path, BUDGET)
    assert done["records"]["base"] == REPEATED_ROWS
    assert done["peak"] < BOUND < REPEATED_ROWS * REPEATED
