"""The expression tree of every engine's predicate (RFC-27, HudiExpression): values only, no evaluation.
engine/serializer.py writes it for executors.

A predicate is an `Expr`; it compares operands: columns, literals, and calls of the functions of `functions.py`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Iterator
from typing import Final, TypeAlias

from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass

Value: TypeAlias = bool | int | decimal.Decimal | float | str | bytes | dt.date | dt.datetime | None

EQ, NE, LT, LE, GT, GE, SAME = "=", "<>", "<", "<=", ">", ">=", "<=>"
OPERATORS: Final = frozenset({EQ, NE, LT, LE, GT, GE, SAME})
"""The operators. `<=>` is equality that takes two NULLs for equal (IS NOT DISTINCT FROM)."""
FLIPPED: Final = {EQ: EQ, NE: NE, LT: GT, LE: GE, GT: LT, GE: LE, SAME: SAME}
"""The operator when the two sides change places."""
NEGATED: Final = {EQ: NE, NE: EQ, LT: GE, LE: GT, GT: LE, GE: LT}
"""The operator that holds where the other one is false. Where one is NULL, both are."""
DIALECTS: Final = ("spark", "hive", "presto", "trino")
MAX_DEPTH: Final = 200
"""The most levels of a tree. Deeper trees are refused, so that recursion over a tree is bounded."""

_KINDS: Final[tuple[tuple[str, type], ...]] = (
    ("boolean", bool),
    ("integer", int),
    ("decimal", decimal.Decimal),
    ("double", float),
    ("text", str),
    ("bytes", bytes),
    ("timestamp", dt.datetime),
    ("date", dt.date),
)
"""Types of literals by Python type; a subclass precedes its base (bool and int, datetime and date)."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of a struct column: the names from the top down."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A typed constant, so that 1, 1.0 and true differ. Types: null, boolean, integer, decimal, double, text, bytes,
    timestamp, date. A timestamp without a zone is local time in the zone that the expression is bound with.
    """

    kind: str
    value: Value

    def __post_init__(self) -> None:
        if isinstance(self.value, float) and math.isnan(self.value):
            object.__setattr__(self, "value", math.nan)

    def __eq__(self, other: object) -> bool:
        """Compares tuples, by identity first, so that one NaN equals itself; dataclasses of Python 3.13 do not."""
        return isinstance(other, Literal) and (self.kind, self.value) == (other.kind, other.value)

    def __hash__(self) -> int:
        return hash((self.kind, self.value))

    @staticmethod
    def of(value: Value) -> Literal:
        """Returns the literal of a Python value. Raises ConfigError for a type that is none of Value."""
        if value is None:
            return NULL
        for kind, python_type in _KINDS:
            if isinstance(value, python_type):
                return Literal(kind, value)
        remedy = "use a boolean, number, text, bytes, date or timestamp"
        raise ConfigError(f"{value!r} is no literal of a predicate", remedy=remedy)


NULL: Final = Literal("null", None)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of operands, by its name in Spark, in lower case."""

    name: str
    arguments: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class And:
    terms: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or:
    terms: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not:
    term: Expr


@dataclass(frozen=True, slots=True)
class Compare:
    """`left operator right`, with one of OPERATORS."""

    operator: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class In:
    """Whether the operand equals one of the literals; NULL instead of false when one of them is NULL."""

    operand: Operand
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether the operand is NULL; never NULL itself."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class StartsWith:
    operand: Operand
    prefix: str


@dataclass(frozen=True, slots=True)
class Like:
    """SQL's LIKE: `%` is any text, `_` any character, and a backslash takes the next character literally."""

    operand: Operand
    pattern: str


@dataclass(frozen=True, slots=True)
class Constant:
    """True, false, or NULL (None) for every row."""

    value: bool | None


Operand: TypeAlias = Column | Literal | Call
Expr: TypeAlias = And | Or | Not | Compare | In | IsNull | StartsWith | Like | Constant


def conjunction(terms: tuple[Expr, ...]) -> Expr:
    """Returns all of the terms: the only one, an And of all without And below it, or true when there is none."""
    flat = tuple(inner for term in terms for inner in (term.terms if isinstance(term, And) else (term,)))
    return flat[0] if len(flat) == 1 else And(flat) if flat else Constant(True)


def disjunction(terms: tuple[Expr, ...]) -> Expr:
    """Returns one of the terms: the only one, an Or of all without Or below it, or false when there is none."""
    flat = tuple(inner for term in terms for inner in (term.terms if isinstance(term, Or) else (term,)))
    return flat[0] if len(flat) == 1 else Or(flat) if flat else Constant(False)


def children(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, (And, Or)):
        return expr.terms
    return (expr.term,) if isinstance(expr, Not) else ()


def operands(expr: Expr) -> tuple[Operand, ...]:
    if isinstance(expr, Compare):
        return (expr.left, expr.right)
    if isinstance(expr, (In, IsNull, StartsWith, Like)):
        return (expr.operand,)
    return ()


def operand_columns(operand: Operand) -> Iterator[tuple[str, ...]]:
    if isinstance(operand, Column):
        yield operand.path
    elif isinstance(operand, Call):
        for argument in operand.arguments:
            yield from operand_columns(argument)


def walk(expr: Expr) -> Iterator[Expr]:
    """Yields all predicates of the tree, parents first. Raises ConfigError for a tree deeper than MAX_DEPTH."""
    pending: list[tuple[Expr, int]] = [(expr, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise too_deep()
        yield node
        pending.extend((child, depth + 1) for child in reversed(children(node)))


def too_deep() -> ConfigError:
    remedy = "write long alternatives as IN lists"
    return ConfigError(f"the predicate nests deeper than {MAX_DEPTH} levels", remedy=remedy)


def like_tokens(pattern: str, escape: str = "\\") -> list[tuple[str, bool]]:
    """Returns the characters, each with whether it is literal. Raises ConfigError when `escape` ends the pattern."""
    tokens: list[tuple[str, bool]] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            escaped = next(characters, None)
            if escaped is None:
                remedy = "write the escape character twice"
                raise ConfigError(f"the LIKE pattern {pattern!r} ends in its escape character", remedy=remedy)
            tokens.append((escaped, True))
        else:
            tokens.append((character, character not in "%_"))
    return tokens
