"""hudictl run: executes planned instants of a table service, in Spark or in threads of this process."""

from __future__ import annotations

from collections.abc import Mapping
from getpass import getuser
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from hudi_cli.options import common, metadata_option, open_table, parse_pairs, refuse
from hudi_cli.output import Output
from hudi_cli.progress import RunProgress
from hudi_cli.tables import run_table
from hudi_core.errors import ConfigError, UnsupportedError
from hudi_core.model.engine import Engine
from hudi_core.request.model import SERVICES, RunRequest, RunResult
from hudi_core.services.local_engine import LocalEngine
from hudi_core.table import HudiTable, MetadataMode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLANNED_SERVICES = ("compaction", "log_compaction", "clustering", "clean", "indexing", "rollback", "archive")


@click.command()
@click.argument("service", type=click.Choice(_PLANNED_SERVICES), metavar="SERVICE")
@common
@click.option("--instant", help="Run this instant.")
@click.option("--all-pending", is_flag=True, help="Run every pending instant of the service; without it or --instant, the oldest.")
@click.option("--schedule", is_flag=True, help="Not in this release.")
@click.option("--engine", type=click.Choice(["spark", "local"]), default="spark", show_default=True, help="Where the work is done.")
@click.option("--master", default="local[*]", show_default=True, help="Spark master, or sc://host:port for Spark Connect.")
@click.option("--spark-conf", multiple=True, metavar="K=V", help="Spark's own configuration; repeatable.")
@click.option("--option", "option", multiple=True, metavar="K=V", help="Hudi's configuration by its own names; repeatable.")
@click.option("--max-minutes", type=click.IntRange(min=1), help="Start no further instant after so many minutes.")
@click.option("--allow-corrupt-log-blocks", is_flag=True, help="Compact although a log file holds corrupt blocks; their records are lost.")
@metadata_option
@click.pass_obj
def run(
    output: Output,
    service: str,
    table: str,
    storage_option: tuple[str, ...],
    storage_options_file: str | None,
    instant: str | None,
    all_pending: bool,
    schedule: bool,
    engine: str,
    master: str,
    spark_conf: tuple[str, ...],
    option: tuple[str, ...],
    max_minutes: int | None,
    allow_corrupt_log_blocks: bool,
    metadata: MetadataMode,
) -> int:
    """Execute planned instants of SERVICE (this release: compaction)."""
    refuse(schedule=schedule)
    if service not in SERVICES:
        raise UnsupportedError(f"the service {service} is not in this release", remedy=f"this release runs: {', '.join(sorted(SERVICES))}")
    if instant is not None and all_pending:
        raise ConfigError("--instant and --all-pending exclude each other", remedy="give one of them")
    request = RunRequest(
        table=table,
        service=service,
        instant=instant,
        all_pending=all_pending,
        owner=f"hudictl of {getuser()}",
        options=parse_pairs(option, option="--option"),
        storage_options=parse_pairs(storage_option, option="--storage-option"),
        storage_options_file=storage_options_file,
        metadata=metadata,
        allow_corrupt_log_blocks=allow_corrupt_log_blocks,
        max_minutes=max_minutes,
    )
    opened = open_table(table, storage_option, storage_options_file, request.options)
    if engine == "local":
        result = _run(output, opened, request, LocalEngine())
    else:
        result = _run_on_spark(output, opened, request, master, parse_pairs(spark_conf, option="--spark-conf"))
    _print_result(output, opened, result)
    return result.exit_code


def _run_on_spark(output: Output, table: HudiTable, request: RunRequest, master: str, conf: Mapping[str, str]) -> RunResult:
    from hudi_spark.session_engine import SessionEngine

    def open_session() -> SparkSession:
        from airflow_hudi.jobs.zip import publish_zip
        from hudi_spark.session import open_session as open_on

        with output.log.status(f"starting Spark on {master}"), as_file(files("hudi_cli") / "log4j2.properties") as quiet:
            return open_on(master, publish_zip(), conf=conf, log_config=None if output.debug else quiet)

    with SessionEngine(open_session, output.warn) as engine:
        # Before the instant is claimed: a Spark that does not start, or executors that lack a wheel, then leave no trace.
        if _has_work(table, request):
            engine.start()
        return _run(output, table, request, engine)


def _has_work(table: HudiTable, request: RunRequest) -> bool:
    return any(request.instant in (None, pending.requested_time) for pending in table.timeline().pending_compactions())


def _run(output: Output, table: HudiTable, request: RunRequest, engine: Engine) -> RunResult:
    with RunProgress(output.log, shown=not output.json_mode) as progress:
        return table.run(request, engine, progress=progress)


def _print_result(output: Output, table: HudiTable, result: RunResult) -> None:
    rows = result.to_dict()["instants"]
    output.result({"instants": rows})
    for failed in result.failed:
        output.log.print(f"[bold red]error:[/] {failed.action} {failed.instant}: {escape(failed.error or '')}", highlight=False, soft_wrap=True)
    if output.json_mode:
        return
    if not rows:
        output.people.print(f"nothing to do: {table.config.name} has no such pending instant", markup=False, highlight=False)
        return
    output.people.print(run_table(rows))
