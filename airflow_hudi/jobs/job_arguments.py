"""What a job is given, however it is submitted: its request as JSON that arrives whole, a name, no secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hudi_core.errors import ConfigError
from hudi_core.verbs.batch import BatchRequest, JobRequest, requests_of
from hudi_core.verbs.run import RunRequest, ScheduleRequest

LONGEST_ARGUMENT: Final = 128_000
"""Bytes; Linux takes 128 KiB (MAX_ARG_STRLEN)."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\}(?=\})')
_UNSAFE = re.compile(r'\\["\\]|`')
_ESCAPES = {'\\"': r"\u0022", "\\\\": r"\u005c", "`": r"\u0060"}


def request_argument(job: JobRequest, *, longest: int = LONGEST_ARGUMENT) -> str:
    """The request as one argument, which hudi_spark.job reads: JSON that YARN leaves as it is. In its cluster mode the
    arguments become a line of a shell script, in which the node manager takes `}}` away, the end of a reference to a
    variable, and Spark's quoting lets the shell see backslashes and backticks. Raises ConfigError over `longest` bytes.
    """
    text = _argument(job)
    size = len(text.encode())
    if size > longest:
        raise ConfigError(
            f"the request of {len(requests_of(job))} runs is longer than an argument can be: {size} bytes, "
            f"{longest} at most",
            remedy="name fewer tables in one task",
        )
    return text


def parts_of(batch: BatchRequest) -> Iterator[BatchRequest]:
    """The batch in parts that fit an argument, by halves; a run that does not fit by itself is a part, too."""
    place = len(batch.requests) // 2
    # With a name of a result, which a driver in the cluster gets.
    if place == 0 or len(_argument(replace(batch, result_name="f" * 32)).encode()) <= LONGEST_ARGUMENT:
        yield batch
        return
    for requests in (batch.requests[:place], batch.requests[place:]):
        yield from parts_of(replace(batch, requests=requests))


def _argument(job: JobRequest) -> str:
    return _TOKEN.sub(_as_yarn_leaves_it, job.to_json())


def _as_yarn_leaves_it(token: re.Match[str]) -> str:
    return "} " if token[0] == "}" else _UNSAFE.sub(lambda found: _ESCAPES[found[0]], token[0])


def application_name(job: JobRequest) -> str:
    """The application's name: what is done, and at which instant when that is known; of a batch, on how many tables."""
    match job:
        case BatchRequest(requests=requests):
            what = f"{len({item.table for item in requests})}-tables"
        case RunRequest(service=service):
            what = service
        case ScheduleRequest(verb=verb, service=service):
            what = f"{verb}-{service}"
        case _:
            what = job.verb
    return "-".join(filter(None, ("hudi", what, getattr(job, "instant", None))))
