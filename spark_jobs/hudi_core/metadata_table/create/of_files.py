"""Partitions that say something of each data file begin with what their kind makes of the files that the table has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from hudi_core.metadata_table.create.create import Beginning
from hudi_core.metadata_table.create.listed import Sizes
from hudi_core.metadata_table.create.target import NewBaseFile, NewPartition
from hudi_core.metadata_table.index_definitions import IndexDefinition
from hudi_core.metadata_table.kinds.file_facts import Wanted, read_file_facts, wanted_by
from hudi_core.metadata_table.kinds.indexed_table import IndexedTable
from hudi_core.metadata_table.kinds.kind import DataFileRef, FileFacts, Kind
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.storage.base import Storage
from hudi_core.view.fs_view import FileSystemView

COLUMN_STATS: Final = "column_stats"

ReadFacts = Callable[[Sequence[DataFileRef], Wanted], Iterable[FileFacts]]
"""Reads the facts of files, wherever."""


def files_of_all_slices(files: Sizes) -> list[DataFileRef]:
    """All committed files (listed.committed_files): for kinds with `needs.older_slices`."""
    return [_reference(partition, name, size) for partition, sizes in files.items() for name, size in sizes.items()]


def files_of_latest_slices(view: FileSystemView) -> list[DataFileRef]:
    """The files of the slices that a snapshot query reads: for all other kinds."""
    slices = [item for partition in view.partitions() for item in view.latest_merged_slices(partition)]
    return [_reference(file.partition, file.name, file.size) for item in slices for file in item.files]


def beginning_of_kind(
    storage: Storage,
    kind: Kind,
    table: IndexedTable,
    files: Sequence[DataFileRef],
    instant: str,
    *,
    read_facts: ReadFacts | None = None,
    settings: Mapping[str, str] | None = None,
) -> Beginning:
    """The beginning of `column_stats`, `bloom_filters`, `partition_stats` or an expression index.

    `files` are those that the kind's needs ask for, `instant` is the latest completed one of the data table (validity.SOLO_COMMIT: none), which
    filters name. By default the files are read one after the other in this process. Errors as read_file_facts and Kind.group_count. Memory: the
    partition's records as encoded cells, and their facts.
    """
    read = read_facts or (lambda items, wanted: (read_file_facts(storage, item, wanted) for item in items))
    wanted = wanted_by(table, [kind])

    def fill(target: NewPartition) -> list[NewBaseFile]:
        return target.write(storage, kind.initial(instant, read(files, wanted)))

    ids = kind.file_ids(kind.group_count(settings or {}))
    return Beginning(kind.partition, ids, fill, _definition(kind, table, wanted))


def _definition(kind: Kind, table: IndexedTable, wanted: Wanted) -> IndexDefinition | None:
    """Of column statistics, in which columns are indexed; expression indexes are defined before they begin."""
    if kind.partition != COLUMN_STATS or not table.config.features.merge_modes:
        return None
    return IndexDefinition(COLUMN_STATS, COLUMN_STATS, COLUMN_STATS, wanted.columns, {}, wanted.version)


def _reference(partition: str, name: str, size: int) -> DataFileRef:
    return DataFileRef(partition, name, size, isinstance(parse_data_file(name), BaseFileName))
