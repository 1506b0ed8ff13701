"""The deltacommit that initializes partitions of the metadata table, or adds file groups to one
(HoodieBackedTableMetadataWriter.initializeFileGroups): what tasks wrote is checked, and what lost attempts wrote is
deleted, first.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence

from hudi_core.config.properties_update import update_properties
from hudi_core.config.table_config import METADATA, METADATA_INFLIGHT, TableConfig
from hudi_core.config.versions import TableVersion
from hudi_core.errors import ExecutionError, StorageExistsError
from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition, initialize_group
from hudi_core.metadata_table.instants import initial_instant
from hudi_core.metadata_table.partition_type import is_secondary_index
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.timeline import NEWER_COUNTS, MetadataTimeline, latest_schema
from hudi_core.metadata_table.whole_until import marks
from hudi_core.model.partition import join
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.commit import SCHEMA_KEY, CommitMetadata
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.reconcile import remove_losers

log = logging.getLogger(__name__)

InitializedGroups = Mapping[str, tuple[NewPartition, Sequence[NewBaseFile]]]
"""By metadata partition, where it was written and its base files."""


def start_initialization(metadata_timeline: MetadataTimeline, instant: str) -> None:
    metadata_timeline.active.create_requested(instant, Action.DELTA_COMMIT)
    metadata_timeline.active.to_inflight(instant, Action.DELTA_COMMIT)


def complete_initialization(
    metadata_timeline: MetadataTimeline, instant: str, initialized: InitializedGroups, schema: str
) -> None:
    """`schema` is that of the records, without meta fields."""
    features = metadata_timeline.features
    stats = {
        name: tuple(_base_stat(target, item, features) for item in written)
        for name, (target, written) in initialized.items()
        if written
    }
    metadata = CommitMetadata(stats, False, features.metadata_initialized_with, {SCHEMA_KEY: schema})
    metadata_timeline.complete(instant, Action.DELTA_COMMIT, metadata_timeline.commit_content(metadata))


def check_written(target: NewPartition, written: Sequence[NewBaseFile]) -> None:
    """Raises ExecutionError unless tasks report each file group at most once, under the name of this instant."""
    by_group = {item.file_id: item for item in written}
    wrong = [
        item
        for item in written
        if item.file_id not in target.file_ids or not item.name.endswith(f"_{target.instant}.hfile") or item.size <= 0
    ]
    if len(by_group) != len(written) or wrong:
        raise ExecutionError(
            f"what was written of the metadata partition `{target.name}` does not fit its file groups",
            path=target.folder,
        )


def remove_attempts(
    storage: Storage, target: NewPartition, written: Sequence[NewBaseFile], guard: Callable[[], None]
) -> None:
    """Deletes what other attempts of the tasks wrote: it would count. `guard` raises when the table lock is lost."""
    winners = {f"{target.folder}/{item.name}": item.size for item in written}
    remove_losers(storage, target.instant, [target.folder], winners, check=guard)


def list_partitions(storage: Storage, config: TableConfig, names: Sequence[str]) -> TableConfig:
    """Lists inflight partitions as initialized ones in the table's properties; returns these. The caller holds the
    table lock.

    The partitions hold everything that completed so far; of secondary indexes the properties say so (whole_until).
    """
    data = ActiveTimeline(storage, config).load()
    return update_properties(
        storage,
        {
            METADATA.name: ",".join(sorted(config.metadata_partitions.union(names))),
            METADATA_INFLIGHT.name: ",".join(sorted(config.metadata_partitions_inflight.difference(names))),
            **marks(data, {name: storage.list_files(f"{ROOT}/{name}") for name in names if is_secondary_index(name)}),
        },
    )


def initialize_groups(
    storage: Storage, metadata_timeline: MetadataTimeline, data: Timeline, name: str, file_ids: Sequence[str]
) -> None:
    """Adds file groups without records to a partition, as for a new data partition of a partitioned record index.

    `data` is the data table's timeline. The caller holds the table lock. It may be repeated after a crash: files of an
    incomplete deltacommit are ignored, and the same groups are created under the next instant.
    """
    if not file_ids:
        return
    timeline = metadata_timeline.active.load()
    instant = initial_instant(data, timeline, metadata_timeline.features)
    log.info("the metadata partition %s gets the file groups %s", name, ", ".join(file_ids))
    start_initialization(metadata_timeline, instant)
    for file_id in file_ids:
        # A dead attempt's instant may have been rolled back and its file kept, which is equivalent.
        with contextlib.suppress(StorageExistsError):
            initialize_group(storage, name, file_id, instant)
    complete_initialization(metadata_timeline, instant, {}, latest_schema(metadata_timeline.active, timeline))


def _base_stat(target: NewPartition, file: NewBaseFile, features: TableVersion) -> WriteStat:
    """HoodieCreateHandle."""
    return WriteStat(
        file_id=file.file_id,
        path=join(target.name, file.name),
        partition_path=target.name,
        prev_commit="null",
        num_writes=file.records,
        num_deletes=0,
        num_update_writes=0,
        num_inserts=file.records,
        file_size_in_bytes=file.size,
        total_write_bytes=file.size,
        extra={} if features.json_commits else NEWER_COUNTS,
    )
