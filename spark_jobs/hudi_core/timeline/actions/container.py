"""Timeline files that are Avro object containers of one datum: plans, and the metadata of actions. `decode_any` reads
commit metadata as JSON (to table version 6) or Avro (from 8), by the first bytes of the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from hudi_core.codec.avro.container import is_container, read_container, write_container
from hudi_core.errors import CorruptFileError
from hudi_core.timeline.actions.pretty_json import load_object


@cache
def load_schema(name: str) -> dict[str, Any]:
    """The Avro schema of a record that Hudi 0.15 writes, by its short name; also from the job's zip."""
    text = (files("hudi_core.timeline") / "avsc" / f"{name}.avsc").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def decode_record(data: bytes, name: str, what: str, *, path: str) -> dict[str, Any]:
    """As decode_datum; raises CorruptFileError also for a record without the field `name`, which is no `what`."""
    raw = decode_datum(data, path=path)
    if name not in raw:
        raise CorruptFileError(f"the Avro record is no {what}", path=path)
    return raw


def decode_datum(data: bytes, *, path: str, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The one record of a container, as read_container; raises CorruptFileError naming `path` when there is not exactly
    one.
    """
    _, records = read_container(data, path=path, without=without)
    if len(records) != 1 or not isinstance(records[0], dict):
        raise CorruptFileError(f"holds {len(records)} Avro records where one is due", path=path)
    return records[0]


def encode_datum(
    schema_name: str,
    datum: dict[str, Any],
    *,
    metadata: Mapping[str, bytes] | None = None,
    later_fields: Sequence[dict[str, Any]] = (),
    later_in: str | None = None,
) -> bytes:
    """A container of one record in the schema that Hudi 0.15 writes, and `later_fields`, which later releases added to
    it, or to the record that its field `later_in` holds; `metadata` goes into the header.
    """
    schema = load_schema(schema_name)
    if later_fields:
        schema = _with_fields(schema, later_fields, later_in)
    return write_container(schema, [datum], metadata)


def _with_fields(schema: dict[str, Any], later: Sequence[dict[str, Any]], within: str | None) -> dict[str, Any]:
    if within is None:
        return {**schema, "fields": [*schema["fields"], *later]}
    fields = [
        {
            **field,
            "type": [_with_fields(kind, later, None) if isinstance(kind, dict) else kind for kind in field["type"]],
        }
        if field["name"] == within
        else field
        for field in schema["fields"]
    ]
    return {**schema, "fields": fields}


def decode_any(data: bytes, *, path: str, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Any timeline file as a plain dictionary: Avro container, JSON object, or empty ({}); not its members `without`.
    Raises CorruptFileError.
    """
    if not data:
        return {}
    if is_container(data):
        return decode_datum(data, path=path, without=without)
    found = load_object(data, path=path)
    return {name: value for name, value in found.items() if name not in without} if without else found
