"""Which errors no retry repairs: the one rule of operators, sensors, triggers and asset events."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from hudi_core.errors import EXIT_BAD_INPUT, FormatError, HudiError, StorageError, UnsupportedError

log = logging.getLogger(__name__)


def is_permanent(error: BaseException) -> bool:
    """Whether a retry would meet the same: bad input (no Hudi table, a damaged file, an option that is not valid, no
    credentials for the storage), and a connection that Airflow does not know.
    """
    if isinstance(error, HudiError):
        return error.exit_code == EXIT_BAD_INPUT
    return isinstance(error, AirflowNotFoundException)


def may_pass(error: BaseException) -> bool:
    """Whether another look at a table, soon, may go well: its storage is overloaded, or a writer is at a file. Of looks
    it is asked before is_permanent.
    """
    if isinstance(error, StorageError):
        return not is_permanent(error)
    return isinstance(error, FormatError) and not isinstance(error, UnsupportedError)


def in_words(error: BaseException) -> str:
    """An error for people: what is wrong first, then where, then the remedy."""
    if not isinstance(error, HudiError):
        return str(error) or type(error).__name__
    place = f": {error.path}" if error.path is not None and error.path not in error.message else ""
    return f"{error.message}{place}" + (f" ({error.remedy})" if error.remedy else "")


@contextmanager
def fails_for_good(logger: Any = log) -> Iterator[None]:
    """Raises AirflowFailException for a permanent error, whose message is then a line of its own in the task's log,
    ahead of what Airflow logs of the exception.
    """
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
