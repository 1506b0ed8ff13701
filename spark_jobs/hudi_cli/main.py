"""hudictl: reads and maintains Hudi tables. docs/use/hudictl.md is the contract of its JSON and exit codes."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from typing import TextIO

import click

from hudi_cli.command_groups import VerbGroup, WrittenCommands
from hudi_cli.output import NotPrintedError, Output, open_streams, results_only_stdout
from hudi_core import VERSION
from hudi_core.engine.hidden_pandas import hide_pandas
from hudi_core.errors import EXIT_BAD_INPUT, EXIT_FAILED, HudiError
from hudi_core.request.texts import check_text
from hudi_spark.signals import Termination, start_process

EXIT_DONE = 0


_COMMANDS = WrittenCommands(
    {
        "hudi_cli.inspect_commands": {
            "timeline": "List the instants of the timeline.",
            "show": "Show an instant's plan and metadata, decoded.",
            "files": "List the latest file slices, now or as of a time.",
            "plan": "Report which services are due now, and why.",
        },
        "hudi_cli.read_command": {
            "read": "Write the rows of a query to a Parquet file, or print the first of them.",
        },
        "hudi_cli.run_command": {
            "run": "Execute planned instants of SERVICE.",
        },
        "hudi_cli.verb_commands": {
            "schedule": "Plan an instant of SERVICE, or report the reason why not.",
            "create": "Create an empty table.",
            "write": "Insert, upsert or delete the rows of Parquet files, of a query, or of a DataFrame.",
            "insert-overwrite": "Replace partitions by the rows of Parquet files, of a query, or of a DataFrame.",
            "delete-partition": "Delete all rows of partitions.",
            "rollback": "Roll back a failed write, or the newest commit.",
            "restore": "Restore the table to an earlier commit.",
            "savepoint": "Create, list and delete savepoints.",
            "unschedule": "Drop a pending plan that will not be run.",
            "takeover": "Free a pending instant whose owner is dead.",
        },
        "hudi_cli.metadata_commands": {
            "metadata": "Look after the metadata table of TABLE.",
        },
        "hudi_cli.doctor_commands": {
            "doctor": "Report what is wrong with TABLE and what to do about it.",
            "probe-store": "Race writers on the storage at TABLE, a table or any folder.",
        },
    }
)
"""The modules of the commands, with what the help of hudictl says of each: it imports none of them."""


@click.group(
    cls=VerbGroup,
    commands=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(VERSION, prog_name="hudictl")
def hudictl() -> None:
    """Read and maintain Apache Hudi tables, without a Hudi jar.

    TABLE is a path or URI. Exit codes: 0 done, also when there was nothing to do; 1 the action failed; 2 wrong usage or
    bad input; 3 another process holds the table or the instant, safe to retry.
    """


def execute(arguments: Sequence[str], stdout: TextIO, stderr: TextIO, termination: Termination) -> int:
    """Runs one command, prints its result to `stdout` or its error by Output.error, and returns the exit code."""
    # The mode is known before click parses, so that click's own errors have the requested form.
    output = Output(stdout, stderr, json_mode="--json" in arguments, debug="--debug" in arguments)
    try:
        for argument in arguments:
            check_text(argument, what="an argument")
        with redirect_stdout(stderr if output.json_mode else stdout):
            code = hudictl.main(list(arguments) or ["--help"], prog_name="hudictl", standalone_mode=False, obj=output)
        return code if isinstance(code, int) else EXIT_DONE
    except HudiError as error:
        output.trace()
        output.error(error)
        return error.exit_code
    except click.ClickException as error:
        output.failure("UsageError", error.format_message(), _usage(error))
        return EXIT_BAD_INPUT
    except (KeyboardInterrupt, click.Abort) as error:
        _show_interrupted(output, error.__cause__ if isinstance(error, click.Abort) else error, termination)
        output.failure(
            "Interrupted", "stopped by a signal", "run the command again: it resumes or rolls back what was started"
        )
        return termination.exit_code
    except NotPrintedError as error:
        output.complain(f"the result could not be printed ({error}); what the command did is done")
        return EXIT_FAILED
    except MemoryError:
        output.trace()
        remedy = "give the process more memory; see docs/guarantees/memory.md"
        output.failure("MemoryError", "there is not enough memory", remedy)
        return EXIT_FAILED
    except Exception as error:  # noqa: BLE001  the last boundary: a traceback is shown only with --debug
        output.trace()
        output.failure(
            type(error).__name__, str(error) or "no message", "this is a defect of hudictl; --debug shows where"
        )
        return EXIT_FAILED


def _show_interrupted(output: Output, error: BaseException | None, termination: Termination) -> None:
    """Prints the results of the tables that a stopped run of several tables was done with."""
    from hudi_cli.run_command import show_all
    from hudi_core.request.results import BatchResult
    from hudi_core.verbs.batch import interrupted

    whole = interrupted(error, termination.exit_code)
    if isinstance(whole, BatchResult):
        with suppress(NotPrintedError):
            show_all(output, whole)


def _usage(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"see {context.command_path if context else 'hudictl'} --help"


def main() -> None:
    """The console script."""
    # A timeline and a plan are millions of small objects without cycles. At Python's own threshold of 700 the collector
    # takes a quarter of the CPU of a plan over 100,000 file groups (4.1 s; 3.2 s without it and at this threshold).
    gc.set_threshold(50_000, 20, 20)
    hide_pandas()
    open_streams()
    level = logging.INFO if "--debug" in sys.argv else logging.WARNING
    termination = start_process(sys.stderr, "%(levelname)s: %(message)s", level)
    with results_only_stdout() as stdout:
        code = execute(sys.argv[1:], stdout, sys.stderr, termination)
    sys.exit(code)


if __name__ == "__main__":
    main()
