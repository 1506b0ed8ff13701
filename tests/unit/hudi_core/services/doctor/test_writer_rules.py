from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_core.services.doctor.finding import (
    LockObservations,
    StoreObservations,
)
from hudi_core.services.doctor.rules import diagnose
from hudi_core.services.doctor.writer_rules import writer_options
from tests.unit.hudi_core.services.doctor.test_rules import HEALTHY, IN_PROCESS, ZOOKEEPER, T, rules


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        ({"options": {"hoodie.cleaner.policy.failed.writes": "EAGER"}}, ["failed_writes_policy"]),
        ({"options": {"hoodie.clean.failed.writes.policy": "LAZY"}}, []),
        ({"eager": (T,)}, ["failed_writes_policy"]),
        ({"other_writers": ("x has a heartbeat",)}, ["lock_provider"]),
        ({"other_writers": ("x has a heartbeat",), "lock": LockObservations(IN_PROCESS, "l")}, ["lock_provider"]),
        ({"other_writers": ("x has a heartbeat",), "lock": LockObservations(ZOOKEEPER, "zk")}, []),
        (
            {"options": {"hoodie.write.concurrency.mode": "SINGLE_WRITER"}, "lock": LockObservations(ZOOKEEPER, "zk")},
            ["concurrency_mode"],
        ),
        (
            {
                "options": {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"},
                "lock": LockObservations(ZOOKEEPER, "zk"),
            },
            [],
        ),
    ],
)
def test_writers(observed: dict[str, Any], expected: list[str]) -> None:
    assert rules(**observed) == expected


BLOOM, RECORD = "hoodie.metadata.index.bloom.filter.enable", "hoodie.metadata.record.index.enable"
STATS = "hoodie.metadata.index.column.stats.enable"
EVERY = frozenset({"files", "column_stats", "bloom_filters", "record_index", "secondary_index_a"})


@pytest.mark.parametrize(
    ("version", "options", "dropped"),
    [
        (6, {}, {BLOOM, RECORD, STATS}),
        (8, {}, {BLOOM, RECORD}),
        (9, {BLOOM: "true"}, {RECORD}),
        (9, {BLOOM: "true", "hoodie.metadata.record.level.index.enable": "true"}, set()),
        (9, {BLOOM: "false"}, {BLOOM, RECORD}),
        (9, {"hoodie.metadata.auto.delete.partitions": "false"}, set()),
    ],
)
def test_indexes_that_a_writer_drops(version: int, options: dict[str, str], dropped: set[str]) -> None:
    """Measured of upserts of 0.15.0, 1.0.2 and 1.2.0 with default options: docs/hudi-notes.md."""
    observed = replace(HEALTHY, version=version, metadata_partitions=EVERY, options=options)
    fixes = [finding.fix for finding in diagnose(observed) if finding.rule == "index_not_named"]
    assert {option for fix in fixes for option in (BLOOM, RECORD, STATS) if f"{option}=true" in fix} == dropped
    assert bool(fixes) == bool(dropped)


def test_the_options_that_every_writer_needs() -> None:
    options = {option.name: option for option in writer_options(HEALTHY)}
    assert {name: option.value for name, option in options.items()} == {
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    }
    assert all(option.now is None for option in options.values())


def test_the_lock_of_this_run_is_the_lock_for_all() -> None:
    given = {
        "hoodie.write.lock.provider": ZOOKEEPER,
        "hoodie.write.lock.zookeeper.url": "zk:2181",
        "hoodie.write.concurrency.mode": "SINGLE_WRITER",
    }
    options = {
        option.name: option
        for option in writer_options(replace(HEALTHY, options=given, lock=LockObservations(ZOOKEEPER, "zk")))
    }
    assert (options["hoodie.write.lock.provider"].value, options["hoodie.write.lock.zookeeper.url"].value) == (
        ZOOKEEPER,
        "zk:2181",
    )
    assert (options["hoodie.write.concurrency.mode"].value, options["hoodie.write.concurrency.mode"].now) == (
        "OPTIMISTIC_CONCURRENCY_CONTROL",
        "SINGLE_WRITER",
    )
    on_s3 = {
        option.name: option.value
        for option in writer_options(replace(HEALTHY, store=StoreObservations("s3", True, True)))
    }
    assert on_s3["hoodie.write.lock.provider"] == ZOOKEEPER
