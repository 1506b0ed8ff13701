"""Runs a command's request, here or on Spark. A Spark session is started only if there is work for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.resources import as_file, files
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from hudi_cli.options import parse_pairs, table_of
from hudi_cli.output import Output
from hudi_core.config.engine_config import Mode
from hudi_core.engine.hidden_pandas import show_pandas
from hudi_core.errors import ZoneUnknownError
from hudi_core.request.results import Result
from hudi_core.request.secrets import merge_storage_options
from hudi_core.request.services import SERVICES
from hudi_core.verbs.request import Request
from hudi_core.verbs.run import RunRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudi_core.table import HudiTable
    from hudi_spark.engine import SessionEngine


class Runner(AbstractContextManager["Runner"]):
    """Runs requests on the engine that the command or the plan chooses. Spark is started once; as a context manager the
    runner stops it. `at_once` is the number of requests that share this machine.
    """

    def __init__(
        self,
        output: Output,
        engine: str = "local",
        master: str = "",
        spark_conf: Iterable[str] = (),
        *,
        at_once: int = 1,
    ) -> None:
        """Takes Spark's own configuration as `K=V` texts in `spark_conf`. Raises ConfigError for any other text."""
        if engine != "local":
            show_pandas()  # Spark's driver needs it.
        self._output = output
        self._engine = engine
        self._master = master
        self._conf = parse_pairs(spark_conf, option="--spark-conf")
        self._at_once = at_once
        self._lock = threading.Lock()
        self._session: SessionEngine | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            self._session.__exit__(kind, error, trace)

    def run(self, request: Request) -> Result:
        """Runs one request and returns its result. Raises the errors of HudiTable.run."""
        from hudi_core.driver import run_on_target  # Help does not need this import.

        storage_options = merge_storage_options(request.storage_options, request.storage_options_file)
        return run_on_target(request, storage_options, partial(self._run, request))

    def _run(self, request: Request, table: HudiTable) -> Result:
        from hudi_core.driver import drive_with_spark

        mode = Mode.LOCAL if self._engine == "local" else Mode.AUTO
        if self._engine == "spark":
            mode = Mode.LOOK if request.needs_executors else Mode.LOCAL

        def on_spark(why: str) -> SessionEngine:
            if mode is not Mode.LOOK:
                self._output.note(f"{table.uri}: Spark runs this: {why}")
            return self._started(request)

        units = SERVICES[request.service].units if isinstance(request, RunRequest) else "steps done"
        shown = self._at_once == 1 and not self._output.json_mode
        with run_progress(self._output.log, units, shown=shown) as progress:
            return drive_with_spark(table, request, mode, on_spark, at_once=self._at_once, progress=progress)

    def preview(self, request: Request) -> Result:
        """Returns what a run would do, and writes nothing. Raises the errors of HudiTable.preview."""
        if not isinstance(request, RunRequest):
            raise TypeError(f"{request.verb} is no run of a service")
        table = table_of(request)
        try:
            return table.preview(request)
        except ZoneUnknownError:
            if self._engine == "local":
                raise
            # A plan for a table with such an expression index needs the zone of a Spark session.
            return table.preview(self._started(request).with_zone(request))

    def _started(self, request: Request) -> SessionEngine:
        """Returns the engine. All requests of a runner are like this one: runs, or a single request."""
        with self._lock:
            if self._session is None:
                is_alone = not request.asks_session
                self._session = spark_engine(self._output, self._master, self._conf, is_alone=is_alone)
            self._session.start()
            return self._session


def spark_engine(output: Output, master: str, conf: Mapping[str, str], *, is_alone: bool = False) -> SessionEngine:
    """Returns an engine on `master` whose session opens when it is first used. `conf` is Spark's own configuration;
    `is_alone` as in SessionEngine. Raises ConfigError without pyspark.
    """
    from hudi_spark.session import require_pyspark

    require_pyspark()
    from hudi_spark.engine import SessionEngine

    def open_session() -> SparkSession:
        from hudi_spark.session import open_session as open_on
        from hudi_submit.zip import publish_zip

        with (
            output.log.status(f"starting Spark on {master}"),
            as_file(files("hudi_cli") / "log4j2.properties") as quiet,
        ):
            return open_on(master, publish_zip(), conf=conf, log_config=None if output.debug else quiet)

    return SessionEngine(open_session, output.warn, is_alone=is_alone)


@contextmanager
def run_progress(console: Console, units: str, *, shown: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Yields the `progress` function for HudiTable.run. `units` names the counted things and the work on them. Without
    a terminal it prints one line for each instant that is done.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(escape(units)),
        TimeElapsedColumn(),
    )
    tasks: dict[str, TaskID] = {}
    lock = threading.Lock()  # Engines report from their own threads.

    def report(instant: str, done: int, total: int) -> None:
        with lock:
            if instant not in tasks:
                tasks[instant] = bars.add_task(instant, total=total)
            bars.update(tasks[instant], completed=done, total=total)
            if shown and done == total and not console.is_terminal:
                console.print(f"{instant}: {done} of {total} {units}", highlight=False)

    with Progress(*columns, console=console, disable=not (shown and console.is_terminal)) as bars:
        yield report
