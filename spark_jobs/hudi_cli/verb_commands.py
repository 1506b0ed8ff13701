"""hudictl schedule, create, write, insert-overwrite, delete-partition and verbs of instants. command_from_fields.py has
the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

from hudi_cli.command_from_fields import Parameter, as_pairs, verb_command
from hudi_cli.command_groups import CommandGroup
from hudi_cli.options import Target, common, hudi_option, max_bytes_option
from hudi_cli.output import Output
from hudi_cli.run_command import SERVICE_NAMES, SERVICES_SHOWN
from hudi_cli.runner import Runner
from hudi_cli.tables import savepoint_table
from hudi_cli.verb_output import verb_output
from hudi_core.config.keys import name_list
from hudi_core.config.new_table import KEY_GENERATORS, MERGE_MODES
from hudi_core.request.services import check_service
from hudi_core.verbs.create import CreateRequest
from hudi_core.verbs.instants import (
    RestoreRequest,
    RollbackRequest,
    SavepointCreateRequest,
    SavepointDeleteRequest,
    TakeoverRequest,
    UnscheduleRequest,
)
from hudi_core.verbs.run import ScheduleRequest
from hudi_core.verbs.write import OPERATIONS, DeletePartitionRequest, InsertOverwriteRequest, WriteRequest

_DRY_RUN: Final = "Report what would be done, and write nothing."
_TOKEN: Final = click.option(
    "--token", metavar="ID", help="Names the work: the same token again does nothing, and reports what was done."
)
_OF_OVERWRITES: Final[Mapping[str, str | Parameter]] = {
    "token": _TOKEN,
    "dry_run": "Report what would be replaced, and write nothing.",
}
_ROWS: Final[Mapping[str, str | Parameter]] = {
    "source": click.option("--source", default="", metavar="PARQUET", help="A Parquet file, or a folder of them."),
    "query": click.option(
        "--query", default="", metavar="SQL", help="A query that Spark answers, instead of a source."
    ),
    "dataframe": click.option(
        "--dataframe",
        default="",
        metavar="MODULE:FUNCTION",
        help="A function that returns Spark's DataFrame of the rows.",
    ),
    "dataframe_args": click.option(
        "--dataframe-arg",
        "dataframe_args",
        multiple=True,
        metavar="K=V",
        callback=as_pairs,
        help="An argument of the function; repeatable.",
    ),
}
_WRITES_ON: Final = ("spark", "Where the rows are written; auto takes local for small sources.")


def _partitions(meaning: str, *, required: bool) -> Parameter:
    return click.option(
        "--partition", "partitions", multiple=True, required=required, metavar="P", help=f"{meaning}; repeatable."
    )


def _columns(option: str, meaning: str) -> Parameter:
    return click.option(
        option,
        default="",
        metavar="A,B",
        callback=lambda _, __, text: name_list(text),
        help=meaning,
    )


@click.command(
    help=f"""Plan an instant of SERVICE, or report the reason why not.

    SERVICE is one of {SERVICES_SHOWN}. Archive has no instants: this reports what it would do now.
    """
)
@click.argument("service", type=click.Choice(SERVICE_NAMES), metavar="SERVICE")
@common
@hudi_option()
@max_bytes_option
@click.option("--dry-run", is_flag=True, help=_DRY_RUN)
@click.pass_obj
def schedule(output: Output, /, service: str, target: Target, option: tuple[str, ...], dry_run: bool) -> None:
    check_service(service)
    request = ScheduleRequest(**target.request_fields(option), service=service, dry_run=dry_run)
    document = Runner(output).run(request).to_dict()
    output.result(document, verb_output(request.verb, document, dry_run=dry_run))


rollback = verb_command(
    RollbackRequest,
    """Roll back a failed write, or the newest commit.

    An attempt at a compaction or clustering goes back to its plan. Without --instant the next failed write is rolled
    back.
    """,
    helps={"instant": "Roll this instant back.", "dry_run": _DRY_RUN},
    hidden=["unless_completed"],
)
restore = verb_command(
    RestoreRequest,
    """Restore the table to an earlier commit.

    All its writers have to be stopped. --dry-run lists the commits that it can be restored to.
    """,
    helps={"instant": "The savepoint or instant to restore to; optional with --dry-run.", "dry_run": _DRY_RUN},
)
unschedule = verb_command(
    UnscheduleRequest,
    """Drop a pending plan that will not be run.

    Files of attempts at it are deleted, too. Reports what that unblocks.
    """,
    helps={"dry_run": _DRY_RUN},
)
takeover = verb_command(
    TakeoverRequest,
    """Free a pending instant whose owner is dead.

    Files of the attempt are deleted, and the next run starts at once. Reports what waits for the instant.
    """,
)
create = verb_command(
    CreateRequest,
    """Create an empty table.

    Hudi of the table's version and `hudictl write` then write to it. Its columns are those of an Avro schema or of a
    Parquet file. A table that is there already is left alone; another one than this is an error.
    """,
    helps={
        "schema": click.option("--schema", default="", metavar="AVSC", help="A file with an Avro schema, or its JSON."),
        "like": click.option("--like", default="", metavar="PARQUET", help="A Parquet file with the table's columns."),
        "table_name": click.option("--name", "table_name", default="", metavar="NAME", help="The table's name."),
        "table_type": click.option(
            "--type", "table_type", default="", metavar="cow|mor", help="Copy-on-write (the default) or merge-on-read."
        ),
        "table_version": click.option(
            "--version", "table_version", type=int, default=0, metavar="N", help="The table's version: 6, 8 or 9."
        ),
        "record_key": _columns("--record-key", "The columns of the record key."),
        "partition_by": _columns("--partition-by", "The columns of partitions; of CUSTOM as column:SIMPLE|TIMESTAMP."),
        "ordering": _columns("--ordering", "The columns that order the rows of a key."),
        "merge_mode": click.option(
            "--merge-mode", default="", metavar="MODE", help=f"Which row of a key stays: {' or '.join(MERGE_MODES)}."
        ),
        "hive_style": "Partition paths name their columns (dt=2026-01-01).",
        "key_generator": click.option(
            "--key-generator", default="", metavar="TYPE", help=f"One of {', '.join(KEY_GENERATORS)}, or its class."
        ),
        "dry_run": "Show the table that would be created, and write nothing.",
    },
)
write = verb_command(
    WriteRequest,
    """Insert, upsert or delete the rows of Parquet files, of a query, or of a DataFrame.

    upsert replaces the rows whose keys the table has, and inserts the others. insert and bulk_insert look for no keys;
    insert fills small files first. delete deletes the rows whose keys are given, or those that --where selects.
    """,
    helps={
        "operation": click.option(
            "--operation", required=True, type=click.Choice(OPERATIONS), help="What is done with the rows."
        ),
        **_ROWS,
        "where": click.option(
            "--where", default="", metavar="SQL", help="Delete the rows of the table that this predicate selects."
        ),
        "token": _TOKEN,
        "dry_run": _DRY_RUN,
    },
    engine=_WRITES_ON,
)
insert_overwrite = verb_command(
    InsertOverwriteRequest,
    """Replace partitions by the rows of Parquet files, of a query, or of a DataFrame.

    The partitions that the rows belong to are replaced, or those of --partition, or with --whole-table all. Record keys
    and partition paths are made by the table's key generator. Rows with equal keys are all written, as by Hudi. The
    replaced files go with a later clean.
    """,
    helps={
        **_ROWS,
        "whole_table": "Replace all partitions; without rows the table is emptied.",
        "partitions": _partitions("Replace this partition, also when no row comes", required=False),
        **_OF_OVERWRITES,
    },
    engine=_WRITES_ON,
)
delete_partition = verb_command(
    DeletePartitionRequest,
    """Delete all rows of partitions.

    Nothing is read but for row-level indexes; the files go with a later clean.
    """,
    helps={"partitions": _partitions("The partition to delete", required=True), **_OF_OVERWRITES},
    engine=("local", "Where rows are taken out of row-level indexes, if the table has any."),
)


@click.group(cls=CommandGroup, no_args_is_help=False)
def savepoint() -> None:
    """Create, list and delete savepoints."""


savepoint.add_command(
    verb_command(
        SavepointCreateRequest,
        "Keep a commit's files until the savepoint is deleted.",
        name="create",
        helps={"instant": "The commit to keep; without it the latest.", "comment": "Why it is kept."},
    )
)
savepoint.add_command(
    verb_command(
        SavepointDeleteRequest,
        "Delete a savepoint; the next clean may delete its files.",
        name="delete",
        helps={"instant": click.option("--instant", required=True, help="The savepoint.")},
    )
)


@savepoint.command("list")
@common
@hudi_option()
@click.pass_obj
def savepoint_list(output: Output, /, target: Target, option: tuple[str, ...]) -> None:
    """List the savepoints."""
    opened = target.open(option)
    rows = [item.to_dict() for item in opened.savepoints()]
    output.result({"savepoints": rows}, [savepoint_table(opened.config.name, rows)])
