"""`.hoodie/hoodie.properties`: the properties of a table, and their changes (HoodieTableConfig)."""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping
from dataclasses import field

from hudi_core.config.keys import MAX_INT, ConfigKey, flag, names, number, one_of, optional, read_fields
from hudi_core.config.properties import parse_properties, stamped_properties
from hudi_core.config.rows_config import TIMELINE_ZONE
from hudi_core.config.versions import TableVersion, require_supported
from hudi_core.errors import (
    ConfigError,
    ConflictError,
    CorruptFileError,
    FormatError,
    HudiError,
    StorageExistsError,
    StorageNotFoundError,
    UnsupportedError,
)
from hudi_core.frozen import dataclass
from hudi_core.model.partition import check_file_name, join
from hudi_core.storage.base import Storage
from hudi_core.storage.one_look import once


def timeline_zone(config: TableConfig, options: Mapping[str, str]) -> str:
    """Returns UTC when the properties say so, else the option, else LOCAL: the table does not record its zone."""
    return config.timezone if config.timezone == "UTC" else TIMELINE_ZONE.read(options)


PROPERTIES = ".hoodie/hoodie.properties"
BACKUP = ".hoodie/hoodie.properties.backup"
COPY_ON_WRITE = "COPY_ON_WRITE"
MERGE_ON_READ = "MERGE_ON_READ"
LANCE = "LANCE"

_ATTEMPTS = 5
_PAUSE_SECONDS = 0.2

NAME = ConfigKey("hoodie.table.name", "", str)
DATABASE = ConfigKey("hoodie.database.name", "", str)
TABLE_TYPE = ConfigKey("hoodie.table.type", "", one_of(COPY_ON_WRITE, MERGE_ON_READ))
VERSION = number("hoodie.table.version", -1, within=(0, MAX_INT))
LAYOUT = number("hoodie.timeline.layout.version", -1, within=(0, MAX_INT))
CHECKSUM = number("hoodie.table.checksum", -1, within=(0, 2**32 - 1))
RECORD_KEYS = names("hoodie.table.recordkey.fields")
PARTITION_FIELDS = names("hoodie.table.partition.fields")
ORDERING = names("hoodie.table.ordering.fields", aliases=("hoodie.table.precombine.field",))
PAYLOAD = optional("hoodie.compaction.payload.class")
BASE_FORMAT = ConfigKey("hoodie.table.base.file.format", "PARQUET", one_of("PARQUET", "ORC", "HFILE", LANCE))
METADATA = names("hoodie.table.metadata.partitions")
METADATA_INFLIGHT = names("hoodie.table.metadata.partitions.inflight")
POPULATE_META = flag("hoodie.populate.meta.fields", default=True)
TIMEZONE = ConfigKey("hoodie.table.timeline.timezone", "LOCAL", one_of("LOCAL", "UTC"))
ARCHIVE_FOLDER = ConfigKey("hoodie.archivelog.folder", "archived", str)
TIMELINE_FOLDER = ConfigKey("hoodie.timeline.path", "timeline", str)
HISTORY_FOLDER = ConfigKey("hoodie.timeline.history.path", "history", str)
DROP_PARTITION = flag("hoodie.datasource.write.drop.partition.columns")
CHANGE_LOGS = flag("hoodie.table.cdc.enabled")
KEYS_ONLY = "OP_KEY_ONLY"
ROWS_BEFORE = "DATA_BEFORE"
WHOLE_IMAGES = "DATA_BEFORE_AFTER"
CHANGE_LOG_MODE = ConfigKey(
    "hoodie.table.cdc.supplemental.logging.mode", WHOLE_IMAGES, one_of(WHOLE_IMAGES, ROWS_BEFORE, KEYS_ONLY)
)

CREATE_SCHEMA = "hoodie.table.create.schema"


@dataclass(frozen=True, slots=True)
class TableConfig:
    """The properties of a table, typed. `raw` holds all of them as text, unknown ones too."""

    path: str
    """The properties file, for messages."""
    raw: Mapping[str, str] = field(repr=False)
    version: int
    layout_version: int
    partition_fields: tuple[str, ...]
    """Column names. Of a custom key generator's `column:TYPE`, only the column is kept."""
    base_file_format: str
    metadata_partitions: frozenset[str]
    metadata_partitions_inflight: frozenset[str]
    timeline_folder: str
    """Folder of the active timeline below the base path."""
    history_folder: str
    """Folder of the archived timeline below the base path."""
    name: str = NAME.field()
    database: str = DATABASE.field()
    table_type: str = TABLE_TYPE.field()
    record_key_fields: tuple[str, ...] = RECORD_KEYS.field()
    ordering_fields: tuple[str, ...] = ORDERING.field()
    """The precombine column. Only version 9 and later have several."""
    payload_class: str | None = PAYLOAD.field()
    """The class of `hoodie.compaction.payload.class`; None when the properties have none."""
    populate_meta_fields: bool = POPULATE_META.field()
    timezone: str = TIMEZONE.field()
    drop_partition_columns: bool = DROP_PARTITION.field()

    @property
    def create_schema(self) -> str | None:
        return self.raw.get(CREATE_SCHEMA) or None

    @property
    def dropped_columns(self) -> tuple[str, ...]:
        """The partition columns, when data files lack them. Those of Hudi's row writer are in the table's schema."""
        return self.partition_fields if self.drop_partition_columns else ()

    @property
    def change_logs(self) -> str | None:
        """What the change logs of writes have of each row (CHANGE_LOG_MODE). None where the table has no such logs."""
        return CHANGE_LOG_MODE.read(self.raw, path=self.path) if CHANGE_LOGS.read(self.raw, path=self.path) else None

    @property
    def is_merge_on_read(self) -> bool:
        return self.table_type == MERGE_ON_READ

    @property
    def is_of_hudi_1(self) -> bool:
        """Whether Hudi 1.x wrote the properties. It names the timeline's folder, also in version 6; 0.15 does not."""
        return self.features.merge_modes or TIMELINE_FOLDER.name in self.raw

    @property
    def features(self) -> TableVersion:
        """The features of the table's version. Raises UnsupportedVersionError for one that is not handled here."""
        return require_supported(self.version, self.layout_version, self.path)

    @staticmethod
    def load(storage: Storage, *, base: str = "") -> TableConfig:
        """Reads and checks the properties of the table at `base` (`""`, or `.hoodie/metadata` for the metadata table).
        Raises ConfigError when there is no table, CorruptFileError when neither the file nor its backup is whole,
        UnsupportedVersionError.
        """
        main, backup = join(base, PROPERTIES), join(base, BACKUP)
        return once(storage, main, lambda: _read_valid(storage, main, backup))

    @staticmethod
    def parse(data: bytes, *, path: str = PROPERTIES, any_version: bool = True) -> TableConfig:
        """Returns the properties as typed values. Raises CorruptFileError (checksum, missing keys) or ConfigError
        naming `path`. Without `any_version`, also raises UnsupportedVersionError, before any other key is evaluated,
        and UnsupportedError for LANCE.
        """
        return TableConfig.of(parse_properties(data, path=path), path=path, any_version=any_version)

    @staticmethod
    def of(raw: Mapping[str, str], *, path: str = PROPERTIES, any_version: bool = True) -> TableConfig:
        """Returns what `parse` does, from the file's keys and values."""
        _check_whole(raw, path)
        version = VERSION.read(raw, path=path)
        # Only tables before version 8 may lack the key; they have layout 1 (TimelineLayoutVersion).
        layout = LAYOUT.read(raw, path=path) if LAYOUT.is_set(raw) else 1 if version < 8 else 2
        if not any_version:
            require_supported(version, layout, path)
        base_format = BASE_FORMAT.read(raw, path=path)
        if base_format == LANCE and not any_version:
            raise UnsupportedError(
                "base files of format LANCE", path=path, remedy="read the table with Hudi 1.2 or later"
            )
        timeline = ".hoodie"
        if layout > 1:
            timeline = join(timeline, check_file_name(TIMELINE_FOLDER.read(raw, path=path), source=path))
        return read_fields(
            TableConfig,
            raw,
            source=path,
            path=path,
            raw=raw,
            version=version,
            layout_version=layout,
            partition_fields=tuple(name.split(":", 1)[0] for name in PARTITION_FIELDS.read(raw, path=path)),
            base_file_format=base_format,
            metadata_partitions=frozenset(METADATA.read(raw, path=path)),
            metadata_partitions_inflight=frozenset(METADATA_INFLIGHT.read(raw, path=path)),
            timeline_folder=timeline,
            history_folder=_history_folder(raw, timeline, layout, path),
        )


def table_checksum(database: str, name: str) -> int:
    """Returns the CRC32 of `database.name` in UTF-8 (HoodieTableConfig.generateChecksum)."""
    return zlib.crc32(f"{database}.{name}".encode())


def _read_valid(storage: Storage, main: str, backup: str) -> TableConfig:
    """Reads the file, else its backup. A writer creates the backup, deletes the file, writes it again and deletes the
    backup (HoodieTableConfig.modify). While a backup exists, an unreadable pair is tried a few times.
    """
    failure: HudiError | None = None
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_SECONDS)
        failure = None
        for path in (main, backup, main):
            try:
                return TableConfig.parse(storage.read(path), path=main, any_version=False)
            except StorageNotFoundError:
                continue
            except UnsupportedError:
                raise
            except (FormatError, ConfigError) as error:
                failure = failure or error
        if not storage.exists(backup):
            break
    raise failure or _no_table(storage, main)


def _no_table(storage: Storage, main: str) -> ConfigError:
    """Returns the error for a folder without the file, or a missing folder. Needs two more requests."""
    is_there = storage.list_names("") or storage.list_folders("")
    what = "the file is missing" if is_there else "the folder does not exist or is empty"
    message, remedy = f"{storage.uri} is not a Hudi table: {what}", "check the address of the table"
    return ConfigError(message, path=main, remedy=remedy)


def _check_whole(raw: Mapping[str, str], path: str) -> None:
    if not raw:
        raise CorruptFileError(
            "the file is empty", path=path, remedy=f"restore it from {BACKUP} or a copy; a crashed writer left it so"
        )
    for key in (NAME, TABLE_TYPE, VERSION):
        if not key.is_set(raw):
            raise CorruptFileError(f"{key.name} is missing", path=path, remedy="restore the file from a copy")
    expected = table_checksum(raw.get(DATABASE.name, ""), raw[NAME.name])
    if CHECKSUM.is_set(raw) and CHECKSUM.read(raw, path=path) != expected:
        message = f"{CHECKSUM.name} is {raw[CHECKSUM.name]}, but database and name give {expected}"
        remedy = "the name or the database was edited; change that back, or correct the checksum"
        raise CorruptFileError(message, path=path, remedy=remedy)


def _history_folder(raw: Mapping[str, str], timeline: str, layout: int, path: str) -> str:
    """Returns the folder of the archive. An empty name means the timeline's folder (tables of the first releases)."""
    folder = (HISTORY_FOLDER if layout > 1 else ARCHIVE_FOLDER).read(raw, path=path)
    return join(timeline, check_file_name(folder, source=path)) if folder or layout > 1 else timeline


_REMEDY = "no writer may change the properties without the table lock; find the other writer, then run again"


def update_properties(storage: Storage, changes: Mapping[str, str]) -> TableConfig:
    """Sets properties of the table, under the table lock, and returns all of them. A crash at any point leaves readers
    a whole file. Hudi writes the backup, deletes the file and writes it again, and readers take the backup meanwhile
    (HoodieTableConfig.update). Here the file is replaced at once. The backup exists meanwhile as well, for Hudi's own
    recovery. Nothing is written when nothing changes. What a crash left of an earlier update is repaired first. Raises
    ConflictError when another writer is changing the properties, and the errors of TableConfig.load when no whole file
    exists.
    """
    old = _recovered(storage)
    raw = parse_properties(old, path=PROPERTIES)
    new = raw | dict(changes)
    if not CHECKSUM.is_set(new):
        new[CHECKSUM.name] = str(table_checksum(new.get(DATABASE.name, ""), new[NAME.name]))
    if new == raw:
        return TableConfig.of(raw)
    # Makes every check of a reader, before anything is written.
    config = TableConfig.of(new)
    data = stamped_properties(new, "Updated at")
    try:
        storage.create_exclusive(BACKUP, old)
    except StorageExistsError as error:
        raise ConflictError("another writer is changing the table's properties", path=BACKUP, remedy=_REMEDY) from error
    storage.write(PROPERTIES, data)
    if parse_properties(storage.read(PROPERTIES), path=PROPERTIES) != new:
        raise ConflictError("the properties are not what was just written", path=PROPERTIES, remedy=_REMEDY)
    storage.delete(BACKUP)
    return config


def _recovered(storage: Storage) -> bytes:
    """Returns the whole file. A damaged or missing file is restored from the backup, which is then deleted."""
    failure: FormatError | ConfigError | None = None
    for path in (PROPERTIES, BACKUP):
        try:
            data = storage.read(path)
            TableConfig.parse(data, path=path)
        except StorageNotFoundError:
            continue
        except (CorruptFileError, ConfigError) as error:
            failure = error if path == PROPERTIES else failure
            continue
        if path == BACKUP:
            storage.write(PROPERTIES, data)
        storage.delete(BACKUP)
        return data
    raise failure or ConfigError(
        f"{storage.uri} is not a Hudi table: the file is missing", path=PROPERTIES, remedy="check the table's address"
    )
