"""Reads which of the modules that its units need an engine's executors have."""

from __future__ import annotations

from hudi_core.engine.protocol import Engine, RemoteEngine
from hudi_core.errors import ConfigError
from hudi_core.services.doctor.observations import ExecutorObservations


def ask_executors(engine: Engine) -> ExecutorObservations | None:
    """What the engine's executors have; None of an engine whose units run in this process.

    Raises ExecutionError when they cannot be reached.
    """
    if not isinstance(engine, RemoteEngine):
        return None
    try:
        return ExecutorObservations(engine.setups())
    except ConfigError as error:
        return ExecutorObservations(problem=error.message, remedy=error.remedy)
