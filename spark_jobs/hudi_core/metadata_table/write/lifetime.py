"""The beginning and the end of a metadata table, or of one of its indexes. `hoodie.properties` is written first at the
beginning, and changed or deleted first at the end.

A new metadata table has the properties that Hudi of the data table's version writes (HoodieTableConfig). After a drop
readers list the storage, and Hudi's next write rebuilds the partitions that its options name
(HoodieTableMetadataUtil.deleteMetadataTable, deleteMetadataTablePartition).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from hudi_core.config.properties import CREATED, stamped_properties
from hudi_core.config.table_config import (
    ARCHIVE_FOLDER,
    BASE_FORMAT,
    CHECKSUM,
    DROP_PARTITION,
    HISTORY_FOLDER,
    LAYOUT,
    MERGE_ON_READ,
    METADATA,
    METADATA_INFLIGHT,
    NAME,
    PAYLOAD,
    POPULATE_META,
    PROPERTIES,
    RECORD_KEYS,
    TABLE_TYPE,
    TIMELINE_FOLDER,
    VERSION,
    TableConfig,
    table_checksum,
    update_properties,
)
from hudi_core.metadata_table.partition_type import FILES_PARTITION, MADE_OF
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.model.partition import check_file_name
from hudi_core.storage.base import Storage

_PROPERTIES = f"{ROOT}/{PROPERTIES}"

_SUFFIX: Final = "_metadata"
_PAYLOAD: Final = "org.apache.hudi.metadata.HoodieMetadataPayload"
_KEY_GENERATOR: Final = "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator"
_EVENT_TIME: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_PAYLOAD_BASED: Final = "00000000-0000-0000-0000-000000000000"


def metadata_properties(config: TableConfig) -> dict[str, str]:
    """Returns the properties of a data table's metadata table, which has no database and no partition fields."""
    features = config.features
    name = f"{config.name}{_SUFFIX}"
    common = {
        PAYLOAD.name: _PAYLOAD,
        TABLE_TYPE.name: MERGE_ON_READ,
        LAYOUT.name: str(features.layout),
        CHECKSUM.name: str(table_checksum("", name)),
        DROP_PARTITION.name: "false",
        RECORD_KEYS.name: "key",
        NAME.name: name,
        POPULATE_META.name: "false",
        BASE_FORMAT.name: "HFILE",
        VERSION.name: str(features.number),
    }
    if not features.merge_modes:
        return common | {
            ARCHIVE_FOLDER.name: "archived",
            "hoodie.compaction.record.merger.strategy": _EVENT_TIME,
            "hoodie.table.keygenerator.class": _KEY_GENERATOR,
        }
    return common | {
        ARCHIVE_FOLDER.name: "history",
        TIMELINE_FOLDER.name: "timeline",
        HISTORY_FOLDER.name: "history",
        "hoodie.table.initial.version": str(features.number),
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": _PAYLOAD_BASED,
    }


def write_metadata_properties(storage: Storage, config: TableConfig) -> None:
    storage.create_exclusive(_PROPERTIES, stamped_properties(metadata_properties(config), CREATED))


def drop_metadata_table(storage: Storage) -> TableConfig:
    """Drops the metadata table; returns the table's properties without it. The caller holds the table lock."""
    config = update_properties(storage, {METADATA.name: "", METADATA_INFLIGHT.name: ""})
    _delete_folders(storage)
    return config


def remove_dropped(storage: Storage, config: TableConfig) -> bool:
    """Finishes a drop that a crash interrupted; returns False when there is none. The caller holds the table lock."""
    if not is_drop_unfinished(storage, config):
        return False
    _delete_folders(storage)
    return True


def is_drop_unfinished(storage: Storage, config: TableConfig) -> bool:
    """Returns whether a crash interrupted the drop of a metadata table: its properties are missing."""
    if config.metadata_partitions or config.metadata_partitions_inflight or storage.exists(_PROPERTIES):
        return False
    return bool(storage.list_folders(ROOT))


def _delete_folders(storage: Storage) -> None:
    storage.delete(_PROPERTIES)
    # The timeline is next: Hudi clears the folder of a partition that it rebuilds, but would continue a timeline that a
    # crash left.
    storage.delete_folder(f"{ROOT}/.hoodie")
    storage.delete_folder(ROOT)


def drop_partitions(storage: Storage, config: TableConfig, partitions: Collection[str]) -> TableConfig:
    """Drops partitions and dependents; `files` means all. Returns the properties. `config`: loaded under the lock."""
    if FILES_PARTITION in partitions:
        return drop_metadata_table(storage)
    partitions = with_dependents(partitions)
    if not partitions:
        return config
    listed = config.metadata_partitions.difference(partitions)
    inflight = config.metadata_partitions_inflight.difference(partitions)
    changed = update_properties(
        storage, {METADATA.name: ",".join(sorted(listed)), METADATA_INFLIGHT.name: ",".join(sorted(inflight))}
    )
    for name in sorted(partitions):
        storage.delete_folder(f"{ROOT}/{check_file_name(name, source=config.path)}")
    return changed


def with_dependents(partitions: Collection[str]) -> frozenset[str]:
    """Returns `partitions` and those that depend on them: `partition_stats` depends on `column_stats`."""
    return frozenset(partitions).union(*(MADE_OF.get(name, ()) for name in partitions))
