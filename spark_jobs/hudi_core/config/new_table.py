"""What a new table is told: the fields of a `create` request, and writers' options, by which Hudi's Spark writer makes
a table (HoodieSparkSqlWriter, DataSourceOptions). services/create makes its properties of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any, Final

from hudi_core.config.keys import ConfigKey, boolean, name_list, one_of, whole_number
from hudi_core.config.rows_config import Payload
from hudi_core.config.table_config import COPY_ON_WRITE, MERGE_ON_READ
from hudi_core.config.versions import SUPPORTED
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.frozen import dataclass

_KEY: Final = "key"

TYPES: Final = {"cow": COPY_ON_WRITE, "mor": MERGE_ON_READ}
"""The table types by their short names."""
VERSIONS: Final = tuple(version.number for version in SUPPORTED)
EVENT_TIME: Final = "EVENT_TIME_ORDERING"
COMMIT_TIME: Final = "COMMIT_TIME_ORDERING"
MERGE_MODES: Final = (EVENT_TIME, COMMIT_TIME)
CUSTOM: Final = "CUSTOM"
_PAYLOADS: Final = {
    Payload.DEFAULT.value: EVENT_TIME,
    Payload.LATEST.value: COMMIT_TIME,
    Payload.EVENT_TIME.value: EVENT_TIME,
    Payload.PARTIAL_UPDATE.value: EVENT_TIME,
    Payload.NON_DEFAULTS.value: COMMIT_TIME,
    Payload.AWS_DMS.value: COMMIT_TIME,
}
"""The payload classes that a new table may have, with the merge modes that version 9 records for them
(HoodieTableConfig.inferMergingConfigsForV9TableCreation).
"""
KEY_GENERATORS: Final = {
    "SIMPLE": "SimpleKeyGenerator",
    "COMPLEX": "ComplexKeyGenerator",
    "NON_PARTITION": "NonpartitionedKeyGenerator",
    "TIMESTAMP": "TimestampBasedKeyGenerator",
    "CUSTOM": "CustomKeyGenerator",
}
"""The classes of key generators by their types (KeyGeneratorType)."""
_PACKAGE: Final = "org.apache.hudi.keygen."
_PARTITION_TYPES: Final = ("SIMPLE", "TIMESTAMP")
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f/\\]{1,255}")
_WRITE: Final = "hoodie.datasource.write."
_PAYLOAD_OPTIONS: Final = (f"{_WRITE}payload.class", "hoodie.compaction.payload.class")
TABLE_NAMES: Final = ("hoodie.table.name", f"{_WRITE}table.name")
"""Options that name a table. A writer needs one to make it."""
OF_A_TABLE: Final = (
    "hoodie.table.cdc.enabled",
    "hoodie.table.cdc.supplemental.logging.mode",
    "hoodie.table.timeline.timezone",
    "hoodie.table.base.file.format",
    "hoodie.table.multiple.base.file.formats.enable",
)
"""Options under `hoodie.table.` that are properties of the same name. Other properties are no options."""


def key_generator_class(kind: str) -> str:
    """Returns the class of a type of key generator, as properties name it."""
    return f"{_PACKAGE}{KEY_GENERATORS[kind]}"


def key_generator_type(text: str) -> str:
    """Returns the type of a key generator from its type or class. Raises ValueError for another."""
    name = text.rsplit(".", 1)[-1]
    kinds = {name: kind for kind, name in KEY_GENERATORS.items()}
    kind = kinds.get(name.replace("AvroKeyGenerator", "KeyGenerator"), name.upper().removesuffix("_AVRO"))
    if kind not in KEY_GENERATORS or ("." in text and not text.startswith(_PACKAGE)):
        raise ValueError(f"not one of {', '.join(KEY_GENERATORS)}")
    return kind


def _table_type(text: str) -> str:
    return TYPES.get(text.lower()) or one_of(*TYPES.values())(text)


def _table_version(text: str) -> int:
    number = whole_number(0, 1000)(text)
    if number not in VERSIONS:
        raise ValueError(f"not one of {', '.join(map(str, VERSIONS))}")
    return number


def _partition_columns(text: str) -> tuple[str, ...]:
    return tuple(_with_type(column) for column in name_list(text))


def _with_type(column: str) -> str:
    """Returns a column of partitions with its type, if it has one, in upper case."""
    name, colon, kind = column.partition(":")
    return f"{name.strip()}{colon}{kind.strip().upper()}"


def _told_by(default: Any, parse: Callable[[str], Any], what: str, name: str, *aliases: str) -> Any:
    """Returns a field that options of these names tell, too. `what` is the remedy for a wrong value."""
    return field(default=default, metadata={_KEY: ConfigKey(name, default, parse, aliases, what)})


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that is to be made. Columns of partitions have their types for the key generator CUSTOM
    (`day:TIMESTAMP`), and for it alone. Without a merge mode it is the one that Hudi takes.
    """

    table_name: str = _told_by("", str, "give a name", *TABLE_NAMES)
    table_type: str = _told_by(
        "", _table_type, "give cow or mor", f"{_WRITE}table.type", f"{_WRITE}storage.type", "hoodie.table.type"
    )
    table_version: int = _told_by(
        0, _table_version, "give one of these", "hoodie.write.table.version", "hoodie.table.version"
    )
    record_key: tuple[str, ...] = _told_by(
        (), name_list, "name columns", f"{_WRITE}recordkey.field", "hoodie.table.recordkey.fields"
    )
    partition_by: tuple[str, ...] = _told_by(
        (), _partition_columns, "name columns", f"{_WRITE}partitionpath.field", "hoodie.table.partition.fields"
    )
    ordering: tuple[str, ...] = _told_by(
        (),
        name_list,
        "name columns",
        f"{_WRITE}precombine.field",
        "hoodie.table.ordering.fields",
        "hoodie.table.precombine.field",
    )
    merge_mode: str = _told_by(
        "",
        one_of(*MERGE_MODES),
        "give one of these",
        "hoodie.write.record.merge.mode",
        "hoodie.record.merge.mode",
    )
    payload: str = _told_by("", str, "give a class", *_PAYLOAD_OPTIONS)
    hive_style: bool = _told_by(False, boolean, "give true or false", f"{_WRITE}hive_style_partitioning")
    key_generator: str = _told_by(
        "",
        key_generator_type,
        "give one of these",
        f"{_WRITE}keygenerator.class",
        f"{_WRITE}keygenerator.type",
        "hoodie.table.keygenerator.class",
        "hoodie.table.keygenerator.type",
    )

    @staticmethod
    def of(given: Mapping[str, Any], options: Mapping[str, str]) -> NewTable:
        """Returns the table by the fields `given`, and by `options` where these are empty. Raises ConfigError for a
        field that means nothing, one that an option contradicts, and those that do not fit each other;
        UnsupportedError for another payload class.
        """
        _check_options(options)
        told = {item.name: _value(item.name, given, item.metadata[_KEY], options) for item in fields(NewTable)}
        table = NewTable(**{**told, "table_type": told["table_type"] or COPY_ON_WRITE})
        table = replace(table, key_generator=table.key_generator or table._inferred())
        table._check()
        return table

    @staticmethod
    def of_writer(options: Mapping[str, str]) -> NewTable:
        """Returns the table that Hudi's Spark writer makes by its options; without a version in them, Hudi 1.2's."""
        version = next(item.metadata[_KEY] for item in fields(NewTable) if item.name == "table_version")
        told = any(options.get(name, "").strip() for name in (version.name, *version.aliases))
        return NewTable.of({} if told else {"table_version": max(VERSIONS)}, options)

    def _inferred(self) -> str:
        """Returns the type of key generator that Hudi takes (KeyGenUtils.inferKeyGeneratorType)."""
        if not self.partition_by:
            return "NON_PARTITION"
        if any(":" in column for column in self.partition_by):
            return "CUSTOM"
        return "COMPLEX" if len(self.partition_by) > 1 or len(self.record_key) > 1 else "SIMPLE"

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns of partitions without their types."""
        return tuple(column.partition(":")[0] for column in self.partition_by)

    @property
    def is_merge_on_read(self) -> bool:
        return self.table_type == MERGE_ON_READ

    @property
    def payload_mode(self) -> str:
        """The merge mode of the payload class; empty without one. Version 8 has modes of two classes alone."""
        if self.table_version == 8 and self.payload not in ("", Payload.DEFAULT.value, Payload.LATEST.value):
            return CUSTOM
        return _PAYLOADS.get(self.payload, "")

    def _check(self) -> None:
        if _NAME.fullmatch(self.table_name) is None or self.table_name != self.table_name.strip():
            raise ConfigError(
                f"{self.table_name!r} is no name of a table" if self.table_name else "the new table has no name",
                remedy="give one in `table_name`, of hudictl by --name",
            )
        if not self.table_version:
            raise ConfigError(
                "the new table has no version",
                remedy="give the version that its readers and writers handle in `table_version`, of hudictl by "
                f"--version: {', '.join(map(str, VERSIONS))}",
            )
        if not self.record_key:
            raise ConfigError("the new table has no record key", remedy="name its columns in `record_key`")
        for what, columns in (
            ("record_key", self.record_key),
            ("partition_by", self.partition_columns),
            ("ordering", self.ordering),
        ):
            if len(set(columns)) != len(columns) or not all(map(str.strip, columns)):
                raise ConfigError(f"{what} is {','.join(columns)!r}", remedy="name each of its columns once")
        self._check_order()
        self._check_key_generator()

    def _check_order(self) -> None:
        if len(self.ordering) > 1 and self.table_version < 9:
            raise ConfigError(
                f"a table of version {self.table_version} has one ordering column, not {', '.join(self.ordering)}",
                remedy="name one of them, or make a table of version 9",
            )
        if self.payload and self.merge_mode not in ("", self.payload_mode):
            raise ConfigError(
                f"the payload class {self.payload} has not the merge mode {self.merge_mode}",
                remedy="leave one of them out",
            )
        if EVENT_TIME in (self.merge_mode, _PAYLOADS.get(self.payload)) and not self.ordering:
            raise ConfigError(f"{self.payload or EVENT_TIME} needs an ordering column", remedy="name it in `ordering`")

    def _check_key_generator(self) -> None:
        kind, columns = self.key_generator, self.partition_by
        types = [column.partition(":")[2] for column in columns]
        if kind == "CUSTOM" and not all(of in _PARTITION_TYPES for of in types):
            raise ConfigError(
                f"partition_by is {','.join(columns)!r}, and the key generator CUSTOM needs a type of each column",
                remedy=f"write COLUMN:TYPE for each; the types are {', '.join(_PARTITION_TYPES)}",
            )
        if kind != "CUSTOM" and any(types):
            raise ConfigError(
                f"partition_by is {','.join(columns)!r}, and only the key generator CUSTOM takes types of columns",
                remedy="leave the types out, or the key generator",
            )
        if (kind == "NON_PARTITION") != (not columns):
            raise ConfigError(
                f"the key generator {kind} with the partition columns {', '.join(columns) or 'none'}",
                remedy="NON_PARTITION is for tables without partition columns, and the others are for those with some",
            )
        if kind in ("SIMPLE", "TIMESTAMP") and (len(columns) > 1 or len(self.record_key) > 1):
            raise ConfigError(
                f"the key generator {kind} takes one column of the record key and one of partitions",
                remedy="take COMPLEX or CUSTOM for several",
            )


def _value(name: str, given: Mapping[str, Any], key: ConfigKey[Any], options: Mapping[str, str]) -> Any:
    """Returns the value of a field of NewTable. Raises ConfigError where an option contradicts it, or another."""
    value = _parsed(name, given.get(name), key)
    told = {used: key.read({used: options[used]}) for used in (key.name, *key.aliases) if options.get(used, "").strip()}
    for used, other in told.items():
        if value and other != value:
            raise ConfigError(
                f"{name} is {_text(given[name])!r}, and the option {used} is {options[used]!r}",
                remedy="leave one of them out",
            )
    values = [*told.values()]
    if any(other != values[0] for other in values):
        raise ConfigError(f"the options {' and '.join(told)} contradict each other", remedy="leave one of them out")
    return value or (values[0] if values else key.default)


def _parsed(name: str, given: Any, key: ConfigKey[Any]) -> Any:
    """Returns the value of a request's field in the form that an option's has. Raises ConfigError."""
    if name == "partition_by" and given:
        return tuple(map(_with_type, given))
    if not given or given is True or key.parse is str or not isinstance(given, str | int):
        return given
    try:
        return key.parse(str(given).strip())
    except ValueError as error:
        raise ConfigError(f"{name} is {given!r}: {error}", remedy=key.said) from error


def _text(given: Any) -> str:
    return ",".join(given) if isinstance(given, Sequence) and not isinstance(given, str) else str(given)


def _check_options(options: Mapping[str, str]) -> None:
    known = {name for item in fields(NewTable) for key in [item.metadata[_KEY]] for name in (key.name, *key.aliases)}
    for name, text in options.items():
        if name in _PAYLOAD_OPTIONS and text.strip() and text.strip() not in _PAYLOADS:
            raise UnsupportedError(
                f"a table with {name}={text}",
                remedy=f"create it by Hudi; the payload classes of new tables are {', '.join(_PAYLOADS)}",
            )
        if name.startswith("hoodie.table.") and name not in known and name not in OF_A_TABLE:
            raise ConfigError(
                f"{name} is no option of a new table",
                remedy=f"leave it out; of those names, these are options: {', '.join(OF_A_TABLE)}",
            )
