"""Expression indexes as operands of the expression tree: which of them a predicate can use (ExpressionIndexSupport)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_core.expr.functions import FUNCTIONS
from hudi_core.expr.tree import Call, Column, Literal, Operand
from hudi_core.metadata_table.index_definitions import IndexDefinition

_PLAIN: Final = frozenset(FUNCTIONS) - {"date_format", "from_unixtime", "substring"}
_FORMATTED: Final = frozenset({"date_format", "from_unixtime"})


def indexed_operand(definition: IndexDefinition) -> Operand | None:
    """The expression that the index is built over; None for an index without one that predicates can name."""
    if len(definition.source_fields) != 1:
        return None
    column = Column(tuple(definition.source_fields[0].split(".")))
    if definition.function in _PLAIN:
        # An option makes it another function, such as to_date with a format.
        return Call(definition.function, (column,)) if set(definition.options) <= {"expr"} else None
    if definition.function in _FORMATTED and set(definition.options) <= {"expr", "format"}:
        pattern = definition.options.get("format")
        return Call(definition.function, (column,) if pattern is None else (column, Literal("text", pattern)))
    return None


def indexes_over(definitions: Mapping[str, IndexDefinition], kind: str) -> list[tuple[str, Operand]]:
    """The names and operands of the expression indexes of type `kind`: `column_stats` or `bloom_filters`."""
    found = [
        (name, indexed_operand(definition))
        for name, definition in sorted(definitions.items())
        if definition.type == kind
    ]
    return [(name, operand) for name, operand in found if operand is not None]
