"""The Spark job: one run request in, progress lines and one result line out, the exit code of hudictl's contract."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Callable, Sequence, Sized
from typing import TYPE_CHECKING, NoReturn, TypeGuard

from hudi_core.config.table_config import PROPERTIES
from hudi_core.engine.protocol import Json
from hudi_core.errors import EXIT_FAILED, ConfigError, HudiError, LogFormatter
from hudi_core.request.parse import parse_request
from hudi_core.request.requests import REQUEST_VERSION, ProbeStoreRequest, Request
from hudi_core.request.results import RunResult
from hudi_core.request.secrets import merge_storage_options
from hudi_core.services.verbs import probe_store
from hudi_core.storage.registry import open_storage
from hudi_core.table import HudiTable
from hudi_spark.session_engine import SessionEngine
from hudi_spark.signals import Termination
from hudi_spark.task_errors import error_to_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

RESULT = "HUDI_RESULT"
PROGRESS = "HUDI_PROGRESS"
_LONGEST_PART = 4096
_MOST_INSTANTS = 500
_MOST_FINDINGS = 200
_KEPT_SECONDS = 7 * 86_400


def main(arguments: Sequence[str]) -> int:
    """Runs the request in `arguments` in this process's Spark session and returns the exit code.

    Prints `HUDI_PROGRESS {"instant", "done", "total"}` lines and at last `HUDI_RESULT {…}`: a RunResult, or `{"error":
    {"type", "message", "path", "remedy"}}` when the run as a whole failed. A request that names a result gets that
    document as a file, too.
    """
    termination = Termination()
    termination.install()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("hudi_core").setLevel(logging.INFO)
    try:
        request = read_request(arguments)
    except HudiError as error:
        log.error("%s", error)
        _print(RESULT, _failed(error_to_json(error)))
        return error.exit_code
    document, code = _outcome(request, termination)
    _print(RESULT, document)
    if request.result_name:
        deliver(request, document, code)
    return code


def _outcome(request: Request, termination: Termination) -> tuple[Json, int]:
    """The result of the request, and the exit code."""
    try:
        result = run_job(request, submitted_session)
    except HudiError as error:
        log.error("%s", error, exc_info=error.exit_code == EXIT_FAILED)
        return _failed(error_to_json(error)), termination.exit_code if termination.happened else error.exit_code
    except KeyboardInterrupt:
        stopped = {"type": "Interrupted", "message": "stopped by a signal", "path": None, "remedy": "run it again"}
        return _failed(stopped), termination.exit_code
    except Exception as error:  # the last boundary: the result line reports a defect, too
        log.exception("the job broke down")
        broken = {"type": type(error).__name__, "message": str(error), "path": None, "remedy": None}
        return _failed(broken), termination.exit_code if termination.happened else EXIT_FAILED
    return printable(result), result.exit_code


def run_job(request: Request, open_session: Callable[[], SparkSession]) -> RunResult:
    """Opens the table first, so that bad input is refused before executors are requested; then runs the request."""
    storage_options = merge_storage_options(request.storage_options, request.storage_options_file)
    if isinstance(request, ProbeStoreRequest):
        storage = open_storage(request.table, storage_options)
        with SessionEngine(open_session, log.warning) as engine:
            engine.open()
            return probe_store(storage, request)
    table = HudiTable.open(request.table, storage_options, request.options)
    with SessionEngine(open_session, log.warning) as engine:
        # A session always: in YARN's cluster mode a driver that ends without one counts as failed.
        if request.needs_executors:
            engine.start()
        else:
            engine.open()
        return table.run(engine.with_zone(request) if request.needs_executors else request, engine, progress=_report)


def printable(result: RunResult) -> Json:
    """The result in the length that one line of a log can hold.

    Long parts of a plan are replaced by their count, since the timeline holds them (`hudictl show`); of very many
    instants the failed ones and the last stay, and `left_out` counts the others; of very many findings the worst, of
    very many differences the first.
    """
    document: Json = json.loads(result.to_json())
    reported = document.get("document") or {}
    for name in ("findings", "differences"):
        found = reported.get(name)
        if isinstance(found, list) and len(found) > _MOST_FINDINGS:
            reported.update({name: found[:_MOST_FINDINGS], "left_out": len(found) - _MOST_FINDINGS})
    plan = reported.get("plan")
    if isinstance(plan, dict):
        reported["plan"] = {key: len(part) if _is_long(part) else part for key, part in plan.items()}
    instants = document.get("instants", [])
    if len(instants) > _MOST_INSTANTS:
        kept = [item for item in instants[:-1] if "error" in item][:_MOST_INSTANTS] + instants[-1:]
        document.update({"instants": kept, "left_out": len(instants) - len(kept)})
    return document


def _is_long(part: object) -> TypeGuard[Sized]:
    return isinstance(part, dict | list) and len(json.dumps(part)) > _LONGEST_PART


def deliver(request: Request, document: Json, code: int) -> None:
    """Writes the result where the request says, and removes results that were not fetched for a week.

    The document has `exit_code` beside the members of the result line. A failure of the storage is logged: the timeline
    shows success.
    """
    try:
        storage = open_storage(
            request.table, merge_storage_options(request.storage_options, request.storage_options_file)
        )
        if request.needs_table and not storage.exists(PROPERTIES):
            return  # no table: nothing is put there
        old = time.time() - _KEPT_SECONDS
        for info in storage.list_files(request.results_folder):
            if info.modified < old:
                storage.delete(info.path)
        storage.write(
            f"{request.results_folder}/{request.result_name}.json",
            json.dumps({**document, "exit_code": code}, sort_keys=True).encode(),
        )
    except HudiError:
        log.exception("the result could not be written")


def read_request(arguments: Sequence[str]) -> Request:
    """`--request JSON`, or `--request-file` with a path or URI that the storage layer reads. Raises ConfigError."""
    parser = _Parser(prog="main.py", add_help=False)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--request")
    group.add_argument("--request-file")
    parsed = parser.parse_args(list(arguments))
    if parsed.request is not None:
        return parse_request(parsed.request)
    folder, _, name = parsed.request_file.rpartition("/")
    if not name:
        raise ConfigError("--request-file names no file", path=parsed.request_file)
    return parse_request(open_storage(folder or ("/" if parsed.request_file.startswith("/") else ".")).read(name))


def submitted_session() -> SparkSession:
    """The session of the spark-submit that started this process."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(message, remedy="give --request JSON or --request-file FILE")


def _failed(error: Json) -> Json:
    return {"version": REQUEST_VERSION, "error": error}


def _report(instant: str, done: int, total: int) -> None:
    _print(PROGRESS, {"instant": instant, "done": done, "total": total})


def _print(label: str, document: Json) -> None:
    sys.stdout.write(f"{label} {json.dumps(document, sort_keys=True)}\n")
    sys.stdout.flush()
