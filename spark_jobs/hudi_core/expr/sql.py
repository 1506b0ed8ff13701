"""Reads a predicate from SQL text, in the dialects of Spark, Hive, Presto and Trino. bound.py decides for which rows it
is true, wall_time.py reads text that is cast to a timestamp.

sqlglot parses the text. This module converts what it supports, and refuses everything else by quoting it. Functions
reach it as they were written, since sqlglot's own rewriting of them differs from release to release.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

from hudi_core.errors import ConfigError, truncated
from hudi_core.expr import tree
from hudi_core.expr.functions import call_of
from hudi_core.expr.sql_literals import adjacent, cast_literal, decimal_sizes, hexadecimal, negative, number

if importlib.util.find_spec("sqlglot") is None:
    # A driver that runs from the job zip alone: the zip has sqlglot, pure Python, below `_vendor` beside `hudi_core`.
    sys.path.append(__file__.rsplit("hudi_core", 1)[0] + "_vendor")

from sqlglot import errors, exp
from sqlglot.dialects.dialect import Dialect

_BACKSLASH_ESCAPES: Final = frozenset({"spark", "hive"})
"""Dialects in which LIKE has an escape character by default."""
_MAX_TEXT: Final = 1 << 20
_MAX_QUOTED: Final = 120
_WRITTEN: Final = "written as a cast"
_SIZE: Final = re.compile(r"[0-9]{1,9}")

_COMPARISONS: Final[dict[type[exp.Expression], str]] = {
    exp.EQ: tree.EQ,
    exp.NEQ: tree.NE,
    exp.LT: tree.LT,
    exp.LTE: tree.LE,
    exp.GT: tree.GT,
    exp.GTE: tree.GE,
    exp.NullSafeEQ: tree.SAME,
}
_PLAIN_ARGUMENTS: Final = frozenset({"this", "expression"})
_ARGUMENTS: Final[dict[type[exp.Expression], frozenset[str]]] = {
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to"}),
    exp.Concat: frozenset({"expressions"}),
}
"""The parts of a node that this module reads. Modifiers (`negate`, `symmetric`, `zone` …) must not be ignored."""


def parse_predicate(text: str, dialect: str = "spark") -> tree.Expr:
    """Returns the predicate of a WHERE clause. Raises ConfigError quoting the part that is no SQL, or not supported."""
    if dialect not in tree.DIALECTS:
        raise ConfigError(f"unknown SQL dialect {dialect!r}", remedy=f"known are {', '.join(tree.DIALECTS)}")
    if len(text) > _MAX_TEXT:
        raise ConfigError(f"the predicate has {len(text)} characters", remedy=f"at most {_MAX_TEXT} are read")
    try:
        known = Dialect.get_or_raise(dialect)
        trees = _parser_class(dialect)(dialect=known).parse(known.tokenize(text), text)
        if len(trees) != 1 or trees[0] is None:
            remedy = "write a condition as after WHERE, such as: price > 10 AND city = 'Rome'"
            raise ConfigError(f"{_quoted(text)} is not one predicate", remedy=remedy)
        return _Reader(dialect).predicate(trees[0])
    except (errors.ParseError, errors.TokenError) as error:
        message = f"{_quoted(text)} is no predicate in {dialect} SQL: {_reason(error)}"
        raise ConfigError(message, remedy="check quotes and brackets") from error
    except RecursionError as error:
        raise tree.too_deep() from error


@functools.cache
def _parser_class(dialect: str) -> type[Any]:
    """Returns sqlglot's parser of the dialect, which leaves functions other than casts as they are written."""
    base = Dialect.get_or_raise(dialect).parser_class
    casts = {name: _noted(parse) for name, parse in base.FUNCTION_PARSERS.items() if name in ("CAST", "TRY_CAST")}
    members = {"FUNCTIONS": {}, "FUNCTION_PARSERS": casts, "NO_PAREN_FUNCTIONS": {}, "NO_PAREN_FUNCTION_PARSERS": {}}
    return type(f"{base.__name__}OfPredicates", (base,), members)


def _noted(parse: Callable[[Any], exp.Expression]) -> Callable[[Any], exp.Expression]:
    """Returns a parser of casts that marks its nodes: sqlglot makes casts of `DECIMAL '1.50'` and `1.50BD`, too."""

    def noted(parser: Any) -> exp.Expression:
        node = parse(parser)
        node.meta[_WRITTEN] = True
        return node

    return noted


def _reason(error: errors.SqlglotError) -> str:
    details = getattr(error, "errors", None) or [{}]
    return str(details[0].get("description") or str(error).split("\n", 1)[0])


def _quoted(text: str) -> str:
    return repr(truncated(text, _MAX_QUOTED))


class _Reader:
    """Turns sqlglot's nodes into the tree. A method that does not support a node returns None."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect

    def predicate(self, node: exp.Expression) -> tree.Expr:
        node = self._checked(node)
        return self._predicate(node) or self._refuse(node)

    def operand(self, node: exp.Expression) -> tree.Operand:
        node = self._checked(node)
        return self._operand(node) or self._refuse(node)

    def _predicate(self, node: exp.Expression) -> tree.Expr | None:
        if isinstance(node, (exp.And, exp.Or)):
            terms = tuple(self.predicate(term) for term in _chain(node))
            return tree.conjunction(terms) if isinstance(node, exp.And) else tree.disjunction(terms)
        if isinstance(node, exp.Not):
            return tree.Not(self.predicate(node.this))
        if type(node) in _COMPARISONS:
            return self._compare(node, _COMPARISONS[type(node)])
        if isinstance(node, exp.NullSafeNEQ):
            return tree.Not(self._compare(node, tree.SAME))
        if isinstance(node, exp.Between):
            operand, low, high = (self.operand(part) for part in (node.this, node.args["low"], node.args["high"]))
            return tree.And((tree.Compare(tree.GE, operand, low), tree.Compare(tree.LE, operand, high)))
        if isinstance(node, (exp.Boolean, exp.Null)):
            return tree.Constant(bool(node.this) if isinstance(node, exp.Boolean) else None)
        if isinstance(node, (exp.Column, exp.Dot)):
            return tree.Compare(tree.EQ, self.operand(node), tree.Literal("boolean", True))
        read = self._PREDICATES.get(type(node))
        return None if read is None else read(self, node)

    def _operand(self, node: exp.Expression) -> tree.Operand | None:
        if isinstance(node, (exp.Column, exp.Dot)):
            return tree.Column(self._path(node))
        if isinstance(node, exp.Literal):
            return tree.Literal("text", node.this) if node.is_string else number(node.this)
        if isinstance(node, exp.Boolean):
            return tree.Literal("boolean", bool(node.this))
        if isinstance(node, exp.Null):
            return tree.NULL
        if isinstance(node, exp.Neg):
            return negative(self.operand(node.this))
        if isinstance(node, exp.HexString):
            return hexadecimal(str(node.this))
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Concat):
            return adjacent([self.operand(part) for part in node.expressions])
        if isinstance(node, exp.Anonymous):
            arguments = tuple(self.operand(argument) for argument in node.expressions)
            return call_of(self._dialect, str(node.this).lower(), arguments)
        return None

    def _refuse(self, node: exp.Expression) -> NoReturn:
        text = node.sql(dialect=self._dialect, unsupported_level=errors.ErrorLevel.IGNORE)
        raise ConfigError(
            f"{_quoted(text)} is not supported in a predicate",
            remedy=(
                "supported are AND, OR, NOT, = <> < <= > >= <=>, IN, BETWEEN, LIKE, IS NULL of columns, literals "
                "and some functions of a column"
            ),
        )

    def _checked(self, node: exp.Expression) -> exp.Expression:
        node = _bare(node)
        known = _ARGUMENTS.get(type(node), _PLAIN_ARGUMENTS)
        if any(value and name not in known for name, value in node.args.items()):
            self._refuse(node)
        return node

    def _compare(self, node: exp.Expression, operator: str) -> tree.Expr:
        left, right = self.operand(node.this), self.operand(node.expression)
        if isinstance(left, tree.Literal) and not isinstance(right, tree.Literal):
            return tree.Compare(tree.FLIPPED[operator], right, left)
        return tree.Compare(operator, left, right)

    def _is(self, node: exp.Expression) -> tree.Expr | None:
        right = _bare(node.expression)
        if isinstance(right, exp.Null):
            return tree.IsNull(self.operand(node.this))
        if isinstance(right, exp.Boolean):
            return tree.Compare(tree.SAME, self.operand(node.this), tree.Literal("boolean", bool(right.this)))
        return None

    def _in(self, node: exp.Expression) -> tree.Expr | None:
        values = [self.operand(value) for value in node.expressions]
        literals = tuple(value for value in values if isinstance(value, tree.Literal))
        return tree.In(self.operand(node.this), literals) if literals and len(literals) == len(values) else None

    def _like(self, node: exp.Expression) -> tree.Expr | None:
        return self._match(node, "\\" if self._dialect in _BACKSLASH_ESCAPES else "")

    def _escape(self, node: exp.Expression) -> tree.Expr | None:
        like, escape = self._checked(node.this), _text(node.expression)
        if not isinstance(like, exp.Like) or escape is None or len(escape) != 1:
            return None
        return self._match(node.this, escape) or self._refuse(node.this)

    def _match(self, node: exp.Expression, escape: str) -> tree.Expr | None:
        pattern = _text(node.expression)
        if pattern is None:
            return None
        match = self._pattern(self.operand(node.this), tree.like_tokens(pattern, escape))
        return tree.Not(match) if node.args.get("negate") else match

    def _pattern(self, operand: tree.Operand, tokens: list[tuple[str, bool]]) -> tree.Expr:
        fixed = "".join(token for token, literal in tokens if literal)
        if all(literal for _, literal in tokens):
            return tree.Compare(tree.EQ, operand, tree.Literal("text", fixed))
        if tokens[-1] == ("%", False) and all(literal for _, literal in tokens[:-1]):
            return tree.StartsWith(operand, fixed)
        escaped = (f"\\{token}" if literal and token in "%_\\" else token for token, literal in tokens)
        return tree.Like(operand, "".join(escaped))

    def _condition_call(self, node: exp.Expression) -> tree.Expr | None:
        if str(node.this).lower() not in ("startswith", "starts_with") or len(node.expressions) != 2:
            return None
        prefix = self.operand(node.expressions[1])
        if not isinstance(prefix, tree.Literal) or not isinstance(prefix.value, str):
            return None
        return tree.StartsWith(self.operand(node.expressions[0]), prefix.value)

    def _cast(self, node: exp.Cast) -> tree.Operand | None:
        operand = self.operand(node.this)
        target = node.to.this.name if isinstance(node.to, exp.DataType) and not isinstance(node.to.this, str) else ""
        if not isinstance(operand, tree.Literal):
            return tree.Call("to_date", (operand,)) if target == "DATE" else None
        written = [int(size.name) for size in node.to.expressions if _SIZE.fullmatch(size.name)]
        sizes: Sequence[int] | None = written
        if target == "DECIMAL" and node.meta.get(_WRITTEN):
            sizes = decimal_sizes(written, self._dialect) if len(written) == len(node.to.expressions) else None
        return None if sizes is None else cast_literal(operand, target, sizes)

    def _path(self, node: exp.Expression) -> tuple[str, ...]:
        if isinstance(node, exp.Dot):
            return (*self._path(node.this), *self._path(node.expression))
        if isinstance(self._checked(node), exp.Identifier):
            return (str(node.this),)
        parts = node.parts if isinstance(node, exp.Column) else []
        named = bool(parts) and all(isinstance(part, exp.Identifier) and part.this for part in parts)
        return tuple(str(part.this) for part in parts) if named else self._refuse(node)

    _PREDICATES: Final[dict[type[exp.Expression], Callable[[Any, Any], tree.Expr | None]]] = {
        exp.Is: _is,
        exp.In: _in,
        exp.Like: _like,
        exp.Escape: _escape,
        exp.Anonymous: _condition_call,
    }


def _text(node: exp.Expression) -> str | None:
    literal = _bare(node)
    return str(literal.this) if isinstance(literal, exp.Literal) and literal.is_string else None


def _bare(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _chain(node: exp.Expression) -> list[exp.Expression]:
    """Returns the terms of `a OR b OR c`. sqlglot nests them to the left as deep as there are terms."""
    terms: list[exp.Expression] = []
    kind, rest = type(node), node
    while type(rest) is kind:
        terms.append(rest.expression)
        rest = rest.this
    terms.append(rest)
    return terms[::-1]
