"""The demo's table: a merge-on-read table that real Apache Hudi 0.15 wrote, with a compaction planned and not run."""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from hudi_core.query.request import Query
from hudi_core.table import HudiTable
from hudi_core.timeline.instant import Action, Instant, State
from tests.support.golden_data import ARCHIVE, unpack

CASE = "cases/6/mor_compaction_requested.zip"


@dataclass(frozen=True, slots=True)
class RowCounts:
    """What the two queries of a merge-on-read table return."""

    snapshot: int
    read_optimized: int


class DemoTable:
    """A fresh copy of the table below `warehouse`."""

    def __init__(self, warehouse: Path) -> None:
        warehouse.mkdir(parents=True)
        with tarfile.open(ARCHIVE) as tar:
            member = tar.extractfile(CASE)
            if member is None:
                raise FileNotFoundError(f"{ARCHIVE} holds no {CASE}")
            packed = warehouse / "table.zip"
            with member, packed.open("wb") as target:
                shutil.copyfileobj(member, target)
        self.path = unpack(packed, warehouse)
        packed.unlink()
        self._held = warehouse / "held"

    def timeline(self) -> list[Instant]:
        """The instants as they are now."""
        return list(HudiTable.open(str(self.path)).timeline())

    def planned(self) -> Instant:
        """The compaction that waits to be run."""
        return next(
            instant
            for instant in self.timeline()
            if instant.action == Action.COMPACTION and instant.state is State.REQUESTED
        )

    def counts(self) -> RowCounts:
        """Rows of a snapshot query (base and log files merged) and of a read-optimized one (base files only)."""
        return RowCounts(self._rows("snapshot"), self._rows("read_optimized"))

    def hold_back(self, planned: Instant) -> None:
        """Takes the plan off the timeline, so that the sensor has something to wait for."""
        self._plan(planned).rename(self._held)

    def plan(self, planned: Instant) -> None:
        """Puts the plan where the writer had put it."""
        self._held.rename(self._plan(planned))

    def _plan(self, planned: Instant) -> Path:
        return self.path / ".hoodie" / f"{planned.requested_time}.compaction.requested"

    def _rows(self, query: Query) -> int:
        answer = HudiTable.open(str(self.path)).read(query)
        return sum(batch.num_rows for batch in answer.batches)
