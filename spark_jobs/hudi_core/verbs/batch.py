"""Several requests as one job: of several tables, or several services of one table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, ClassVar, Final, TypeAlias

from hudi_core.errors import ConfigError
from hudi_core.request.json_fields import parse_object
from hudi_core.request.policy import Policy
from hudi_core.request.results import REQUEST_VERSION, BatchItem, BatchResult, Result
from hudi_core.verbs.registry import parse_request, request_of
from hudi_core.verbs.request import Request
from hudi_core.verbs.run import RunRequest

AT_ONCE: Final = 4
MAX_AT_ONCE: Final = 64
_WHAT: Final = "batch request"


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """Requests that one job runs: those of one table one after the other, up to `at_once` tables side by side.

    Each has a result and an exit code of its own: the failure of one stops no other. `result_name` is as that of a
    Request; the file is put at the first table that there is (places_of_result).
    """

    verb: ClassVar[str] = "batch"

    requests: tuple[Request, ...]
    _: KW_ONLY
    at_once: int = AT_ONCE
    result_name: str = ""

    def __post_init__(self) -> None:
        """Raises ConfigError for what means nothing."""
        if not self.requests:
            raise ConfigError(f"{_WHAT}: there is no request in it", remedy="name a table")
        if not 1 <= self.at_once <= MAX_AT_ONCE:
            raise ConfigError(
                f"{_WHAT}: at_once must be between 1 and {MAX_AT_ONCE}",
                remedy="set it to such a number, or leave it out",
            )

    def to_json(self) -> str:
        """One line of JSON, in which fields that all requests share are there once; parse_job reads it."""
        fields = [{"verb": request.verb, **asdict(request)} for request in self.requests]
        first = fields[0]
        shared = {
            name: first[name] for name in first if all(item.get(name, self) == first[name] for item in fields[1:])
        }
        value = {
            "version": REQUEST_VERSION,
            "verb": self.verb,
            "at_once": self.at_once,
            "result_name": self.result_name,
            "shared": shared,
            "requests": [{name: item[name] for name in item if name not in shared} for item in fields],
        }
        return json.dumps(value, sort_keys=True)


JobRequest: TypeAlias = Request | BatchRequest
"""What one job is asked to do."""


def requests_of(job: JobRequest) -> tuple[Request, ...]:
    """The requests of a job in their order."""
    return job.requests if isinstance(job, BatchRequest) else (job,)


def requests_of_policy(policy: Policy, table: str, **shared: Any) -> list[RunRequest]:
    """What a policy runs on a table: all that is pending, and what is due; `shared` are fields of each request."""
    options = shared.pop("options", {})
    return [
        RunRequest(
            table,
            service=item.service,
            schedule=True,
            all_pending=True,
            max_minutes=policy.minutes,
            when=item.when,
            options=policy.options_of(item, options),
            **shared,
        )
        for item in policy.services
    ]


def batch_result(batch: BatchRequest, results: Sequence[Result], stopped: Result | None = None) -> BatchResult:
    """The results of a batch, each named by its request."""
    named = zip(batch.requests, results, strict=True)
    items = (BatchItem(one.table, one.verb, getattr(one, "service", None), result) for one, result in named)
    return BatchResult(tuple(items), stopped)


def places_of_result(job: JobRequest) -> tuple[Request, ...]:
    """The first request of each table, in their order: a named result is put into the `results_folder` of the first one
    that can be written, and its reader looks in the same order.
    """
    first: dict[str, Request] = {}
    for request in requests_of(job):
        first.setdefault(request.table, request)
    return tuple(first.values())


def parse_job(text: str | bytes) -> JobRequest:
    """The request, or the batch, that `to_json` wrote. Raises ConfigError as parse_request."""
    value = parse_object(text, what=_WHAT)
    if value.get("verb") != BatchRequest.verb:
        return parse_request(text)
    if value.get("version") != REQUEST_VERSION or isinstance(value["version"], bool):
        raise ConfigError(
            f"{_WHAT} has version {value.get('version')}, this release reads {REQUEST_VERSION}",
            remedy="use the same release on both sides",
        )
    unknown = sorted(value.keys() - {"version", "verb", "at_once", "result_name", "shared", "requests"})
    if unknown:
        raise ConfigError(
            f"{_WHAT} has unknown fields: {', '.join(unknown)}", remedy="use the same release on both sides"
        )
    shared, items = value.get("shared", {}), value.get("requests")
    at_once, result_name = value.get("at_once", AT_ONCE), value.get("result_name", "")
    if not isinstance(shared, dict) or not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
        raise ConfigError(f"{_WHAT}: requests must be a list of objects, and shared an object")
    if not isinstance(at_once, int) or isinstance(at_once, bool) or not isinstance(result_name, str):
        raise ConfigError(f"{_WHAT}: at_once must be a whole number, and result_name text")
    found = tuple(request_of({"version": REQUEST_VERSION, **shared, **one}) for one in items)
    return BatchRequest(found, at_once=at_once, result_name=result_name)
