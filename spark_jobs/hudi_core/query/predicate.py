"""The predicate of a request: read from its text once, checked against the columns, and what it rules out before files are opened."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hudi_core.expr.bind import Bound, bind
from hudi_core.expr.json_form import to_json
from hudi_core.expr.sql import parse_predicate
from hudi_core.model.engine import Json
from hudi_core.query.request import ReadRequest


@dataclass(frozen=True)
class Predicate:
    """A predicate bound to the columns of the query, and its JSON form, which tasks bind again."""

    bound: Bound
    json: Json

    @staticmethod
    def of(request: ReadRequest, schema: pa.Schema, zone: str | None = None) -> Predicate | None:
        """The request's predicate over all columns of the query, None when it has none; `zone` is that of wall time, UTC when None.

        Raises ConfigError naming the fragment, column or literal that cannot be read or compared.
        """
        if request.where is None:
            return None
        expr = parse_predicate(request.where, request.dialect)
        return Predicate(bind(expr, schema, zone=zone), to_json(expr))
