"""The conf by which Spark cuts batches, of a session that several actions share."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError

from hudi_spark.engine import MAX_RECORDS, rows_per_batch


class Session:
    """The conf of a session."""

    def __init__(self, rows: str) -> None:
        self.conf = self
        self.values = {MAX_RECORDS: rows}
        self.failing = False

    def get(self, key: str) -> str:
        return self.values[key]

    def set(self, key: str, value: str) -> None:
        if self.failing:
            raise PySparkRuntimeError("the server is gone")
        self.values[key] = value

    @property
    def rows(self) -> str:
        return self.values[MAX_RECORDS]


@pytest.mark.parametrize(("own", "expected"), [("10000", "16"), ("4", "4"), ("0", "16"), ("-1", "16")])
def test_an_action_gets_no_more_rows_than_the_session_allows(own: str, expected: str) -> None:
    spark: Any = Session(own)
    with rows_per_batch(spark, 16):
        assert spark.rows == expected
    assert spark.rows == own
    with rows_per_batch(spark, None):
        assert spark.rows == own


def test_the_last_of_several_actions_restores_the_conf() -> None:
    spark: Any = Session("10000")
    first, second = rows_per_batch(spark, 16), rows_per_batch(spark, 8)
    first.__enter__()
    second.__enter__()
    assert spark.rows == "8"
    second.__exit__(None, None, None)
    assert spark.rows == "16"
    with rows_per_batch(spark, 32):
        assert spark.rows == "16"
    first.__exit__(None, None, None)
    assert spark.rows == "10000"


def test_what_an_action_raises_passes_also_where_the_session_is_gone() -> None:
    spark: Any = Session("10000")

    def fail() -> None:
        with rows_per_batch(spark, 16):
            spark.failing = True
            raise KeyError("of the action")

    with pytest.raises(KeyError):
        fail()
    spark.failing = False
    spark.values[MAX_RECORDS] = "500"
    with rows_per_batch(spark, 16):
        assert spark.rows == "16"
    assert spark.rows == "500"
