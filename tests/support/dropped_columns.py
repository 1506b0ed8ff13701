"""Golden tables without partition columns in their files, whose schema names these all the same, as Hudi's row writer
leaves it (bulk_insert of 0.15.0 and 1.0.2).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.timeline.actions.commit import SCHEMA_KEY, encode_commit, encode_commit_avro
from tests.support.changed_tables import open_context


def name_dropped(table: Path, name: str = "dt") -> None:
    """Puts the column `name`, as a required one, behind the others in the schema of each commit, and into the files,
    in a form that cannot be read as text: the row writer's have a chunk without values.
    """
    for path in table.rglob("*.parquet"):
        rows = pq.ParquetFile(path).read()
        pq.write_table(rows.append_column(name, pa.array([[0]] * rows.num_rows)), path)
    context = open_context(table)
    encode = encode_commit if context.config.layout_version == 1 else encode_commit_avro
    for instant in context.active.load().commits().instants:
        metadata = context.active.read_commit(instant)
        schema = json.loads(metadata.schema_text or "")
        fields = [*schema["fields"], {"name": name, "type": "string"}]
        text = json.dumps({**schema, "fields": fields})
        changed = replace(metadata, extra_metadata={**metadata.extra_metadata, SCHEMA_KEY: text})
        context.storage.write(context.active.path_of(instant), encode(changed))
