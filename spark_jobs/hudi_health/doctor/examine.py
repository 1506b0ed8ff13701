"""`doctor`: runs all checks on a table. It writes nothing, so it measures ages by this process's clock. The checks are
in instants.py, writers.py, clocks.py, wheels.py, listings.py, stored_files.py and compression.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from hudi_core.config.concurrency_config import CONCURRENCY_MODE, STALLED_MINUTES
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.write.lifetime import is_drop_unfinished
from hudi_core.services.context import TableContext
from hudi_core.services.rollback.failed_writes import heartbeats_of
from hudi_core.storage.one_look import one_look
from hudi_core.storage.registry import scheme_of
from hudi_core.transaction.locks.registry import read_signs
from hudi_core.transaction.writer_heartbeats import eager_writers
from hudi_health.doctor import clocks, compression, instants, listings, stored_files, wheels, writers
from hudi_health.doctor.findings import DataFiles, Finding
from hudi_health.doctor.wheels import ExecutorObservations, Wheel

_ORDER = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class StoreObservations:
    """The operations that the storage offers. Only a race shows whether they are safe (hudi_health.probe)."""

    scheme: str
    exclusive_create: bool
    conditional_write: bool


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """The findings, the worst first, and further observations. `executors` is None if there were no executors."""

    table: str
    name: str
    version: int
    findings: tuple[Finding, ...]
    writer_options: tuple[writers.WriterOption, ...]
    clock: clocks.ClockObservations
    lock: writers.LockObservations
    store: StoreObservations
    wheels: tuple[Wheel, ...]
    executors: ExecutorObservations | None
    files_looked_at: bool

    def to_dict(self) -> dict[str, Any]:
        document = asdict(self) | {"findings": [finding.to_dict() for finding in self.findings]}
        for name in ("writer_options", "wheels"):
            document[name] = list(document[name])
        document["clock"]["offsets"] = list(self.clock.offsets)
        if self.executors is not None:
            document["executors"]["setups"] = list(self.executors.setups)
        return document


def examine(
    context: TableContext, *, files: bool = True, executors: ExecutorObservations | None = None
) -> DoctorReport:
    """Runs the checks, with `files` also those of data files. Raises FormatError for a damaged archive or log file."""
    with one_look(context.storage):
        now, scheme = time.time(), scheme_of(context.uri)
        modified, timeline = context.active.modified(), context.active.load()
        heartbeats = heartbeats_of(context, timeline, read_only=True)
        mode = CONCURRENCY_MODE.name
        options = {**({mode: context.config.raw[mode]} if mode in context.config.raw else {}), **context.options}
        stalled_after = STALLED_MINUTES.read(context.options) * 60.0
        codecs = compression.read_compression(context, timeline, files=files)
        clock = clocks.read_clocks(context, timeline, modified, now)
        lock = writers.read_lock(context, context.options, now)
        storage = context.storage
        store = StoreObservations(scheme, storage.supports_exclusive_create, storage.supports_conditional_write)
        needed = wheels.needed_wheels(scheme, context.options, codecs.codec)
        eager = [instant.requested_time for instant in eager_writers(context.active, timeline, heartbeats)]
        others = read_signs(context.storage, context.config, context.options, now=time.time).describe()
        data = DataFiles(context, timeline)
        pending = instants.pending_instants(context, timeline, modified, heartbeats)
        findings = (
            *_of_files(data, listed=files),
            *instants.strange_names(context),
            *instants.stalled_instants(pending, context.uri, stalled_after),
            *writers.blocking_lock(lock, stalled_after),
            *writers.writers(options, lock.provider, eager, others),
            *writers.unnamed_indexes(options, context.config),
            *clocks.timeline_zone(clock),
            *clocks.clock_skew(clock),
            *clocks.instant_ahead(clock),
            *instants.overtaken(data),
            *instants.latest_indexing(timeline),
            *metadata_drop(context),
            *unproven_store(store, context.uri),
            *wheels.missing_wheels(needed),
            *wheels.executor_modules(executors, codecs.codec, options),
            *compression.codec_saving(codecs),
        )
        return DoctorReport(
            table=context.uri,
            name=context.config.name,
            version=int(context.config.version),
            findings=tuple(sorted(findings, key=lambda finding: _ORDER[finding.severity])),
            writer_options=tuple(writers.writer_options(options, lock.provider, scheme)),
            clock=clock,
            lock=lock,
            store=store,
            wheels=needed,
            executors=executors,
            files_looked_at=files,
        )


def _of_files(files: DataFiles, *, listed: bool) -> Iterator[Finding]:
    if not listed:
        doubts = [*listings.indexes(files, ranges=False)]
        yield from doubts if files.is_current() else ()
        return
    cut = [*stored_files.cut_files(files)]  # It runs first, because it reads each commit, also for the log files.
    yield from listings.orphans(files)
    differences = [*listings.listings(files)]
    rules = (
        stored_files.damaged_logs,
        stored_files.copied_files,
        stored_files.shared_buckets,
        stored_files.mislabelled_files,
    )
    of_slices = [finding for rule in rules for finding in rule(files)]
    doubts = [*listings.indexes(files, ranges=True)]
    is_current = files.is_current()  # Otherwise the differences may come from writes meanwhile.
    yield from differences if is_current else ()
    yield from (*of_slices, *cut)
    yield from doubts if is_current else ()


def metadata_drop(context: TableContext) -> Iterator[Finding]:
    """Reports a metadata table whose drop did not finish, because the process died."""
    if is_drop_unfinished(context.storage, context.config):
        what = "hoodie.properties list no metadata table, but parts of one are left: a drop was cut off"
        fix = "a restore finishes it under the lock; else delete .hoodie/metadata while no writer is at work"
        yield Finding("metadata_drop_unfinished", "warning", what, fix, path=".hoodie/metadata")


def unproven_store(store: StoreObservations, uri: str) -> Iterator[Finding]:
    """Reports a storage that cannot carry a timeline, or that is untested."""
    if not store.exclusive_create:
        yield Finding(
            "store_not_atomic",
            "error",
            f"the storage library of {store.scheme}:// offers no exclusive create: two runs may both believe to have "
            "won",
            "run one writer and one service at a time, or keep the table on a storage with conditional puts",
        )
    elif store.scheme not in ("file", "memory"):
        what = "timeline and lease rest on conditional puts, which many S3-compatible servers get wrong under a race"
        fix = f"once per storage: hudictl probe-store on a folder of the same bucket as {uri}"
        yield Finding("store_unproven", "info", what, fix)
