"""The files of a new metadata table (HoodieBackedTableMetadataWriter.initializeMetaClient): `hoodie.properties`,
as Hudi of the data table's version writes them (HoodieTableConfig), and the Avro schema of its records
(HoodieMetadata.avsc).

An existing metadata table is written by the schema in its latest commit (delta_commit.latest_schema).
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from functools import lru_cache
from importlib import resources
from typing import Final

from hudi_core.config.properties import render_properties
from hudi_core.config.table_config import (
    ARCHIVE_FOLDER,
    BASE_FORMAT,
    CHECKSUM,
    DROP_PARTITION,
    HISTORY_FOLDER,
    LAYOUT,
    MERGE_ON_READ,
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
)
from hudi_core.config.versions import V6, V8, TableVersion
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.model.names import META_FIELDS
from hudi_core.storage.base import Storage

_SUFFIX: Final = "_metadata"
_PAYLOAD: Final = "org.apache.hudi.metadata.HoodieMetadataPayload"
_KEY_GENERATOR: Final = "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator"
_EVENT_TIME: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_PAYLOAD_BASED: Final = "00000000-0000-0000-0000-000000000000"
_SCHEMAS: Final = {V6.number: "schema_v6.avsc", V8.number: "schema_v8.avsc"}
_LATEST_SCHEMA: Final = "schema_v9.avsc"


def metadata_properties(config: TableConfig) -> dict[str, str]:
    """The properties of the metadata table of a data table: without database and partition fields."""
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
    """Creates the file; raises StorageExistsError where there is one. It comes first of the metadata table, and goes
    first (drop).
    """
    now = datetime.now(timezone.utc)
    saved = f"Properties saved on {now.isoformat(timespec='microseconds').replace('+00:00', 'Z')}"
    data = render_properties(metadata_properties(config), comments=(saved, now.strftime("%a %b %d %H:%M:%S UTC %Y")))
    storage.create_exclusive(f"{ROOT}/{PROPERTIES}", data)


@lru_cache(maxsize=4)
def stored_schema(version: TableVersion) -> str:
    """The schema of log blocks and base files: that of the records, the `_hoodie_*` columns first, without Hudi's doc
    texts.
    """
    file = resources.files("hudi_core.metadata_table").joinpath(_SCHEMAS.get(version.number, _LATEST_SCHEMA))
    return file.read_text(encoding="utf-8").strip()


@lru_cache(maxsize=4)
def commit_schema(version: TableVersion) -> str:
    """The schema that commits carry: without the `_hoodie_*` columns."""
    schema = json.loads(stored_schema(version))
    fields = [field for field in schema["fields"] if field["name"] not in META_FIELDS]
    return json.dumps({**schema, "fields": fields}, separators=(",", ":"), ensure_ascii=False)
