"""Rows to write on top of a table, and what the table must hold afterwards."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def user_columns(table: pa.Table) -> pa.Table:
    """The table without the meta columns."""
    return table.select(
        [name for name in table.column_names if not name.startswith("_hoodie_") or name == "_hoodie_is_deleted"]
    )


def upsert_rows(current: pa.Table, count: int, salt: str) -> pa.Table:
    """`count` existing rows with a new name and a later ordering value, and as many rows with new keys."""
    existing = user_columns(current.sort_by("id")).slice(0, count)
    later = pc.add(existing["ts"], pa.scalar(10_000_000, pa.int64()))
    names = pa.array([f"{salt}-{row}" for row in range(count)], pa.string())
    updated = existing.set_column(existing.column_names.index("ts"), "ts", later).set_column(
        existing.column_names.index("name"), "name", names
    )
    fresh = updated.set_column(
        updated.column_names.index("id"), "id", pc.binary_join_element_wise(salt, updated["id"], "-")
    )
    return pa.concat_tables([updated, fresh])


def after_upsert(current: pa.Table, rows: pa.Table) -> pa.Table:
    """The user columns that a table holding `current` must hold after upserting `rows`."""
    kept = user_columns(current)
    kept = kept.filter(pc.invert(pc.is_in(kept["id"], value_set=rows["id"].combine_chunks())))
    return pa.concat_tables([kept, rows.select(kept.column_names).cast(kept.schema)])


def write_parquet(table: pa.Table, folder: Path, name: str) -> str:
    """Writes the rows to a file and returns its path as text."""
    path = folder / f"{name}.parquet"
    pq.write_table(table, path)
    return str(path)
