"""The rules on the table's writers: the options that they need if there are several, and the lock that they share. The
lock is read without taking it. clocks.py checks the writers' clocks. transaction/owner.py says whether the holder of
the lock is provably dead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from hudi_core.config.concurrency_config import CONCURRENCY_MODE, FAILED_WRITES_POLICY, LOCK_KEYS, PROVIDER
from hudi_core.config.metadata_config import PARTITIONED_RECORD_INDEX_ENABLE, RECORD_INDEX_ENABLE
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import HudiError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX
from hudi_core.services.context import TableContext
from hudi_core.transaction.locks.registry import table_lock
from hudi_core.transaction.owner import Owner
from hudi_health.doctor.findings import Finding, duration

_CLIENT: Final = "org.apache.hudi.client.transaction.lock."
AUTO_DELETE: Final = "hoodie.metadata.auto.delete.partitions"
_WITHOUT_SERVER: Final = frozenset({"file", "hdfs", "memory"})
_MODES: Final = ("OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL")
_SHOWN: Final = 3
_SWITCHES: Final = {
    BLOOM_FILTERS: ("hoodie.metadata.index.bloom.filter.enable", frozenset({6, 8, 9})),
    RECORD_INDEX: ("hoodie.metadata.record.index.enable", frozenset({6, 8, 9})),
    COLUMN_STATS: ("hoodie.metadata.index.column.stats.enable", frozenset({6})),
}
"""The indexes that a writer with default options drops, each with the option that keeps it, and the table versions
(measured with 0.15.0, 1.0.2 and 1.2.0: docs/reference/hudi-notes.md).
"""
_SWITCHES_OF_GROUPS: Final = (RECORD_INDEX_ENABLE.name, PARTITIONED_RECORD_INDEX_ENABLE.name)
"""Other options that keep the record index, in Hudi 1.1 and later."""


@dataclass(frozen=True, slots=True)
class WriterOption:
    """An option that every writer should have: the `value` to set, and `now` in this run or the table's properties."""

    name: str
    value: str
    now: str | None
    why: str


@dataclass(frozen=True, slots=True)
class LockObservations:
    """The table's lock. `holder` describes its holder, or is None if the lock is free. `left_behind` says that the
    holder is provably gone. `problem` says why the lock could not be checked.
    """

    provider: str | None
    name: str
    holder: str | None = None
    age: float | None = None
    left_behind: bool = False
    how_to_break: str | None = None
    problem: str | None = None


def writer_options(options: Mapping[str, str], provider: str | None, scheme: str) -> list[WriterOption]:
    """Returns the options that writers should set, with values known now: tables do not record writers' options."""
    policy, mode = _policy_and_mode(options)
    why_lazy = "an EAGER writer rolls back what others are writing, our runs included"
    why_mode = "without it a writer takes no lock and looks for no conflict"
    names = {key.name for key in LOCK_KEYS if key.name.startswith("hoodie.")} - {PROVIDER.name}
    return [
        WriterOption(FAILED_WRITES_POLICY.name, "LAZY", policy, why_lazy),
        WriterOption(CONCURRENCY_MODE.name, mode if mode in _MODES else _MODES[0], mode, why_mode),
        WriterOption(PROVIDER.name, *_provider(provider, scheme)),
        *(
            WriterOption(name, options[name], options[name], "as this run has it: the same lock for all")
            for name in sorted(names & options.keys())
        ),
    ]


def _policy_and_mode(options: Mapping[str, str]) -> list[str | None]:
    """Returns the values of both options as they are set, valid or not."""
    keys = (FAILED_WRITES_POLICY, CONCURRENCY_MODE)
    return [next((options[name] for name in (key.name, *key.aliases) if name in options), None) for key in keys]


def _provider(now: str | None, scheme: str) -> tuple[str, str | None, str]:
    why = "the same lock for all, and for our runs"
    if now is not None and _is_shared(now):
        return now, now, why
    if scheme in _WITHOUT_SERVER:
        return f"{_CLIENT}FileSystemBasedLockProvider", now, why
    why += "; from Hudi 1.1 on StorageBasedLockProvider needs no server, where probe-store finds the storage fit"
    return f"{_CLIENT}ZookeeperBasedLockProvider", now, why


def _is_shared(provider: str | None) -> bool:
    return provider is not None and not provider.endswith("InProcessLockProvider")


def unnamed_indexes(options: Mapping[str, str], config: TableConfig) -> Iterator[Finding]:
    """Reports indexes that the next writer drops from the metadata table, unless its options name them."""
    named = {name for name, value in options.items() if value.lower() == "true"}
    switches = {
        index: option
        for index, (option, versions) in _SWITCHES.items()
        if index in config.metadata_partitions and config.version in versions and option not in named
    }
    if named.intersection(_SWITCHES_OF_GROUPS):
        switches.pop(RECORD_INDEX, None)
    if not switches or options.get(AUTO_DELETE, "true").lower() == "false":
        return
    yield Finding(
        "index_not_named",
        "info",
        f"a writer of Hudi with default options drops {', '.join(switches)} from the metadata table",
        f"set {', '.join(f'{option}=true' for option in switches.values())} on every writer; for Hudi 1.2 "
        f"{AUTO_DELETE}=false does as well",
    )


def writers(
    options: Mapping[str, str], provider: str | None, eager: Sequence[str], others: Sequence[str]
) -> Iterator[Finding]:
    """Reports wrong options, pending writes without heartbeat (`eager`), and live writers (`others`) without a lock."""
    policy, mode = _policy_and_mode(options)
    set_lazy = f"set {FAILED_WRITES_POLICY.name}=LAZY on every writer"
    if policy is not None and policy.upper() != "LAZY":
        yield Finding("failed_writes_policy", "warning", f"{FAILED_WRITES_POLICY.name} is {policy}", set_lazy)
    if eager:
        named = ", ".join(eager[:_SHOWN])
        yield Finding(
            "failed_writes_policy",
            "warning",
            f"pending writes without a heartbeat ({named}): their writer seems to be EAGER and may roll back what "
            "others are writing",
            set_lazy,
            eager[0],
        )
    shared = _is_shared(provider)
    if others and not shared:
        what = f"no lock provider is configured for this run, and another writer may be alive: {'; '.join(others)}"
        fix = f"set {PROVIDER.name} and its options to what all writers of the table use"
        yield Finding("lock_provider", "warning", what, fix)
    if mode is not None and mode.upper() not in _MODES and shared:
        what = f"{CONCURRENCY_MODE.name} is {mode}: such a writer takes no lock, whatever its provider"
        fix = f"set {CONCURRENCY_MODE.name}={_MODES[0]} on every writer"
        yield Finding("concurrency_mode", "warning", what, fix)


def read_lock(context: TableContext, options: Mapping[str, str], now: float) -> LockObservations:
    """Reads the lock that `options` name, and its holder. An error of this check is an observation, too."""
    provider = PROVIDER.read(options)
    name = provider or ".hoodie/lock"
    # Without a configured provider our processes share the file. This value omits the search for other writers.
    is_file = provider in (None, f"{_CLIENT}InProcessLockProvider")
    named = {**options, PROVIDER.name: f"{_CLIENT}FileSystemBasedLockProvider"} if is_file else options
    owner, storage = Owner.current("doctor"), context.storage
    try:
        lock = table_lock(storage, context.config, named, owner, storage_options=context.storage_options)
        name = lock.name
        holder = lock.holder()
    except HudiError as error:
        return LockObservations(provider, name, problem=str(error), how_to_break=error.remedy)
    if holder is None:
        return LockObservations(provider, name)
    age = max(0.0, now - holder.since)
    return LockObservations(provider, name, holder.describe(), age, holder.is_left_behind, lock.how_to_break(holder))


def blocking_lock(lock: LockObservations, stalled_after: float) -> Iterator[Finding]:
    """Reports a lock whose holder is gone, that is held for long, or that cannot be checked."""
    finding = partial(Finding, path=lock.name, age_seconds=lock.age, owner=lock.holder)
    if lock.problem is not None:
        what = f"the lock cannot be checked: {lock.problem}"
        yield finding("lock_unreadable", "error", what, lock.how_to_break or "check its options")
    elif lock.holder is not None and lock.left_behind:
        fix = f"our next run takes it by itself; writers of Hudi do not: {lock.how_to_break}"
        yield finding("lock_left_behind", "warning", f"the lock was left behind by {lock.holder}", fix)
    elif lock.holder is not None and (lock.age or 0.0) > stalled_after:
        what = f"the lock is held by {lock.holder} for {duration(lock.age or 0.0)}"
        yield finding("lock_held", "warning", what, lock.how_to_break or "wait for its holder")
