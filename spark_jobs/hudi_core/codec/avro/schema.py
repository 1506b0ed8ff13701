"""Avro schemas as JSON: parsing and the `_hoodie_*` fields.

A schema comes from a log block's header, a container's header or commit metadata, and is untrusted: its text is bounded
here, what it may make decoders allocate in bounds.py, before anything is built from it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from hudi_core.codec.avro.bounds import check_bounds
from hudi_core.errors import CorruptFileError
from hudi_core.model.names import META_FIELDS, OPERATION

AvroSchema = dict[str, Any]
"""The JSON object of a named or complex Avro type."""

MAX_SCHEMA_BYTES = 16 << 20
"""Above this a schema is refused: a table of 10,000 columns needs about 2 MB."""


def parse_schema(text: str, *, path: str) -> AvroSchema:
    """The schema in `text` as a JSON object; raises CorruptFileError naming `path`, and as bounds.check_bounds.

    A schema that is a union or a primitive at the top is refused: Hudi's records and plans are records.
    """
    if len(text) > MAX_SCHEMA_BYTES:
        raise CorruptFileError(
            f"Avro schema of {len(text)} characters is larger than the {MAX_SCHEMA_BYTES} allowed", path=path
        )
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"Avro schema is not JSON: {error}", path=path) from error
    if "\\ud" in text.lower():
        _check_surrogates(schema, path)
    if not isinstance(schema, dict):
        raise CorruptFileError(f"Avro schema is a JSON {type(schema).__name__}, not an object", path=path)
    fields = schema.get("fields")
    if not isinstance(fields, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in fields
    ):
        raise CorruptFileError(
            "Avro schema is not that of a record: it has no fields, or some without a name", path=path
        )
    check_bounds(schema, path=path)
    return schema


def _check_surrogates(schema: Any, path: str) -> None:
    """Refuses escapes that are half of a surrogate pair: no name of an Arrow column can hold them."""
    try:
        json.dumps(schema, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise CorruptFileError("Avro schema has a \\u escape that is half of a surrogate pair", path=path) from error


def field_names(schema: AvroSchema) -> list[str]:
    """The names of a record's fields, in order."""
    return [field["name"] for field in schema["fields"]]


def field(schema: AvroSchema, name: str) -> dict[str, Any] | None:
    """A record's field by name, or None."""
    return next((entry for entry in schema["fields"] if entry["name"] == name), None)


def add_meta_fields(schema: AvroSchema, *, operation: bool = False) -> AvroSchema:
    """The record schema with the five `_hoodie_*` fields first, each a nullable string.

    As HoodieAvroUtils.addMetadataFields. With `operation`, `_hoodie_operation` follows them. Fields that the schema
    already has are moved to the front, not doubled.
    """
    names = (*META_FIELDS, OPERATION) if operation else META_FIELDS
    meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in names]
    return {**schema, "fields": meta + [entry for entry in schema["fields"] if entry["name"] not in names]}


def without_meta_fields(schema: AvroSchema) -> AvroSchema:
    """The record schema without any `_hoodie_*` meta field (HoodieAvroUtils.removeMetadataFields)."""
    return without_fields(schema, {*META_FIELDS, OPERATION})


def without_fields(schema: AvroSchema, names: Collection[str]) -> AvroSchema:
    """The record schema without the fields of these names."""
    return {**schema, "fields": [entry for entry in schema["fields"] if entry["name"] not in names]}
