from __future__ import annotations

import pytest

from hudi_core.errors import ConfigError
from hudi_core.expr.functions import call_of
from hudi_core.expr.tree import Call, Column, Literal

C = Column(("c",))


@pytest.mark.parametrize(
    ("dialect", "name", "meant"),
    [
        ("spark", "dayofmonth", "day"),
        ("hive", "lcase", "lower"),
        ("trino", "day_of_month", "day"),
        ("presto", "date", "to_date"),
        ("spark", "from_unixtime", "from_unixtime"),
    ],
)
def test_names_of_the_dialects(dialect: str, name: str, meant: str) -> None:
    assert call_of(dialect, name, (C,)) == Call(meant, (C,))


@pytest.mark.parametrize(("dialect", "name"), [("trino", "from_unixtime"), ("trino", "lcase"), ("spark", "rand")])
def test_names_that_a_dialect_does_not_have(dialect: str, name: str) -> None:
    assert call_of(dialect, name, (C,)) is None
    assert call_of("spark", "lower", ()) is None


@pytest.mark.parametrize(
    ("theirs", "java"), [("%Y-%m-%d", "yyyy-MM-dd"), ("%T", "HH:mm:ss"), ("%Y at %H", "yyyy 'at' HH"), ("%%", "%")]
)
def test_mysql_patterns_become_those_of_java(theirs: str, java: str) -> None:
    found = call_of("trino", "date_format", (C, Literal("text", theirs)))
    assert found == Call("date_format", (C, Literal("text", java)))
    assert call_of("spark", "date_format", (C, Literal("text", theirs))) == Call(
        "date_format", (C, Literal("text", theirs))
    )


def test_a_pattern_that_java_does_not_have() -> None:
    with pytest.raises(ConfigError, match="%W in a date pattern"):
        call_of("presto", "date_format", (C, Literal("text", "%W")))
