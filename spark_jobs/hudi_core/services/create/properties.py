"""The properties of a new table, as Hudi's Spark writer of its version writes them (HoodieSparkSqlWriter,
HoodieTableMetaClient.TableBuilder): 0.15 for version 6, 1.0 for 8, 1.2 for 9. What none of them does: the schema is
there, as in a table of Spark SQL (HoodieCatalogTable), so that it is known before the first commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.schema import AvroSchema, parse_schema
from hudi_core.config.keys import ConfigKey, flag, optional
from hudi_core.config.new_table import (
    COMMIT_TIME,
    CUSTOM,
    EVENT_TIME,
    NewTable,
    key_generator_class,
    key_generator_type,
)
from hudi_core.config.rows_config import (
    TIME_DELIMITER,
    TIME_INPUT,
    TIME_INPUT_ZONE,
    TIME_OUTPUT,
    TIME_OUTPUT_ZONE,
    TIME_TYPE,
    TIME_UNIT,
    TIME_ZONE,
    Payload,
)
from hudi_core.config.table_config import (
    ARCHIVE_FOLDER,
    BASE_FORMAT,
    CHANGE_LOG_MODE,
    CHANGE_LOGS,
    CHECKSUM,
    CREATE_SCHEMA,
    DATABASE,
    DROP_PARTITION,
    HISTORY_FOLDER,
    LAYOUT,
    NAME,
    ORDERING,
    PARTITION_FIELDS,
    PAYLOAD,
    POPULATE_META,
    PROPERTIES,
    RECORD_KEYS,
    TABLE_TYPE,
    TIMELINE_FOLDER,
    TIMEZONE,
    VERSION,
    table_checksum,
)
from hudi_core.config.versions import V6, V8, V9, TableVersion
from hudi_core.errors import UnsupportedError
from hudi_core.filegroup.merge.table_policy import (
    COMMIT_TIME_STRATEGY,
    DELETE_FIELD_KEY,
    DELETE_MARKER_KEY,
    EVENT_TIME_STRATEGY,
    MERGE_MODE_KEY,
    ORDERING_FIELDS_KEY,
    PARTIAL_UPDATE_KEY,
    PAYLOAD_STRATEGY,
    PROPERTY_PREFIX,
    STRATEGY_KEY,
    STRATEGY_KEY_0_15,
)
from hudi_core.filegroup.read.partition_values import KEYGENERATOR_CLASS, KEYGENERATOR_TYPE
from hudi_core.filegroup.write.key_generator import HIVE_STYLE, URL_ENCODE
from hudi_core.frozen import dataclass

_VERSIONS: Final[Mapping[int, TableVersion]] = {version.number: version for version in (V6, V8, V9)}
_PRECOMBINE: Final = "hoodie.table.precombine.field"
_INITIAL_VERSION: Final = "hoodie.table.initial.version"
_LEGACY_PAYLOAD: Final = "hoodie.table.legacy.payload.class"
_METAFILES: Final = flag("hoodie.partition.metafile.use.base.format")
_FORMATS: Final = flag("hoodie.table.multiple.base.file.formats.enable")
_EXTRACTOR: Final = optional("hoodie.datasource.hive_sync.partition_extractor_class")
_EXTRACTORS: Final = "org.apache.hudi.hive."
_FLAGS: Final = (POPULATE_META, URL_ENCODE, DROP_PARTITION, CHANGE_LOGS, _METAFILES)
_TIMES: Final = (
    *(TIME_TYPE, TIME_UNIT, TIME_INPUT, TIME_DELIMITER, TIME_OUTPUT, TIME_ZONE, TIME_INPUT_ZONE, TIME_OUTPUT_ZONE),
)
"""The settings of times in partition paths."""
_PAYLOADS: Final = {EVENT_TIME: Payload.DEFAULT.value, COMMIT_TIME: Payload.LATEST.value}
_STRATEGIES: Final = {
    EVENT_TIME: EVENT_TIME_STRATEGY,
    COMMIT_TIME: COMMIT_TIME_STRATEGY,
    CUSTOM: PAYLOAD_STRATEGY,
}
_FILLS: Final = {PARTIAL_UPDATE_KEY: "IGNORE_DEFAULTS"}
_OF_PAYLOAD: Final[Mapping[str, Mapping[str, str]]] = {
    Payload.PARTIAL_UPDATE.value: _FILLS,
    Payload.NON_DEFAULTS.value: _FILLS,
    Payload.AWS_DMS.value: {
        f"{PROPERTY_PREFIX}{DELETE_FIELD_KEY}": "Op",
        f"{PROPERTY_PREFIX}{DELETE_MARKER_KEY}": "D",
    },
}
"""What version 9 records beside the merge mode of a payload class."""


def new_properties(table: NewTable, options: Mapping[str, str], schema: AvroSchema) -> dict[str, str]:
    """Returns the properties of a new table. Raises ConfigError for an option that is not valid, UnsupportedError for
    one that this engine's writes, or Hudi's, do not obey.
    """
    _check_obeyed(table, options)
    version, database = _VERSIONS[table.table_version], DATABASE.read(options)
    return {
        NAME.name: table.table_name,
        **({DATABASE.name: database} if database or version is V6 else {}),
        TABLE_TYPE.name: table.table_type,
        VERSION.name: str(version.number),
        LAYOUT.name: str(version.layout),
        CHECKSUM.name: str(table_checksum(database, table.table_name)),
        CREATE_SCHEMA: json.dumps(schema, separators=(",", ":"), ensure_ascii=False),
        RECORD_KEYS.name: ",".join(table.record_key),
        PARTITION_FIELDS.name: ",".join(table.partition_columns if version is V6 else table.partition_by),
        **_ordering(table, version),
        **_merging(table, version),
        **_key_generator(table, version, options),
        HIVE_STYLE.name: _text(table.hive_style),
        **{key.name: _text(key.read(options)) for key in _FLAGS},
        **({CHANGE_LOG_MODE.name: CHANGE_LOG_MODE.read(options)} if CHANGE_LOGS.read(options) else {}),
        BASE_FORMAT.name: "PARQUET",
        TIMEZONE.name: TIMEZONE.read(options),
        **_folders(version),
        **({} if version is V6 else {_INITIAL_VERSION: str(version.number), _FORMATS.name: "false"}),
        **(_of_catalogs(table, options) if version is V9 else {}),
    }


def _text(value: bool) -> str:
    return str(value).lower()


def _check_obeyed(table: NewTable, options: Mapping[str, str]) -> None:
    if table.is_merge_on_read and DROP_PARTITION.read(options):
        raise UnsupportedError(
            f"a new merge-on-read table with {DROP_PARTITION.name}=true",
            remedy="leave the option out: Hudi keeps the columns in such a table, and refuses a second write by it",
        )
    base_format = BASE_FORMAT.read(options)
    if base_format != "PARQUET":
        raise UnsupportedError(f"a new table with base files of format {base_format}", remedy="create it by Hudi")
    for key in (_METAFILES, _FORMATS):
        if key.read(options):
            raise UnsupportedError(f"a new table with {key.name}=true", remedy="create it by Hudi")


def _ordering(table: NewTable, version: TableVersion) -> dict[str, str]:
    name = ORDERING_FIELDS_KEY if version is V9 else _PRECOMBINE
    return {name: ",".join(table.ordering)} if table.ordering else {}


def _merging(table: NewTable, version: TableVersion) -> dict[str, str]:
    """Returns how rows of a key are merged. Hudi 0.15 records that of merge-on-read tables alone, and takes the later
    row where no payload class is given.
    """
    if version is V6:
        payload = table.payload or _PAYLOADS[table.merge_mode or COMMIT_TIME]
        recorded = {PAYLOAD.name: payload, STRATEGY_KEY_0_15: EVENT_TIME_STRATEGY}
        return recorded if table.is_merge_on_read or table.merge_mode == EVENT_TIME else {}
    mode = table.payload_mode or table.merge_mode or (EVENT_TIME if table.ordering else COMMIT_TIME)
    if version is V8:
        payload = table.payload or _PAYLOADS[mode]
        return {MERGE_MODE_KEY: mode, STRATEGY_KEY: _STRATEGIES[mode], PAYLOAD.name: payload}
    legacy = {_LEGACY_PAYLOAD: table.payload, **_OF_PAYLOAD.get(table.payload, {})} if table.payload else {}
    return {MERGE_MODE_KEY: mode, **legacy}


def _key_generator(table: NewTable, version: TableVersion, options: Mapping[str, str]) -> dict[str, str]:
    """Returns the key generator, and for TIMESTAMP its settings. Hudi 0.15 does not record the type of its times."""
    kind = table.key_generator
    named = {KEYGENERATOR_CLASS: key_generator_class(kind)} if version is V6 else {KEYGENERATOR_TYPE: kind}
    if kind != "TIMESTAMP":
        return named
    kept = (key for key in _TIMES if key.is_set(options) and not (version is V6 and key is TIME_TYPE))
    return named | {key.name: str(key.read(options)) for key in kept}


def _folders(version: TableVersion) -> dict[str, str]:
    if version is V6:
        return {ARCHIVE_FOLDER.name: "archived"}
    return {ARCHIVE_FOLDER.name: "history", TIMELINE_FOLDER.name: "timeline", HISTORY_FOLDER.name: "history"}


def _of_catalogs(table: NewTable, options: Mapping[str, str]) -> dict[str, str]:
    """Returns what Hudi 1.2 records for syncs to catalogs (HoodieSyncConfig.META_SYNC_PARTITION_EXTRACTOR_CLASS)."""
    name = "MultiPartKeysValueExtractor"
    if len(table.partition_by) == 1:
        name = "HiveStylePartitionValueExtractor" if table.hive_style else "SinglePartPartitionValueExtractor"
    elif not table.partition_by:
        name = "NonPartitionedExtractor"
    extractor = _EXTRACTOR.read(options) or f"{_EXTRACTORS}{name}"
    return {"hoodie.table.format": "native", "hoodie.table.partition_extractor_class": extractor}


@dataclass(frozen=True, slots=True)
class Difference:
    """A property of a table that is not as a new one would have it."""

    name: str
    there: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.name} is {self.there or 'not set'} there, and {self.wanted or 'not set'} here"


def differences(there: Mapping[str, str], wanted: Mapping[str, str]) -> list[Difference]:
    """Returns by what a table differs from a new one. Properties that say nothing of its rows do not count: folders,
    classes for catalogs, the version that it began with, its indexes. Nor does a database that only one of the two has.
    """
    pairs = [(name, reader(there), reader(wanted)) for name, reader in _COMPARED.items()]
    found = [
        Difference(name, _shown(one), _shown(other))
        for name, one, other in pairs
        if one != other and (name != DATABASE.name or (one and other))
    ]
    return found + _column_differences(there.get(CREATE_SCHEMA, ""), wanted[CREATE_SCHEMA])


def _column_differences(there: str, wanted: str) -> list[Difference]:
    """Returns a difference in columns, by name and type, where both have a schema. Spark SQL writes the schema anew,
    with other names of records and other nulls, when a catalog gets the table (HoodieCatalogTable.initHoodieTable).
    """
    if not there:
        return []
    one, other = _columns(there), _columns(wanted)
    differ = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    if not differ:
        return []
    shown = (", ".join(f"{name} {of[name]}" for name in differ if name in of) or "without them" for of in (one, other))
    return [Difference(CREATE_SCHEMA, *shown)]


def _columns(schema: str) -> dict[str, str]:
    fields = arrow_schema(parse_schema(schema, path=PROPERTIES), path=PROPERTIES)
    return {field.name: str(field.type).replace(" not null", "") for field in fields}


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return _text(value) if isinstance(value, bool) else str(value or "")


def _kind(raw: Mapping[str, str]) -> str:
    """Returns the type of the key generator; a class that is not known, or nothing, as it is."""
    name = raw.get(KEYGENERATOR_CLASS) or raw.get(KEYGENERATOR_TYPE, "")
    try:
        return key_generator_type(name)
    except ValueError:
        return name


def _read_by(key: ConfigKey[Any]) -> Callable[[Mapping[str, str]], Any]:
    return lambda raw: key.read(raw)


_COMPARED: Final[Mapping[str, Callable[[Mapping[str, str]], Any]]] = {
    **{
        key.name: _read_by(key)
        for key in (NAME, DATABASE, TABLE_TYPE, VERSION, RECORD_KEYS, PARTITION_FIELDS, ORDERING, PAYLOAD)
    },
    **{
        name: _read_by(optional(name))
        for name in (MERGE_MODE_KEY, STRATEGY_KEY, STRATEGY_KEY_0_15, _LEGACY_PAYLOAD, PARTIAL_UPDATE_KEY)
    },
    KEYGENERATOR_TYPE: _kind,
    **{key.name: _read_by(key) for key in (*_TIMES, HIVE_STYLE, *_FLAGS, CHANGE_LOG_MODE, BASE_FORMAT, TIMEZONE)},
}
"""How each property that counts is read, with the default that it has where it is not set."""
