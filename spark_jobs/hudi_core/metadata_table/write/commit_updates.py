"""The records of a commit for each partition type of the table, in the order of the partitions' names
(HoodieTableMetadataUtil.convertMetadataToRecords of 0.15 and 1.x). row_updates.py updates row-level indexes;
partitions/registry.py makes the records of cleans, restores and rollbacks.

In layout 2 log files of the metadata table merge by the instants in their names, not by completion. Records written
under an older instant merge beneath the records of later commits. Some ranges of whole partitions must also hold for
rows that are there already, or that are still being written under an older instant. These get a new instant, and widen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConflictError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.partition_type import is_row_level
from hudi_core.metadata_table.partitions.protocol import PartitionType
from hudi_core.metadata_table.partitions.registry import partition_types_of, requirements_of
from hudi_core.metadata_table.records.file_statistics import CommitUpdate, FileStatistics, Record
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.remaining_files import RemainingFiles, recorded_of, remaining_of
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.instant import COMMIT_ACTIONS
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.listing import FileListing


@dataclass(frozen=True)
class CommitPartitions:
    """The partition types that a table's properties list, without row-level indexes. The first use raises
    UnsupportedError for a type that is unknown, or that this release cannot maintain on the table.
    """

    storage: Storage
    table: IndexedTable

    def requirements(self) -> StatisticsRequirements:
        return requirements_of(self.table, self._partition_types.values())

    def from_files(self) -> frozenset[str]:
        """Returns the partitions with records of single files, which can be prepared (prepare_files)."""
        return frozenset(name for name, item in self._partition_types.items() if item.by_file)

    def records(
        self,
        instant: str,
        metadata: CommitMetadata,
        written: Iterable[FileStatistics],
        requested: StatisticsRequirements,
        listing: FileListing | None = None,
        *,
        by_partition: bool = False,
    ) -> dict[str, Iterable[Record]]:
        """Returns the records of a pending commit, by metadata partition. `written` are the statistics of its base and
        log files for `requested`; `by_partition` is as in CommitUpdate. For a completed commit, `listing` shows the
        existing files. The caller holds the table lock. Raises ConflictError when the requirements have grown.
        """
        requirements = self.requirements()
        if not _covers(requested, requirements):
            raise ConflictError(
                "an index of the table was changed while this ran", path=self.table.config.path, remedy="run it again"
            )
        statistics = CommitUpdate(
            instant,
            metadata.operation_type,
            metadata.partition_to_write_stats,
            tuple(written),
            metadata.replaced_file_ids or {},
            by_partition=by_partition,
        )
        partition_types = self._partition_types
        files = (
            RemainingFiles(self.storage, self.table.config, instant, metadata, listing)
            if any(item.needs.remaining for item in partition_types.values())
            else None
        )

        def update_for(partition_type: PartitionType) -> CommitUpdate:
            if files is None or not partition_type.needs.remaining:
                return statistics
            return replace(
                statistics,
                remaining=remaining_of(files, partition_type, requirements),
                recorded=recorded_of(files, partition_type, requirements),
                overtakes=overtakes(self.table.config, files.metadata_snapshot.data_timeline, instant),
            )

        return {
            name: partition_type.of_commit(update_for(partition_type))
            for name, partition_type in partition_types.items()
        }

    @cached_property
    def _partition_types(self) -> dict[str, PartitionType]:
        names = (name for name in self.table.config.metadata_partitions if not is_row_level(name))
        return partition_types_of(names, self.table)


def overtakes(config: TableConfig, data: Timeline, instant: str) -> bool:
    """Returns whether an older write is pending: a commit at `instant` would replace its ranges of whole partitions."""
    writes = data.pending().of_actions(*COMMIT_ACTIONS)
    return config.features.log_name_has_delta_commit and any(item.requested_time < instant for item in writes)


def _covers(requested: StatisticsRequirements, requirements: StatisticsRequirements) -> bool:
    """Returns whether `requested` covers `requirements`. A newer column needs nothing: it is null in older files."""
    known = {field["name"] for field in requested.schema["fields"]}
    missing = [
        name
        for name in requirements.columns
        if name not in requested.columns and (name in known or name.split(".")[0] in known)
    ]
    same = (requested.version, requested.expressions) == (requirements.version, requirements.expressions)
    return same and not missing and requested.bloom >= requirements.bloom


def range_types(table: IndexedTable, names: Collection[str]) -> dict[str, PartitionType]:
    """Returns the types of those metadata partitions in `names` that have ranges of whole partitions."""
    by_name = partition_types_of([name for name in names if not is_row_level(name)], table)
    return {name: partition_type for name, partition_type in by_name.items() if partition_type.needs.remaining}


@dataclass(frozen=True, slots=True)
class Widening:
    """The records, by metadata partition, that widen the too narrow ranges of the data partitions `partitions`."""

    records: Mapping[str, Sequence[Record]]
    partitions: tuple[str, ...]


def widening(
    table: IndexedTable,
    names: Collection[str],
    instant: str,
    files: RemainingFiles,
    written: Mapping[str, Sequence[FileStatistics]] | None = None,
    *,
    overtakes: bool = False,
) -> Widening:
    """Compares the ranges with the files in the partitions' file slices and with `written`, and returns the records
    that widen them. `written` is by partition, `names` are metadata partitions, `overtakes` is CommitUpdate's. Memory:
    the statistics of the files in one partition, and the records. Raises UnsupportedError for an unknown range,
    ConflictError for a range of another type that cannot be replaced now, and the errors of reading the files.
    """
    partition_types = range_types(table, names)
    requirements = requirements_of(table, partition_types.values())
    narrow: set[str] = set()
    records: dict[str, list[Record]] = {}
    for name, partition_type in partition_types.items():
        remaining = remaining_of(files, partition_type, requirements)
        recorded = recorded_of(files, partition_type, requirements)
        records[name] = []
        for partition in sorted(files.partitions):
            # Like an operation that rewrites all these files: it widens the ranges that do not contain them.
            statistics = (*(remaining(partition) or ()), *(written or {}).get(partition, ()))
            update = CommitUpdate(
                instant, Operation.COMPACT, {}, statistics, recorded=recorded, by_partition=True, overtakes=overtakes
            )
            found = list(partition_type.of_commit(update))
            narrow.update([partition] if found else ())
            records[name] += found
    return Widening(records, tuple(sorted(narrow)))


def widen_ranges(
    writer: DeltaWriter,
    table: IndexedTable,
    names: Collection[str],
    data: Timeline,
    partitions: Collection[str],
    written: Mapping[str, Sequence[FileStatistics]] | None = None,
    listing: FileListing | None = None,
) -> tuple[str, ...]:
    """Widens the ranges of `partitions` where they are too narrow; returns the partitions with such ranges. No effect
    in layout 1. `data` is the data table's timeline, `listing` as in RemainingFiles. Only older ranges of another type
    are replaced; the ranges of a pending write with an older instant still count. The caller holds the table lock.
    Errors and memory are those of widening.
    """
    metadata_timeline = writer.metadata_timeline
    if not partitions or not metadata_timeline.features.log_name_has_delta_commit or not range_types(table, names):
        return ()
    # Not an instant of the data table: while its action is pending, nothing under that instant counts.
    newest = max(data.requested_times, default="")
    instant = metadata_timeline.clock.next(metadata_timeline.active.load(), minimum=newest)
    storage, is_overtaking = metadata_timeline.storage, overtakes(table.config, data, instant)
    files = RemainingFiles(storage, table.config, instant, nothing_in(partitions), listing)
    found = widening(table, names, instant, files, written, overtakes=is_overtaking)
    if found.partitions:
        writer.write(instant, found.records)
    return found.partitions


def nothing_in(partitions: Collection[str]) -> CommitMetadata:
    """Returns a commit that writes nothing to `partitions`: all files in their file slices remain."""
    return CommitMetadata(dict.fromkeys(sorted(partitions), ()))
