"""The files of an instant go from the metadata tables of table versions 8 and 9 when it is rolled back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_core.errors import ConflictError
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.write.rollback import MetadataRollback, files_written_by, rolled_back_partitions
from hudi_core.storage.base import FileInfo
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.rollback import decode_rollback_metadata, decode_rollback_plan
from hudi_core.timeline.instant import Action, State
from tests.support.fault_storage import FaultPlan, FaultStorage
from tests.support.golden_data import GoldenCase
from tests.support.metadata_records import TOKEN, Table
from tests.support.metadata_services import clock

Golden = Callable[[str, str], GoldenCase]
VERSIONS = ("8", "9")


@pytest.fixture(params=VERSIONS)
def table(golden: Golden, request: pytest.FixtureRequest) -> Table:
    """Whose failed instant is completed on the metadata timeline."""
    return Table(golden(request.param, "failed_after_metadata_mor").table)


def failed_of(table: Table) -> str:
    (failed,) = table.data.load().pending().requested_times
    return failed


def rollback_of(table: Table, storage: LocalStorage | None = None) -> MetadataRollback:
    return MetadataRollback(storage or table.storage, table.config, TOKEN, clock(table))


def test_its_files_are_deleted_and_recorded(table: Table) -> None:
    failed, rollback = failed_of(table), table.new_instant()
    written = {info.path for info, _ in files_written_by(table.storage, frozenset({failed}))}
    assert written
    assert written == {info.path for info in rollback_of(table).footprint(failed).live}
    rollback_of(table).run(failed, rollback)
    assert not rollback_of(table).footprint(failed)
    assert not any(table.storage.exists(path) for path in written)
    assert not table.metadata_timeline.load().contains(failed)
    addresses = {str(table.path / path) for path in written}
    plan_data = table.metadata_timeline.read_requested(rollback, Action.ROLLBACK)
    plan = decode_rollback_plan(plan_data, path="plan")
    assert (plan.instant, plan.action) == (failed, Action.DELTA_COMMIT)
    assert [len(request.delete) for request in plan.requests] == [1] * len(written)
    assert {request.delete[0] for request in plan.requests} == addresses
    done = table.metadata_timeline.load().get(rollback, Action.ROLLBACK)
    metadata = decode_rollback_metadata(table.metadata_timeline.read_details(done), path="done")
    assert {address for part in metadata.partitions for address in part.deleted} == addresses
    assert {part.partition for part in metadata.partitions} == {path.split("/")[2] for path in written}


def test_an_instant_without_files_is_recorded_under_files(table: Table) -> None:
    failed, rollback = failed_of(table), table.new_instant()
    for info, _ in files_written_by(table.storage, frozenset({failed})):
        table.storage.delete(info.path)
    rollback_of(table).run(failed, rollback)
    done = table.metadata_timeline.load().get(rollback, Action.ROLLBACK)
    (part,) = decode_rollback_metadata(table.metadata_timeline.read_details(done), path="done").partitions
    assert (part.partition, part.deleted) == ("files", ())


class _Writer(FaultStorage):
    """A writer of the instant that is alive: it writes one more file when its last one is deleted."""

    def __init__(self, inner: LocalStorage, path: str) -> None:
        super().__init__(inner, FaultPlan())
        self._path = path

    def delete(self, path: str) -> bool:
        deleted = super().delete(path)
        if path.startswith(f"{ROOT}/files/"):
            super().write(self._path, b"late")
        return deleted


def test_a_writer_that_is_alive_stops_the_rollback(table: Table) -> None:
    failed, rollback = failed_of(table), table.new_instant()
    late = f"{ROOT}/files/.files-0000-0_{failed}.log.9_9-9-9"
    with pytest.raises(ConflictError, match="its writer is still alive") as error:
        rollback_of(table, _Writer(table.storage, late)).run(failed, rollback)
    assert error.value.path == late
    found = table.metadata_timeline.load().get(rollback, Action.ROLLBACK)
    assert found.state is State.INFLIGHT
    rollback_of(table).run(failed, str(int(rollback) + 1))
    assert not table.storage.exists(late)
    assert table.metadata_timeline.load().get(rollback, Action.ROLLBACK).is_completed
    assert not table.metadata_timeline.load().contains(str(int(rollback) + 1)), "the pending one was continued"


def test_files_are_grouped_by_their_partition(table: Table) -> None:
    files = [FileInfo(f"{ROOT}/{name}", 1, 0.0) for name in ("files/a", "column_stats/b", "files/c")]
    root = f"{table.path}/{ROOT}"
    assert {part.partition: part.deleted for part in rolled_back_partitions(table.storage, files, (), ())} == {
        "files": (f"{root}/files/a", f"{root}/files/c"),
        "column_stats": (f"{root}/column_stats/b",),
    }
    logs = rolled_back_partitions(table.storage, (), files[:1], files[1:])
    assert {part.partition: (part.rollback_log_files, part.failed_commit_log_files) for part in logs} == {
        "column_stats": ({}, {f"{root}/column_stats/b": 1}),
        "files": ({f"file:{root}/files/a": 1}, {f"{root}/files/c": 1}),
    }
