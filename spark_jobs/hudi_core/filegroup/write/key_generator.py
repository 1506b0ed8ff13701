"""Makes record keys and partition paths of new rows, by the table's key generator (KeyGenUtils, SimpleAvroKeyGenerator,
ComplexAvroKeyGenerator, NonpartitionedAvroKeyGenerator, TimestampBasedAvroKeyGenerator, CustomAvroKeyGenerator).
partition_times.py makes times in partition paths, buckets.py the bucket of a key; filegroup/merge/record_keys.py reads
keys of stored rows.

What is not computed exactly as in Hudi is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.config.keys import flag
from hudi_core.config.rows_config import (
    CONSISTENT_TIMESTAMPS,
    NEW_ENCODING,
    SLASHED_DATES,
    TYPED_PARTITION_FIELDS,
    with_properties,
)
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, FormatError, UnsupportedError
from hudi_core.filegroup.merge.record_keys import labelled_keys
from hudi_core.filegroup.read.partition_values import (
    DEFAULT_PARTITION,
    KEYGENERATOR_CLASS,
    KEYGENERATOR_TYPE,
    PARTITION_FIELDS,
    has_keys_in_rows,
)
from hudi_core.filegroup.write.partition_times import SqlTimes, TimeFormat
from hudi_core.frozen import dataclass

HIVE_STYLE = flag("hoodie.datasource.write.hive_style_partitioning")
URL_ENCODE = flag("hoodie.datasource.write.partitionpath.urlencode")
_ESCAPED: Final = re.compile(r"""[\x01-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
"""The characters that PartitionPathEncodeUtils.escapePathName escapes."""
_KINDS: Final = {
    f"{name}{avro}KeyGenerator": kind
    for name, kind in (
        ("Simple", "SIMPLE"),
        ("Complex", "COMPLEX"),
        ("Nonpartitioned", "NON_PARTITION"),
        ("TimestampBased", "TIMESTAMP"),
        ("Custom", "CUSTOM"),
    )
    for avro in ("", "Avro")
}
_TYPES: Final = frozenset(_KINDS.values())
_NAMES_KEYS: Final = 9
"""From this table version on, the complex key generator of every release puts the name of a lone field into its keys
(KeyGenUtils.encodeSingleKeyFieldNameForComplexKeyGen).
"""
_FIRST_DAY, _LAST_DAY = ((day - date(1970, 1, 1)).days for day in (date.min, date.max))


@dataclass(frozen=True, slots=True)
class KeyGenerator:
    """Makes keys and partition paths. With `labelled`, a key is `field:value` for each field, joined by commas. `times`
    are the partition fields whose values are formatted times. With `sql_times`, other timestamps among the partition
    fields are local time, as Spark SQL writes them; without, they are numbers.
    """

    record_fields: tuple[str, ...]
    labelled: bool
    partition_fields: tuple[str, ...]
    times: frozenset[str]
    time_format: TimeFormat | None
    hive_style: bool
    url_encode: bool
    sql_times: SqlTimes | None = None

    @staticmethod
    def of(config: TableConfig, options: Mapping[str, str], *, labels_one: bool | None) -> KeyGenerator:
        """Returns the table's key generator. `labels_one` says whether a complex key of one field has its name in it;
        None when no row shows that. Raises UnsupportedError for a generator or setting whose keys or paths are not
        computed here, ConfigError for a setting that is missing or contradicts the rows.
        """
        path, settings = config.path, with_properties(config.raw, options)
        kind = _kind(config)
        for key in (CONSISTENT_TIMESTAMPS, SLASHED_DATES):
            if key.read(settings, path=path):
                raise UnsupportedError(f"{key.name}=true is not written here", path=path, remedy="use Hudi itself")
        fields = config.record_key_fields
        if not fields:
            raise UnsupportedError("a table whose record keys its writers generate", path=path)
        typed = _typed_fields(config, options, kind)
        for name in (*fields, *typed):
            if "." in name:
                raise UnsupportedError(f"the key or partition field {name!r} within a struct", path=path)
        labelled = len(fields) > 1
        if len(fields) == 1 and kind == "COMPLEX":
            # Without meta fields Hudi reads a key from its field alone (RecordContext.virtualKeyExtractor).
            labelled = config.populate_meta_fields and _labels(config, options, labels_one)
        times = frozenset(name for name, of in typed.items() if of == "TIMESTAMP")
        time_format = TimeFormat.of(settings, path=path) if times else None
        hive_style, url_encode = (key.read(config.raw, path=path) for key in (HIVE_STYLE, URL_ENCODE))
        return KeyGenerator(fields, labelled, tuple(typed), times, time_format, hive_style, url_encode)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.record_fields, *self.partition_fields)))

    def check(self, schema: pa.Schema, dropped: Sequence[str] = (), *, path: str) -> None:
        """Raises UnsupportedError naming `path` for a column whose text is not made as in Hudi, ConfigError for a
        missing column. `dropped` are columns that rows have and the table has not.
        """
        for name in self.columns:
            if name in dropped:
                continue
            if name not in schema.names:
                message = f"the table has no column {name!r}, which its keys are made of"
                remedy = "correct hoodie.table.recordkey.fields and hoodie.table.partition.fields of the table"
                raise ConfigError(message, path=path, remedy=remedy)
            if name not in self.times:
                field_texts(pa.nulls(0, schema.field(name).type), name, path=path)

    def keys(self, batch: pa.RecordBatch, *, path: str) -> pa.Array:
        """Returns the record keys (string). Raises FormatError naming `path` for rows without a key."""
        texts = [field_texts(_column(batch, name), name, path=path) for name in self.record_fields]
        absent = reduce(pc.and_, [pc.fill_null(pc.equal(text, ""), True) for text in texts])
        if pc.any(absent).as_py():
            message = f"{pc.sum(absent).as_py()} rows have no record key in {', '.join(self.record_fields)}"
            raise FormatError(message, path=path, remedy="give each row a key")
        return labelled_keys(self.record_fields, texts) if self.labelled else texts[0]

    def partitions(self, batch: pa.RecordBatch, *, path: str) -> pa.Array:
        """Returns the partition paths. Raises FormatError naming `path` for a value that is no time, and for values
        with slashes beside local time of Spark SQL.
        """
        if not self.partition_fields:
            return pa.repeat(pa.scalar(""), batch.num_rows)
        parts = [self._part(_column(batch, name), name, path) for name in self.partition_fields]
        if self.sql_times is not None and any(pc.any(pc.match_substring(part, "/")).as_py() for part in parts):
            message = "a partition value holds a slash, beside which Spark SQL writes timestamps as numbers"
            raise FormatError(message, path=path, remedy="write these rows with Hudi")
        return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "/")

    def _part(self, column: pa.Array, name: str, path: str) -> pa.Array:
        if name in self.times and self.time_format is not None:
            texts = self.time_format.texts(column, path=path)
        elif self.sql_times is not None and pa.types.is_timestamp(column.type):
            texts = self.sql_times.texts(column, path=path)
            return pc.binary_join_element_wise(f"{name}=", texts, "") if self.hive_style else texts
        else:
            texts = field_texts(column, name, path=path)
            texts = pc.if_else(pc.equal(texts, ""), DEFAULT_PARTITION, texts).fill_null(DEFAULT_PARTITION)
        if self.url_encode:
            encoded = texts.dictionary_encode()
            escaped = pa.array(map(escaped_path_name, encoded.dictionary.to_pylist()), pa.string())
            texts = escaped.take(encoded.indices)
        return pc.binary_join_element_wise(f"{name}=", texts, "") if self.hive_style else texts


def escaped_path_name(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def field_texts(column: pa.Array, name: str, *, path: str) -> pa.Array:
    """Returns the values of a key or partition field as text, with nulls kept
    (HoodieAvroUtils.getNestedFieldValAsString). Timestamps are numbers in the column's unit. Raises UnsupportedError
    naming `path` for other types, FormatError for a date outside of the years 1 to 9999, which Java writes with a sign.
    """
    kind = column.type
    if pa.types.is_date32(kind):
        days = pc.min_max(column.cast(pa.int32()))
        if days["min"].is_valid and not _FIRST_DAY <= days["min"].as_py() <= days["max"].as_py() <= _LAST_DAY:
            message = f"the key or partition field {name!r} holds a date outside of the years 1 to 9999"
            raise FormatError(message, path=path, remedy="correct the rows")
    if pa.types.is_string(kind):
        return column
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64()).cast(pa.string())
    if pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    remedy = "text, whole numbers, booleans, dates and timestamps are made into keys here; use Hudi itself"
    raise UnsupportedError(f"the key or partition field {name!r} of type {kind}", path=path, remedy=remedy)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    return batch.column(batch.schema.get_field_index(name))


def _kind(config: TableConfig) -> str:
    name = config.raw.get(KEYGENERATOR_CLASS, "")
    if has_keys_in_rows(config):
        raise UnsupportedError(f"the key generator {name}", path=config.path, remedy="use Hudi with this class")
    stated = config.raw.get(KEYGENERATOR_TYPE, "").upper().removesuffix("_AVRO")
    kind = _KINDS.get(name.rsplit(".", 1)[-1]) if name else stated or _inferred(config)
    if kind not in _TYPES:
        raise UnsupportedError(f"the key generator {name or stated}", path=config.path, remedy="use Hudi itself")
    return kind


def labels_vary(config: TableConfig) -> bool:
    """Whether Hudi's release decides if keys have the name of their field. Raises the errors of KeyGenerator.of."""
    return len(config.record_key_fields) == 1 and _kind(config) == "COMPLEX"


def _labels(config: TableConfig, options: Mapping[str, str], shown: bool | None) -> bool:
    """Whether keys of one field have its name. Rows, the writers' option or the table's version show it."""
    if config.version >= _NAMES_KEYS:
        return shown is not False
    bare = NEW_ENCODING.read(options, path=config.path)
    if bare is None and shown is None:
        raise UnsupportedError(
            "whether keys of the complex key generator with one field hold its name differs among releases of Hudi, "
            "and the table has no row that shows it",
            path=config.path,
            remedy=(
                f"give --option {NEW_ENCODING.name}=true where its writers make them without the name, as 0.14.1 to "
                "1.0.2 do, and false otherwise; or write the first rows with Hudi"
            ),
        )
    if bare is not None and bare is shown:
        raise ConfigError(
            f"the table's record keys are made {'with' if shown else 'without'} the name of their field, unlike by "
            f"{NEW_ENCODING.name}={str(bare).lower()}",
            path=config.path,
            remedy="leave the option out",
        )
    return not bare if shown is None else shown


def _inferred(config: TableConfig) -> str:
    """Returns the type of KeyGenUtils.inferKeyGeneratorType."""
    fields = config.partition_fields
    if not fields:
        return "NON_PARTITION"
    if ":" in config.raw.get(PARTITION_FIELDS, ""):
        return "CUSTOM"
    return "COMPLEX" if len(fields) > 1 or len(config.record_key_fields) > 1 else "SIMPLE"


def _typed_fields(config: TableConfig, options: Mapping[str, str], kind: str) -> dict[str, str]:
    """Returns the partition fields, each with SIMPLE or TIMESTAMP. Raises ConfigError for types not recorded."""
    fields = config.partition_fields
    if kind == "NON_PARTITION":
        return {}
    if kind == "TIMESTAMP":
        return dict.fromkeys(fields, "TIMESTAMP")
    if kind != "CUSTOM":
        return dict.fromkeys(fields, "SIMPLE")
    typed = _types(config.raw.get(PARTITION_FIELDS, "").split(","))
    if not all(typed.values()):
        typed = _types(TYPED_PARTITION_FIELDS.read(options))
    if tuple(typed) != fields or not {*typed.values()} <= {"SIMPLE", "TIMESTAMP"}:
        message = "the table does not record the types of its custom key generator's partition fields"
        remedy = (
            f"give the writers' value, as in --option {TYPED_PARTITION_FIELDS.name}="
            f"{','.join(f'{name}:SIMPLE' for name in fields)}"
        )
        raise ConfigError(message, path=config.path, remedy=remedy)
    return typed


def _types(entries: Sequence[str]) -> dict[str, str]:
    split = (entry.strip().partition(":") for entry in entries)
    return {name: kind.strip().upper() for name, _, kind in split}
