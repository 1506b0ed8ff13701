"""Several requests as one job, as JSON."""

from __future__ import annotations

import json

import pytest

from hudi_core.errors import ConfigError
from hudi_core.verbs.batch import BatchRequest, parse_job, requests_of
from hudi_core.verbs.instants import RollbackRequest
from hudi_core.verbs.run import RunRequest


def test_it_returns_from_json_and_says_what_is_shared_once() -> None:
    tables = [f"/warehouse/täble {number}" for number in range(200)]
    options = {"hoodie.clean.commits.retained": "3"}
    requests = tuple(RunRequest(table, "clean", schedule=True, owner="airflow", options=options) for table in tables)
    batch = BatchRequest(requests, at_once=8, result_name="abc")
    assert parse_job(batch.to_json()) == batch
    assert len(batch.to_json()) < 60 * len(tables)
    mixed = BatchRequest((requests[0], RollbackRequest(tables[1], instant="1"), RunRequest(tables[1], "archive")))
    assert parse_job(mixed.to_json()) == mixed
    assert requests_of(mixed) == mixed.requests


def test_a_request_alone_is_as_before() -> None:
    request = RunRequest("a", "compaction", instant="1")
    assert parse_job(request.to_json()) == request
    assert requests_of(request) == (request,)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"version": 2}, "version 2"),
        ({"version": True}, "version"),
        ({"more": 1}, "unknown fields: more"),
        ({"requests": []}, "no request"),
        ({"requests": {}}, "list of objects"),
        ({"requests": [1]}, "list of objects"),
        ({"shared": 1}, "shared an object"),
        ({"at_once": 0}, "at_once"),
        ({"at_once": "4"}, "at_once"),
        ({"at_once": True}, "at_once"),
        ({"result_name": 1}, "result_name"),
        ({"shared": {"verb": "run", "service": "clean", "table": "a", "nonsense": 1}}, "nonsense"),
        ({"shared": {"verb": "batch", "service": "clean", "table": "a"}}, "unknown verb"),
        ({"requests": [{"options": {"fs.s3a.secret.key": "hidden"}}]}, "secrets"),
    ],
)
def test_what_means_nothing_is_refused(change: dict[str, object], word: str) -> None:
    good = json.loads(BatchRequest((RunRequest("a", "clean"),)).to_json())
    with pytest.raises(ConfigError, match=word) as caught:
        parse_job(json.dumps({**good, **change}))
    assert "hidden" not in str(caught.value)
