"""Schemas whose data have no bound: arrays of items that take no bytes, of which a few bytes may claim any number.

Each item of any other array takes a byte at least, so that the data's length bounds what decoding them allocates. Hudi
writes no such array.
"""

from __future__ import annotations

from typing import Any

from hudi_core.errors import FormatError


def refuse_weightless_items(schema: Any, *, path: str | None = None) -> None:
    """Raises FormatError naming `path` when `schema`, valid Avro JSON, holds an array of items that take no bytes."""
    _Weights(path).is_weightless(schema)


class _Weights:
    """Looks at every part of one schema once. Names are compared without their namespace: at worst a schema is refused
    for another's sake.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._named: dict[str, bool] = {}

    def is_weightless(self, schema: Any) -> bool:
        """Whether a datum of `schema` takes no bytes: null, and fixed data and records of nothing else."""
        if isinstance(schema, str):
            return schema == "null" or self._named.get(schema.rpartition(".")[2], False)
        if isinstance(schema, list):
            # The branch's number is written in any case.
            for branch in schema:
                self.is_weightless(branch)
            return False
        kind = schema["type"]
        if kind == "array":
            if self.is_weightless(schema["items"]):
                raise FormatError(
                    "the Avro schema has an array of items that take no bytes: nothing bounds their number",
                    path=self._path,
                )
            return False
        if kind == "map":
            self.is_weightless(schema["values"])
            return False
        if kind in ("record", "error"):
            return self._is_weightless_record(schema)
        if kind == "fixed":
            return self._name(schema, weightless=schema["size"] == 0)
        return self.is_weightless(kind) if kind != "enum" else False

    def _is_weightless_record(self, schema: dict[str, Any]) -> bool:
        # A record within itself takes bytes before it is met again, or no datum of it ends.
        self._name(schema, weightless=False)
        fields = [self.is_weightless(field["type"]) for field in schema.get("fields") or ()]
        return self._name(schema, weightless=all(fields))

    def _name(self, schema: dict[str, Any], *, weightless: bool) -> bool:
        self._named[str(schema["name"]).rpartition(".")[2]] = weightless
        return weightless
