"""Has real Hudi write the tables of data/column_case.tar.xz: names of columns and fields that change their case.

`python -m tests.golden.make_column_case FOLDER`; then pack the folder. Each table has two writes: an insert of a1, a2,
b1 and b2 in the partitions p and q with `Name`, `Box`, `Items` and `Attrs`, and an upsert of a1 by the same names in
small letters, from a writer that drops the columns that it lacks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.interop.real_hudi import RealHudi

VERSIONS = {"6": "0.15.0", "8": "1.0.2", "9": "1.2.0"}
KINDS = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
OPTIONS = {
    "hoodie.table.name": "cases",
    "hoodie.datasource.write.recordkey.field": "Id",
    "hoodie.datasource.write.partitionpath.field": "Part",
    "hoodie.datasource.write.precombine.field": "Ts",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
}


def row(key: str, label: str, spell: Callable[[str], str] = str) -> dict[str, Any]:
    """The row of a key in the first write (`label` o) or the second (n), its columns and fields so spelled."""
    number = int(key[1:])
    return {
        "Id": key,
        "Part": "p" if key.startswith("a") else "q",
        "Ts": 1 if label == "o" else 2,
        spell("Name"): f"{label}{key}",
        spell("Box"): {spell("Inner"): number, "Keep": f"k{label}{key}"},
        spell("Items"): [{spell("Sku"): f"s{label}{key}"}],
        spell("Attrs"): [("a", {spell("Val"): number})],
    }


def rows(keys: Sequence[str], label: str, spell: Callable[[str], str]) -> pa.Table:
    """Such rows with the types that the tables have."""
    attrs, items = spell("Attrs"), [row(key, label, spell) for key in keys]
    maps = pa.array([item.pop(attrs) for item in items], pa.map_(pa.string(), pa.struct([(spell("Val"), pa.int64())])))
    return pa.Table.from_pylist(items).append_column(attrs, maps)


def main(folder: Path) -> None:
    """Writes all of them."""
    pq.write_table(rows(["a1", "a2", "b1", "b2"], "o", str), folder / "first.parquet")
    pq.write_table(rows(["a1"], "n", str.lower), folder / "second.parquet")
    for version, release in VERSIONS.items():
        hudi = RealHudi(release)
        for name, kind in KINDS.items():
            base = str(folder / f"{name}_v{version}")
            options = {**OPTIONS, "hoodie.datasource.write.table.type": kind}
            first = {**options, "hoodie.datasource.write.operation": "insert"}
            hudi.ask("create", base=base, parquet=str(folder / "first.parquet"), options=first)
            second = {**options, "hoodie.datasource.write.operation": "upsert"}
            hudi.ask("write", base=base, operation="upsert", parquet=str(folder / "second.parquet"), options=second)
        hudi.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
