"""A column that a table gained with a default other than null: what older rows have in it, read and compacted."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.timeline.actions.commit import SCHEMA_KEY, encode_commit, encode_commit_avro
from tests.interop.changes import write_parquet
from tests.interop.judged import JUDGES, MOR, Judged, first_rows
from tests.interop.real_hudi import RealHudi
from tests.support.changed_tables import open_context
from tests.support.table_invariants import read_rows

pytestmark = [pytest.mark.hudi, pytest.mark.slow, pytest.mark.conformance]

NEW = {"count": {"type": ["int", "null"], "default": 7}, "word": {"type": ["string", "null"], "default": "none yet"}}
IN_BASE, IN_LOG, WRITTEN, NULL = "key-0000", "key-0001", "key-0002", "key-0003"
DEFAULTS, NULLS = (7, "none yet"), (None, None)


def give_defaults(table: Path) -> None:
    """Puts the defaults into the latest commit's schema, where a writer with a schema of its own has them."""
    active = open_context(table).active
    item = active.load().commits().last()
    assert item is not None
    metadata = active.read_commit(item)
    schema = json.loads(metadata.schema_text or "")
    schema["fields"] = [{**entry, **NEW.get(entry["name"], {})} for entry in schema["fields"]]
    changed = replace(metadata, extra_metadata={**metadata.extra_metadata, SCHEMA_KEY: json.dumps(schema)})
    path = table / active.path_of(item)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    path.write_bytes((encode_commit if active.layout == 1 else encode_commit_avro)(changed))


def values(rows: pa.Table) -> dict[str, tuple[Any, ...]]:
    """Of the new columns, by key."""
    columns = (rows.column(name).to_pylist() for name in NEW)
    return dict(zip(rows.column("id").to_pylist(), zip(*columns, strict=True), strict=True))


def compacted(table: Path, instant: str) -> dict[str, tuple[Any, ...]]:
    (path,) = (path for path in table.glob(f"*/*_{instant}.parquet"))
    return values(pq.ParquetFile(path).read())


@pytest.mark.parametrize("version", ["6", "9"])
def test_rows_of_before(request: pytest.FixtureRequest, tmp_path: Path, version: str) -> None:
    """Log records have the default, in queries and once compacted, and rows of base files null, as 1.2.0 has them. Of
    a compaction of 0.15 alone these have the default too, although its queries said null.
    """
    hudi: RealHudi = request.getfixturevalue(JUDGES[version])
    rows = first_rows(4)
    rows = rows.set_column(rows.column_names.index("dt"), "dt", pa.repeat("2024-01-01", 4))
    table = Judged.create(hudi, tmp_path / "table", MOR, version, rows=rows)
    later = rows.set_column(rows.column_names.index("ts"), "ts", pa.repeat(pa.scalar(10**6, pa.int64()), 4))
    wide = later.slice(2).append_column("count", pa.array([1, None], pa.int32()))
    for number, written in enumerate((later.slice(1, 1), wide.append_column("word", pa.array(["x", None])))):
        parquet = write_parquet(written, tmp_path, f"rows-{number}")
        hudi.ask("write", base=str(table.base), operation="upsert", parquet=parquet, options=table.options)
    give_defaults(table.base)
    due = {IN_BASE: NULLS, IN_LOG: DEFAULTS, WRITTEN: (1, "x"), NULL: NULLS}
    assert values(read_rows(table.base)) == due
    if version == "6":  # 1.2.0 does not read such a table: it puts null first in the union, but keeps the default
        assert values(hudi.snapshot(table.base, metadata=True)) == due
    instant = hudi.ask("schedule_compaction", base=str(table.base), options=table.options)
    ours = Path(shutil.copytree(table.base, tmp_path / "ours"))
    hudi.ask("compact", base=str(table.base), instant=instant, options=table.options)
    assert compacted(table.base, instant) == {**due, IN_BASE: DEFAULTS if version == "6" else NULLS}
    Judged(hudi, ours, rows, table.options).run(
        service="compaction", instant=instant, options={"airflow_hudi.verify": "full"}
    )
    assert compacted(ours, instant) == values(read_rows(ours)) == due
