"""Whether row groups crumble if a base file is compacted often: `python -m benchmarks.row_groups` compacts a base file
of real Hudi 100 times. Stores benchmarks/results/row_groups.json.

Each time some random keys of the file are touched, as by log records: row groups and pieces without one are copied,
other rows are decoded and written (services/rewriting/row_group_copies.py). After some rounds: rows of each row group,
bytes of the file, CPU seconds of a read of all columns, and the share of rows that the round copied. Beside it the file
as a rewrite of all rows makes it.
"""

from __future__ import annotations

import argparse
import io
import random
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.compaction_cases import Case
from benchmarks.measure import head_commit, machine, store
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.splice import RowGroupSource, WholeRowGroup
from hudi_core.codec.parquet.writer import BaseFileWriter, ParquetStyle
from hudi_core.config.rows_config import WriteConfig
from hudi_core.model.names import FILE_NAME, RECORD_KEY
from hudi_core.services.rewriting.row_group_copies import CopyPlan

RESULTS = Path(__file__).parent / "results" / "row_groups.json"
TOUCHED = (1, 3, 20)
SHOWN = (1, 2, 5, 10, 20, 50, 100)


def compacted(data: bytes, keys: pa.Array, *, copies: bool) -> tuple[bytes, int]:
    """The file anew with these keys touched, and how many rows were copied."""
    out, copied = io.BytesIO(), 0
    with ParquetBaseFile(io.BytesIO(data), "base.parquet") as base:
        codec = base.compression or "GZIP"
        source = RowGroupSource(base)
        writer = BaseFileWriter(out, base.schema, path="new.parquet", style=ParquetStyle(codec))
        refusal = source.refusal(base.schema)
        assert refusal is None, refusal
        plan = CopyPlan(source, keys, WriteConfig.of({}), codec if copies else "none", with_keys=False)
        for part in plan.parts():
            if part.copied:
                rows = part.piece or WholeRowGroup(source, part.numbers[0])
                writer.copy(rows, {FILE_NAME: pa.repeat("new.parquet", rows.num_rows)})
                copied += rows.num_rows
                continue
            with nullcontext(base) if part.piece is None else part.piece.file() as file:
                names = [name for name in base.schema.names if name != FILE_NAME]
                for batch in file.batches(names, row_groups=part.numbers if part.piece is None else None):
                    columns = [
                        batch.column(name) if name != FILE_NAME else pa.repeat("new.parquet", batch.num_rows)
                        for name in base.schema.names
                    ]
                    writer.write(pa.RecordBatch.from_arrays(columns, schema=base.schema))
        writer.close(base.footer)
    return out.getvalue(), copied


def figures(data: bytes) -> dict[str, Any]:
    """Of a file: its row groups, its bytes, and what reading it takes."""
    with ParquetBaseFile(io.BytesIO(data), "base.parquet") as file:
        rows = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
        started = time.process_time()
        assert sum(batch.num_rows for batch in file.batches()) == sum(rows)
        seconds = time.process_time() - started
    return {
        "row_groups": len(rows),
        "least_rows": min(rows),
        "median_rows": int(np.median(rows)),
        "bytes": len(data),
        "read_cpu": round(seconds, 3),
    }


def main() -> None:
    """Compacts the file again and again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1m", help="of the table whose largest base file is taken")
    parser.add_argument("--rounds", type=int, default=max(SHOWN))
    given = parser.parse_args()
    first = max(Case(given.size).table().glob("*/*.parquet"), key=lambda path: path.stat().st_size).read_bytes()
    with ParquetBaseFile(io.BytesIO(first), "base.parquet") as file:
        keys = pa.concat_arrays([batch.column(0) for batch in file.batches([RECORD_KEY])])
    whole, _ = compacted(first, keys[:0], copies=False)
    results: dict[str, Any] = {"rows": len(keys), "first": figures(first), "rewritten": figures(whole)}
    for count in TOUCHED:
        dice, data, rounds = random.Random(count), first, {}
        for number in range(1, given.rounds + 1):
            touched = keys.take(pa.array(dice.sample(range(len(keys)), count)))
            data, copied = compacted(data, touched, copies=True)
            if number in SHOWN:
                rounds[number] = {**figures(data), "copied": round(copied / len(keys), 3)}
                print(count, number, rounds[number], flush=True)
        results[f"{count} keys touched"] = rounds
    store(RESULTS, {"machine": machine(), "commit": head_commit(), **results})


if __name__ == "__main__":
    main()
