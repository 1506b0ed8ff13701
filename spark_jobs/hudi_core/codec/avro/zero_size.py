"""Schemas whose data have no bound: arrays of items that take no bytes, of which a few bytes may claim any number.

Each item of any other array takes a byte at least, so that the data's length bounds what decoding them allocates. Hudi
writes no such array.
"""

from __future__ import annotations

from typing import Any

from hudi_core.errors import FormatError


def refuse_zero_size_items(schema: Any, *, path: str | None = None) -> None:
    """Raises FormatError naming `path` when `schema`, valid Avro JSON, holds an array of items that take no bytes."""
    _Weights(path).is_zero_size(schema)


class _Weights:
    """Checks every part of one schema once.

    Names are compared without their namespace: at worst a schema is refused because of another one's name.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._named: dict[str, bool] = {}

    def is_zero_size(self, schema: Any) -> bool:
        """Whether a datum of `schema` takes no bytes: null, and fixed data and records of nothing else."""
        if isinstance(schema, str):
            return schema == "null" or self._named.get(schema.rpartition(".")[2], False)
        if isinstance(schema, list):
            # The branch's number is written in any case.
            for branch in schema:
                self.is_zero_size(branch)
            return False
        kind = schema["type"]
        if kind == "array":
            if self.is_zero_size(schema["items"]):
                raise FormatError(
                    "the Avro schema has an array of items that take no bytes: nothing bounds their number",
                    path=self._path,
                )
            return False
        if kind == "map":
            self.is_zero_size(schema["values"])
            return False
        if kind in ("record", "error"):
            return self._is_zero_size_record(schema)
        if kind == "fixed":
            return self._name(schema, zero_size=schema["size"] == 0)
        return self.is_zero_size(kind) if kind != "enum" else False

    def _is_zero_size_record(self, schema: dict[str, Any]) -> bool:
        # A record within itself takes bytes before it is met again, or no datum of it ends.
        self._name(schema, zero_size=False)
        fields = [self.is_zero_size(field["type"]) for field in schema.get("fields") or ()]
        return self._name(schema, zero_size=all(fields))

    def _name(self, schema: dict[str, Any], *, zero_size: bool) -> bool:
        self._named[str(schema["name"]).rpartition(".")[2]] = zero_size
        return zero_size
