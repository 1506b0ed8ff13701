"""The expression tree as SQL text that Spark takes, for messages and for tools that want text."""

from __future__ import annotations

import datetime as dt
import decimal
import math

from hudi_core.expr.tree import (
    And,
    Call,
    Column,
    Compare,
    Constant,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operand,
    Or,
    StartsWith,
)


def to_sql(expr: Expr) -> str:
    """Text in Spark's dialect, which `parse.parse_predicate` reads back as an equal tree, if it has a parser's form.

    That form has no In without values, no And or Or of fewer than two terms or directly below its like, and a literal
    on the right of a comparison.
    """
    if isinstance(expr, (And, Or)):
        word = " AND " if isinstance(expr, And) else " OR "
        terms = [f"({to_sql(term)})" if isinstance(term, (And, Or)) else to_sql(term) for term in expr.terms]
        return word.join(terms) or str(isinstance(expr, And)).upper()
    if isinstance(expr, Not):
        return f"NOT ({to_sql(expr.term)})"
    if isinstance(expr, Compare):
        return f"{_operand(expr.left)} {expr.operator} {_operand(expr.right)}"
    if isinstance(expr, In):
        return (
            f"{_operand(expr.operand)} IN ({', '.join(_literal(value) for value in expr.values)})"
            if expr.values
            else "FALSE"
        )
    if isinstance(expr, IsNull):
        return f"{_operand(expr.operand)} IS NULL"
    if isinstance(expr, StartsWith):
        return f"startswith({_operand(expr.operand)}, {_text(expr.prefix)})"
    if isinstance(expr, Like):
        return f"{_operand(expr.operand)} LIKE {_text(expr.pattern)}"
    return _constant(expr)


def _constant(expr: Constant) -> str:
    return "NULL" if expr.value is None else str(expr.value).upper()


def _operand(operand: Operand) -> str:
    if isinstance(operand, Column):
        return ".".join(f"`{name.replace('`', '``')}`" for name in operand.path)
    if isinstance(operand, Call):
        return f"{operand.name}({', '.join(_operand(argument) for argument in operand.arguments)})"
    return _literal(operand)


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, decimal.Decimal):
        return f"{value:f}BD"
    if isinstance(value, float):
        return f"{value!r}D" if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(' ')}'"
    return f"DATE '{value.isoformat()}'" if isinstance(value, dt.date) else str(value)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
