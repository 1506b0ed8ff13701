"""Tells a connection that is not there from a secrets backend that cannot be asked now: of both Airflow 3.3 makes an
AirflowNotFoundException, and only logs the backend's own error, as debug.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_hudi.exceptions import HudiConnectionUnreadable

_OF_VALUES = (ValueError, TypeError, KeyError)
"""A backend that answered, with a connection that cannot be parsed."""


@contextmanager
def asking_for(conn_id: str | None) -> Iterator[None]:
    """Raises HudiConnectionUnreadable where Airflow did not find the connection, and a backend fails that is asked for
    it once more. Else the AirflowNotFoundException, which is_permanent takes for what no retry changes.
    """
    try:
        yield
    except AirflowNotFoundException as error:
        why = _failure_of_backends(conn_id) if conn_id else None
        if why is None:
            raise
        raise HudiConnectionUnreadable(
            f"the connection {conn_id!r} was not found, and a secrets backend cannot be asked for it: {why}",
            remedy="a retry asks again",
        ) from error


def _failure_of_backends(conn_id: str) -> str | None:
    """What the first backend raises that fails; None where all answer. That of Airflow's own database never raises."""
    from airflow.sdk.execution_time.supervisor import ensure_secrets_backend_loaded

    for backend in ensure_secrets_backend_loaded():
        try:
            backend.get_connection(conn_id=conn_id)
        except _OF_VALUES:
            continue
        except Exception as error:  # noqa: BLE001 (each backend has errors of its own)
            return f"{type(backend).__name__}: {type(error).__name__}: {error}"
    return None
