"""Rules about the table's writers: the options that all of them need when there is more than one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_core.config.lock_config import LOCK_KEYS, PROVIDER
from hudi_core.config.services.indexing_config import PARTITIONED_RECORD_INDEX_ENABLE, RECORD_INDEX_ENABLE
from hudi_core.config.transaction_config import CONCURRENCY_MODE, FAILED_WRITES_POLICY
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX
from hudi_core.services.doctor.finding import Finding, Observations, WriterOption

_CLIENT: Final = "org.apache.hudi.client.transaction.lock."
AUTO_DELETE: Final = "hoodie.metadata.auto.delete.partitions"
_NEAR: Final = frozenset({"file", "hdfs", "memory"})
_MODES: Final = ("OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL")
_SHOWN: Final = 3
_SWITCHES: Final = {
    BLOOM_FILTERS: ("hoodie.metadata.index.bloom.filter.enable", frozenset({6, 8, 9})),
    RECORD_INDEX: ("hoodie.metadata.record.index.enable", frozenset({6, 8, 9})),
    COLUMN_STATS: ("hoodie.metadata.index.column.stats.enable", frozenset({6})),
}
"""The indexes that a writer with default options drops (measured of 0.15.0, 1.0.2 and 1.2.0: docs/hudi-notes.md), each
with the option that keeps it, and the table versions.
"""
_SWITCHES_OF_GROUPS: Final = (RECORD_INDEX_ENABLE.name, PARTITIONED_RECORD_INDEX_ENABLE.name)
"""Other options that keep the record index: of 1.1 and later."""


def writer_options(observed: Observations) -> list[WriterOption]:
    """What every writer should set, beside what is known of it now: a table does not record its writers' options."""
    policy, mode = _policy_and_mode(observed)
    requested = [
        WriterOption(
            FAILED_WRITES_POLICY.name,
            "LAZY",
            policy,
            "an EAGER writer rolls back what others are writing, our runs included",
        ),
        WriterOption(
            CONCURRENCY_MODE.name,
            mode if mode in _MODES else _MODES[0],
            mode,
            "without it a writer takes no lock and looks for no conflict",
        ),
        WriterOption(PROVIDER.name, *_provider(observed)),
    ]
    names = {key.name for key in LOCK_KEYS if key.name.startswith("hoodie.")} - {PROVIDER.name}
    return requested + [
        WriterOption(name, observed.options[name], observed.options[name], "as this run has it: the same lock for all")
        for name in sorted(names & observed.options.keys())
    ]


def _policy_and_mode(observed: Observations) -> list[str | None]:
    """As they are set, valid or not."""
    options, keys = observed.options, (FAILED_WRITES_POLICY, CONCURRENCY_MODE)
    return [next((options[name] for name in (key.name, *key.aliases) if name in options), None) for key in keys]


def _provider(observed: Observations) -> tuple[str, str | None, str]:
    now, why = observed.lock.provider, "the same lock for all, and for our runs"
    if now is not None and _is_shared(now):
        return now, now, why
    if observed.store.scheme in _NEAR:
        return f"{_CLIENT}FileSystemBasedLockProvider", now, why
    why += "; from Hudi 1.1 on StorageBasedLockProvider needs no server, where probe-store finds the storage fit"
    return f"{_CLIENT}ZookeeperBasedLockProvider", now, why


def _is_shared(provider: str | None) -> bool:
    return provider is not None and not provider.endswith("InProcessLockProvider")


def unnamed_indexes(observed: Observations) -> Iterator[Finding]:
    """Indexes that the next writer drops from the metadata table, unless its options name them."""
    named = {name for name, value in observed.options.items() if value.lower() == "true"}
    switches = {
        index: option
        for index, (option, versions) in _SWITCHES.items()
        if index in observed.metadata_partitions and observed.version in versions and option not in named
    }
    if named.intersection(_SWITCHES_OF_GROUPS):
        switches.pop(RECORD_INDEX, None)
    if not switches or observed.options.get(AUTO_DELETE, "true").lower() == "false":
        return
    yield Finding(
        "index_not_named",
        "info",
        f"a writer of Hudi with default options drops {', '.join(switches)} from the metadata table",
        f"set {', '.join(f'{option}=true' for option in switches.values())} on every writer; for Hudi 1.2 "
        f"{AUTO_DELETE}=false does as well",
    )


def writers(observed: Observations) -> Iterator[Finding]:
    """Options that are known to be wrong, and signs of a live writer while this run shares no lock with it."""
    policy, mode = _policy_and_mode(observed)
    set_lazy = f"set {FAILED_WRITES_POLICY.name}=LAZY on every writer"
    if policy is not None and policy.upper() != "LAZY":
        yield Finding("failed_writes_policy", "warning", f"{FAILED_WRITES_POLICY.name} is {policy}", set_lazy)
    if observed.eager:
        named = ", ".join(observed.eager[:_SHOWN])
        yield Finding(
            "failed_writes_policy",
            "warning",
            f"pending writes without a heartbeat ({named}): their writer seems to be EAGER and may roll back what "
            "others are writing",
            set_lazy,
            observed.eager[0],
        )
    shared = _is_shared(observed.lock.provider)
    if observed.other_writers and not shared:
        yield Finding(
            "lock_provider",
            "warning",
            "no lock provider is configured for this run, and another writer may be alive: "
            f"{'; '.join(observed.other_writers)}",
            f"set {PROVIDER.name} and its options to what all writers of the table use",
        )
    if mode is not None and mode.upper() not in _MODES and shared:
        yield Finding(
            "concurrency_mode",
            "warning",
            f"{CONCURRENCY_MODE.name} is {mode}: such a writer takes no lock, whatever its provider",
            f"set {CONCURRENCY_MODE.name}={_MODES[0]} on every writer",
        )
