"""Which queries there are, and what is refused before anything is read."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_core.errors import ConfigError
from hudi_core.query.request import ReadRequest


@pytest.mark.parametrize(
    "requested",
    [
        {},
        {"query": "read_optimized", "as_of": "20240101000000000"},
        {"query": "incremental", "begin": "000"},
        {"query": "cdc", "begin": "000", "end": "20240101000000000", "columns": ("op",)},
    ],
)
def test_what_makes_a_query(requested: dict[str, Any]) -> None:
    request = ReadRequest(**requested)
    assert request.query == requested.get("query", "snapshot")
    assert request.columns == requested.get("columns")
    assert (request.as_of, request.begin, request.end) == (
        requested.get("as_of"),
        requested.get("begin"),
        requested.get("end"),
    )


@pytest.mark.parametrize(
    ("requested", "word"),
    [
        ({"query": "everything"}, "unknown query"),
        ({"metadata": "maybe"}, "metadata mode"),
        ({"columns": ("a", "a")}, "twice"),
        ({"query": "incremental"}, "begin"),
        ({"query": "cdc"}, "begin"),
        ({"begin": "000"}, "begin means nothing"),
        ({"end": "000"}, "end means nothing"),
        ({"query": "cdc", "begin": "000", "as_of": "1"}, "as_of means nothing"),
        ({"as_of": " "}, "as_of is empty"),
        ({"query": "incremental", "begin": ""}, "begin is empty"),
        ({"query": "incremental", "begin": "x"}, "begin is 'x'"),
        ({"query": "cdc", "begin": "000", "end": "2026-11-20"}, "end is '2026-11-20'"),
    ],
)
def test_what_makes_none(requested: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        ReadRequest(**requested)
