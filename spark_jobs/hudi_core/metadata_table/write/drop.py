"""Drops the metadata table, or one index of it: hoodie.properties first, then the files.

From then on readers list the storage, and Hudi's next write rebuilds what it is configured to have
(HoodieTableMetadataUtil.deleteMetadataTable, deleteMetadataTablePartition).
"""

from __future__ import annotations

from collections.abc import Collection

from hudi_core.config.properties_update import update_properties
from hudi_core.config.table_config import METADATA, METADATA_INFLIGHT, PROPERTIES, TableConfig
from hudi_core.metadata_table.partition_type import FILES_PARTITION, MADE_OF
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.model.partition import check_file_name
from hudi_core.storage.base import Storage

_PROPERTIES = f"{ROOT}/{PROPERTIES}"


def drop_metadata_table(storage: Storage) -> TableConfig:
    """Deletes the metadata table of the table in `storage`; returns the table's properties without it. The caller holds
    the table lock.
    """
    config = update_properties(storage, {METADATA.name: "", METADATA_INFLIGHT.name: ""})
    _delete_folders(storage)
    return config


def remove_dropped(storage: Storage, config: TableConfig) -> bool:
    """Deletes what a crash left of a metadata table that was being dropped; False when there is nothing. The caller
    holds the table lock.
    """
    if not is_drop_unfinished(storage, config):
        return False
    _delete_folders(storage)
    return True


def is_drop_unfinished(storage: Storage, config: TableConfig) -> bool:
    """Whether a crash interrupted the drop of a metadata table.

    The missing properties show it: they go first, and come first when Hudi builds a metadata table.
    """
    if config.metadata_partitions or config.metadata_partitions_inflight or storage.exists(_PROPERTIES):
        return False
    return bool(storage.list_folders(ROOT))


def _delete_folders(storage: Storage) -> None:
    storage.delete(_PROPERTIES)
    # Its timeline next: Hudi clears the folder of a partition that it rebuilds, but would continue a timeline that a
    # crash left.
    storage.delete_folder(f"{ROOT}/.hoodie")
    storage.delete_folder(ROOT)


def drop_partitions(storage: Storage, config: TableConfig, partitions: Collection[str]) -> TableConfig:
    """Deletes some indexes and those made of them (with_dependents), with `files` the whole metadata table; as
    drop_metadata_table.

    `config` is as loaded under the lock.
    """
    if FILES_PARTITION in partitions:
        return drop_metadata_table(storage)
    partitions = with_dependents(partitions)
    if not partitions:
        return config
    listed, inflight = (
        config.metadata_partitions.difference(partitions),
        config.metadata_partitions_inflight.difference(partitions),
    )
    changed = update_properties(
        storage, {METADATA.name: ",".join(sorted(listed)), METADATA_INFLIGHT.name: ",".join(sorted(inflight))}
    )
    for name in sorted(partitions):
        storage.delete_folder(f"{ROOT}/{check_file_name(name, source=config.path)}")
    return changed


def with_dependents(partitions: Collection[str]) -> frozenset[str]:
    """The named partitions, and those that go with them: `partition_stats` with `column_stats`."""
    return frozenset(partitions).union(*(MADE_OF.get(name, ()) for name in partitions))
