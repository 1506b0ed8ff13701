"""The schema of a new table: that which Spark's writers give rows of its columns (SchemaConverters.toAvroType), since
releases of Hudi compare schemas by their names. The columns are those of an Avro schema of the user, or of a Parquet
file. `services/source/schema` says which names and types a table can have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hudi_core.codec.avro.arrow import arrow_schema
from hudi_core.codec.avro.datum import DatumCodec
from hudi_core.codec.avro.schema import AvroSchema, parse_schema, without_meta_fields
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.config.new_table import NewTable
from hudi_core.errors import ConfigError, FormatError, StorageNotFoundError, UnsupportedError
from hudi_core.model.names import META_FIELDS
from hudi_core.services.source.files import find_source
from hudi_core.services.source.schema import check_column, check_names, evolve, spark_fields
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.registry import open_storage

_INLINE: Final = "the Avro schema of the request"
_NO_SCHEMA: Final = "give the Avro schema of a record, as JSON"
_FIRST: Final = re.compile(r"[^A-Za-z_]")
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_]")


def schema_like(table: NewTable, address: str, storage_options: Mapping[str, str]) -> AvroSchema:
    """Returns the schema of a table for the rows of a Parquet file, or of a folder's first file. `_hoodie_*` columns of
    another table are left out. Raises the errors of find_source and evolve, and CorruptFileError.
    """
    folder, files = find_source(address, storage_options)
    path = f"{folder}/{files[0].name}"
    storage = open_data_storage(folder, storage_options)
    with storage.open_input(files[0].name) as stream, ParquetBaseFile(stream, path, storage.limits) as file:
        check_names(file.schema, path=path)
        return _with_columns(evolve(_record(table), file, META_FIELDS, table.table_version).schema, path)


def schema_given(table: NewTable, schema: str, storage_options: Mapping[str, str]) -> AvroSchema:
    """Returns the schema of a table with the columns of the Avro schema in a file, or in `schema` itself, which then
    begins with a brace. Columns that may not be null stay so. Raises ConfigError for what is no schema of a record, and
    for names that Avro or Spark do not allow; UnsupportedError for types that Spark or the table's Hudi do not have;
    StorageNotFoundError.
    """
    is_inline = schema.lstrip().startswith("{")
    path = _INLINE if is_inline else schema
    columns = arrow_schema(_parsed(schema if is_inline else _text_in(schema, storage_options), path), path=path)
    check_names(columns, path=path)
    for column in columns:
        check_column(column, table.table_version, path=path)
    record = _record(table)
    return {**record, "fields": spark_fields(record, columns, path=path)}


def _record(table: NewTable) -> AvroSchema:
    """Returns a record without fields, with the name that Spark's writers give it (HoodieAvroUtils.sanitizeName)."""
    name = _OTHERS.sub("__", _FIRST.sub("__", table.table_name[0]) + table.table_name[1:])
    return {"type": "record", "name": f"{name}_record", "namespace": f"hoodie.{name}", "fields": []}


def _parsed(text: str, path: str) -> AvroSchema:
    try:
        schema = parse_schema(text, path=path)
        DatumCodec(schema, path=path)
    except UnsupportedError:
        raise
    except FormatError as error:
        raise ConfigError(error.message, path=path, remedy=_NO_SCHEMA) from error
    return _with_columns(without_meta_fields(schema), path)


def _with_columns(schema: AvroSchema, path: str) -> AvroSchema:
    if not schema["fields"]:
        raise ConfigError("there is no column in it", path=path, remedy="give one with the columns of the table")
    return schema


def _text_in(address: str, storage_options: Mapping[str, str]) -> str:
    folder, _, name = address.rpartition("/")
    root = folder or ("/" if address.startswith("/") else ".")
    try:
        return open_storage(root, storage_options).read(name).decode()
    except StorageNotFoundError as error:
        raise StorageNotFoundError(
            "there is no Avro schema", path=address, remedy="give the address of a file, or the schema itself"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError("the Avro schema is not UTF-8", path=address, remedy=_NO_SCHEMA) from error
