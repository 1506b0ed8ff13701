"""`.hoodie/hoodie.properties`: the properties of a table (HoodieTableConfig)."""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_core.config.keys import MAX_INT, ConfigKey, flag, names, number, one_of, optional, read_fields
from hudi_core.config.properties import parse_properties
from hudi_core.config.read_config import TIMELINE_ZONE
from hudi_core.config.versions import TableVersion, require_supported
from hudi_core.errors import (
    ConfigError,
    CorruptFileError,
    FormatError,
    HudiError,
    StorageNotFoundError,
    UnsupportedError,
)
from hudi_core.model.partition import check_file_name, join
from hudi_core.storage.base import Storage
from hudi_core.storage.one_look import once


def timeline_zone(config: TableConfig, options: Mapping[str, str]) -> str:
    """The zone's name for timeline.instant_time: UTC when the properties say so, else the option, else LOCAL, this
    process's: the table does not record the zone of the process that wrote it.
    """
    return config.timezone if config.timezone == "UTC" else TIMELINE_ZONE.read(options)


PROPERTIES = ".hoodie/hoodie.properties"
BACKUP = ".hoodie/hoodie.properties.backup"
COPY_ON_WRITE = "COPY_ON_WRITE"
MERGE_ON_READ = "MERGE_ON_READ"
LANCE = "LANCE"

_ATTEMPTS = 5
_PAUSE_SECONDS = 0.2

NAME = ConfigKey("hoodie.table.name", "", str, "name of the table")
DATABASE = ConfigKey("hoodie.database.name", "", str, "database of the table, may be empty")
TABLE_TYPE = ConfigKey("hoodie.table.type", "", one_of(COPY_ON_WRITE, MERGE_ON_READ), "COPY_ON_WRITE or MERGE_ON_READ")
VERSION = number("hoodie.table.version", -1, "version of the table format", within=(0, MAX_INT))
LAYOUT = number("hoodie.timeline.layout.version", -1, "layout of the timeline: 1 or 2", within=(0, MAX_INT))
CHECKSUM = number("hoodie.table.checksum", -1, "CRC32 of `database.name`", within=(0, 2**32 - 1))
RECORD_KEYS = names("hoodie.table.recordkey.fields", "comma list of record key columns")
PARTITION_FIELDS = names("hoodie.table.partition.fields", "comma list of partition columns")
ORDERING = names(
    "hoodie.table.ordering.fields",
    "column that decides which of two versions of a row is newer",
    aliases=("hoodie.table.precombine.field",),
)
PAYLOAD = optional("hoodie.compaction.payload.class", "class of Hudi that merges two versions of a row")
BASE_FORMAT = ConfigKey(
    "hoodie.table.base.file.format", "PARQUET", one_of("PARQUET", "ORC", "HFILE", LANCE), "format of base files"
)
METADATA = names("hoodie.table.metadata.partitions", "partitions of the metadata table")
METADATA_INFLIGHT = names(
    "hoodie.table.metadata.partitions.inflight", "partitions of the metadata table that are being built"
)
POPULATE_META = flag("hoodie.populate.meta.fields", "whether rows carry the _hoodie_ columns", default=True)
TIMEZONE = ConfigKey(
    "hoodie.table.timeline.timezone", "LOCAL", one_of("LOCAL", "UTC"), "zone of the instant times: LOCAL or UTC"
)
ARCHIVE_FOLDER = ConfigKey("hoodie.archivelog.folder", "archived", str, "folder of the archived timeline below .hoodie")
TIMELINE_FOLDER = ConfigKey("hoodie.timeline.path", "timeline", str, "folder of the timeline of layout 2 below .hoodie")
HISTORY_FOLDER = ConfigKey(
    "hoodie.timeline.history.path", "history", str, "folder of the archived timeline of layout 2"
)
DROP_PARTITION = flag("hoodie.datasource.write.drop.partition.columns", "base files lack the partition columns")

_CREATE_SCHEMA = "hoodie.table.create.schema"


@dataclass(frozen=True, slots=True)
class TableConfig:
    """The properties of a table, typed. `raw` holds all of them as text, unknown ones too."""

    path: str
    """The properties file, for messages."""
    raw: Mapping[str, str] = field(repr=False)
    version: int
    layout_version: int
    partition_fields: tuple[str, ...]
    """Column names; a custom key generator's `column:TYPE` is cut to the column."""
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
    """The precombine column; several only from version 9 on."""
    payload_class: str | None = PAYLOAD.field()
    """The class of `hoodie.compaction.payload.class`; None when the properties have none."""
    populate_meta_fields: bool = POPULATE_META.field()
    timezone: str = TIMEZONE.field()
    drop_partition_columns: bool = DROP_PARTITION.field()

    @property
    def create_schema(self) -> str | None:
        return self.raw.get(_CREATE_SCHEMA) or None

    @property
    def dropped_columns(self) -> tuple[str, ...]:
        """The partition columns where data files lack them. Hudi's row writer leaves them in the table's schema, and in
        the file a column without values, which cannot be read.
        """
        return self.partition_fields if self.drop_partition_columns else ()

    @property
    def is_merge_on_read(self) -> bool:
        return self.table_type == MERGE_ON_READ

    @property
    def is_of_hudi_1(self) -> bool:
        """Whether Hudi 1.x wrote the properties: of version 6, too, it names the timeline's folder, which 0.15 does not
        know.
        """
        return self.features.merge_modes or TIMELINE_FOLDER.name in self.raw

    @property
    def features(self) -> TableVersion:
        """What the table's version has; raises UnsupportedVersionError for one that this release does not handle."""
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
        """The properties as typed values. Raises CorruptFileError (checksum, missing keys) or ConfigError naming
        `path`. Unless `any_version`, also UnsupportedVersionError, before any other key is evaluated, and
        UnsupportedError for LANCE.
        """
        return TableConfig.of(parse_properties(data, path=path), path=path, any_version=any_version)

    @staticmethod
    def of(raw: Mapping[str, str], *, path: str = PROPERTIES, any_version: bool = True) -> TableConfig:
        """As parse, of the file's keys and values."""
        _check_whole(raw, path)
        version = VERSION.read(raw, path=path)
        layout = _layout(raw, version, path)
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
    """CRC32 of `database.name` in UTF-8 (HoodieTableConfig.generateChecksum)."""
    return zlib.crc32(f"{database}.{name}".encode())


def _read_valid(storage: Storage, main: str, backup: str) -> TableConfig:
    """The file, else its backup: a writer creates the backup, deletes the file, writes it again and deletes the backup
    (HoodieTableConfig.modify). While a backup exists, an unreadable pair is tried a few times.
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
    """The error for a folder without the file, or for one that does not exist: two requests more, at the end only."""
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
        remedy = "the name or the database was edited; undo that, or correct the checksum"
        raise CorruptFileError(message, path=path, remedy=remedy)


def _history_folder(raw: Mapping[str, str], timeline: str, layout: int, path: str) -> str:
    """In tables of the first releases the archive is beside the timeline: the folder's name is empty."""
    folder = (HISTORY_FOLDER if layout > 1 else ARCHIVE_FOLDER).read(raw, path=path)
    return join(timeline, check_file_name(folder, source=path)) if folder or layout > 1 else timeline


def _layout(raw: Mapping[str, str], version: int, path: str) -> int:
    """Layout 1 when the key is absent, which only tables before version 8 may do (TimelineLayoutVersion)."""
    if LAYOUT.is_set(raw):
        return LAYOUT.read(raw, path=path)
    return 1 if version < 8 else 2
