"""Airflow runs what real Hudi plans on S3, while Hudi writes; then the same while processes are killed.

Part of `make soak`. `python -m benchmarks.soak_airflow --seconds 60` is a short run; the result is stored in
benchmarks/results/soak_airflow.json unless `--output` names another file. Real Hudi 1.2.0 upserts into a merge-on-read
table on an S3 server under ZooKeeper's lock, and plans compactions and clusterings in between. Airflow's four
components watch the table every two seconds, and the DAG hudi_services_on_events runs what is pending. In the first
part every plan must be run once, and within ten seconds (the 95th percentile, from the plan's file to the inflight
one). In the second a worker's task, the job of one, or the triggerer is killed again and again. In the end every plan
is completed, nothing is inflight, and real Hudi finds each acknowledged row once.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil
import pyarrow as pa

from benchmarks.airflow_components import Components
from benchmarks.compaction import code
from benchmarks.measure import machine, percentiles, store
from benchmarks.soak_services import BEAT_EXPIRED_SECONDS, CONCURRENT, WRITER, cause, lock_options, rows_of
from demo.run import environment
from hudi_core.engine.local import LocalEngine
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.verbs.run import RunRequest
from tests.contract.racing_servers import RacingServer, racing_server
from tests.contract.s3_server import BUCKET, rows
from tests.interop.bundle import S3A, fetched
from tests.interop.changes import user_columns, write_parquet
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.rows import assert_same_rows

log = logging.getLogger(__name__)

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = Path(__file__).parent / "results" / "soak_airflow.json"
DAG: Final = "hudi_services_on_events"
KEY: Final = "soak/orders"
SECONDS: Final = 600.0
POLL: Final = 2
"""Seconds between two looks of the triggerer."""
IDLE_SLEEP: Final = 0.25
"""Seconds that the scheduler sleeps where it finds nothing to do; Airflow's default of one comes up to four times
between an event and the start of its task.
"""
REPEATED: Final = 60
"""Seconds after which what is still pending has an event again: runs fail for good when they are killed too often."""
MOST_LATE: Final = 10.0
HEALTHY: Final = 300.0
DRAINED: Final = 600.0
KEYS: Final = 200
BATCH: Final = 20
COMPACT_EVERY: Final = 3
CLUSTER_EVERY: Final = 10
"""The writes after which real Hudi plans a service."""
RENEWED_EVERY: Final = 15
"""The attempts at a write after which the process of real Hudi is another one: 1.2.0 leaves a stream open for each
HFile block that it reads, and after some 80 writes waits for eight minutes for one of its 5,000 connections to S3.
"""
NICENESS: Final = 10
"""Of real Hudi's processes: writers run on a cluster of their own, not on the machine of Airflow."""
KILL_EVERY: Final = 15.0
KILL_LOOK: Final = 0.1
LOOKED_EVERY: Final = 0.5
"""Seconds between two looks at what the timeline shows; what a time is exact to."""
SERVICES: Final = ("compaction", "clustering")
TARGETS: Final = ("task", "job", "triggerer")
TASK: Final = "airflow worker -- "
"""How the process of a task is called, by Airflow."""
TABLE: Final = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "dt",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "insert",
}


@dataclass
class S3Writer:
    """Real Hudi's writer; `expected` has the value of each key that it has acknowledged. `start` gives a new process of
    it, which is changed for another one after RENEWED_EVERY attempts.
    """

    start: Callable[[], RealHudi]
    base: str
    scratch: Path
    options: dict[str, str]
    expected: dict[int, int] = field(default_factory=dict)
    writes: int = 0
    attempts: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.hudi = self.start()

    def close(self) -> None:
        """Ends its process."""
        self.hudi.close()

    def create(self) -> None:
        """The first insert."""
        rows = rows_of([*range(KEYS)], 0)
        parquet = write_parquet(rows, self.scratch, "rows")
        self.hudi.ask("create", base=self.base, parquet=parquet, options={**TABLE, **self.options})
        self.expected = dict.fromkeys(range(KEYS), 0)

    def upsert(self) -> None:
        """Changes some rows; the same ones again until real Hudi has taken them."""
        self.writes += 1
        numbers = [(self.writes * BATCH + number) % KEYS for number in range(BATCH)]
        parquet = write_parquet(rows_of(numbers, self.writes), self.scratch, "rows")
        while True:
            self.attempts += 1
            if self.attempts % RENEWED_EVERY == 0:
                self.close()
                self.hudi = self.start()
            try:
                self.hudi.ask("write", base=self.base, operation="upsert", parquet=parquet, options=self.options)
                break
            except RealHudiError as error:
                self.failed(cause(error), error)
        self.expected.update(dict.fromkeys(numbers, self.writes))

    def plan(self) -> None:
        """Plans what is its turn. A plan that a concurrent service forbids is for the next time."""
        for every, name in ((COMPACT_EVERY, "schedule_compaction"), (CLUSTER_EVERY, "schedule_clustering")):
            if self.writes % every == 0:
                try:
                    options = {**self.options, "hoodie.compact.inline.max.delta.commits": "1"}
                    self.hudi.ask("service", base=self.base, name=name, options=options)
                except RealHudiError as error:
                    self.failed(f"{name}: {cause(error)}", error)

    def failed(self, name: str, error: RealHudiError) -> None:
        """Counts it; the first of its kind is logged as a whole."""
        if name not in self.failures:
            log.warning("real Hudi failed after %d writes: %s", self.writes, error)
        self.failures[name] += 1

    def rows(self) -> pa.Table:
        """What the table has to hold."""
        return pa.concat_tables(rows_of([key], value) for key, value in sorted(self.expected.items()))


@dataclass
class Observer:
    """When each instant of a service was first seen in which state, in seconds since the start."""

    table: HudiTable
    seen: dict[str, dict[str, float]] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None

    def loop(self) -> None:
        """Until `over` is set."""
        try:
            while not self.over.wait(LOOKED_EVERY):
                now = time.monotonic()
                for item in self.planned():
                    states = self.seen.setdefault(item.requested_time, {})
                    states.setdefault(State.REQUESTED.value, now)
                    if item.state is not State.REQUESTED:
                        states.setdefault(State.INFLIGHT.value, now)
                    if item.is_completed:
                        states.setdefault(State.COMPLETED.value, now)
        except BaseException as error:  # noqa: BLE001 - raised by the main thread
            self.error = error

    def planned(self) -> list[Instant]:
        """The instants of services."""
        return [item for item in self.table.timeline() if item.pending_action in SERVICES]

    def pending(self) -> list[str]:
        """The services that are not completed."""
        return [f"{item.pending_action} {item.requested_time}" for item in self.planned() if not item.is_completed]

    def delays(self, since: float, until: str) -> list[float]:
        """Seconds from the plan to a state, of plans that appeared since a moment."""
        return [
            states[until] - states[State.REQUESTED.value]
            for states in self.seen.values()
            if until in states and states[State.REQUESTED.value] >= since
        ]


def hadoop_of(server: RacingServer) -> dict[str, str]:
    """Spark's properties for tables on the server, by `s3://` as Airflow names them."""
    return {
        "spark.hadoop.fs.s3a.endpoint": server.options["endpoint_url"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        # It would delete folders' markers with each file, which servers on folders refuse.
        "spark.hadoop.fs.s3a.directory.marker.retention": "keep",
        # See RENEWED_EVERY.
        "spark.hadoop.fs.s3a.connection.maximum": "5000",
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    }


def variables(server: RacingServer, home: Path, options: Mapping[str, str]) -> dict[str, str]:
    """Airflow's environment: the table's connection, its watcher, the writers' options."""
    warehouse = Path("/") / BUCKET / Path(KEY).parent
    connection = {
        "conn_type": "hudi",
        "host": f"s3:/{warehouse}",
        "extra": {"endpoint_url": server.options["endpoint_url"], "region": server.options["region"]},
    }
    return {
        **environment(home, Path(KEY)),
        "AIRFLOW_CONN_HUDI_DEFAULT": json.dumps(connection),
        "AWS_ACCESS_KEY_ID": server.options["key"],
        "AWS_SECRET_ACCESS_KEY": server.options["secret"],
        "AWS_DEFAULT_REGION": server.options["region"],
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": str(IDLE_SLEEP),
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "5",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
        "AIRFLOW_HUDI_WATCHED_TABLE": f"s3://{BUCKET}/{KEY}",
        "AIRFLOW_HUDI_POLL_SECONDS": str(POLL),
        "AIRFLOW_HUDI_REPEAT_SECONDS": str(REPEATED),
        "AIRFLOW_HUDI_FLEET_ENGINE": "local",
        "AIRFLOW_HUDI_WRITER_OPTIONS": json.dumps(dict(options)),
    }


def runs_of(airflow: Components) -> Counter[str]:
    """How many tasks say that they completed an instant."""
    found: Counter[str] = Counter()
    runs = airflow.api.get(f"/api/v2/dags/{DAG}/dagRuns?limit=1000&order_by=-run_after")["dag_runs"]
    for run in runs:
        path = f"/api/v2/dags/{DAG}/dagRuns/{run['dag_run_id']}/taskInstances/run_pending/xcomEntries"
        if any(entry["key"] == "return_value" for entry in airflow.api.get(path)["xcom_entries"]):
            value = airflow.api.get(f"{path}/return_value?deserialize=true")["value"]
            results = (json.loads(value) if isinstance(value, str) else value)["results"]
            found.update(
                item["instant"]
                for result in results
                for item in result.get("instants") or ()
                if item["action"] in SERVICES and item["state"] == State.COMPLETED.value
            )
    return found


def kill_one(airflow: Components, target: str) -> bool:
    """Kills the triggerer, a worker's task, or what works beside one; whether there was one."""
    if target == "triggerer":
        airflow.kill("triggerer")
        return True
    jobs: list[psutil.Process] = []
    tasks: list[psutil.Process] = []
    for process in airflow.children("scheduler"):
        try:
            command = " ".join(process.cmdline())
        except psutil.NoSuchProcess:
            continue
        if "hudi_cli.job" in command:
            jobs.append(process)
        elif command.startswith(TASK) and "LocalExecutor" not in command:
            tasks.append(process)
    chosen = jobs if target == "job" else tasks
    if not chosen:
        return False
    try:
        random.choice(chosen).kill()
    except psutil.NoSuchProcess:
        return False
    return True


def write_for(writer: S3Writer, seconds: float, observer: Observer) -> None:
    """Writes for so long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        writer.upsert()
        writer.plan()
        if observer.error is not None:
            raise observer.error


@contextmanager
def killing(airflow: Components) -> Iterator[Counter[str]]:
    """Kills processes of Airflow meanwhile, now and then the one that was killed least, as soon as it is there: a task
    is there for seconds, the triggerer always. Which were killed, and how often.
    """
    killed, over = Counter[str](), threading.Event()

    def loop() -> None:
        while not over.wait(KILL_EVERY):
            target = min(TARGETS, key=lambda name: (killed[name], random.random()))
            while not (there := kill_one(airflow, target)) and not over.wait(KILL_LOOK):
                pass
            killed[target] += there

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def drain(observer: Observer, airflow: Components) -> None:
    """Waits until nothing is pending and no run is under way. Raises RuntimeError when that takes too long."""
    deadline = time.monotonic() + DRAINED
    while left := observer.pending() or _running(airflow):
        if time.monotonic() > deadline:
            raise RuntimeError(f"still pending: {left}")
        time.sleep(1)
    time.sleep(2 * LOOKED_EVERY)


def _running(airflow: Components) -> list[str]:
    runs = airflow.api.get(f"/api/v2/dags/{DAG}/dagRuns?state=running&state=queued")["dag_runs"]
    return [str(run["dag_run_id"]) for run in runs]


def roll_back(writer: S3Writer, table: HudiTable) -> int:
    """Rolls back the writes that met a conflict, which no DAG of this soak does; how many there were. Raises
    RuntimeError where an instant is pending then.
    """
    time.sleep(BEAT_EXPIRED_SECONDS)
    request = RunRequest(writer.base, service=Action.ROLLBACK, all_pending=True, schedule=True, owner="the soak")
    done = table.run(request, LocalEngine(1))
    if left := [f"{item.action} {item.requested_time}" for item in table.timeline().pending()]:
        raise RuntimeError(f"still pending: {left}")
    return len(done.instants)


def judge(writer: S3Writer, table: HudiTable) -> dict[str, Any]:
    """Raises where a row is missing, doubled or old, by real Hudi and by us, with the metadata table and without."""
    rolled_back = roll_back(writer, table)
    expected = writer.rows()
    for metadata in (True, False):
        assert_same_rows(user_columns(writer.hudi.snapshot(writer.base, metadata=metadata)), expected)
        assert_same_rows(user_columns(rows(table, "on" if metadata else "off")), expected)
    wrong = writer.hudi.ask("validate_metadata", base=writer.base)["wrong"]
    if wrong:
        raise RuntimeError(f"real Hudi finds the metadata table wrong: {wrong[:5]}")
    return {
        "rows": expected.num_rows,
        "writes": writer.writes,
        "writes_repeated": dict(writer.failures),
        "rolled_back": rolled_back,
        "left_pending": 0,
    }


def part(writer: S3Writer, observer: Observer, airflow: Components, seconds: float, *, kills: bool) -> dict[str, Any]:
    """One part of the soak; see the module."""
    since, before = time.monotonic(), runs_of(airflow)
    with killing(airflow) if kills else nullcontext(Counter[str]()) as killed:
        write_for(writer, seconds, observer)
    drain(observer, airflow)
    airflow.wait_until_healthy(HEALTHY)
    planned = {name for name, states in observer.seen.items() if states[State.REQUESTED.value] >= since}
    reported = {name: count - before[name] for name, count in runs_of(airflow).items()}
    twice = sorted(name for name in planned if reported.get(name, 0) > 1)
    missing = sorted(name for name in planned if not reported.get(name, 0))
    found = {
        "seconds": seconds,
        "planned": len(planned),
        "completed_twice": twice,
        "not_in_a_result": missing if not kills else len(missing),
        "requested_to_inflight": percentiles(observer.delays(since, State.INFLIGHT.value)),
        "requested_to_completed": percentiles(observer.delays(since, State.COMPLETED.value)),
        "killed": dict(killed),
        "restarted": airflow.restarts,
        **judge(writer, observer.table),
    }
    if twice or (missing and not kills) or (kills and not all(killed[target] for target in TARGETS)):
        raise RuntimeError(f"not every plan was run once, or not everything was killed: {found}")
    return found


def soak(seconds: float, scratch: Path) -> dict[str, Any]:
    """Both parts; see the module."""
    dags = scratch / "dags"
    dags.mkdir()
    shutil.copy(ROOT / "dags" / f"{DAG}.py", dags)
    with ExitStack() as stack:
        server = stack.enter_context(racing_server())
        locked = stack.enter_context(lock_options("zookeeper"))
        options = {**WRITER, **CONCURRENT, **locked}
        os.environ |= {"AWS_ACCESS_KEY_ID": server.options["key"], "AWS_SECRET_ACCESS_KEY": server.options["secret"]}
        jars = [fetched(jar) for jar in S3A]
        start = partial(RealHudi, "1.2.0", jars=jars, conf=hadoop_of(server), niceness=NICENESS)
        writer = stack.enter_context(closing(S3Writer(start, f"s3://{BUCKET}/{KEY}", scratch, options)))
        writer.create()
        storage = {name: server.options[name] for name in ("endpoint_url", "region")}
        observer = Observer(HudiTable.open(writer.base, storage, options))
        airflow = Components(scratch / "airflow", dags, variables(server, scratch, {**CONCURRENT, **locked}))
        stack.enter_context(airflow)
        airflow.wait_until_healthy(HEALTHY)
        thread = threading.Thread(target=observer.loop, daemon=True)
        thread.start()
        try:
            calm = part(writer, observer, airflow, seconds, kills=False)
            print(json.dumps(calm), file=sys.stderr, flush=True)
            killed = part(writer, observer, airflow, seconds, kills=True)
        finally:
            observer.over.set()
            thread.join()
    return {"server": server.kind, "poll_seconds": POLL, "undisturbed": calm, "killed": killed}


def main() -> int:
    """Runs it and stores the result; 1 where plans were run too late."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each part")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    scratch = Path(tempfile.mkdtemp(prefix="airflow-hudi-soak-"))
    try:
        found = {"machine": machine(), "commit": code(), **soak(given.seconds, scratch)}
    except BaseException:
        print(f"logs are in {scratch}", file=sys.stderr)
        raise
    shutil.rmtree(scratch)
    store(given.output, found)
    print(json.dumps(found, indent=2))
    return 0 if found["undisturbed"]["requested_to_inflight"]["p95"] < MOST_LATE else 1


if __name__ == "__main__":
    sys.exit(main())
