"""Files that are rolled back: what a plan in the table cannot make us do, and many files at once."""

from __future__ import annotations

import logging

import pytest

from hudi_core.codec.log.blocks import walk
from hudi_core.errors import FormatError, StorageExistsError
from hudi_core.filegroup.write.markers import list_markers
from hudi_core.filegroup.write.rollback_files import FileRollback, step_of
from hudi_core.timeline.actions.rollback import RollbackStep
from tests.support.memory_storage import MemoryStorage

FAILED, ROLLBACK = "20260101000000000", "20260102000000000"
GROUP = "00000000-0000-0000-0000-000000000000-0"


def base(instant: str, number: int = 0) -> str:
    return f"{GROUP[:-1]}{number}_0-1-0_{instant}.parquet"


def test_only_files_of_the_failed_instant_are_deleted(caplog: pytest.LogCaptureFixture) -> None:
    addresses = (
        "/elsewhere/p/" + base(FAILED),
        "/t/p/" + base("20250101000000000"),
        "/t/p/../../etc/passwd",
        "/t/.hoodie/hoodie.properties",
    )
    with caplog.at_level(logging.WARNING):
        step = step_of(RollbackStep("p", delete=addresses), FAILED, source="plan")
    assert step.delete == (base(FAILED),)
    assert "plan names 3 files" in caplog.text


@pytest.mark.parametrize(
    ("file_id", "instant"), [("", "1"), ("a/b", "1"), ("a_b", "1"), ("a", ""), ("a", "../1"), ("a", "1.log.1_0-0-0")]
)
def test_a_log_request_must_name_a_slice(file_id: str, instant: str) -> None:
    with pytest.raises(FormatError, match="no file slice"):
        step_of(RollbackStep("p", file_id, instant, log_blocks={"x": 1}), FAILED, source="plan")
    with pytest.raises(FormatError, match=r"'\.\.'"):
        step_of(RollbackStep("../p", GROUP, "1"), FAILED, source="plan")


def test_a_thousand_files_go_and_those_that_are_gone_count() -> None:
    storage = MemoryStorage()
    names = [base(FAILED, number) for number in range(1000)]
    for name in names[::2]:
        storage.write(f"p/{name}", b"x")
    storage.write(f"p/{base(ROLLBACK)}", b"y")
    (done,) = FileRollback(storage, FAILED, ROLLBACK).run([RollbackStep("p", delete=tuple(names))])
    assert sorted(done.deleted) == sorted(names)
    assert [info.name for info in storage.list_files("p")] == [base(ROLLBACK)]


def test_the_command_comes_behind_every_log_file_of_the_slice() -> None:
    storage = MemoryStorage()
    log = f".{GROUP}_20250101000000000.log"
    for name in (f"{log}.1_0-1-0", f"{log}.7_0-1-0", f".{GROUP}_20250601000000000.log.9_0-1-0"):
        storage.write(f"p/{name}", b"block")
    step = RollbackStep("p", GROUP, "20250101000000000", log_blocks={f"{log}.7_0-1-0": 5, "/t": 1})
    (done,) = FileRollback(storage, FAILED, ROLLBACK).run([step, step])
    assert list(done.commands) == [f"{log}.8_1-0-1"]
    assert (done.failed_logs, done.kept_logs) == ({f"{log}.7_0-1-0": 5}, {f"{log}.7_0-1-0": 5})
    data = storage.read(f"p/{log}.8_1-0-1")
    (block,) = walk(lambda start, length: data[start : start + length], len(data), "x")
    assert block.is_rollback  # type: ignore[union-attr]
    assert (block.instant_time, block.target_instant_time) == (ROLLBACK, FAILED)  # type: ignore[union-attr]
    assert [marker.file_name for marker in list_markers(storage, ROLLBACK)] == [f"{log}.8_1-0-1"]
    (again,) = FileRollback(storage, FAILED, ROLLBACK).run([step])
    assert again.commands == done.commands
    assert len(storage.list_files("p")) == 4


def test_a_command_that_was_announced_and_not_written_is_written_under_that_name() -> None:
    storage = MemoryStorage()
    log = f".{GROUP}_20250101000000000.log"
    storage.write(f"p/{log}.1_0-1-0", b"")
    step = RollbackStep("p", GROUP, "20250101000000000", log_blocks={f"{log}.1_0-1-0": 5})

    class Dying(MemoryStorage):
        def create_exclusive(self, path: str, data: bytes) -> None:
            raise StorageExistsError("the process dies here", path=path)

    dying = Dying()
    dying.write(f"p/{log}.1_0-1-0", b"")
    with pytest.raises(StorageExistsError):
        FileRollback(dying, FAILED, ROLLBACK).run([step])
    for marker in list_markers(dying, ROLLBACK):
        storage.write(f".hoodie/.temp/{ROLLBACK}/p/{marker.file_name}.marker.APPEND", b"")
    storage.write(
        f"p/{log}.5_0-1-0", b""
    )  # another writer went on meanwhile: the failed instant's blocks are all older
    (done,) = FileRollback(storage, FAILED, ROLLBACK).run([step])
    assert list(done.commands) == [f"{log}.2_1-0-1"]


def test_a_log_file_without_a_byte_is_deleted() -> None:
    """Its writer died as it began it. Another writer's empty file, which the plan does not name, is left alone."""
    storage = MemoryStorage()
    log = f".{GROUP}_20250101000000000.log"
    for name in (f"{log}.1_0-1-0", f"{log}.2_0-1-0", f"{log}.3_0-1-0"):
        storage.write(f"p/{name}", b"block" if name.endswith(".1_0-1-0") else b"")
    step = RollbackStep("p", GROUP, "20250101000000000", log_blocks={f"{log}.2_0-1-0": 0})
    for deleted in ((f"{log}.2_0-1-0",), ()):  # the second run resumes the first
        (done,) = FileRollback(storage, FAILED, ROLLBACK).run([step])
        assert done.deleted == deleted
        assert done.kept_logs == {}
        assert list(done.commands) == [f"{log}.4_1-0-1"]
    assert [info.name for info in storage.list_files("p")] == [f"{log}.1_0-1-0", f"{log}.3_0-1-0", f"{log}.4_1-0-1"]
