"""Tables of very many file groups with a metadata table and a record index that holds the key of every row.

Each base file is a Parquet file of one row: all are one file, with other bytes in place of its key and names.
"""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.service_tables import SCHEMA, single_slices
from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import add_meta_fields
from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.services.metadata.maintain import create_metadata
from hudi_core.timeline.actions.commit import decode_commit, encode_commit_avro
from tests.support.changed_tables import an_owner, open_context

_KEY, _NAME, _PARTITION = "K" * 40, "N", "P" * 6
_LAYOUT_2 = {
    "hoodie.table.version": "9",
    "hoodie.table.initial.version": "9",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
    "hoodie.timeline.history.path": "history",
    "hoodie.archivelog.folder": "history",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
}


def indexed_groups(version: str, groups: int, partitions: int, folder: Path) -> None:
    """A copy-on-write table of version 6 or 9 with `groups` file groups in all."""
    template = b""

    def base_file(partition: str, name: str, number: int) -> tuple[bytes, int]:
        nonlocal template
        template = template or _one_row(len(name))
        key = f"{partition}-{number}".ljust(len(_KEY), "-")
        content = template.replace(_KEY.encode(), key.encode()).replace(_PARTITION.encode(), partition.encode())
        return content.replace(_NAME.encode() * len(name), name.encode()), 1

    single_slices(groups, partitions, folder, base_file)
    if version == "9":
        _to_layout_2(folder)
    create_metadata(open_context(folder), [RECORD_INDEX], LocalEngine(1), an_owner())


def _one_row(length: int) -> bytes:
    schema = arrow_schema(add_meta_fields(SCHEMA))
    values = ["20260101000000000", "20260101000000000_0_0", _KEY, _PARTITION, _NAME * length, _KEY, _PARTITION, 1]
    rows = pa.table([pa.array([value], field.type) for value, field in zip(values, schema, strict=True)], schema=schema)
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="none", use_dictionary=False, write_statistics=False)
    return sink.getvalue()


def _to_layout_2(folder: Path) -> None:
    """Version 9, with the same commit."""
    hoodie = folder / ".hoodie"
    path = hoodie / "hoodie.properties"
    lines = [line for line in path.read_text().splitlines() if line.split("=")[0] not in _LAYOUT_2]
    lines.remove("hoodie.table.precombine.field=ts")
    path.write_text("\n".join([*lines, *map("=".join, _LAYOUT_2.items())]) + "\n")
    (hoodie / "archived").rmdir()
    timeline = hoodie / "timeline"
    (timeline / "history").mkdir(parents=True)
    (commit,) = hoodie.glob("*.commit")
    metadata = decode_commit(commit.read_bytes(), path=commit.name)
    (timeline / f"{commit.stem}_{int(commit.stem) + 1000}.commit").write_bytes(encode_commit_avro(metadata))
    commit.unlink()
    for pending in (f"{commit.stem}.commit.requested", f"{commit.stem}.inflight"):
        (hoodie / pending).rename(timeline / pending)
