"""The errors of this provider's tasks, and the fate of a task by the exit code of its job or by an error. Operators,
sensors, triggers and asset events all follow this rule. hooks.py says whether a connection is missing; the exit codes
are in hudi_core/errors.py.

| exit code of the job | the job | the task |
|---|---|---|
| 0 | did the work, or found none | is done; is skipped where there was none, as its `nothing_to_do` says |
| 2 (EXIT_BAD_INPUT) | refused its input | fails for good |
| 3 (EXIT_RETRY) | others are at work | waits, and runs the job again; fails with retries when it waited too long |
| any other | failed | fails with retries |

If the timeline shows the work completed, the task is done, whatever the exit code is (jobs/waiting.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

from hudi_core.errors import (
    EXIT_BAD_INPUT,
    EXIT_RETRY,
    ConfigError,
    ConflictError,
    ExecutionError,
    FormatError,
    HudiError,
    StorageError,
    UnsupportedError,
)
from hudi_core.request.results import BatchResult, JobResult, error_from_json

log = logging.getLogger(__name__)

UNSAID = "it did not report why; see its output above"


class HudiSensorFailed(HudiError, AirflowException):
    """A sensor's wait ended with an error. It is an AirflowException, so that soft_fail and never_fail apply."""


class HudiInstantNotFound(ConfigError):
    """The instant that a task should run is not on the timeline, or has another action. No retry helps."""


class HudiInputRefused(ConfigError):
    """The job refused its input. The error has the job's reason and remedy. No retry helps."""


class HudiInstantBusy(ConflictError):
    """Another process ran the instant for longer than the task may wait. A retry is safe."""


class HudiNotificationFailed(HudiError):
    """A webhook did not take a message."""


class HudiTableUnreadable(StorageError):
    """Tables that a task must look at cannot be read now. A retry looks again."""


class HudiConnectionUnreadable(StorageError):
    """A secrets backend cannot be asked for a connection now. A retry asks again."""


class HudiJobFailed(ExecutionError):
    """The Spark job ended and the instant is not completed. A retry takes the instant over."""


class HudiJobKilled(HudiJobFailed):
    """The task was stopped, and stopped its Spark job."""


class Fate(Enum):
    DONE = "done"
    FAILS_FOR_GOOD = "fails for good"
    WAITS = "waits"
    FAILS = "fails"


def fate_of(exit_code: int) -> Fate:
    """Returns the fate of a task whose job ended with this exit code, which may be the code of a signal."""
    return {0: Fate.DONE, EXIT_BAD_INPUT: Fate.FAILS_FOR_GOOD, EXIT_RETRY: Fate.WAITS}.get(exit_code, Fate.FAILS)


def failure_of(result: JobResult | None) -> str | None:
    """Returns the failures in a result, in one line; None if there are none, or if the job did not report."""
    if isinstance(result, BatchResult):
        result = result.stopped
    if result is None:
        return None
    if result.error is not None:
        return in_words(error_from_json(result.error))
    return "; ".join(str(instant.error) for instant in result.failed) or None


def refused(result: JobResult | None) -> HudiInputRefused:
    """Returns the error of a job that refused its input, made of the job's result."""
    whole = result.stopped if isinstance(result, BatchResult) else result
    if whole is None or whole.error is None:
        said = failure_of(result) or "the job refused its input and did not say why; see its output above"
        return HudiInputRefused(said)
    error = error_from_json(whole.error)
    return HudiInputRefused(error.message, path=error.path, remedy=error.remedy)


def is_permanent(error: BaseException) -> bool:
    """Returns whether a retry would fail in the same way: bad input, no credentials, or a missing connection."""
    if isinstance(error, HudiError):
        return fate_of(error.exit_code) is Fate.FAILS_FOR_GOOD
    return isinstance(error, AirflowNotFoundException)


def may_pass(error: BaseException) -> bool:
    """Returns whether another look may soon succeed: storage or a writer failed. Call it before is_permanent."""
    if isinstance(error, StorageError):
        return not is_permanent(error)
    return isinstance(error, FormatError) and not isinstance(error, UnsupportedError)


def in_words(error: BaseException) -> str:
    """Returns the error as a text for people: first the problem, then the place, then the remedy."""
    if not isinstance(error, HudiError):
        return str(error) or type(error).__name__
    place = f": {error.path}" if error.path is not None and error.path not in error.message else ""
    return f"{error.message}{place}" + (f" ({error.remedy})" if error.remedy else "")


@contextmanager
def fails_for_good(logger: Any = log) -> Iterator[None]:
    """Raises AirflowFailException for a permanent error, and logs its message as a line of its own."""
    try:
        yield
    except Exception as error:
        if not is_permanent(error):
            raise
        said = in_words(error)
    else:
        return
    logger.error("%s", said)
    raise AirflowFailException(said) from None
