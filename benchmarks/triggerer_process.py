"""One measurement of benchmarks/triggerer.py, as a process: Airflow's TriggerRunner with triggers on tables, and plans
that appear on these.

It is Airflow's own runner and event loop. Its supervisor is missing: the triggers come from here, and their events and
log lines go nowhere.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import structlog
from airflow.executors.workloads.trigger import RunTrigger
from airflow.jobs.triggerer_job_runner import TriggerEventEntry, TriggerRunner, messages
from airflow.models.trigger import Trigger

from airflow_hudi.conditions.condition import InstantCondition
from airflow_hudi.triggers.timeline_events import HudiTimelineEventTrigger
from airflow_hudi.triggers.wait import HudiConditionTrigger
from benchmarks.measure import peak_mib, percentiles
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.instant import Action
from hudi_core.timeline.instant_time import new_instant

WATCHERS = "watchers"
"""Of assets; the other kind is waits, of deferred tasks."""
WAITS = "waits"
_PLANTED_EVERY = 0.5
"""Seconds."""
_APART = 4
"""Intervals at least between two plans of one table."""
_LATE = 0.05
"""Seconds between two looks at how late the event loop is."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """`triggers` of a kind over tables in `folder`, which look every `interval` seconds, for so many `seconds`."""

    kind: str
    folder: str
    triggers: int
    interval: float
    seconds: float


@dataclass(slots=True)
class Counts:
    """What happened so far: when an instant was planted, and when each trigger fired for it and Airflow took the event,
    by the process's clock; listings of storage; seconds by which the event loop was late.
    """

    planted: dict[str, float] = field(default_factory=dict)
    fired: list[tuple[str, float]] = field(default_factory=list)
    taken: list[tuple[str, float]] = field(default_factory=list)
    listings: int = 0
    late: list[float] = field(default_factory=list)


def count_listings(counts: Counts) -> None:
    """Counts every listing of a local timeline of layout 2, from now on."""
    list_names, lock = LocalStorage.list_names, threading.Lock()

    def counted(self: LocalStorage, folder: str) -> list[str]:
        with lock:
            counts.listings += 1
        return list_names(self, folder)

    LocalStorage.list_names = counted  # type: ignore[method-assign]


class _Events(deque[TriggerEventEntry]):
    """The runner's queue of events, which notes when one comes in."""

    def __init__(self, counts: Counts) -> None:
        super().__init__()
        self._counts = counts

    def append(self, entry: TriggerEventEntry) -> None:
        now = time.monotonic()
        self._counts.fired += [(instant, now) for instant in instants_of(entry)]
        super().append(entry)


class Runner(TriggerRunner):
    """Airflow's runner of triggers without a supervisor: a wait that is over is followed by the next one's."""

    def __init__(self, measurement: Measurement, tables: Sequence[Path], counts: Counts) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.events = _Events(counts)
        self._counts = counts
        self._measurement = measurement
        self._tables = {number: tables[number % len(tables)] for number in range(1, measurement.triggers + 1)}
        self._new = [self._workload(number, "0") for number in self._tables]

    async def init_comms(self) -> None:
        """No process is there to be spoken to."""
        reader = asyncio.create_task(asyncio.Event().wait())
        self.comms_decoder = SimpleNamespace(_reader_task=reader)  # type: ignore[assignment]

    async def asend(self, msg: messages.TriggerStateChanges) -> messages.TriggerStateSync:
        """Takes the events, and hands out what is to be run."""
        now = time.monotonic()
        for entry in msg.events or ():
            instants = instants_of(entry)
            self._counts.taken += [(instant, now) for instant in instants]
            if self._measurement.kind == WAITS:
                number = max(self._tables) + 1
                self._tables[number] = self._tables[entry.trigger_id]
                self._new.append(self._workload(number, instants[-1]))
        new, self._new = self._new, []
        return messages.TriggerStateSync(to_create=new, to_cancel=set())

    def _workload(self, number: int, after: str) -> RunTrigger:
        table, interval = str(self._tables[number]), self._measurement.interval
        trigger: HudiTimelineEventTrigger | HudiConditionTrigger
        if self._measurement.kind == WATCHERS:
            trigger = HudiTimelineEventTrigger(table=table, hudi_conn_id=None, poll_interval=interval)
        else:
            condition = InstantCondition(Action.COMPACTION, after=after).to_json()
            trigger = HudiConditionTrigger(table=table, condition=condition, hudi_conn_id=None, poll_interval=interval)
        path, arguments = trigger.serialize()
        return RunTrigger(id=number, classpath=path, encrypted_kwargs=Trigger.encrypt_kwargs(arguments))


def instants_of(entry: TriggerEventEntry) -> list[str]:
    """What an event is about. Raises RuntimeError for a wait that failed."""
    payload = entry.event.payload
    if payload.get("status") == "error":
        raise RuntimeError(payload["message"])
    return [item["instant"] for item in payload["instants"]] if "instants" in payload else [payload["instant"]]


async def measure(measurement: Measurement) -> dict[str, Any]:
    """Runs the triggers, waits until all look, plants plans of compactions, and waits for their events."""
    tables, counts = sorted(Path(measurement.folder).iterdir()), Counts()
    count_listings(counts)
    before = peak_mib(os.getpid())
    runner = Runner(measurement, tables, counts)
    airflow = asyncio.create_task(runner.arun())  # type: ignore[no-untyped-call]
    tasks = [airflow, asyncio.create_task(_watch_loop(counts))]
    while len(runner.triggers) < measurement.triggers:
        await asyncio.sleep(0.2)
    await asyncio.sleep(3 * measurement.interval)
    counts.late.clear()
    listings, cpu, started = counts.listings, time.process_time(), time.monotonic()
    await _plant(tables, measurement, counts)
    minutes = (time.monotonic() - started) / 60
    found = {
        "lists_per_minute": round((counts.listings - listings) / minutes, 1),
        "cpu_seconds_per_minute": round((time.process_time() - cpu) / minutes, 2),
        "loop_late_seconds": percentiles(counts.late),
    }
    await asyncio.sleep(3 * measurement.interval)
    if airflow.done():
        await airflow
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    memory = {"mib_before": before, "peak_mib": peak_mib(os.getpid())}
    return {**found, **memory, **lags(counts, measurement, len(tables))}


def lags(counts: Counts, measurement: Measurement, tables: int) -> dict[str, Any]:
    """Of what was planted how many events came, and how long after it, in intervals of the triggers."""
    expected = len(counts.planted) * measurement.triggers // tables

    def polls(events: Iterable[tuple[str, float]]) -> dict[str, float]:
        return percentiles([(at - counts.planted[instant]) / measurement.interval for instant, at in events])

    return {
        "planted": len(counts.planted),
        "events": len(counts.fired),
        "missed": expected - len(counts.fired),
        "lag_polls": polls(counts.fired),
        "taken_by_airflow_lag_polls": polls(counts.taken),
    }


async def _plant(tables: Sequence[Path], measurement: Measurement, counts: Counts) -> None:
    """Requests compactions at random tables, each table in its turn: a wait that follows another has looked before."""
    order = random.Random(0).sample(tables, len(tables))
    pause = max(_PLANTED_EVERY, _APART * measurement.interval / len(tables))
    deadline, instant = time.monotonic() + measurement.seconds, "0"
    for table in itertools.cycle(order):
        instant = new_instant([instant])
        counts.planted[instant] = time.monotonic()
        (table / ".hoodie" / "timeline" / f"{instant}.compaction.requested").touch()
        await asyncio.sleep(pause)
        if time.monotonic() >= deadline:
            return


async def _watch_loop(counts: Counts) -> None:
    """Notes how late the event loop is, as Airflow's own watchdog does."""
    while True:
        due = time.monotonic() + _LATE
        await asyncio.sleep(_LATE)
        counts.late.append(time.monotonic() - due)


def main() -> None:
    """Measures what the JSON in the first argument says, and prints the result as JSON after RESULT."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    logging.disable(logging.INFO)
    result = asyncio.run(measure(Measurement(**json.loads(sys.argv[1]))))
    print("RESULT", json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
