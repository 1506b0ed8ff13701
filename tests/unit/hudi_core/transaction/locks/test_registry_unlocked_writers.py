from __future__ import annotations

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import LockError
from hudi_core.transaction.claim import claim
from hudi_core.transaction.locks.registry import WriterSigns, check_alone, read_signs
from hudi_core.transaction.owner import Owner
from tests.support.memory_storage import MemoryStorage

NOTHING = WriterSigns({}, {}, None)


class Clock:
    """A clock to be set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def config(version: str, **more: str) -> TableConfig:
    layout = {} if version == "6" else {"hoodie.timeline.layout.version": "2"}
    return TableConfig.of(
        {"hoodie.table.name": "t", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": version}
        | layout
        | more
    )


@pytest.mark.parametrize("mode", [None, "SINGLE_WRITER"])
def test_without_a_sign_there_is_nothing_to_say(mode: str | None) -> None:
    for policy in ("warn", "refuse"):
        assert check_alone(WriterSigns({}, {}, mode), policy, "/t") is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("signs", "text"),
    [
        (WriterSigns({"1": 3.2}, {}, None), "1 has a heartbeat 3 s old"),
        (WriterSigns({}, {"2": 59.9}, None), "2 went inflight 60 s ago"),
        (WriterSigns({"1": 1.0}, {"1": 2.0}, None), "1 has a heartbeat 1 s old"),
        (
            WriterSigns({}, {}, "OPTIMISTIC_CONCURRENCY_CONTROL"),
            "hoodie.write.concurrency.mode is OPTIMISTIC_CONCURRENCY_CONTROL",
        ),
        (WriterSigns({}, {}, "NON_BLOCKING_CONCURRENCY_CONTROL"), "NON_BLOCKING"),
    ],
)
def test_each_sign_is_named_and_decides_by_policy(signs: WriterSigns, text: str) -> None:
    warning = check_alone(signs, "warn", "/t")
    with pytest.raises(LockError) as refused:
        check_alone(signs, "refuse", "/t")
    assert warning == str(refused.value)
    assert text in warning
    assert "hoodie.write.lock.provider" in (refused.value.remedy or "")


def test_many_signs_are_named_in_few_words() -> None:
    signs = WriterSigns(
        {str(number): 1.0 for number in range(1000)}, {str(number): 1.0 for number in range(2000, 3000)}, None
    )
    assert len(signs.describe()) == 6


@pytest.mark.parametrize(
    ("version", "folder", "inflight"),
    [
        ("6", ".hoodie", "20260101000000000.inflight"),
        ("8", ".hoodie/timeline", "20260101000000000.deltacommit.inflight"),
    ],
)
def test_young_inflight_instants_and_fresh_heartbeats_of_others_are_signs(
    version: str, folder: str, inflight: str
) -> None:
    clock = Clock()
    storage = MemoryStorage(clock=clock)
    table = config(version)
    assert read_signs(storage, table, {}, now=clock) == NOTHING
    storage.write(f"{folder}/{inflight}", b"")
    storage.write(f"{folder}/20260102000000000.compaction.requested", b"")
    storage.write(".hoodie/.heartbeat/20260101000000000", b"")
    clock.now += 100
    found = read_signs(storage, table, {}, now=clock)
    assert (found.heartbeats, found.inflight) == ({"20260101000000000": 100.0}, {"20260101000000000": 100.0})
    clock.now += 100
    found = read_signs(storage, table, {}, now=clock)
    assert (found.heartbeats, found.inflight) == ({}, {"20260101000000000": 200.0})
    assert read_signs(storage, table, {"airflow_hudi.lock.foreign_inflight_minutes": "3"}, now=clock).inflight == {}
    clock.now += 3600
    assert read_signs(storage, table, {}, now=clock) == NOTHING


def test_what_we_run_ourselves_is_no_sign() -> None:
    storage = MemoryStorage()
    with claim(storage, "20260101000000000", Owner.current("ours")):
        storage.write(".hoodie/20260101000000000.compaction.requested", b"")
        storage.write(".hoodie/20260101000000000.compaction.inflight", b"")
        assert storage.exists(".hoodie/.heartbeat/20260101000000000")
        assert read_signs(storage, config("6"), {}) == NOTHING
        storage.write(".hoodie/20260101000000001.deltacommit.inflight", b"")
        assert list(read_signs(storage, config("6"), {}).inflight) == ["20260101000000001"]
    storage.write(".hoodie/.heartbeat/20260101000000000", b"")  # of another process, since the claim was released
    assert list(read_signs(storage, config("6"), {}).heartbeats) == ["20260101000000000"]


def test_rollbacks_of_a_restore_and_inflight_files_of_what_completed_are_no_signs() -> None:
    storage = MemoryStorage()
    for name in (
        "20260101000000000.rollback.requested",
        "20260101000000000.rollback.inflight",
        "20260102000000000.inflight",
        "20260102000000000.commit",
    ):
        storage.write(f".hoodie/{name}", b"")
    assert read_signs(storage, config("6"), {}) == NOTHING


@pytest.mark.parametrize("name", ["20260101000000000.replacecommit.inflight", "20260101000000000.clustering.inflight"])
def test_an_old_inflight_clustering_is_old_under_either_name(name: str) -> None:
    clock = Clock()
    storage = MemoryStorage(clock=clock)
    folder, version = (".hoodie", "6") if "replace" in name else (".hoodie/timeline", "8")
    storage.write(f"{folder}/{name}", b"")
    assert list(read_signs(storage, config(version), {}, now=clock).inflight) == ["20260101000000000"]
    clock.now += 3601
    assert read_signs(storage, config(version), {}, now=clock) == NOTHING


def test_a_mode_of_several_writers_counts_wherever_it_is_set() -> None:
    mode = "OPTIMISTIC_CONCURRENCY_CONTROL"
    table = config("6", **{"hoodie.write.concurrency.mode": mode})
    assert read_signs(MemoryStorage(), table, {}).concurrency_mode == mode
    assert (
        read_signs(MemoryStorage(), config("6"), {"hoodie.write.concurrency.mode": mode.lower()}).concurrency_mode
        == mode
    )
    assert (
        read_signs(MemoryStorage(), table, {"hoodie.write.concurrency.mode": "single_writer"}).concurrency_mode
        == "SINGLE_WRITER"
    )


def test_an_instant_that_moved_on_while_it_was_read_counts_as_young() -> None:
    class Moving(MemoryStorage):
        def list_names(self, folder: str) -> list[str]:
            return ["20260101000000000.deltacommit.inflight"] if folder == ".hoodie" else []

    assert read_signs(Moving(), config("6"), {}).inflight == {"20260101000000000": 0.0}
