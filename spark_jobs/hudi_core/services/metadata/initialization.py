"""Makes the initialization of each partition of the metadata table from one snapshot of the table.
Initializations.check and check_spelling decide which indexes are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Final

from hudi_core.codec.columns import column_named
from hudi_core.config.metadata_config import PARTITIONED_RECORD_INDEX_ENABLE, RECORD_INDEX_ENABLE
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.serializer import to_text
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.filegroup.read.base_file import open_base_file, refuse_skeleton
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.indexed_table import IndexDefinition, IndexedTable, load_index_definitions
from hudi_core.metadata_table.initialize.exchange import (
    files_of_all_slices,
    files_of_latest_slices,
    initialization_from_files,
    initialization_from_rows,
)
from hudi_core.metadata_table.initialize.initialize import Initialization, committed_files
from hudi_core.metadata_table.instants import SOLO_COMMIT
from hudi_core.metadata_table.partition_type import (
    COLUMN_STATS,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_PREFIX,
    is_row_level,
)
from hudi_core.metadata_table.partitions.registry import (
    check_names,
    partition_type_of,
    partition_types_of,
    row_level_type,
)
from hudi_core.metadata_table.partitions.row_indexes import record_index_definition
from hudi_core.metadata_table.write.staged_logs import Workers
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.model.partition import join
from hudi_core.query.context import reader_spec
from hudi_core.services.context import TableContext
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.schemas import internal_schema_history
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice
from hudi_core.view.listing import FileListing

_THREADS: Final = 16
_BOOTSTRAP: Final = "hoodie.bootstrap.base.path"
"""The property that names the source of a bootstrapped table (HoodieTableConfig.BOOTSTRAP_BASE_PATH)."""


def indexed_table(
    context: TableContext, timeline: Timeline, defined: Mapping[str, IndexDefinition] | None = None
) -> IndexedTable:
    """Returns the table as of `timeline`, for partition types. `defined` are definitions that its file lacks."""
    history = internal_schema_history(context.storage, timeline)
    return IndexedTable(
        context.config,
        table_schema(context.storage, context.config, timeline),
        load_index_definitions(context.storage, context.config) | dict(defined or {}),
        context.options,
        None if history is None else history.to_json(),
    )


def check_spelling(table: IndexedTable, columns: Iterable[str]) -> None:
    """Raises ConfigError for a column in another case than the schema's: readers look indexes up by that."""
    stored = table.arrow_schema()
    for name in columns:
        known = column_named(name, stored)
        if known != name:
            message = f"the table's schema has the column {name!r} as {known!r}, by which readers look for its index"
            remedy = f"name it {known}"
            raise ConfigError(message, path=table.config.path, remedy=remedy)


def partitioned_record_index(config: TableConfig, options: Mapping[str, str]) -> dict[str, IndexDefinition]:
    """Returns the requested partitioned record index, if any. Raises UnsupportedError where the version has none."""
    if not PARTITIONED_RECORD_INDEX_ENABLE.read(options):
        return {}
    definition = record_index_definition(config.features, partitioned=True)
    if definition is None:
        message = "a record index of each data partition needs table version 9"
        remedy = f"use {RECORD_INDEX_ENABLE.name} in place of {PARTITIONED_RECORD_INDEX_ENABLE.name}"
        raise UnsupportedError(message, path=config.path, remedy=remedy)
    return {RECORD_INDEX: definition}


@dataclass(frozen=True, slots=True)
class KeptListing:
    """A view.listing.FileListing that was read as a whole, by partition. Memory: some 300 bytes a file."""

    by_partition: Mapping[str, list[FileInfo]]

    def partitions(self) -> list[str]:
        return list(self.by_partition)

    def files(self, partition: str) -> list[FileInfo]:
        return self.by_partition.get(partition, [])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table at one moment. Taken under the table lock, it is the state that later completions change."""

    timeline: Timeline
    listing: FileListing
    of_commits: bool
    """Whether the listing is the metadata table's. Then completed instants wrote all files that it names."""

    @classmethod
    def of(cls, context: TableContext) -> Snapshot:
        timeline = context.active.load()
        metadata = context.metadata_table("auto", timeline)
        listing = context.listing(metadata)
        files = {partition: listing.files(partition) for partition in listing.partitions()}
        return cls(timeline, KeptListing(files), metadata is not None)

    def committed(self) -> dict[str, dict[str, int]]:
        """Returns the committed files by partition, with their sizes in bytes, as initialize.committed_files. In layout
        1 a log file's name carries the instant of its slice, which a pending compaction may have started. Only the
        metadata table knows that such a file is committed. Hudi omits it in the indexes that it initializes.
        """
        if not self.of_commits:
            return committed_files(self.listing, self.timeline)
        files = ((partition, self.listing.files(partition)) for partition in self.listing.partitions())
        return {
            partition: {info.name: info.size for info in items if info.size > 0 and parse_data_file(info.name)}
            for partition, items in files
        }

    def slices(self, context: TableContext) -> list[FileSlice]:
        view = context.view(self.timeline, listing=self.listing)
        return [item for partition in view.partitions() for item in view.latest_merged_slices(partition)]


def index_warnings(config: TableConfig, names: Collection[str]) -> list[str]:
    """Warns of secondary indexes that need a missing record index (SecondaryIndexSupport.isIndexAvailable)."""
    secondary = sorted(name for name in names if name.startswith(SECONDARY_PREFIX))
    there = config.metadata_partitions.union(config.metadata_partitions_inflight, names)
    if not secondary or RECORD_INDEX in there:
        return []
    return [
        f"no query can use {', '.join(secondary)}: the table has no {RECORD_INDEX}, which a lookup by a secondary "
        "index needs; create that one, too"
    ]


class Initializations:
    """Initializes a table's indexes. `defined` are definitions that are not in the table's file yet."""

    def __init__(
        self, context: TableContext, workers: Workers, defined: Mapping[str, IndexDefinition] | None = None
    ) -> None:
        self._context = context
        self._workers = workers
        self._defined = dict(defined or {})

    def check(self, names: Iterable[str]) -> None:
        """Raises UnsupportedError for a name without partition type, for statistics of partitions without those of
        files or in version 6, and for an index of a metadata-only bootstrap's files; CorruptFileError for a secondary
        index that is not defined; ConfigError as check_spelling; FormatError without a schema, for indexes.
        """
        requirements = list(names)
        check_names(requirements)
        config = self._context.config
        if PARTITION_STATS in {*requirements} - config.metadata_partitions and not config.features.has_all_indexes:
            raise UnsupportedError(f"{PARTITION_STATS} needs table version 8", path=config.path)
        if PARTITION_STATS in requirements and COLUMN_STATS not in config.metadata_partitions.union(
            config.metadata_partitions_inflight, requirements
        ):
            message = f"{PARTITION_STATS} is made of {COLUMN_STATS}, which the table does not have"
            remedy = f"name {COLUMN_STATS}, too"
            raise UnsupportedError(message, path=config.path, remedy=remedy)
        if not requirements:
            return
        if not config.metadata_partitions.issuperset(requirements):
            self._refuse_skeletons()
        table = indexed_table(self._context, self._context.active.load(), self._defined)
        check_spelling(table, [column for item in self._defined.values() for column in item.source_fields])
        partition_types_of([name for name in requirements if not is_row_level(name)], table)
        for name in filter(is_row_level, requirements):
            row_level_type(name, table).rows({None: 1}, "", self._context.zone)

    def _refuse_skeletons(self) -> None:
        """Raises UnsupportedError for files of a metadata-only bootstrap, as Hudi does ("col stats is not supported
        with bootstrap operation"). Lists only a bootstrapped table.
        """
        if not self._context.config.raw.get(_BOOTSTRAP):
            return
        for partition, names in Snapshot.of(self._context).committed().items():
            for name in names:
                if isinstance(parse_data_file(name), BaseFileName):
                    refuse_skeleton(join(partition, name))

    def initialization(self, name: str, snapshot: Snapshot, rows: Mapping[str, int]) -> Initialization:
        """Returns a partition's initialization from `snapshot`. `rows`, of rows_by_partition, may be a little older."""
        context, timeline = self._context, snapshot.timeline
        table = indexed_table(context, timeline, self._defined)
        if is_row_level(name):
            slices = snapshot.slices(context)
            spec = to_text(reader_spec(context, table.schema, timeline, merge_logs=True))
            known = {item.file_group.partition: 0 for item in slices} | dict(rows)
            counts = row_level_type(name, table).group_counts(known)
            found = initialization_from_rows(name, table, counts, slices, spec, self._workers, context.zone)
        else:
            partition_type = partition_type_of(name, table)
            files = (
                files_of_all_slices(snapshot.committed())
                if partition_type.needs.older_slices
                else files_of_latest_slices(snapshot.slices(context))
            )
            last = timeline.last_completed()
            instant = SOLO_COMMIT if last is None else last.requested_time
            found = initialization_from_files(partition_type, table, files, instant, self._workers)
        return replace(found, definition=found.definition or self._defined.get(name))

    def rows_by_partition(self, names: Iterable[str], snapshot: Snapshot) -> dict[str, int]:
        """Estimated rows of each data partition, by the footers of base files; empty where no index needs them."""
        if not any(map(is_row_level, names)):
            return {}
        slices = snapshot.slices(self._context)
        found = {item.file_group.partition: 0 for item in slices}
        with ThreadPoolExecutor(_THREADS, "metadata-rows") as pool:
            for item, rows in zip(slices, pool.map(partial(_rows_of, self._context), slices), strict=True):
                found[item.file_group.partition] += rows
        return found


def _rows_of(context: TableContext, item: FileSlice) -> int:
    if item.base_file is None:
        return 0
    with open_base_file(context.storage, item.base_file.path) as file:
        return file.num_rows
