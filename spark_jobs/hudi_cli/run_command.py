"""hudictl run: plans and executes instants of a table service, in Spark or in threads of this process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.json import JSON
from rich.markup import escape

from hudi_cli.options import (
    Target,
    common,
    engine_options,
    hudi_option,
    max_bytes_option,
    metadata_option,
)
from hudi_cli.output import Output
from hudi_cli.runner import Runner
from hudi_cli.tables import run_table
from hudi_core.engine.protocol import Json
from hudi_core.errors import ConfigError
from hudi_core.request.policy import MAX_MINUTES
from hudi_core.request.results import BatchResult, error_from_json
from hudi_core.request.services import SERVICES, check_service
from hudi_core.verbs.batch import AT_ONCE, MAX_AT_ONCE, BatchRequest, result_of, run_job
from hudi_core.verbs.run import RunRequest

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
@partial(common, of_tables=True)
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
    check_service(given["service"])
    if given["instant"] is not None and (given["all_pending"] or given["schedule"]):
        raise ConfigError("--instant excludes --all-pending and --schedule", remedy="give one of them")
    if given["instant"] is not None and len(targets) > 1:
        raise ConfigError("--instant is of one table", remedy="name one table, or leave the instant out")
    given["began_ms"] = int(1000 * time.time())
    requests = tuple(RunRequest(**given, **target.request_fields(option)) for target in targets)
    batch = BatchRequest(requests, at_once=at_once)
    runner = Runner(output, engine, master, spark_conf, at_once=min(at_once, len(requests)))
    run_one = runner.preview if dry_run else runner.run
    with runner:
        if len(requests) > 1:
            whole = run_job(batch, lambda request: result_of(lambda: run_one(request), request))
            assert isinstance(whole, BatchResult)
            show_all(output, whole)
            return whole.exit_code
        result = run_one(requests[0])
    for failed in result.failed:
        output.complain(f"{failed.action} {failed.instant}: {failed.error}")
    document = result.to_dict()
    output.result(document, [_shown(document)])
    return result.exit_code


def show_all(output: Output, whole: BatchResult) -> None:
    """Prints the results of several tables, and what stopped them."""
    documents = [item.to_dict() for item in whole.items]
    shown: list[RenderableType] = []
    for document in documents:
        shown += [f"[bold]{escape(document['table'])}[/]", _shown(document)]
    stopped = {} if whole.stopped is None else whole.stopped.to_dict()
    output.result({**stopped, "results": documents}, shown)


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
