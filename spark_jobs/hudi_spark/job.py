"""The Spark job: one run request in, progress lines and one result line out, the exit code of hudictl's contract."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from hudi_core.errors import EXIT_FAILED, ConfigError, HudiError
from hudi_core.model.engine import Json
from hudi_core.request.model import REQUEST_VERSION, RunRequest, RunResult
from hudi_core.request.options_file import merge_storage_options
from hudi_core.storage.registry import open_storage
from hudi_core.table import HudiTable
from hudi_spark.session_engine import SessionEngine
from hudi_spark.signals import Termination
from hudi_spark.transport import error_to_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

RESULT = "HUDI_RESULT"
PROGRESS = "HUDI_PROGRESS"


def main(arguments: Sequence[str]) -> int:
    """Runs the request in `arguments` in this process's Spark session and returns the exit code.

    Prints `HUDI_PROGRESS {"instant", "done", "total"}` lines and at last `HUDI_RESULT {…}`: a RunResult, or `{"error": {"type",
    "message", "path", "remedy"}}` when the run as a whole failed.
    """
    termination = Termination()
    termination.install()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("hudi_core").setLevel(logging.INFO)
    try:
        result = run_job(read_request(arguments), submitted_session)
    except HudiError as error:
        log.error("%s", error, exc_info=error.exit_code == EXIT_FAILED)
        _print(RESULT, {"version": REQUEST_VERSION, "error": error_to_json(error)})
        return termination.exit_code if termination.happened else error.exit_code
    except KeyboardInterrupt:
        _print(
            RESULT,
            {"version": REQUEST_VERSION, "error": {"type": "Interrupted", "message": "stopped by a signal", "path": None, "remedy": "run it again"}},
        )
        return termination.exit_code
    except Exception as error:  # the last boundary: whoever reads the result line learns of a defect too
        log.exception("the job broke down")
        _print(RESULT, {"version": REQUEST_VERSION, "error": {"type": type(error).__name__, "message": str(error), "path": None, "remedy": None}})
        return termination.exit_code if termination.happened else EXIT_FAILED
    _print(RESULT, json.loads(result.to_json()))
    return result.exit_code


def run_job(request: RunRequest, open_session: Callable[[], SparkSession]) -> RunResult:
    """Opens the table first, so that bad input is refused before any executor is asked for; then the session, then runs the request."""
    table = HudiTable.open(request.table, merge_storage_options(request.storage_options, request.storage_options_file), request.options)
    with SessionEngine(open_session, log.warning) as engine:
        # Always: in YARN's cluster mode a driver that ends without a session counts as failed.
        engine.start()
        return table.run(request, engine, progress=_report)


def read_request(arguments: Sequence[str]) -> RunRequest:
    """`--request JSON`, or `--request-file` with a path or URI that the storage layer reads. Raises ConfigError."""
    parser = _Parser(prog="main.py", add_help=False)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--request")
    group.add_argument("--request-file")
    parsed = parser.parse_args(list(arguments))
    if parsed.request is not None:
        return RunRequest.from_json(parsed.request)
    folder, _, name = parsed.request_file.rpartition("/")
    if not name:
        raise ConfigError("--request-file names no file", path=parsed.request_file)
    return RunRequest.from_json(open_storage(folder or ("/" if parsed.request_file.startswith("/") else ".")).read(name))


def submitted_session() -> SparkSession:
    """The session of the spark-submit that started this process."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(message, remedy="give --request JSON or --request-file FILE")


def _report(instant: str, done: int, total: int) -> None:
    _print(PROGRESS, {"instant": instant, "done": done, "total": total})


def _print(label: str, document: Json) -> None:
    sys.stdout.write(f"{label} {json.dumps(document, sort_keys=True)}\n")
    sys.stdout.flush()
