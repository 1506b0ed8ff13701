"""Predicates mean what Spark SQL makes of their text."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from hudi_core.expr.bind import bind
from hudi_core.expr.bound import row_mask
from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import Expr, In, Literal, operands, walk
from tests.support.predicate_text import to_sql
from tests.support.random_predicates import SCHEMA, predicates, rows

TYPES = (
    "i INT, l BIGINT, d DOUBLE, f FLOAT, n DECIMAL(7,2), s STRING, y BINARY, b BOOLEAN, day DATE, at TIMESTAMP, u "
    "STRUCT<x: BIGINT, t: STRING>"
)
WRITTEN = [
    "i < 2.5 OR i >= 2147483647.5",
    "n = 1.105 OR n < 1.105",
    "day < TIMESTAMP '2024-02-29 00:00:01'",
    "day = '2024-02-29' OR at = '2024-02-29'",
    "at >= TIMESTAMP '2024-02-29 13:30:00.000001+01:00'",
    "i = l OR l = d OR d = f OR n = i",
    "d <=> f",
    "s = u.t",
    "f > 0.1 AND f = 0.5",
    "lower(s) = 'b' OR upper(s) = 'Ä' OR length(s) = 1",
    "trim(s) = 'a' OR substring(s, 2, 1) = 'b' OR substring(s, 0, 1) = 'x'",
    "year(day) = 2024 OR month(at) = 12 OR day(day) = 31",
    "hour(at) = 23 AND minute(at) = 59 AND second(at) = 59",
    "to_date(at) = day OR CAST(at AS DATE) = DATE '1970-01-01'",
    "date_format(at, 'yyyy-MM-dd HH:mm:ss') < '2000'",
    "from_unixtime(i, 'yyyy-MM-dd') = '2038-01-19' OR from_unixtime(i) LIKE '1970%'",
    "b = 'true' OR b < true",
    "y = 'ab' OR y > X'61'",
    "s LIKE '%\\\\%' OR s LIKE 'a\\\\_%'",
    "abs(i) = 1",
]


def _literals(expr: Expr) -> list[Any]:
    found = [
        operand for node in walk(expr) for operand in (*operands(node), *(node.values if isinstance(node, In) else ()))
    ]
    return [operand.value for operand in found if isinstance(operand, Literal)]


def _ordinary(expr: Expr) -> bool:
    """Without numbers for which Spark's own types have too few digits."""
    values = _literals(expr)
    exact = all(-7 < value.adjusted() < 10 for value in values if isinstance(value, Decimal))
    return exact and all(abs(value) < 2**63 for value in values if isinstance(value, int))


def _examples(count: int) -> tuple[list[pa.RecordBatch], list[Expr]]:
    """The same ones every time."""
    batches: list[pa.RecordBatch] = []
    exprs: list[Expr] = []

    @settings(
        max_examples=count,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(rows(3, 12), predicates().filter(_ordinary))
    def collect(batch: pa.RecordBatch, expr: Expr) -> None:
        batches.append(batch)
        exprs.append(expr)

    collect()
    return batches, exprs


@pytest.mark.spark
def test_rows_that_match_are_those_of_spark(spark: Any) -> None:
    batches, exprs = _examples(80)
    exprs += [parse_predicate(text) for text in WRITTEN]
    table = pa.Table.from_batches(batches[:20])
    (batch,) = table.combine_chunks().to_batches()
    frame = spark.createDataFrame([tuple(row.values()) for row in batch.to_pylist()], TYPES).coalesce(1)
    answers = frame.selectExpr(
        *[f"coalesce({to_sql(expr)}, false) AS p{number}" for number, expr in enumerate(exprs)]
    ).collect()
    assert len(answers) == batch.num_rows > 50
    for number, expr in enumerate(exprs):
        assert row_mask(bind(expr, SCHEMA), batch).to_pylist() == [row[number] for row in answers], to_sql(expr)
