"""Sorts the file group of test_compaction.make_table in a process of its own, and prints rows and the peak of anonymous
memory as JSON. Arguments: folder, memory budget in bytes, `task` for one task instead of an exchange.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import polars

from hudi_core.engine.local import LocalEngine
from hudi_core.engine.serializer import from_text
from hudi_core.services.clustering.units import Work
from hudi_core.services.compaction.merge_slice import CompactionUnit
from hudi_core.services.rewriting.sort_order import SortOrder
from hudi_core.timeline.actions.replacecommit import ClusteringGroup, ClusteringSlice
from tests.support.compaction_units import configured
from tests.support.peak_memory import measured

LIBRARIES = (polars,)
"""Imported before the first measurement: what libraries take up is no data."""


class RemoteEngine(LocalEngine):
    """Has a group sorted by one task, as Spark has it."""

    is_remote = True


def main(folder: Path, budget: int, how: str = "") -> None:
    unit = from_text(CompactionUnit, (folder / "unit.json").read_text())
    target = configured(unit, memory_bytes=budget).target
    target = replace(target, files=replace(target.files, target_bytes=1 << 30))
    operation = unit.operation
    item = ClusteringSlice(operation.partition, operation.file_id, operation.base_file, operation.log_files)
    engine = RemoteEngine(1) if how == "task" else LocalEngine(1, exchange_bytes=budget)
    work = Work(engine, 1, target, {(item.partition, item.file_id): 1})
    done, peak, _ = measured(lambda: work.sort([ClusteringGroup((item,), 3)], SortOrder(("text",))))
    read = [count.rows for result in done for count in result.counts]
    written = [file.stat.num_writes for result in done for file in result.files]
    print(json.dumps({"read": read, "written": written, "peak": peak}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
