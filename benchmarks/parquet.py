"""Which codec and which encodings base files should have: `python -m benchmarks.parquet`.

Stores benchmarks/results/parquet.json: for five kinds of data, CPU seconds of one core to write a file, its size, and
CPU seconds to read it by pyarrow and by Spark 3.5, for every codec and choice of encodings; those of the default, and
beside the alternatives; each column by each encoding; and the same for rows per row group. Every file is read back and
compared with what was written.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from benchmarks.measure import machine, store
from benchmarks.parquet_columns import columns
from benchmarks.parquet_data import KINDS, hudi_table
from benchmarks.parquet_files import (
    ARROW,
    CODECS,
    ENCODINGS,
    Codec,
    Rows,
    check,
    default_codec,
    default_encodings,
    in_row_groups,
    read_cost,
    write,
    write_cost,
)
from benchmarks.parquet_spark import SparkReader
from benchmarks.table_copies import cache
from hudi_core.codec.parquet.writer import ParquetStyle

RESULTS = Path(__file__).parent / "results" / "parquet.json"
GROUP_ROWS: Final = (32 << 10, 128 << 10, 512 << 10)
"""Rows per row group that are tried, beside those of the whole file."""
PEERS: Final = (("gzip-pyarrow-6", ARROW), ("zstd-1", ARROW), ("zstd-1", default_encodings()))
"""What the default is compared with."""
FIGURES: Final = ("write_cpu", "mb", "read_cpu", "spark_cpu")
_WARM_ROWS: Final = 1_000


@dataclass
class Measured:
    """A way to write a table, and what it took, run by run."""

    codec: Codec
    encodings: str
    path: Path
    rows: Rows
    writes: list[float] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    spark: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Medians, rounded for storing."""
        figures = {
            "write_cpu": round(statistics.median(self.writes), 3),
            "mb": round(self.path.stat().st_size / 1e6, 3),
            "read_cpu": round(statistics.median(self.reads), 3),
        }
        if self.spark is not None:
            figures["spark_cpu"] = round(self.spark, 3)
        return {"codec": self.codec.label, "encodings": self.encodings, **figures}


def measure(ways: Sequence[Measured], runs: int, spark: SparkReader | None) -> None:
    """Writes, checks and reads the file of each way. The ways take turns, so that all see the machine alike."""
    for _ in range(runs):
        for way in ways:
            work = partial(write, rows=way.rows, codec=way.codec, encodings=way.encodings)
            way.writes.append(write_cost(way.path, work))
            check(way.path, way.rows, way.codec)
            way.reads.append(read_cost(way.path))
    if spark is not None:
        for way, cost in zip(ways, spark.costs([way.path for way in ways]), strict=True):
            way.spark = cost


def codecs_and_encodings(table: pa.Table, folder: Path, runs: int, spark: SparkReader | None) -> dict[str, Any]:
    """The figures of one kind of data."""
    rows = in_row_groups(table)
    ways = [
        Measured(codec, encodings, folder / f"{codec.label}-{encodings}.parquet", rows)
        for codec in CODECS
        for encodings in ENCODINGS
    ]
    measure(ways, runs, spark)
    settings = [way.as_json() for way in ways]
    return {
        "rows": table.num_rows,
        "arrow_mb": round(table.nbytes / 1e6, 1),
        "row_groups": len(rows.groups),
        "settings": settings,
        "default": default_beside(settings),
        "columns": columns(rows, folder, runs),
    }


def default_beside(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of the default, and as shares of those of each peer: below 1 is less."""
    by_name = {(found["codec"], found["encodings"]): found for found in settings}
    ours = by_name[default_codec().label, default_encodings()]
    return {
        **ours,
        "of": {
            f"{codec}, {encodings}": {
                name: round(ours[name] / peer[name], 3) for name in FIGURES if name in ours and peer[name]
            }
            for codec, encodings in PEERS
            for peer in [by_name[codec, encodings]]
        },
    }


def group_sizes(table: pa.Table, folder: Path, runs: int, spark: SparkReader | None) -> list[dict[str, Any]]:
    """The default codec and encodings, by rows per row group."""
    ways = [
        Measured(default_codec(), default_encodings(), folder / f"{rows}.parquet", in_row_groups(table, rows))
        for rows in (*GROUP_ROWS, table.num_rows)
    ]
    measure(ways, runs, spark)
    return [
        {
            "rows_per_group": way.rows.group_rows,
            "row_groups": len(way.rows.groups),
            "default": way.rows.group_rows == ParquetStyle().row_group_rows,
            **way.as_json(),
        }
        for way in ways
    ]


def warm(folder: Path) -> None:
    """What is imported with the first file of a codec is not to count as its cost."""
    rows = in_row_groups(hudi_table(_WARM_ROWS))
    ways = [Measured(codec, encodings, folder / "warm.parquet", rows) for codec in CODECS for encodings in ENCODINGS]
    measure(ways, 1, None)


def results(kinds: Sequence[str], rows: int, runs: int, *, with_spark: bool) -> dict[str, Any]:
    """Everything that is stored. Files lie in the cache while their kind is measured."""
    pa.set_cpu_count(1)
    cache().mkdir(parents=True, exist_ok=True)
    wheels = ("pyarrow", "isal", "deflate", "pyspark", "tpchgen-cli")
    found: dict[str, Any] = {
        "machine": machine(),
        "versions": {name: version(name) for name in wheels},
        "runs": runs,
        "default": {"codec": default_codec().label, "encodings": default_encodings()},
        "kinds": {},
    }
    with ExitStack() as stack:
        spark = stack.enter_context(SparkReader()) if with_spark else None
        with tempfile.TemporaryDirectory(dir=cache()) as folder:
            warm(Path(folder))
        for kind in kinds:
            with tempfile.TemporaryDirectory(dir=cache()) as folder:
                found["kinds"][kind] = codecs_and_encodings(KINDS[kind](rows), Path(folder), runs, spark)
        with tempfile.TemporaryDirectory(dir=cache()) as folder:
            found["rows_per_group"] = group_sizes(hudi_table(rows), Path(folder), runs, spark)
    return found


def main() -> None:
    """Measures the given kinds and stores the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each kind; below a million only to try it out")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--no-spark", action="store_true", help="leave out the cost of reading by Spark")
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    found = results(chosen.kinds.split(","), chosen.rows, chosen.runs, with_spark=not chosen.no_spark)
    store(chosen.output, found)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
