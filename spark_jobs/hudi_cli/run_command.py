"""hudictl run: plans and executes instants of a table service, in Spark or in threads of this process."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from hudi_cli.options import Target, common, engine_options, hudi_option, metadata_option, parse_pairs, table_of
from hudi_cli.output import Output
from hudi_cli.progress import RunProgress
from hudi_cli.tables import run_table
from hudi_core.engine.local import LocalEngine
from hudi_core.engine.protocol import Engine
from hudi_core.errors import ConfigError
from hudi_core.request.requests import MAX_MINUTES, RunRequest
from hudi_core.request.results import RunResult
from hudi_core.request.services import NOT_IN_RELEASE, SERVICES, check_service
from hudi_core.table import HudiTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudi_spark.session_engine import SessionEngine

SERVICE_NAMES = (*SERVICES, *NOT_IN_RELEASE)


@click.command()
@click.argument("service", type=click.Choice(SERVICE_NAMES), metavar="SERVICE")
@common
@click.option("--instant", help="Run this instant.")
@click.option(
    "--all-pending",
    is_flag=True,
    help="Run every pending instant, with --schedule until nothing more is planned; else the oldest.",
)
@click.option("--schedule", is_flag=True, help="Plan an instant first when none is pending.")
@engine_options("spark", "Where the work is done.")
@hudi_option()
@click.option(
    "--max-minutes", type=click.IntRange(1, MAX_MINUTES), help="Start no further instant after so many minutes."
)
@click.option(
    "--allow-corrupt-log-blocks",
    is_flag=True,
    help="Compact although a log file holds corrupt blocks; their records are lost.",
)
@metadata_option
@click.pass_obj
def run(
    output: Output,
    target: Target,
    *,
    engine: str,
    master: str,
    spark_conf: tuple[str, ...],
    option: tuple[str, ...],
    **given: Any,
) -> int:
    """Execute planned instants of SERVICE.

    With --schedule an instant is planned first when none is pending. This release runs archive, clean, compaction and
    rollback. Archive and rollback never start Spark; archive has no instants and runs at once.
    """
    check_service(given["service"])
    if given["instant"] is not None and (given["all_pending"] or given["schedule"]):
        raise ConfigError("--instant excludes --all-pending and --schedule", remedy="give one of them")
    request = RunRequest(**given, **target.request_fields(option))
    opened = table_of(request)
    if engine == "local" or not request.needs_executors:
        result = _run(output, opened, request, LocalEngine())
    else:
        with opened.one_command():
            result = _run_on_spark(output, opened, request, master, parse_pairs(spark_conf, option="--spark-conf"))
    for failed in result.failed:
        output.complain(f"{failed.action} {failed.instant}: {failed.error}")
    document = result.to_dict()
    nothing = escape(f"nothing to do: {result.reason}")
    output.result(document, [run_table(document["instants"]) if result.instants else nothing])
    return result.exit_code


def _run_on_spark(
    output: Output, table: HudiTable, request: RunRequest, master: str, conf: Mapping[str, str]
) -> RunResult:
    # Spark is started where there is work alone. Planning is done here, without it.
    nothing = table.nothing_to_run(request)
    if nothing is not None:
        return nothing
    with spark_engine(output, master, conf) as engine:
        # Before the instant is claimed: a Spark that does not start, or executors that lack a wheel, leave no more than
        # a plan.
        engine.start()
        return _run(output, table, engine.with_zone(request), engine)


def spark_engine(output: Output, master: str, conf: Mapping[str, str]) -> SessionEngine:
    """An engine on `master` whose session opens when it is first used; `conf` is Spark's own configuration."""
    from hudi_spark.session_engine import SessionEngine

    def open_session() -> SparkSession:
        from airflow_hudi.jobs.zip import publish_zip
        from hudi_spark.session import open_session as open_on

        with (
            output.log.status(f"starting Spark on {master}"),
            as_file(files("hudi_cli") / "log4j2.properties") as quiet,
        ):
            return open_on(master, publish_zip(), conf=conf, log_config=None if output.debug else quiet)

    return SessionEngine(open_session, output.warn)


def _run(output: Output, table: HudiTable, request: RunRequest, engine: Engine) -> RunResult:
    with RunProgress(output.log, SERVICES[request.service].units, shown=not output.json_mode) as progress:
        return table.run(request, engine, progress=progress)
