"""Tells a connection that is not there from a secrets backend that cannot be asked now: of both Airflow 3.3 makes an
AirflowNotFoundException, and only logs the backend's own error, as debug. What that means for a task: task_fate.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_hudi.exceptions import HudiConnectionUnreadable

log = logging.getLogger(__name__)

_OF_VALUES = (ValueError, TypeError, KeyError)
"""A backend that answered, with a connection that cannot be parsed."""


@contextmanager
def asking_for(conn_id: str | None) -> Iterator[None]:
    """Raises HudiConnectionUnreadable where Airflow did not find the connection, and a backend that is asked for it
    once more fails, or has it. Else the AirflowNotFoundException, which is_permanent takes for what no retry changes.
    """
    try:
        yield
    except AirflowNotFoundException as error:
        why = _why_it_may_be_there(conn_id) if conn_id else None
        if why is None:
            raise
        raise HudiConnectionUnreadable(
            f"the connection {conn_id!r} was not found, and {why}", remedy="a retry asks again"
        ) from error


def check_backends(conn_id: str) -> None:
    """Asks for a connection ahead of a hook that, like Amazon's, goes on without credentials where it is not found.
    Raises as asking_for, and nothing for a connection that is not there.
    """
    with suppress(AirflowNotFoundException), asking_for(conn_id):
        BaseHook.get_connection(conn_id)


def _why_it_may_be_there(conn_id: str) -> str | None:
    """By the first backend that fails or has it; None where all answer without it. An error's text may hold secrets.
    That of Airflow's own database never raises.
    """
    from airflow.sdk.execution_time.supervisor import ensure_secrets_backend_loaded

    for backend in ensure_secrets_backend_loaded():
        name = type(backend).__name__
        try:
            found = backend.get_connection(conn_id=conn_id)
        except Exception as error:
            log.debug("%s was asked for the connection %r", name, conn_id, exc_info=True)
            # A proxy's page in place of the backend's JSON is both to `requests`.
            if isinstance(error, _OF_VALUES) and not isinstance(error, OSError):
                continue
            return f"a secrets backend cannot be asked for it: {name} fails with {type(error).__name__}"
        if found is not None:
            return f"a secrets backend has it now: {name}"
    return None
