"""Converts one Avro datum to Python values and back, without schema resolution: for plans, commit metadata and
metadata-table records.

No logical type converts a value: a date is a number of days, a decimal its unscaled bytes. So encoding gives back what
was decoded, and a timestamp beyond Python's year 9999 is no error. A value of a union with several record types is
`(full name, dict)`, which names the branch.
"""

from __future__ import annotations

import importlib.util
import io
import sys
import threading
from collections import OrderedDict
from collections.abc import Collection
from typing import Any

from hudi_core.codec.avro.schema import check_bounds
from hudi_core.errors import CorruptFileError, FormatError, truncated

if importlib.util.find_spec("fastavro") is None:
    # An executor without the wheel: the job zip has fastavro's Python files below `_vendor`, beside `hudi_core`.
    sys.path.append(__file__.rsplit("hudi_core", 1)[0] + "_vendor")

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import SchemaParseException, UnknownType

IS_PURE: bool = importlib.util.find_spec("fastavro._read") is None
"""Whether fastavro's compiled part is missing: pure Python decodes the same bytes at about a tenth of the speed."""

_CACHE_SIZE = 256
_ERRORS = (ValueError, LookupError, TypeError, OverflowError, RecursionError)
_DECODE_ERRORS = (*_ERRORS, EOFError, MemoryError, StopIteration)
_ENCODE_ERRORS = (*_ERRORS, AttributeError)
_SHOWN = 300
"""How many characters of an error are shown: fastavro's may hold the whole value and its schema."""


class DatumCodec:
    """Decodes and encodes data of one schema; keep one per schema. Safe to share between threads."""

    __slots__ = ("_shown", "parsed", "schema")

    def __init__(
        self,
        schema: Any,
        *,
        path: str | None = None,
        names: dict[str, Any] | None = None,
        only: Collection[str] | None = None,
    ) -> None:
        """`schema` is Avro JSON. `names` are types that are defined elsewhere; the codec adds its own to them. With
        `only`, decoded records have these fields alone, and the others are passed over in half the time; the fields use
        no types that the others define. Raises FormatError naming `path` when `schema` is not valid, or does not bound
        its data.
        """
        self.schema = schema
        try:
            check_bounds(schema, path=path, names=names)
            self.parsed = parse_schema(_physical(schema), names)
            self._shown = None if only is None else parse_schema(_physical(_fields_of(schema, only)))
        except (SchemaParseException, UnknownType, *_ENCODE_ERRORS) as error:
            raise FormatError(f"not an Avro schema: {type(error).__name__}: {error}", path=path) from error

    def decode(self, data: bytes | memoryview, *, path: str | None = None) -> Any:
        """Returns the value in `data`, which must have no bytes left over. Raises CorruptFileError naming `path`."""
        stream = io.BytesIO(data)
        value = self.read(stream, path=path)
        if stream.tell() != len(data):
            raise CorruptFileError(f"Avro datum of {len(data)} bytes ends after {stream.tell()}", path=path)
        return value

    def read(self, stream: io.BytesIO, *, path: str | None = None) -> Any:
        """Returns the next value of `stream`. Raises CorruptFileError naming `path`."""
        try:
            return schemaless_reader(
                stream, self.parsed, self._shown, return_record_name=True, return_record_name_override=True
            )
        except _DECODE_ERRORS as error:
            message = f"Avro datum does not decode by its schema: {type(error).__name__}: {error}"
            raise CorruptFileError(message, path=path) from error

    def encode(self, value: Any) -> bytes:
        """Returns the datum; an absent field takes its default. Raises FormatError when the value does not fit."""
        out = io.BytesIO()
        self.write(out, value)
        return out.getvalue()

    def write(self, stream: io.BytesIO, value: Any) -> None:
        try:
            schemaless_writer(stream, self.parsed, value)
        except _ENCODE_ERRORS as error:
            reason = truncated(str(error), _SHOWN)
            raise FormatError(f"value does not fit its Avro schema: {type(error).__name__}: {reason}") from error


_cache: OrderedDict[tuple[int, frozenset[str]], DatumCodec] = OrderedDict()
_lock = threading.Lock()


def codec_of(schema: Any, *, path: str | None = None, without: frozenset[str] = frozenset()) -> DatumCodec:
    """Returns the schema's codec, cached by identity: never change such a schema. Raises FormatError naming `path`."""
    key = id(schema), without
    with _lock:
        codec = _cache.get(key)
        # The cached codec holds its schema, so an id cannot be taken over by another object while the entry lives.
        if codec is None:
            codec = _cache[key] = DatumCodec(schema, path=path, only=_others(schema, without))
            if len(_cache) > _CACHE_SIZE:
                _cache.popitem(last=False)
        return codec


def _others(schema: Any, names: frozenset[str]) -> list[str] | None:
    """Returns the fields of a record schema besides `names`; None when it has none of `names`."""
    if not names or not isinstance(schema, dict):
        return None
    fields = [entry["name"] for entry in schema.get("fields", ())]
    return None if names.isdisjoint(fields) else [name for name in fields if name not in names]


def _fields_of(schema: Any, names: Collection[str]) -> Any:
    return {**schema, "fields": [entry for entry in schema["fields"] if entry["name"] in names]}


def _physical(schema: Any) -> Any:
    """Returns the schema without logical types, so that fastavro neither converts nor refuses a value."""
    if isinstance(schema, list):
        return [_physical(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: value for key, value in schema.items() if key not in ("logicalType", "doc")}
    for key in ("type", "items", "values"):
        if key in plain:
            plain[key] = _physical(plain[key])
    if isinstance(plain.get("fields"), list):
        plain["fields"] = [_physical(entry) for entry in plain["fields"]]
    return plain
