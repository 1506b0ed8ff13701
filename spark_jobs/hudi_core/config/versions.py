"""Defines, as the only place, which table versions exist and what each has (HoodieTableVersion)."""

from __future__ import annotations

from dataclasses import replace

from hudi_core.errors import UnsupportedVersionError
from hudi_core.frozen import dataclass


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The features of a value of `hoodie.table.version`."""

    number: int
    layout: int
    json_commits: bool = False
    """Commit files are pretty-printed JSON (else Avro containers)."""
    completion_time_in_name: bool = True
    """Completed instants are named `<requested>_<completion>.<action>`; queries and slices use the completion time."""
    log_name_has_delta_commit: bool = True
    """A log file's name has the deltacommit's own instant (else the base instant of its slice)."""
    rollback_deletes_logs: bool = True
    """A rollback deletes the log files of the failed instant; otherwise it appends command blocks."""
    metadata_suffixes: bool = False
    """The metadata table's own instants are data instants with a suffix of three digits, otherwise new instants."""
    merge_modes: bool = True
    """Rows are merged by record merge modes (else by payload classes)."""
    typed_statistics: bool = False
    """Values of column statistics are physical values with a type beside them (else logical values in wrappers)."""
    unified_reader: bool = True
    """Its Hudi reads slices by HoodieFileGroupReader: log blocks newer than the query are skipped (else the scan ends
    there), and partition columns keep their place in the schema.
    """
    incremental_full_scan: bool = True
    """Its Hudi answers an incremental query from the latest snapshot when files are missing (else the query fails)."""
    incremental_whole_groups: bool = False
    """Its Hudi reads the file groups of an incremental query's range whole (else the files that its commits name)."""
    incremental_filters_base: bool = False
    """Its Hudi drops base rows that the range did not write before it merges log records with them (imbueConfigs)."""
    hudi_1_log_headers: bool = True
    """Readers know the log block headers of Hudi 1.x, of partial rows and record positions; otherwise they fail."""
    partial_update_modes: bool = False
    """Its Hudi is 1.1 or later, which knows partial update modes."""
    clean_plan_in_inflight: bool = True
    """The inflight file of a clean holds the plan again, which 0.15 and 1.0 read to resume; otherwise it is empty."""
    has_all_indexes: bool = True
    """Its Hudi keeps every partition type of the metadata table. Else it keeps no statistics of partitions, secondary
    indexes or expression indexes: Hudi 0.15 does not update those that exist, and queries by them lose rows.
    """
    indexes_all_columns: bool = False
    """A new index of column statistics holds every column (else the first 32, and three of the `_hoodie_*` columns)."""
    conflict_release: str = "1.2"
    """The release whose rules say which concurrent operations a commit is compared with (transaction.conflict)."""
    metadata_needs_rest: bool = False
    """Its Hudi initializes and compacts the metadata table only while no earlier data instant is pending."""
    metadata_initialized_with: str = "BULK_INSERT"
    """The operation type of the commits that initialize partitions of the metadata table."""
    metadata_keeps_versions: bool = False
    """Cleans of the metadata table keep two slices of each file group (else those of the latest commits)."""
    defines_record_index: bool = False
    """The record index has a definition, which says whether each data partition has its own record index."""
    index_plan_extra: bool = True
    """Plans of indexing actions have extra metadata for each partition."""
    cleans_leave_statistics: bool = False
    """Cleans of its Hudi keep column statistics of log files, and, in partitions, of base files, which
    HoodieTableMetadataUtil.getColumnStatsRecords of 0.15 searches by the ends of their names.
    """
    log_compaction_by_commits: bool = False
    """Its Hudi plans log compactions by delta commits and log files (else by log blocks alone)."""
    metadata_bloom_entries: int = 60000
    """The number of keys for which a row of the bloom filter in the metadata table's base files is made."""


V6 = TableVersion(
    6,
    1,
    json_commits=True,
    completion_time_in_name=False,
    log_name_has_delta_commit=False,
    rollback_deletes_logs=False,
    metadata_suffixes=True,
    merge_modes=False,
    unified_reader=False,
    incremental_full_scan=False,
    hudi_1_log_headers=False,
    has_all_indexes=False,
    indexes_all_columns=True,
    conflict_release="0.15",
    metadata_needs_rest=True,
    index_plan_extra=False,
    cleans_leave_statistics=True,
)
V8 = TableVersion(8, 2, incremental_whole_groups=True, conflict_release="1.0")
V9 = replace(
    V8,
    number=9,
    typed_statistics=True,
    incremental_whole_groups=False,
    incremental_filters_base=True,
    partial_update_modes=True,
    clean_plan_in_inflight=False,
    conflict_release="1.2",
    metadata_initialized_with="BULK_INSERT_PREPPED",
    metadata_keeps_versions=True,
    defines_record_index=True,
    log_compaction_by_commits=True,
    metadata_bloom_entries=10000,
)

SUPPORTED = (V6, V8, V9)


def require_supported(version: int, layout: int, path: str) -> TableVersion:
    """Returns the version's features. Raises UnsupportedVersionError naming `path`."""
    for candidate in SUPPORTED:
        if candidate.number == version:
            if layout != candidate.layout:
                raise UnsupportedVersionError(
                    f"table version {version} has timeline layout {candidate.layout}, but the properties say {layout}",
                    path=path,
                    remedy=(
                        "set hoodie.timeline.layout.version to what wrote the timeline, or finish the upgrade that "
                        "changed it"
                    ),
                )
            return candidate
    numbers = ", ".join(str(known.number) for known in SUPPORTED)
    message = f"table version {version} is not supported; this release reads the table versions {numbers}"
    remedy = "upgrade the table with Hudi's own writer, or use a release that handles it"
    raise UnsupportedVersionError(message, path=path, remedy=remedy)
