"""Real Hudi's Spark writer upserts in a loop while our services and our own writes work beside it, under one lock.

Part of `make soak`, which stores the result. `python -m benchmarks.soak_services --seconds 90` is a short run by
itself; `--output FILE` stores it. Real Hudi 0.15.0 writes a merge-on-read table of version 6 with optimistic
concurrency and lazy failed writes, plans compactions in between, and repeats a write that fails, as its users do.
Halfway its JVM is killed in the middle of a write, and another goes on. Our cleaning, archival, rollback of failed
writes, compaction, clustering and updates of the metadata table run in turns beside it. We overwrite one of the
partitions that it writes to, and upsert and delete rows of our own in its file groups, again with the same token until
that succeeds. In the end every row of a write that returned is there once, as the writes and overwrites leave it in the
order in which they completed, nothing is left pending, and metadata table and storage list the same files.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.measure import store
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import ConflictError, LockError
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action
from hudi_core.verbs.metadata import MetadataUpdateRequest
from hudi_core.verbs.run import RunRequest
from hudi_core.verbs.write import InsertOverwriteRequest, WriteRequest
from tests.contract.zookeeper_server import zookeeper_server
from tests.interop.changes import user_columns, write_parquet
from tests.interop.real_hudi import RealHudi, RealHudiError
from tests.support.changed_tables import data_files, listed
from tests.support.rows import assert_same_rows
from tests.support.table_invariants import pending_instants, read_rows

SECONDS = 600
PROVIDERS = "org.apache.hudi.client.transaction.lock."
LOCKS = ("filesystem", "zookeeper")
KEYS, BATCH = 200, 20
"""Rows of the first insert; rows that each later write changes, and half as many new ones where it has new ones."""
ATTEMPTS = 20
OVERWRITE = "insert_overwrite"
SERVED = ("compaction", "clean", "archive", "clustering")
UPSERT, DELETE = "upsert", "delete"
NEEDED = (*SERVED, OVERWRITE, UPSERT, DELETE)
SERVICES = (*SERVED, "rollback")
"""A clean rolls failed writes back first, so the last one may find nothing to do."""
BEAT = {"hoodie.client.heartbeat.interval_in_ms": "5000", "hoodie.client.heartbeat.tolerable.misses": "4"}
BEAT_EXPIRED_SECONDS = 23
CONCURRENT = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.wait_time_ms": "30000",
    **BEAT,
}
WRITER = {
    "hoodie.metadata.enable": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
PLAN_EVERY, INSERT_EVERY = 3, 4
"""The writes after which real Hudi plans a compaction, and those of which one has new rows.

New rows go to base files, not to logs.
"""
OURS = {
    "hoodie.cleaner.commits.retained": "3",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "8",
    "hoodie.metadata.compact.max.delta.commits": "5",
    "hoodie.clustering.plan.strategy.sort.columns": "id",
}
DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")
OVERWRITTEN = DAYS[-1]
"""The partition that we overwrite, by so many rows."""
OVERWRITE_ROWS = 12
OWN_KEYS, OWN_BATCH, DELETE_EVERY = range(10**5, 10**5 + 60), 12, 4
"""Our keys, which real Hudi does not write: which of two rows of one key wins would depend on services in between. Rows
of one of our writes; writes of which one deletes.
"""
OVERWRITE_EVERY, CLUSTER_EVERY, PAUSE_SECONDS = 5, 4, 2.0
"""Turns of the services after which one is due, and the time between two turns. What replaces or
writes file groups waits until a write of real Hudi has returned since the last time: else that never commits.
"""


@contextmanager
def lock_options(lock: str) -> Iterator[dict[str, str]]:
    """The options of a lock that both sides take; ZooKeeper runs meanwhile."""
    if lock == "filesystem":
        yield {"hoodie.write.lock.provider": f"{PROVIDERS}FileSystemBasedLockProvider"}
        return
    with zookeeper_server() as address:
        yield {
            "hoodie.write.lock.provider": f"{PROVIDERS}ZookeeperBasedLockProvider",
            "hoodie.write.lock.zookeeper.url": address,
            "hoodie.write.lock.zookeeper.base_path": "/hudi/soak",
            "hoodie.write.lock.zookeeper.lock_key": uuid.uuid4().hex,
        }


@dataclass
class Acknowledged:
    """What writes and overwrites of a table did, each with the time at which its commit was completed."""

    base: Path
    effects: list[tuple[int, str, pa.Table]] = field(default_factory=list)
    """When, by which operation (OVERWRITE replaces the partition OVERWRITTEN), and the rows."""
    by_hudi: int = 0
    """Writes of real Hudi that have returned."""

    def add(self, operation: str, rows: pa.Table, action: str, instant: str | None = None) -> None:
        """A commit that has returned: of `instant`, or the latest of its action."""
        names = (self.base / ".hoodie").glob(f"{instant or '*'}.{action}")
        newest = max(names, key=lambda path: path.name)
        self.effects.append((newest.stat().st_mtime_ns, operation, rows))

    def rows(self) -> pa.Table:
        """Every row once. Of writes to the same files one fails, so those that returned followed each other."""
        held: dict[str, tuple[str, int]] = {}
        for _, operation, rows in sorted(self.effects, key=lambda effect: effect[0]):
            if operation == OVERWRITE:
                held = {key: row for key, row in held.items() if row[0] != OVERWRITTEN}
            if operation == DELETE:
                held = {key: row for key, row in held.items() if key not in set(rows["id"].to_pylist())}
            else:
                held |= {row["id"]: (row["dt"], row["ts"]) for row in rows.to_pylist()}
        keys = sorted(held)
        values = pa.array([held[key][1] for key in keys], pa.int64())
        return pa.table({"id": keys, "dt": [held[key][0] for key in keys], "ts": values})


def rows_of(numbers: list[int], value: int) -> pa.Table:
    """Rows with these keys, each always in the same partition."""
    days = [DAYS[number % len(DAYS)] for number in numbers]
    keys = [f"key-{number:06d}" for number in numbers]
    return pa.table({"id": keys, "dt": days, "ts": pa.array([value] * len(numbers), pa.int64())})


@dataclass
class Writer:
    """Real Hudi's writer; the rows that it has acknowledged go to `acknowledged`."""

    hudi: RealHudi
    base: Path
    scratch: Path
    options: dict[str, str]
    acknowledged: Acknowledged
    known: int = KEYS
    """Keys that there were so far."""
    writes: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def create(self) -> None:
        """The first insert."""
        given = {
            "hoodie.table.name": "soak",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "dt",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.operation": "insert",
            **self.options,
        }
        rows = rows_of([*range(KEYS)], 1)
        self.hudi.ask("create", base=str(self.base), parquet=write_parquet(rows, self.scratch, "rows"), options=given)
        self._acknowledge(rows)

    def upsert(self) -> None:
        """Changes rows and adds some; the same rows again until real Hudi has taken them."""
        rows = self._next_rows()
        for _ in range(ATTEMPTS):
            try:
                self._write(rows)
            except RealHudiError as error:
                self.failures[cause(error)] += 1
                continue
            self._acknowledge(rows)
            return self._plan_compaction()
        raise RuntimeError(f"real Hudi did not take a write in {ATTEMPTS} attempts: {dict(self.failures)}")

    def _plan_compaction(self) -> None:
        if self.writes % PLAN_EVERY == 0:
            try:
                self.hudi.ask("schedule_compaction", base=str(self.base), options=self.options)
            except RealHudiError as error:
                self.failures[f"plan: {cause(error)}"] += 1

    def die(self) -> str | None:
        """Kills the JVM in the middle of the next upsert, and starts another.

        Returns the instant that is left inflight, if it was in time.
        """
        pid, before = int(self.hudi.ask("process")), self._inflight()
        dying = threading.Thread(target=self._write_and_fail, args=(self._next_rows(),))
        dying.start()
        while dying.is_alive() and not self._inflight() - before:
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        dying.join()
        left = self._inflight() - before
        self.hudi.close()
        self.hudi = RealHudi("0.15.0")
        return min(left, default=None)

    def _next_rows(self) -> pa.Table:
        changed = [(self.writes * BATCH + number) % self.known for number in range(BATCH)]
        fresh = BATCH // 2 if self.writes % INSERT_EVERY == 0 else 0
        return rows_of([*changed, *range(self.known, self.known + fresh)], self.writes + 1)

    def _write(self, rows: pa.Table) -> None:
        parquet = write_parquet(rows, self.scratch, "rows")
        self.hudi.ask("write", base=str(self.base), operation="upsert", parquet=parquet, options=self.options)

    def _write_and_fail(self, rows: pa.Table) -> None:
        with suppress(RealHudiError):
            self._write(rows)

    def _inflight(self) -> set[str]:
        return {path.name.split(".")[0] for path in (self.base / ".hoodie").glob("*.deltacommit.inflight")}

    def close(self) -> None:
        """Ends the JVM."""
        self.hudi.close()

    def _acknowledge(self, rows: pa.Table) -> None:
        self.writes += 1
        self.known = max(self.known, *(int(key[4:]) + 1 for key in rows["id"].to_pylist()))
        self.acknowledged.by_hudi += 1
        self.acknowledged.add(UPSERT, rows, Action.DELTA_COMMIT)


@dataclass
class Services:
    """Our services and writes in a loop, in a thread; `error` is what must not happen."""

    base: Path
    scratch: Path
    options: Mapping[str, str]
    acknowledged: Acknowledged
    done: Counter[str] = field(default_factory=Counter)
    retries: Counter[str] = field(default_factory=Counter)
    writes: int = 0
    """The number of our write that is due."""
    error: BaseException | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def loop(self) -> None:
        """Until `stop` is set, or one fails otherwise than for another's sake."""
        clustered = overwritten = replaced_at = wrote_at = 0
        try:
            for number in itertools.count(1):
                if self.stop.is_set():
                    return
                self.update_metadata()
                if self.acknowledged.by_hudi > wrote_at and self.write():
                    wrote_at = self.acknowledged.by_hudi
                for name in SERVICES:
                    if name != "clustering":
                        self.turn(name)
                if self.acknowledged.by_hudi > replaced_at:
                    if number >= overwritten + OVERWRITE_EVERY:
                        overwritten = number
                        self.overwrite(number)
                        replaced_at = self.acknowledged.by_hudi
                    elif number >= clustered + CLUSTER_EVERY:
                        clustered = number
                        self.turn("clustering")
                        replaced_at = self.acknowledged.by_hudi
                self.stop.wait(PAUSE_SECONDS)
        except BaseException as error:  # noqa: BLE001 - raised by the main thread
            self.error = error

    def turn(self, name: str) -> int:
        """One run of a service; how many instants it completed.

        A conflict, or a lock that another holds, is for the next turn.
        """
        request = RunRequest(
            table=str(self.base),
            service=name,
            all_pending=True,
            schedule=name in ("clean", "rollback", "clustering"),
            owner="the soak",
        )
        try:
            result = HudiTable.open(str(self.base), options=self.options).run(request, LocalEngine(1))
        except (ConflictError, LockError) as error:
            self.retries[f"{name}: {type(error).__name__}"] += 1
            return 0
        for failed in result.failed:
            if failed.exit_code != ConflictError.exit_code:
                raise RuntimeError(f"{name} {failed.instant}: {failed.error}")
            self.retries[f"{name}: {failed.action}"] += 1
        completed = len(result.instants) - len(result.failed)
        self.done[name] += completed
        return completed

    def update_metadata(self) -> None:
        """Compacts the metadata table, up to which instants are archived."""
        request = MetadataUpdateRequest(str(self.base), owner="the soak")
        try:
            HudiTable.open(str(self.base), options=self.options).run(request, LocalEngine(1))
        except (ConflictError, LockError) as error:
            self.retries[f"metadata: {type(error).__name__}"] += 1

    def write(self) -> bool:
        """Upserts or deletes some of our keys; whether that is done. Else the same rows and token come again."""
        operation = DELETE if self.writes % DELETE_EVERY == DELETE_EVERY - 1 else UPSERT
        first = 5 * self.writes
        rows = rows_of([OWN_KEYS[(first + at) % len(OWN_KEYS)] for at in range(OWN_BATCH)], self.writes)
        source = write_parquet(rows, self.scratch, f"ours-{self.writes}")
        token = f"write {self.writes}"
        request = WriteRequest(str(self.base), operation=operation, source=source, token=token, owner="the soak")
        try:
            done = HudiTable.open(str(self.base), options=self.options).run(request, LocalEngine(1)).to_dict()
        except (ConflictError, LockError) as error:
            self.retries[f"{operation}: {type(error).__name__}"] += 1
            return False
        self.acknowledged.add(operation, rows, Action.DELTA_COMMIT, done["instant"])
        self.done[operation] += 1
        self.writes += 1
        return True

    def overwrite(self, number: int) -> None:
        """Replaces a partition by some of the keys that it may have, with values that no write has."""
        keys = [key for key in range(KEYS) if DAYS[key % len(DAYS)] == OVERWRITTEN]
        rows = rows_of(keys[number % 5 :: len(keys) // OVERWRITE_ROWS], -number)
        source = write_parquet(rows, self.scratch, f"overwrite-{number}")
        request = InsertOverwriteRequest(str(self.base), source=source, token=f"turn {number}", owner="the soak")
        try:
            done = HudiTable.open(str(self.base), options=self.options).run(request, LocalEngine(1)).to_dict()
        except (ConflictError, LockError) as error:
            self.retries[f"{OVERWRITE}: {type(error).__name__}"] += 1
            return
        self.acknowledged.add(OVERWRITE, rows, Action.REPLACE_COMMIT, done["instant"])
        self.done[OVERWRITE] += 1


def cause(error: RealHudiError) -> str:
    """The exception that real Hudi ended with."""
    lines = [line.strip() for line in str(error).splitlines() if "Exception" in line]
    return (lines or [str(error)])[-1][:200]


def soak(lock: str, seconds: float, scratch: Path) -> dict[str, Any]:
    """One lock for so many seconds; returns what was done, raises when a row is wrong or something is left."""
    base = scratch / lock / "table"
    base.parent.mkdir()
    acknowledged = Acknowledged(base)
    with (
        lock_options(lock) as locked,
        closing(
            Writer(RealHudi("0.15.0"), base, base.parent, {**WRITER, **CONCURRENT, **locked}, acknowledged)
        ) as writer,
    ):
        writer.create()
        services = Services(base, base.parent, {**OURS, **CONCURRENT, **locked}, acknowledged)
        killed = beside(writer, services, seconds)
        finish(services)
        verdict = judge(writer, base)
    idle = [name for name in NEEDED if not services.done[name]]
    if idle or not killed or not verdict["rolled_back"]:
        raise RuntimeError(f"nothing was proven of {idle or 'a killed writer'} in {seconds} s: run it for longer")
    return {
        "lock": lock,
        "seconds": seconds,
        "writes_acknowledged": writer.writes,
        "writes_repeated": dict(writer.failures),
        "writers_killed": len(killed),
        "services_completed": dict(services.done),
        "services_put_off": dict(services.retries),
        **verdict,
    }


def beside(writer: Writer, services: Services, seconds: float) -> list[str]:
    """Runs the writer here and the services in a thread, for that many seconds.

    Returns the instant whose writer was killed halfway.
    """
    killed: list[str] = []
    thread = threading.Thread(target=services.loop)
    thread.start()
    try:
        started = time.monotonic()
        while time.monotonic() < started + seconds and services.error is None:
            writer.upsert()
            if not killed and time.monotonic() > started + seconds / 2:
                left = writer.die()
                killed += [] if left is None else [left]
    finally:
        services.stop.set()
        thread.join()
    if services.error is not None:
        raise services.error
    return killed


def finish(services: Services) -> None:
    """Runs what the last writes left due: failed writes, the last compaction, one more clean and archival.

    Failed writes once their heartbeats have expired.
    """
    time.sleep(BEAT_EXPIRED_SECONDS)
    while services.turn("rollback") + services.turn("compaction") + services.turn("clustering"):
        pass
    services.turn("clean")
    services.update_metadata()
    services.turn("archive")


def judge(writer: Writer, base: Path) -> dict[str, Any]:
    """Compares rows by real Hudi and by us, with the metadata table and without.

    Raises when one is missing, extra or old, or an instant is pending.
    """
    left = pending_instants(base)
    if left:
        raise RuntimeError(f"pending: {sorted(left)}")
    expected = writer.acknowledged.rows()
    for metadata in (True, False):
        assert_same_rows(user_columns(writer.hudi.snapshot(base, metadata=metadata)), expected)
        assert_same_rows(user_columns(read_rows(base, "on" if metadata else "off")), expected)
    stored = {path: size for path, size in data_files(base).items() if not path.endswith("_partition_metadata")}
    if listed(base) != stored:
        raise RuntimeError(
            "the metadata table lists other files than the storage: "
            f"{sorted(listed(base).items() ^ stored.items())[:5]}"
        )
    wrong = writer.hudi.ask("validate_metadata", base=str(base))["wrong"]
    if wrong:
        raise RuntimeError(f"real Hudi finds the metadata table wrong: {wrong[:5]}")
    active, whole = (list(HudiTable.open(str(base)).timeline(archived=archived)) for archived in (False, True))
    rolled_back = sum(item.action == Action.ROLLBACK for item in whole)
    return {
        "rows": expected.num_rows,
        "left_pending": 0,
        "files": len(stored),
        "archived": len(whole) - len(active),
        "rolled_back": rolled_back,
    }


def run(seconds: float, locks: tuple[str, ...] = LOCKS) -> list[dict[str, Any]]:
    """Each lock for so many seconds."""
    scratch = Path(tempfile.mkdtemp(prefix="airflow-hudi-soak-"))
    try:
        return [soak(lock, seconds, scratch) for lock in locks]
    finally:
        shutil.rmtree(scratch)


def main() -> None:
    """Runs it and stores the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of writing, for each lock")
    parser.add_argument("--lock", choices=LOCKS, action="append", help="default: all")
    parser.add_argument("--output", type=Path, help="a file to store the result in")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    found = run(given.seconds, tuple(given.lock or LOCKS))
    if given.output is not None:
        store(given.output, found)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
