"""Requests of overwrites: what means nothing is refused, and JSON keeps the rest."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_core.errors import ConfigError, HudiError
from hudi_core.verbs.request import parse_request
from hudi_core.verbs.write import DeletePartitionRequest, InsertOverwriteRequest


@pytest.mark.parametrize(
    "request_",
    [
        InsertOverwriteRequest("/t", source="s3://bucket/rows", token="a/b c", whole_table=True, dry_run=True),
        InsertOverwriteRequest("/t", source="rows.parquet", partitions=("a=1/b=2", "")),
        InsertOverwriteRequest("/t", query="SELECT * FROM rows", token="x", dry_run=True),
        InsertOverwriteRequest("/t", dataframe="jobs.orders:of_day", dataframe_args={"day": "2026-01-01"}),
        DeletePartitionRequest("/t", partitions=("2024-01-01",), token="x"),
    ],
)
def test_requests_cross_processes(request_: Any) -> None:
    assert parse_request(request_.to_json()) == request_
    assert request_.needs_executors


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"source": ""}, "needs a source"),
        ({"source": "x", "query": "SELECT 1"}, "exclude each other"),
        ({"dataframe": "a:b", "query": "SELECT 1"}, "query and dataframe exclude each other"),
        ({"source": "x", "dataframe_args": {"a": "b"}}, "are for a dataframe"),
        ({"dataframe": "os.system"}, "is no function"),
        ({"dataframe": "a:b", "dataframe_args": {"password": "x"}}, "dataframe_args"),
        ({"source": "https://user:secret@host/rows"}, "the address of the source"),
        ({"source": "x", "whole_table": True, "partitions": ("a",)}, "exclude each other"),
        ({"source": "x", "partitions": ("a", "a")}, "named twice"),
        ({"source": "x", "token": ""}, "is no token"),
        ({"source": "x", "token": "a\nb"}, "is no token"),
    ],
)
def test_what_means_nothing_is_refused(given: dict[str, Any], error: str) -> None:
    with pytest.raises(HudiError, match=error):
        InsertOverwriteRequest("/t", **given)


def test_a_delete_names_partitions() -> None:
    with pytest.raises(ConfigError, match="needs a partition"):
        DeletePartitionRequest("/t")
