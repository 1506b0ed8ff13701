"""Finds the table's schema, for readers, services and the metadata table, in commits, properties, data files and
archived commits (TableSchemaResolver of 0.15 and 1.x). timeline/schemas.py says which of them comes first, base_file.py
how files of an older schema are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from hudi_core.codec.avro.arrow_types import avro_schema
from hudi_core.codec.avro.schema import AvroSchema, parse_schema, without_meta_fields
from hudi_core.codec.log.blocks import BlockType, LogBlock
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import StorageNotFoundError
from hudi_core.filegroup.read.log_scan import log_blocks
from hudi_core.history.archived import latest_commits, load_history
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.schemas import commit_label, schema_of
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile

_FOOTER_KEYS: Final = ("parquet.avro.schema", "avro.schema")
"""The footer keys of the schema that parquet-avro wrote with, now and before Parquet 1.9."""
_DATA: Final = frozenset({BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA})


def table_schema(storage: Storage, config: TableConfig, timeline: Timeline, up_to: str | None = None) -> AvroSchema:
    """Returns the table's Avro record schema, without meta fields, as of the latest commit of `timeline`, or of the
    latest one requested at or before `up_to`. timeline.schemas.schema_of has the order of the sources. Before the first
    commit, it is the present schema. Raises FormatError when nothing records a schema, CorruptFileError for a broken
    commit or data file, StorageError.
    """
    active, history = ActiveTimeline(storage, config), load_history(storage, config)
    seen = timeline if up_to is None else timeline.up_to(up_to)
    if up_to is not None and not len(seen.commits()) and not history.instants(None, up_to):
        return table_schema(storage, config, timeline)
    written = ((instant, active.read_commit(instant)) for instant in reversed(seen.commits().instants))
    archived = (commit for commit in latest_commits(history) if up_to is None or commit[0].requested_time <= up_to)
    return schema_of(
        seen,
        active.read_details,
        create_schema=config.create_schema,
        stored=lambda: stored_schema(storage, written, active.path_of),
        archived=lambda: archived,
        path_of=active.path_of,
    )


def stored_schema(
    storage: Storage,
    commits: Iterable[tuple[Instant, CommitMetadata]],
    path_of: Callable[[Instant], str] = commit_label,
) -> AvroSchema | None:
    """Returns the Avro record schema, without meta fields, of the first file that has one: Parquet base files in the
    footer, log files in their last data block of whole records. `commits`, latest first, are read in turn; `path_of`
    names a commit's file for messages. Raises FormatError for a path that leaves the table or a broken file;
    StorageError.
    """
    for instant, metadata in commits:
        metadata.check_paths(source=path_of(instant))
        for stat in metadata.write_stats():
            if not stat.path:
                continue
            try:
                schema = _schema_of(storage, stat.path)
            except StorageNotFoundError:
                continue  # cleaned since
            if schema is not None:
                return without_meta_fields(schema)
    return None


def _schema_of(storage: Storage, path: str) -> AvroSchema | None:
    name = path.rsplit("/", 1)[-1]
    if name.endswith(".parquet"):
        with storage.open_input(path) as stream, ParquetBaseFile(stream, path, storage.limits) as file:
            stored = next((file.footer[key] for key in _FOOTER_KEYS if key in file.footer), None)
            return avro_schema(file.schema, path=path) if stored is None else parse_schema(stored, path=path)
    if ".log." not in name or name.endswith(".cdc"):
        return None
    text: str | None = None
    for block in log_blocks(storage, [DataFile("", path, storage.stat(path).size)]):
        if isinstance(block, LogBlock) and block.type in _DATA and not block.is_partial:
            text = block.schema or text
    return None if text is None else parse_schema(text, path=path)
