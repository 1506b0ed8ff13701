"""One Avro datum by its schema."""

from __future__ import annotations

from typing import Any

from hudi_core.codec.avro.datum import codec_of


def decode_datum(schema: Any, data: bytes | memoryview, *, path: str | None = None) -> Any:
    """The value of one datum, which must use up `data`; `schema` is Avro JSON.

    Raises CorruptFileError naming `path`.
    """
    return codec_of(schema, path=path).decode(data, path=path)


def encode_datum(schema: Any, value: Any) -> bytes:
    """The datum of `value`. Raises FormatError when it does not fit `schema`."""
    return codec_of(schema).encode(value)
