"""`make demo`: Airflow waits for a compaction that a Hudi writer planned, and runs it without any Hudi jar.

Everything it makes is below `.demo/`; every process it starts has ended when it ends, however it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from demo.follow import Follower
from demo.stack import DemoError, Stack
from demo.table import DemoTable, RowCounts
from hudi_core.errors import HudiError
from hudi_core.request.java import find_java
from hudi_core.timeline.instant import Instant

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".demo"
DAG_ID = "hudi_compaction"
RUN_ID = "demo"
TIMEOUT_SECONDS = 600.0

Check = Callable[[Path], None]
"""Looks at the compacted table and raises when something is wrong with it."""


def run(timeout: float = TIMEOUT_SECONDS, check: Check | None = None, home: Path = HOME) -> None:
    """Runs the demo in `home`, which is emptied first; `check` judges the table afterwards.

    Raises DemoError, HudiError.
    """
    started = time.monotonic()
    shutil.rmtree(home, ignore_errors=True)
    table = DemoTable(home / "warehouse")
    planned = table.planned()
    say(
        "A table that real Apache Hudi 0.15 wrote: "
        f"{table.path.relative_to(ROOT) if table.path.is_relative_to(ROOT) else table.path}"
    )
    show_timeline(table.timeline())
    before = table.counts()
    show_counts("before", before)
    table.hold_back(planned)
    say(
        "The planned compaction is held back until the sensor waits for it. Starting Airflow (api-server, scheduler, "
        "dag-processor, triggerer)…"
    )
    variables = {f"AIRFLOW_CONN_{name.upper()}": json.dumps(found) for name, found in connections(table.path).items()}
    with Stack(home / "airflow", dags_folder(home), {**environment(home, table.path), **variables}) as stack:
        try:
            stack.wait_until_healthy(timeout, say)
            say(f"Airflow is up at {stack.url} after {time.monotonic() - started:.0f} s")
            follower = Follower(stack, DAG_ID, RUN_ID, timeout, say)
            follower.trigger()
            follower.wait_for_task("wait_for_compaction", {"deferred"})
            # Airflow 3.3 fails a task whose trigger fires before its worker has ended, which takes seconds on a busy
            # machine.
            stack.wait_for_log("final_state=deferred", timeout)
            say(
                "The sensor is deferred: it holds no worker slot. Now a writer plans compaction "
                f"{planned.requested_time}"
            )
            table.plan(planned)
            follower.wait_for_run()
            result = follower.result("compact")
        except DemoError as error:
            raise DemoError(f"{error}\n--- last lines of {stack.log}\n{stack.log_tail()}") from error
    say(f"The operator's XCom: {result}")
    show_timeline(table.timeline())
    after = table.counts()
    show_counts("after", after)
    judge(table, planned, before, after)
    if check is not None:
        check(table.path)
    say(f"Done in {time.monotonic() - started:.0f} s, and no process is left. Where to look next:")
    for line in next_steps(table, planned):
        print(f"    {line}")


def judge(table: DemoTable, planned: Instant, before: RowCounts, after: RowCounts) -> None:
    """Raises DemoError unless the compaction completed and moved the logs' changes into base files, rows unchanged."""
    (found,) = [instant for instant in table.timeline() if instant.requested_time == planned.requested_time]
    if not found.is_completed:
        raise DemoError(f"compaction {found.requested_time} is {found.state.value} on the timeline")
    if after.snapshot != before.snapshot:
        raise DemoError(f"a snapshot query returned {before.snapshot} rows before and {after.snapshot} after")
    if after.read_optimized == before.read_optimized:
        raise DemoError("the compaction brought nothing to read-optimized queries")


def connections(table: Path, engine: str | None = None) -> dict[str, dict[str, Any]]:
    """The two connections that the DAGs use, by their ids. Without an engine work is done on Spark."""
    extra = {} if engine is None else {"extra": {"engine": engine}}
    return {
        "spark_default": {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}},
        # Without a port Airflow 3.3.1 and 3.3.2 refuse the Test button (apache/airflow#73298).
        "hudi_default": {"conn_type": "hudi", "host": str(table.parent), "port": 0, **extra},
    }


def environment(home: Path, table: Path) -> dict[str, str]:
    """What the DAGs and their tasks need beside the connections: the table, a Java, a Spark configuration."""
    spark_conf = home / "spark-conf"
    spark_conf.mkdir()
    spark_conf.joinpath("spark-defaults.conf").write_text(
        "spark.ui.enabled false\nspark.ui.showConsoleProgress false\nspark.driver.bindAddress "
        "127.0.0.1\nspark.driver.host 127.0.0.1\nspark.driver.extraJavaOptions -XX:+UseSerialGC "
        "-XX:TieredStopAtLevel=1\n"
    )
    spark_conf.joinpath("log4j2.properties").write_text("rootLogger.level = warn\n")
    return {
        "JAVA_HOME": find_java(),
        "SPARK_CONF_DIR": str(spark_conf),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(home / "cache"),
        "AIRFLOW_HUDI_TABLE": table.name,
        "AIRFLOW_HUDI_TABLES": table.name,
        "AIRFLOW_HUDI_POLL_SECONDS": "2",
    }


def dags_folder(home: Path) -> Path:
    """A folder with the ready-to-use DAG alone."""
    folder = home / "dags"
    folder.mkdir()
    shutil.copy(ROOT / "dags" / "hudi_compaction.py", folder)
    return folder


def next_steps(table: DemoTable, planned: Instant) -> Iterator[str]:
    """Commands that show what happened."""
    path = os.path.relpath(table.path)
    yield f"make hudictl ARGS='timeline {path}'"
    yield f"make hudictl ARGS='show {path} {planned.requested_time}'"
    yield f"make hudictl ARGS='read {path} --query snapshot --output .demo/rows.parquet'"
    yield "dags/hudi_compaction.py and docs/use/airflow.md: the same on your own table"


def show_timeline(instants: Sequence[Instant]) -> None:
    """Prints one line per instant."""
    for instant in instants:
        print(f"    {instant.requested_time}  {instant.action:<12} {instant.state.value}")


def show_counts(when: str, counts: RowCounts) -> None:
    """Prints the rows that the two queries return."""
    say(f"Rows {when}: {counts.snapshot} by snapshot query, {counts.read_optimized} by read-optimized query")


def say(text: str) -> None:
    """Prints a line of the demo."""
    print(f"[demo] {text}", flush=True)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM and SIGHUP end the demo as Ctrl-C does: through its clean-up."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def main(arguments: Sequence[str] | None = None, check: Check | None = None) -> int:
    """The program: 0 when the compaction ran and the table is right, 1 when not, 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="make demo", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT_SECONDS, help="seconds for each wait (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    try:
        with terminated_as_interrupted():
            run(options.timeout, check)
    except (DemoError, HudiError) as error:
        print(f"[demo] FAILED: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("[demo] interrupted; everything it started is stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
