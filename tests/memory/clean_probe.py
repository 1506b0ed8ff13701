"""Plans and runs a clean of a synthetic table in a process of its own and prints its peaks of anonymous memory, in
bytes, as JSON.

Arguments: partitions, files of each, slices of each file group, slices that are kept.
The storage makes up the partitions' listings when it is asked, so that what is measured is the engine's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from hudi_core.config.table_config import TableConfig
from hudi_core.engine.protocol import TaskAttempt, UnitTask
from hudi_core.services.clean import job as execute
from hudi_core.services.clean.planner import CleanService
from hudi_core.services.context import TableContext
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit_avro
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action
from hudi_core.transaction.owner import Owner
from tests.support.memory_storage import MemoryStorage
from tests.support.peak_memory import measured

PROPERTIES = b"""hoodie.table.name=t
hoodie.table.type=COPY_ON_WRITE
hoodie.table.version=9
hoodie.timeline.layout.version=2
hoodie.table.partition.fields=p
"""


class MadeUp(MemoryStorage):
    """A table whose partitions hold as many files as asked; deleting one only counts."""

    def __init__(self, partitions: int, files: int, slices: int) -> None:
        super().__init__()
        self.deleted = 0
        self._partitions = [f"2026/{number:05d}" for number in range(partitions)]
        self._files = files
        self._slices = slices

    def list_folders(self, folder: str) -> list[str]:
        if folder == "":
            return [".hoodie", "2026"]
        return self._partitions if folder == "2026" else []

    def list_files(self, folder: str) -> list[FileInfo]:
        if not folder.startswith("2026/"):
            return super().list_files(folder)
        groups = (
            f"{folder[-5:]}{number:04x}-5d0b-4cf6-9d49-6f5a9d3c1f00-0" for number in range(self._files // self._slices)
        )
        names = [
            f"{group}_{number}-12-3456_2026010100000{number:02d}00.parquet"
            for group in groups
            for number in range(self._slices)
        ]
        return [FileInfo(f"{folder}/{name}", 120_000_000, 0.0) for name in (".hoodie_partition_metadata", *names)]

    def delete(self, path: str) -> bool:
        if not path.startswith("2026/"):
            return super().delete(path)
        self.deleted += 1
        return True


class OneByOne:
    """Runs the units one after the other, as executors would elsewhere."""

    name = "one by one"

    def run(
        self,
        task: UnitTask[Any, Any],
        units: Any,
        *,
        run_epoch: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Any]:
        return [task(unit, TaskAttempt(number, run_epoch, number)) for number, unit in enumerate(units)]


def main(partitions: int, files: int, slices: int, kept: int) -> None:
    """Plans, then runs."""
    storage = MadeUp(partitions, files, slices)
    storage.write(".hoodie/hoodie.properties", PROPERTIES)
    config = TableConfig.load(storage)
    active = ActiveTimeline(storage, config, zone="UTC")
    for number in range(slices):
        instant = f"2026010100000{number:02d}00"
        active.create_requested(instant, Action.COMMIT)
        active.to_inflight(instant, Action.COMMIT)
        active.complete(
            instant, Action.COMMIT, encode_commit_avro(CommitMetadata(operation_type="UPSERT")), f"{instant[:-2]}50"
        )
    options = {"hoodie.clean.fileversions.retained": str(kept), "hoodie.time.generator.max_expected_clock_skew_ms": "0"}
    context = TableContext("memory://t", storage, config, active, options, {})
    service, owner = CleanService(), Owner.current("probe")

    def plan() -> tuple[str, int]:
        done = service.schedule(context, owner, dry_run=False)
        if done.instant is None or done.plan is None:
            raise RuntimeError(done.reason)
        return done.instant, done.plan["files"]

    (instant, planned), planning, plan_seconds = measured(plan)
    execute.open_deleting_storage = lambda uri, options: storage  # type: ignore[attr-defined,assignment]
    result, running, run_seconds = measured(lambda: service.run(context, instant, OneByOne(), owner, None))
    print(
        json.dumps(
            {
                "files": partitions * (files // slices) * slices,
                "planned": planned,
                "deleted": result.files_deleted,
                "planning": planning,
                "running": running,
                "seconds": [round(plan_seconds, 1), round(run_seconds, 1)],
            }
        )
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]))
