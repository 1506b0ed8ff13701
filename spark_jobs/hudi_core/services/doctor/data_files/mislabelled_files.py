"""Finds base files that label a timestamp otherwise than the table's schema does (codec.avro.time_labels), and the rule
on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

import pyarrow as pa

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.time_labels import has_doubtful_times, mislabelled
from hudi_core.errors import FormatError, StorageNotFoundError
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.model.names import parse_base_file
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.finding import Counted, Finding, Observations, named_files
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile
from hudi_core.view.listing import StorageListing

_THREADS: Final = 16
_LOOKED_AT: Final = 256
"""How many base files are opened, the oldest first: they have the wrong label."""


def find_mislabelled_files(context: TableContext, timeline: Timeline) -> Counted[tuple[str, str]]:
    """The paths of base files that a query reads, each with its mislabelled columns.

    Reads the footers of the oldest base files, one request each, of tables alone whose schema has such timestamps.
    Nothing beside a pending plan or a schema that cannot be read.
    """
    found: Counted[tuple[str, str]] = Counted()
    try:
        schema = arrow_schema(table_schema(context.storage, context.config, timeline))
        if not has_doubtful_times(schema):
            return found
        view = context.view(timeline, listing=StorageListing(context.storage))
    except (FormatError, StorageNotFoundError):
        return found
    files = [file for partition in view.partitions() for file in view.latest_base_files(partition)]
    oldest = sorted(files, key=lambda file: (parse_base_file(file.name).instant, file.path))[:_LOOKED_AT]
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="base-files") as pool:
        for file, columns in zip(oldest, pool.map(partial(_columns, context, schema), oldest), strict=True):
            if columns:
                found.add((file.path, ", ".join(columns)))
    return found


def _columns(context: TableContext, schema: pa.Schema, file: DataFile) -> list[str]:
    with suppress(FormatError, StorageNotFoundError), open_base_file(context.storage, file.path) as opened:
        return mislabelled(opened.schema, schema)
    return []


def mislabelled_files(observed: Observations) -> Iterator[Finding]:
    """Base files that older readers, and filters of Hudi 1.2, take wrongly."""
    found = observed.mislabelled
    if not found.count:
        return
    columns = sorted({name for _, names in found.first for name in names.split(", ")})
    yield Finding(
        "time_label",
        "warning",
        f"{named_files([path for path, _ in found.first], found.count)} label {', '.join(columns)} otherwise than the "
        "table's schema does. Queries here and by Hudi 1.1 and later read them by the schema; Hudi before 1.1 reads "
        "1970, and filters of Hudi 1.2 lose their rows by column_stats",
        "rewrite them by a clustering or a compaction, which labels them right; until then read with Hudi 1.1 or later "
        "and hoodie.enable.data.skipping=false",
        path=found.first[0][0],
    )
