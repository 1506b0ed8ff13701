from __future__ import annotations

import pytest

from hudi_health.doctor.writers import unnamed_indexes, writer_options, writers
from tests.support.table_configs import config_of

ZOOKEEPER = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
IN_PROCESS = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
ALIVE = ("x has a heartbeat",)
OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"


@pytest.mark.parametrize(
    ("options", "provider", "eager", "others", "expected"),
    [
        ({"hoodie.cleaner.policy.failed.writes": "EAGER"}, None, (), (), ["failed_writes_policy"]),
        ({"hoodie.clean.failed.writes.policy": "LAZY"}, None, (), (), []),
        ({}, None, ("20261120223342658",), (), ["failed_writes_policy"]),
        ({}, None, (), ALIVE, ["lock_provider"]),
        ({}, IN_PROCESS, (), ALIVE, ["lock_provider"]),
        ({}, ZOOKEEPER, (), ALIVE, []),
        ({"hoodie.write.concurrency.mode": "SINGLE_WRITER"}, ZOOKEEPER, (), (), ["concurrency_mode"]),
        ({"hoodie.write.concurrency.mode": OPTIMISTIC}, ZOOKEEPER, (), (), []),
    ],
)
def test_writers(
    options: dict[str, str],
    provider: str | None,
    eager: tuple[str, ...],
    others: tuple[str, ...],
    expected: list[str],
) -> None:
    assert [finding.rule for finding in writers(options, provider, eager, others)] == expected


BLOOM, RECORD = "hoodie.metadata.index.bloom.filter.enable", "hoodie.metadata.record.index.enable"
STATS = "hoodie.metadata.index.column.stats.enable"
EVERY = "files,column_stats,bloom_filters,record_index,secondary_index_a"


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
    """Measured of upserts of 0.15.0, 1.0.2 and 1.2.0 with default options: docs/reference/hudi-notes.md."""
    layout = "1" if version == 6 else "2"
    properties = {"hoodie.table.version": f"{version}", "hoodie.timeline.layout.version": layout}
    config = config_of({**properties, "hoodie.table.metadata.partitions": EVERY})
    fixes = [finding.fix for finding in unnamed_indexes(options, config) if finding.rule == "index_not_named"]
    assert {option for fix in fixes for option in (BLOOM, RECORD, STATS) if f"{option}=true" in fix} == dropped
    assert bool(fixes) == bool(dropped)


def test_the_options_that_every_writer_needs() -> None:
    options = {option.name: option for option in writer_options({}, None, "file")}
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
    options = {option.name: option for option in writer_options(given, ZOOKEEPER, "file")}
    assert (options["hoodie.write.lock.provider"].value, options["hoodie.write.lock.zookeeper.url"].value) == (
        ZOOKEEPER,
        "zk:2181",
    )
    assert (options["hoodie.write.concurrency.mode"].value, options["hoodie.write.concurrency.mode"].now) == (
        "OPTIMISTIC_CONCURRENCY_CONTROL",
        "SINGLE_WRITER",
    )
    on_s3 = {option.name: option.value for option in writer_options({}, None, "s3")}
    assert on_s3["hoodie.write.lock.provider"] == ZOOKEEPER
