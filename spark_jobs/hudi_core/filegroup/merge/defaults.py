"""The default values of a table's columns, for the merge rules that compare with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hudi_core.codec.avro.schema import AvroSchema

_KINDS = frozenset({"boolean", "int", "long", "float", "double", "string"})


@dataclass(frozen=True, slots=True)
class Default:
    """An Avro default other than null. `kind` is the column's Avro type; `nullable` when it is a union with null."""

    value: bool | int | float | str
    kind: str
    nullable: bool


def field_defaults(schema: AvroSchema) -> dict[str, Default]:
    """The top-level fields whose default is a plain value.

    A null default, none, and one of a complex type are omitted: no value that is not null equals those in Java.
    """
    found = {}
    for field in schema["fields"]:
        value, kind = field.get("default"), field["type"]
        branches = [branch for branch in kind if branch != "null"] if isinstance(kind, list) else [kind]
        name = branches[0] if len(branches) == 1 else None
        if isinstance(name, dict) and "logicalType" not in name:
            name = name.get("type")
        if isinstance(value, (bool, int, float, str)) and isinstance(name, str) and name in _KINDS:
            found[field["name"]] = Default(value, name, isinstance(kind, list))
    return found
