"""`metadata create`, `update` and `drop`: the metadata table begun, kept in shape and taken away without any write of data.

All of it happens under the table lock, as in real Hudi: writers wait for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from hudi_core.config.table_config import TableConfig
from hudi_core.config.timeline_zone import timeline_zone
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.filegroup.base_file import open_base_file
from hudi_core.filegroup.spec import ReaderSpec
from hudi_core.metadata_table.compaction.group_task import compact_group_task
from hudi_core.metadata_table.create.create import Beginning, MetadataCreation
from hudi_core.metadata_table.create.listed import committed_files
from hudi_core.metadata_table.create.of_files import beginning_of_kind, files_of_all_slices, files_of_latest_slices
from hudi_core.metadata_table.create.of_rows import beginning_of_rows
from hudi_core.metadata_table.drop import drop_partitions
from hudi_core.metadata_table.file_group import FILES_PARTITION
from hudi_core.metadata_table.index_definitions import load_index_definitions, put_index_definitions
from hudi_core.metadata_table.kinds.file_facts import Wanted, read_file_facts
from hudi_core.metadata_table.kinds.indexed_table import IndexedTable
from hudi_core.metadata_table.kinds.kind import DataFileRef, FileFacts
from hudi_core.metadata_table.kinds.registry import kind_of, kinds_of
from hudi_core.metadata_table.kinds.row_kinds import group_counts, is_index_of_rows
from hudi_core.metadata_table.upkeep.run import Upkeep, keep_up
from hudi_core.metadata_table.validity import SOLO_COMMIT
from hudi_core.model.ids import WriteToken
from hudi_core.query.slices_plan import table_schema
from hudi_core.storage.data_registry import open_data_storage
from hudi_core.view.file_group import FileSlice

if TYPE_CHECKING:
    from hudi_core.model.engine import Engine, Json, TaskAttempt
    from hudi_core.services.context import TableContext
    from hudi_core.transaction.owner import Owner

PARTITION_STATS: Final = "partition_stats"
_ORDER: Final = (FILES_PARTITION, "column_stats", "bloom_filters", "record_index", PARTITION_STATS)
_UNIT_FILES: Final = 50
"""Files that one task reads the facts of."""
_THREADS: Final = 16


def create_metadata(context: TableContext, names: Collection[str], engine: Engine, owner: Owner, epoch: int = 0) -> TableConfig:
    """Begins the metadata table with `files`, where there is none, and those of the named partitions that are not listed; the properties then.

    Secondary and expression indexes must be defined (`.hoodie/.index_defs`). May be repeated after a crash. Raises UnsupportedError for a
    partition that no kind keeps, or statistics of partitions on a table without them, before anything is written; ConflictError as
    MetadataCreation.check; LockError. Memory here: the records of one partition but for indexes of rows, whose rows stay with the tasks; of
    `bloom_filters` that are 430 KB for each base file with Hudi's defaults.
    """
    if PARTITION_STATS in names and not context.config.partition_fields:
        raise UnsupportedError("a table without partitions has no statistics of them", path=context.config.path)
    wanted = sorted({*names} - {FILES_PARTITION}, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))
    _Builder(context, engine, epoch).check(wanted)
    with context.lock(owner) as lock:
        creation = MetadataCreation(context.storage, WriteToken(0, epoch, 0), context.clock())
        config = creation.begin_table()
        for name in wanted:
            lock.check()
            if name not in config.metadata_partitions:
                config = creation.begin(_Builder(replace(context, config=config), engine, epoch).beginning(name))
    return config


def update_metadata(context: TableContext, engine: Engine, owner: Owner, epoch: int = 0) -> Upkeep:
    """Rolls back, cleans, compacts and archives the metadata table as the options say (upkeep.run.keep_up); raises as that, and LockError."""
    if not context.has_metadata_table:
        raise ConfigError("the table has no metadata table", path=context.config.path, remedy="create one with `hudictl metadata create TABLE`")
    with context.lock(owner) as lock:
        return keep_up(
            context.storage,
            TableConfig.load(context.storage),
            WriteToken(0, epoch, 0),
            context.options,
            lock.check,
            context.clock(),
            run_units=lambda units: engine.run(compact_group_task, units, run_epoch=epoch),
            uri=context.uri,
            storage_options=context.storage_options,
        )


def drop_metadata(context: TableContext, names: Collection[str], owner: Owner) -> TableConfig:
    """Takes the named indexes away, with `files` the whole metadata table; returns the properties as they are then. Raises LockError.

    The definitions of dropped secondary and expression indexes go, too; real Hudi's writer would build the indexes anew by them.
    """
    with context.lock(owner):
        config = drop_partitions(context.storage, TableConfig.load(context.storage), names)
        gone = load_index_definitions(context.storage, config).keys() if FILES_PARTITION in names else names
        return put_index_definitions(context.storage, config, [], [*gone])


class _Builder:
    """Makes the beginnings of a table's indexes. The view of the table is that of the moment: under the lock."""

    def __init__(self, context: TableContext, engine: Engine, epoch: int) -> None:
        self._context = context
        self._engine = engine
        self._epoch = epoch

    def check(self, names: Iterable[str]) -> None:
        """Raises UnsupportedError for a name that no kind keeps; FormatError for a table without a schema, which only indexes need."""
        of_files = [name for name in names if not is_index_of_rows(name)]
        if of_files:
            kinds_of(of_files, self._table())

    def beginning(self, name: str) -> Beginning:
        context, table = self._context, self._table()
        timeline = context.active.load()
        reading = context.reading()
        listing = reading.listing(reading.metadata_table("auto", timeline))
        view = context.view(timeline)
        if is_index_of_rows(name):
            slices = [item for partition in view.partitions() for item in view.latest_merged_slices(partition)]
            spec = ReaderSpec.for_query(context.config, table.schema, timeline, merge_logs=True, options=context.options).to_text()
            return beginning_of_rows(
                name,
                table,
                group_counts(name, table, self._rows_by_partition(slices)),
                slices,
                spec,
                self._engine,
                uri=context.uri,
                storage_options=context.storage_options,
                run_epoch=self._epoch,
                zone=timeline_zone(context.config, context.options),
            )
        kind = kind_of(name, table)
        files = files_of_all_slices(committed_files(listing, timeline)) if kind.needs.older_slices else files_of_latest_slices(view)
        last = timeline.last_completed()
        instant = SOLO_COMMIT if last is None else last.requested_time
        return beginning_of_kind(context.storage, kind, table, files, instant, read_facts=self._facts, settings=context.options)

    def _table(self) -> IndexedTable:
        context = self._context
        schema = table_schema(context.reading(), context.active.load())
        return IndexedTable(context.config, schema, load_index_definitions(context.storage, context.config), context.options)

    def _facts(self, files: Sequence[DataFileRef], wanted: Wanted) -> Iterator[FileFacts]:
        common = {"uri": self._context.uri, "storage_options": dict(self._context.storage_options), "wanted": wanted.to_json()}
        units = [{**common, "files": [item.to_json() for item in files[at : at + _UNIT_FILES]]} for at in range(0, len(files), _UNIT_FILES)]
        for result in self._engine.run(read_facts_task, units, run_epoch=self._epoch):
            yield from map(FileFacts.from_json, result["facts"])

    def _rows_by_partition(self, slices: Sequence[FileSlice]) -> dict[str, int]:
        """About how many rows each data partition has: those of base files, by their footers."""
        found = {item.file_group.partition: 0 for item in slices}
        with ThreadPoolExecutor(_THREADS, "metadata-rows") as pool:
            for item, rows in zip(slices, pool.map(partial(_rows_of, self._context), slices), strict=True):
                found[item.file_group.partition] += rows
        return found


def _rows_of(context: TableContext, item: FileSlice) -> int:
    if item.base_file is None:
        return 0
    with open_base_file(context.storage, item.base_file.path) as file, file:
        return file.num_rows


def read_facts_task(unit: Json, attempt: TaskAttempt) -> Json:
    """Reads the facts of a unit's files; the UnitTask of a beginning. Returns `{"facts": [FileFacts as JSON]}`."""
    try:
        storage, wanted = open_data_storage(unit["uri"], unit["storage_options"]), Wanted.from_json(unit["wanted"])
        files = [DataFileRef.from_json(item) for item in unit["files"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"a unit of an index is not what this version writes: {error!r}") from error
    return {"facts": [read_file_facts(storage, item, wanted).to_json() for item in files]}
