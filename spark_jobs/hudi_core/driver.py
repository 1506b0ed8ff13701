"""The one way from a request to its result: look, plan, choose, run here, and leave the rest to Spark.
services/engine_choice.py has the rule by which `auto` chooses.

hudictl and the process beside an Airflow task drive requests by it. A Spark job runs what they left.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from hudi_core.config.engine_config import Mode
from hudi_core.config.table_config import BACKUP, PROPERTIES
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Engine
from hudi_core.errors import ConfigError, CredentialsMissingError, ZoneUnknownError
from hudi_core.request.results import Progress, Result
from hudi_core.storage.registry import open_storage
from hudi_core.table import HudiTable
from hudi_core.verbs.request import Request

if TYPE_CHECKING:
    from hudi_core.services.engine_choice import Choice

log = logging.getLogger("hudi_core.job")

OF_THIS_PROCESS = (ZoneUnknownError, CredentialsMissingError)
"""Errors for input that is bad where this process is, and perhaps not where Spark is."""


class SparkSide(Engine, Protocol):
    """The engine that runs what is left (hudi_spark.engine.SessionEngine)."""

    def start(self) -> object:
        """Opens the session, and raises ConfigError where executors lack something."""
        ...

    def with_zone(self, request: Request) -> Request:
        """Returns the request with the session's time zone."""
        ...


def drive(
    table: HudiTable, request: Request, mode: Mode, *, at_once: int = 1, progress: Progress | None = None
) -> Result:
    """Does what `mode` says of a request; `left` of the result says why the rest is for Spark. Plans here unless this
    is a look; Spark then finds the plan's instant pending. `at_once` is how many requests share this machine. Raises
    the errors of HudiTable.run. Errors of this process alone (OF_THIS_PROCESS) leave all to Spark.
    """
    with table.one_command(), table.one_look(request):
        choice: Choice | None = None
        try:
            nothing = table.make_plan(request) if mode is not Mode.LOOK else None
            # The choice needs the source of rows, which may be gone where an earlier run wrote them.
            if nothing is None and mode is not Mode.LOCAL and not request.plans:
                nothing = table.nothing_to_do(request)
            if nothing is None and mode is not Mode.LOOK:
                choice = _choose(table, request, mode, at_once)
            if nothing is None and request.plans and (choice is None or not choice.local):
                nothing = table.nothing_to_do(request)
        except OF_THIS_PROCESS as error:
            if mode is Mode.LOCAL:
                raise
            return Result(left=error.message)
        if nothing is not None:
            return nothing
        if choice is None or not choice.local:
            return Result(left="there is work" if choice is None else choice.why)
        if request.needs_executors:
            where = "processes" if choice.in_processes else "threads"
            log.info("%s: the local engine runs %s, %d %s", table.uri, choice.why, choice.width, where)
        with choice.engine() as engine:
            return table.run(request, engine, progress, lambda planned: _choose(table, planned, mode, at_once))


def drive_with_spark(
    table: HudiTable,
    request: Request,
    mode: Mode,
    spark: Callable[[str], SparkSide],
    *,
    at_once: int = 1,
    progress: Progress | None = None,
) -> Result:
    """Does a request like `drive`. Runs on `spark` what that leaves; `spark` is called with the reason."""
    since = time.time()
    with table.one_command():
        done = drive(table, request, mode, at_once=at_once, progress=progress)
        if done.left is None:
            return done
        engine = spark(done.left)
        # Before the claim: a Spark that does not start, or executors without a wheel, leave no more than a plan.
        engine.start()
        return done.then(table.run(engine.with_zone(request.rest(since, done)), engine, progress))


def run_on_target(request: Request, storage_options: Mapping[str, str], run: Callable[[HudiTable], Result]) -> Result:
    """Runs `run` on the request's table. A verb without a table gets its storage. A request that may make the table
    does so where there is none. Raises as HudiTable.open and Request.make_table.
    """
    if not request.needs_table:
        return request.run_on_storage(open_storage(request.table, storage_options), storage_options)
    made = Result()
    try:
        table = HudiTable.open(request.table, storage_options, request.options)
    except ConfigError as error:
        if error.path != PROPERTIES or not request.may_make_table:
            raise
        storage = open_storage(request.table, storage_options)
        # What is there is opened again: another process made it meanwhile, or the error comes again.
        if not (storage.exists(PROPERTIES) or storage.exists(BACKUP)):
            made = request.make_table(storage, storage_options)
        if made.reason is not None:
            return made
        table = HudiTable.open(request.table, storage_options, request.options)
    # Also for a table whose maker died.
    is_bare = request.may_make_table and not table.config.metadata_partitions
    first = request.after_making(table.config) if is_bare else None
    if first is not None and not any(table.timeline()):
        table.run(first, LocalEngine(1))
        table = HudiTable.open(request.table, storage_options, request.options)
    result = run(table)
    if made.document is None or result.document is None:
        return result
    return replace(result, document={**result.document, **made.document})


def _choose(table: HudiTable, request: Request, mode: Mode, at_once: int) -> Choice:
    return table.choose_engine(request, at_once=at_once, here=mode is Mode.LOCAL)
