"""The values of an operand in a batch of rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.errors import ConfigError
from hudi_core.expr.functions import call, uses_zone
from hudi_core.expr.tree import Column, Literal, Operand


def evaluate(operand: Operand, batch: pa.RecordBatch, zone: str) -> pa.Array:
    """The operand's value in each row of `batch`, whose columns it names exactly.

    Raises ConfigError for a function that is unknown or not of that type, and for a literal, which is compared with
    nothing.
    """
    if isinstance(operand, Column):
        array = batch.column(batch.schema.get_field_index(operand.path[0]))
        for name in operand.path[1:]:
            # Takes the nulls of the structs above into the field.
            array = pc.struct_field(array, name)
        return array
    if isinstance(operand, Literal):
        raise ConfigError(f"the literal {operand.value!r} stands where a column is needed")
    head, rest = operand.arguments[0] if operand.arguments else None, operand.arguments[1:]
    literals = [argument for argument in rest if isinstance(argument, Literal)]
    if head is None or isinstance(head, Literal) or len(literals) != len(rest):
        raise ConfigError(f"{operand.name} is supported of a column, followed by literals")
    return call(operand.name, evaluate(head, batch, zone), literals, zone)


def needs_zone(operand: Operand, batch: pa.RecordBatch, zone: str) -> bool:
    """Whether the operand's values depend on the zone of local time.

    `batch` has the table's columns, and may be empty.
    """
    if isinstance(operand, (Column, Literal)):
        return False
    head = operand.arguments[0]
    return needs_zone(head, batch, zone) or uses_zone(operand.name, evaluate(head, batch, zone).type)
