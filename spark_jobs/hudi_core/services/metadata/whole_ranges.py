"""Widens ranges of whole partitions under a new instant of the metadata table, before a missing commit is applied.

In layout 2 log files of the metadata table merge by the instants in their names, whenever they were written. The
records of a late commit merge beneath those of later commits, whose ranges of whole partitions lack its files and would
replace its ranges: readers would skip its rows. So ranges of the current files are written first, under the newest
instant; they are valid before and after the late commit, and a repeated run uses another such instant. They widen the
older ranges and replace none: the ranges of a pending write with an older instant still count.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hudi_core.config.table_config import TableConfig
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.metadata_table.indexed_table import IndexedTable
from hudi_core.metadata_table.partition_type import is_row_level
from hudi_core.metadata_table.partitions.protocol import PartitionType
from hudi_core.metadata_table.partitions.registry import partition_types_of, requirements_of
from hudi_core.metadata_table.records.file_statistics import CommitUpdate, Record
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.write.delta_writer import DeltaWriter
from hudi_core.metadata_table.write.remaining_files import RecordedRanges, RemainingFiles, RemainingStatistics
from hudi_core.model.names import WriteToken
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import CommitMetadata, Operation
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.view.listing import FileListing


@dataclass(frozen=True, slots=True)
class WholeRanges:
    """Of the table in `storage`; `listing` gives the files that there are, `token` makes the names of log files this
    attempt's own.
    """

    storage: Storage
    config: TableConfig
    table: IndexedTable
    metadata_timeline: MetadataTimeline
    listing: FileListing
    token: WriteToken

    def tell(self, partitions: Collection[str]) -> str | None:
        """Writes the missing ranges of `partitions`; returns the instant, None where nothing is missing.

        The caller holds the table lock. Memory: the statistics of the files in one partition, and the records, as data
        and as encoded cells.
        """
        names = [name for name in self.config.metadata_partitions if not is_row_level(name)]
        partition_types = {
            name: partition_type
            for name, partition_type in partition_types_of(names, self.table).items()
            if partition_type.needs.remaining
        }
        if not partition_types or not partitions:
            return None
        # None that the data table has: while such an action is pending, nothing under its instant counts.
        data = ActiveTimeline(self.storage, self.config).load()
        instant = self.metadata_timeline.clock.next(
            self.metadata_timeline.active.load(), minimum=max(data.requested_times, default="")
        )
        # A commit that writes nothing: all files in the slices of these partitions remain.
        nothing = CommitMetadata(dict.fromkeys(sorted(partitions), ()))
        files = RemainingFiles(self.storage, self.config, instant, nothing, self.listing)
        requirements = requirements_of(self.table, partition_types.values())
        records = {
            name: _records(partition_type, files, requirements, instant)
            for name, partition_type in partition_types.items()
        }
        if not any(records.values()):
            return None
        DeltaWriter(self.storage, self.metadata_timeline, self.token).write(instant, records)
        return instant


def _records(
    partition_type: PartitionType, files: RemainingFiles, requirements: StatisticsRequirements, instant: str
) -> list[Record]:
    """The records of an operation that rewrites all these files, which widens ranges that do not contain them."""
    remaining, recorded = (
        RemainingStatistics(files, partition_type, requirements),
        RecordedRanges(files, partition_type, requirements),
    )
    parts = (
        CommitUpdate(instant, Operation.COMPACT, {}, remaining[name], recorded=recorded, by_partition=True)
        for name in remaining
    )
    return [record for statistics in parts for record in partition_type.of_commit(statistics)]
