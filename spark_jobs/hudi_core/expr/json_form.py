"""The expression tree as JSON, which is how a predicate travels to executors."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Mapping
from typing import Any, Final

from hudi_core.errors import ConfigError, truncated
from hudi_core.expr import tree

Json = dict[str, Any]


def to_json(expr: tree.Expr) -> Json:
    """The tree as a JSON object with the key `op`; `from_json` gives an equal tree."""
    if isinstance(expr, (tree.And, tree.Or)):
        return {"op": "and" if isinstance(expr, tree.And) else "or", "terms": [to_json(term) for term in expr.terms]}
    if isinstance(expr, tree.Not):
        return {"op": "not", "term": to_json(expr.term)}
    if isinstance(expr, tree.Compare):
        return {"op": expr.operator, "left": _operand(expr.left), "right": _operand(expr.right)}
    if isinstance(expr, tree.Constant):
        return {"op": "constant", "value": expr.value}
    operand = {"operand": _operand(expr.operand)}
    if isinstance(expr, tree.In):
        return {"op": "in", **operand, "values": [_operand(value) for value in expr.values]}
    if isinstance(expr, tree.StartsWith):
        return {"op": "starts_with", **operand, "prefix": expr.prefix}
    if isinstance(expr, tree.Like):
        return {"op": "like", **operand, "pattern": expr.pattern}
    return {"op": "is_null", **operand}


def from_json(data: Any) -> tree.Expr:
    """The tree of a JSON object. Raises ConfigError naming the part that is not one, or for one too deep."""
    return _expr(data, 1)


def _operand(operand: tree.Operand) -> Json:
    if isinstance(operand, tree.Column):
        return {"column": list(operand.path)}
    if isinstance(operand, tree.Call):
        return {"call": operand.name, "arguments": [_operand(argument) for argument in operand.arguments]}
    value = _WRITE[operand.kind](operand.value) if operand.kind in _WRITE else operand.value
    return {"literal": operand.kind, "value": value}


_WRITE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "decimal": str,
    "double": repr,
    "integer": str,
    "bytes": bytes.hex,
    "date": dt.date.isoformat,
    "timestamp": dt.datetime.isoformat,
}
"""How values are written by type: numbers as text, so that no JSON reader rounds them."""
_READ: Final[Mapping[str, Callable[[str], tree.Value]]] = {
    "decimal": decimal.Decimal,
    "double": float,
    "integer": int,
    "bytes": bytes.fromhex,
    "date": dt.date.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "text": str,
}


def _expr(data: Any, depth: int) -> tree.Expr:
    if depth > tree.MAX_DEPTH:
        raise tree.too_deep()
    op = _field(data, "op", str)
    if op in ("and", "or"):
        terms = tuple(_expr(term, depth + 1) for term in _field(data, "terms", list))
        return tree.And(terms) if op == "and" else tree.Or(terms)
    if op == "not":
        return tree.Not(_expr(_field(data, "term", dict), depth + 1))
    if op in tree.OPERATORS:
        return tree.Compare(
            op, _read_operand(_field(data, "left", dict), depth), _read_operand(_field(data, "right", dict), depth)
        )
    if op == "constant":
        value = data.get("value")
        if value is not None and not isinstance(value, bool):
            raise _wrong(data)
        return tree.Constant(value)
    operand = _read_operand(_field(data, "operand", dict), depth)
    if op == "in":
        return tree.In(operand, tuple(_literal(value) for value in _field(data, "values", list)))
    if op == "is_null":
        return tree.IsNull(operand)
    if op == "starts_with":
        return tree.StartsWith(operand, _field(data, "prefix", str))
    if op == "like":
        return tree.Like(operand, _field(data, "pattern", str))
    raise _wrong(data)


def _read_operand(data: Any, depth: int) -> tree.Operand:
    if depth > tree.MAX_DEPTH:
        raise tree.too_deep()
    if isinstance(data, dict) and "column" in data:
        path = _field(data, "column", list)
        if not path or not all(isinstance(name, str) and name for name in path):
            raise _wrong(data)
        return tree.Column(tuple(path))
    if isinstance(data, dict) and "call" in data:
        arguments = _field(data, "arguments", list)
        return tree.Call(_field(data, "call", str), tuple(_read_operand(argument, depth + 1) for argument in arguments))
    return _literal(data)


def _literal(data: Any) -> tree.Literal:
    kind = _field(data, "literal", str)
    if kind == "null":
        return tree.NULL
    value = data.get("value")
    if kind == "boolean" and isinstance(value, bool):
        return tree.Literal(kind, value)
    if kind not in _READ or not isinstance(value, str):
        raise _wrong(data)
    try:
        return tree.Literal(kind, _READ[kind](value))
    except (ValueError, decimal.InvalidOperation) as error:
        raise _wrong(data) from error


def _field(data: Any, name: str, kind: type) -> Any:
    value = data.get(name) if isinstance(data, dict) else None
    if not isinstance(value, kind):
        raise _wrong(data)
    return value


def _wrong(data: Any) -> ConfigError:
    return ConfigError(f"not a predicate: {truncated(repr(data), 200)}", remedy="write it with expr.json_form.to_json")
