"""Tables of very many file groups with a metadata table and a record index that holds the key of every row.

Each base file is a Parquet file of one row: all are one file, with other bytes in place of its key and names.
"""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.service_tables import SCHEMA, single_slices, to_version_9
from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import add_meta_fields
from hudi_core.engine.local import LocalEngine
from hudi_core.metadata_table.partition_type import RECORD_INDEX
from hudi_core.services.metadata.maintain import create_metadata
from tests.support.changed_tables import an_owner, open_context

_KEY, _NAME, _PARTITION = "K" * 40, "N", "P" * 6


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
        to_version_9(folder)
    create_metadata(open_context(folder), [RECORD_INDEX], LocalEngine(1), an_owner())


def _one_row(length: int) -> bytes:
    schema = arrow_schema(add_meta_fields(SCHEMA))
    values = ["20260101000000000", "20260101000000000_0_0", _KEY, _PARTITION, _NAME * length, _KEY, _PARTITION, 1]
    rows = pa.table([pa.array([value], field.type) for value, field in zip(values, schema, strict=True)], schema=schema)
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="none", use_dictionary=False, write_statistics=False)
    return sink.getvalue()
