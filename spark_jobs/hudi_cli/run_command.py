"""hudictl run: plans and executes instants of a table service, in Spark or in threads of this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import as_file, files
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click
from rich.console import Group, RenderableType
from rich.json import JSON
from rich.markup import escape

from hudi_cli.options import (
    Target,
    common_of_tables,
    engine_options,
    hudi_option,
    max_bytes_option,
    metadata_option,
    parse_pairs,
    table_of,
)
from hudi_cli.output import Output
from hudi_cli.progress import RunProgress
from hudi_cli.tables import run_table
from hudi_core.engine.protocol import Engine, Json
from hudi_core.errors import ConfigError, ZoneUnknownError
from hudi_core.request.batch import AT_ONCE, MAX_AT_ONCE, BatchRequest
from hudi_core.request.outcome import Outcome, error_from_json
from hudi_core.request.requests import MAX_MINUTES, Request, RunRequest
from hudi_core.request.results import RunResult
from hudi_core.request.services import SERVICES, check_service
from hudi_core.services.batch import outcome_of, run_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudi_core.services.engine_choice import Choice
    from hudi_core.services.runner import Choose, Progress
    from hudi_core.table import HudiTable
    from hudi_spark.engine import SessionEngine

SERVICE_NAMES = tuple(SERVICES)
SERVICES_SHOWN = ", ".join(sorted(SERVICES))


@click.command(
    help=f"""Execute planned instants of SERVICE.

    SERVICE is one of {SERVICES_SHOWN}. With --schedule an instant is planned first when none is pending.
    {" and ".join(sorted(name for name, entry in SERVICES.items() if entry.on_driver)).capitalize()} never start Spark;
    archive has no instants and runs at once. Of several tables, the failure of one stops no other.
    """
)
@click.argument("service", type=click.Choice(SERVICE_NAMES), metavar="SERVICE")
@common_of_tables
@click.option("--instant", help="Run this instant.")
@click.option(
    "--all-pending",
    is_flag=True,
    help="Run every pending instant, with --schedule until nothing more is planned; else the oldest.",
)
@click.option("--schedule", is_flag=True, help="Plan an instant first when none is pending.")
@engine_options("spark", "Where the work is done; auto takes local for small plans (airflow_hudi.engine.local.*).")
@hudi_option()
@max_bytes_option
@click.option(
    "--max-minutes",
    type=click.IntRange(1, MAX_MINUTES),
    help="Start no further instant after so many minutes; plans are cut so that they are done by then, with "
    "--all-pending several.",
)
@click.option(
    "--at-once",
    type=click.IntRange(1, MAX_AT_ONCE),
    default=AT_ONCE,
    show_default=True,
    help="Of several tables, run so many side by side.",
)
@click.option(
    "--allow-corrupt-log-blocks",
    is_flag=True,
    help="Compact although a log file holds corrupt blocks; their records are lost.",
)
@metadata_option
@click.option("--dry-run", is_flag=True, help="Report what would be run or planned, and write nothing.")
@click.pass_obj
def run(
    output: Output,
    /,
    targets: Sequence[Target],
    *,
    engine: str,
    master: str,
    spark_conf: tuple[str, ...],
    option: tuple[str, ...],
    at_once: int,
    dry_run: bool,
    **given: Any,
) -> int:
    """See the help."""
    check_service(given["service"])
    if given["instant"] is not None and (given["all_pending"] or given["schedule"]):
        raise ConfigError("--instant excludes --all-pending and --schedule", remedy="give one of them")
    if given["instant"] is not None and len(targets) > 1:
        raise ConfigError("--instant is of one table", remedy="name one table, or leave the instant out")
    given["began_ms"] = int(1000 * time.time())
    requests = tuple(RunRequest(**given, **target.request_fields(option)) for target in targets)
    with Runner(output, engine, master, parse_pairs(spark_conf, option="--spark-conf"), dry_run=dry_run) as runner:
        if len(requests) > 1:
            return _run_all(output, runner, BatchRequest(requests, at_once=at_once))
        result = runner.run(requests[0])
    for failed in result.failed:
        output.complain(f"{failed.action} {failed.instant}: {failed.error}")
    document = result.to_dict()
    output.result(document, [_shown(document)])
    return result.exit_code


def _run_all(output: Output, runner: Runner, batch: BatchRequest) -> int:
    runner.at_once = min(batch.at_once, len(batch.requests))

    def run_one(request: Request) -> Outcome:
        outcome = outcome_of(lambda: runner.run(request), request)
        return replace(outcome, document=outcome.document.get("document", outcome.document))

    whole = run_job(batch, run_one)
    show_all(output, whole.document)
    return whole.exit_code


def show_all(output: Output, document: Json) -> None:
    """Prints the document of a batch."""
    shown: list[RenderableType] = []
    for item in document["results"]:
        shown += [f"[bold]{escape(item['table'])}[/]", _shown(item)]
    output.result(document, shown)


def _shown(document: Json) -> RenderableType:
    if "error" in document:
        return escape(f"failed: {error_from_json(document['error'])}")
    if "dry_run" in document and document["plan"] is not None:
        return Group("would plan and run:", JSON.from_data(document["plan"], default=repr))
    if "dry_run" in document and document["instants"]:
        return "would run: " + ", ".join(f"{item['action']} {item['instant']}" for item in document["instants"])
    if "reason" in document:
        return escape(f"nothing to do: {document['reason']}")
    return run_table(document["instants"])


class Runner:
    """Runs requests on the engine that the command names, or that their plans do; Spark is started where there is work
    for it alone, once. `at_once`: among how many requests this machine is shared. With `dry_run` nothing is run, and
    results are documents of HudiTable.preview. A context manager stops Spark.
    """

    def __init__(
        self, output: Output, engine: str, master: str, conf: Mapping[str, str], *, dry_run: bool = False
    ) -> None:
        self.at_once = 1
        self._output = output
        self._engine = engine
        self._master = master
        self._conf = conf
        self._dry_run = dry_run
        self._lock = threading.Lock()
        self._session: SessionEngine | None = None

    def __enter__(self) -> Runner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            self._session.__exit__(kind, error, trace)

    def run(self, request: Request) -> RunResult:
        """The result of one request; raises as HudiTable.run. An instant is planned here, without Spark. What was done
        before an instant that is for Spark is in the result, unless Spark fails as a whole.
        """
        if not isinstance(request, RunRequest):
            raise TypeError(f"{request.verb} is no run of a service")
        table, since = table_of(request), time.time()
        with table.one_command():
            nothing_to_run = table.preview if self._dry_run else table.nothing_to_run
            done, on_spark = RunResult(), self._engine == "spark" and request.needs_executors
            try:
                nothing = nothing_to_run(request)
            except ZoneUnknownError:
                if self._engine == "local":
                    raise
                # Spark's session has a zone, which a plan for a table with such an expression index needs.
                request, on_spark = self._started().with_zone(request), True
                nothing = nothing_to_run(request)
            if nothing is not None:
                return nothing
            if not on_spark:
                done = self._run_here(table, request)
                if done.left is None:
                    return done
                self._output.note(f"{table.uri}: Spark runs this: {done.left}")
                request = request.rest(since, sum(item.bytes_written for item in done.instants))
            # Before the instant is claimed: a Spark that does not start, or executors that lack a wheel, leave no more
            # than a plan.
            session = self._started()
            return done.then(self._run(table, session.with_zone(request), session))

    def _run_here(self, table: HudiTable, request: RunRequest) -> RunResult:
        """Runs what is not left to Spark."""

        def choose(planned: RunRequest) -> Choice:
            return table.choose_engine(planned, at_once=self.at_once, here=self._engine == "local")

        choice = choose(request)
        if not choice.local:
            return RunResult(left=choice.why)
        with choice.engine() as local:
            return self._run(table, request, local, choose)

    def _started(self) -> SessionEngine:
        with self._lock:
            if self._session is None:
                self._session = spark_engine(self._output, self._master, self._conf)
            self._session.start()
            return self._session

    def _run(self, table: HudiTable, request: RunRequest, engine: Engine, choose: Choose | None = None) -> RunResult:
        shown = self.at_once == 1 and not self._output.json_mode
        with RunProgress(self._output.log, SERVICES[request.service].units, shown=shown) as progress:
            return table.run(request, engine, progress, choose)


def run_on(
    output: Output,
    request: Request,
    *,
    engine: str = "local",
    master: str = "",
    spark_conf: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> Json:
    """The document of a request that is no run of a service, on the engine that the command names or that suits it.
    Spark is started where there is something to do.
    """
    table = table_of(request)
    with table.one_command():
        choice = table.choose_engine(request)
        if engine == "local" or (engine == "auto" and choice.local):
            with choice.engine() as local:
                return table.run(request, local, progress=progress).to_dict()
        nothing = table.nothing_to_do(request)
        if nothing is not None:
            return nothing.to_dict()
        with spark_engine(output, master, parse_pairs(spark_conf, option="--spark-conf")) as spark:
            spark.start()
            return table.run(spark.with_zone(request), spark, progress=progress).to_dict()


def spark_engine(output: Output, master: str, conf: Mapping[str, str]) -> SessionEngine:
    """An engine on `master` whose session opens when it is first used; `conf` is Spark's own configuration."""
    from hudi_spark.engine import SessionEngine

    def open_session() -> SparkSession:
        from airflow_hudi.jobs.zip import publish_zip
        from hudi_spark.session import open_session as open_on

        with (
            output.log.status(f"starting Spark on {master}"),
            as_file(files("hudi_cli") / "log4j2.properties") as quiet,
        ):
            return open_on(master, publish_zip(), conf=conf, log_config=None if output.debug else quiet)

    return SessionEngine(open_session, output.warn)
