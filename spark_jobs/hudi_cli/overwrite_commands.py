"""hudictl insert-overwrite and delete-partition: partitions of a table are replaced as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click
from rich.markup import escape

from hudi_cli.options import Target, common, engine_options, hudi_option, parse_pairs
from hudi_cli.output import Output
from hudi_cli.runner import Runner
from hudi_core.engine.protocol import Json
from hudi_core.verbs.overwrite import DeletePartitionRequest, InsertOverwriteRequest

F = TypeVar("F", bound=Callable[..., Any])

_token = click.option(
    "--token", metavar="ID", help="Names the work: the same token again does nothing, and reports what was done."
)
_dry_run = click.option("--dry-run", is_flag=True, help="Report what would be replaced, and write nothing.")


def _partitions(meaning: str, *, required: bool) -> Callable[[F], F]:
    return click.option(
        "--partition", "partitions", multiple=True, required=required, metavar="P", help=f"{meaning}; repeatable."
    )


@click.command("insert-overwrite")
@common
@click.option("--source", default="", metavar="PARQUET", help="A Parquet file, or a folder of them.")
@click.option("--query", default="", metavar="SQL", help="A query that Spark answers, instead of a source.")
@click.option(
    "--dataframe", default="", metavar="MODULE:FUNCTION", help="A function that returns Spark's DataFrame of the rows."
)
@click.option(
    "--dataframe-arg", "dataframe_arg", multiple=True, metavar="K=V", help="An argument of the function; repeatable."
)
@click.option("--whole-table", is_flag=True, help="Replace all partitions; without rows the table is emptied.")
@_partitions("Replace this partition, also when no row comes", required=False)
@_token
@hudi_option()
@engine_options("spark", "Where the rows are written; auto takes local for small sources.")
@_dry_run
@click.pass_obj
def insert_overwrite(
    output: Output, /, target: Target, *, option: tuple[str, ...], dataframe_arg: tuple[str, ...], **given: Any
) -> None:
    """Replace partitions by the rows of Parquet files, of a query, or of a DataFrame.

    The partitions that the rows belong to are replaced, or those of --partition, or with --whole-table all. Record keys
    and partition paths are made by the table's key generator. Rows with equal keys are all written, as by Hudi. The
    replaced files go with a later clean.
    """
    engine = {name: given.pop(name) for name in ("engine", "master", "spark_conf")}
    arguments = parse_pairs(dataframe_arg, option="--dataframe-arg")
    request = InsertOverwriteRequest(**target.request_fields(option), dataframe_args=arguments, **given)
    _replace(output, request, engine)


@click.command("delete-partition")
@common
@_partitions("The partition to delete", required=True)
@_token
@hudi_option()
@engine_options("local", "Where rows are taken out of row-level indexes, if the table has any.")
@_dry_run
@click.pass_obj
def delete_partition(output: Output, /, target: Target, *, option: tuple[str, ...], **given: Any) -> None:
    """Delete all rows of partitions.

    Nothing is read but for row-level indexes; the files go with a later clean.
    """
    engine = {name: given.pop(name) for name in ("engine", "master", "spark_conf")}
    request = DeletePartitionRequest(**target.request_fields(option), **given)
    _replace(output, request, engine)


def _replace(output: Output, request: InsertOverwriteRequest | DeletePartitionRequest, engine: dict[str, Any]) -> None:
    with Runner(output, **engine) as runner:
        document = runner.run(request).to_dict()
    output.result(document, _shown(document))


def _shown(document: Json) -> Iterator[str]:
    done = f"{document['replaced_file_groups']} file groups in {document['partitions']} partitions"
    rows = f"{document['records']} rows"
    if document["repeated"]:
        yield f"done before, as [bold]{document['instant']}[/]: {done} were replaced by {rows}"
    elif document["instant"] is not None:
        yield f"[bold]{document['instant']}[/]: {done} are replaced by {rows} in {document['files_written']} files"
    elif document["engine"] is not None:
        yield f"would replace {done} by {rows}"
    else:
        yield f"nothing to do: {escape(document['reason'])}"
