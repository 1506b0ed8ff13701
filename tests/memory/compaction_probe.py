"""Compacts a synthetic file group in a process of its own and prints its peak of anonymous memory as JSON.

Arguments: folder, memory budget in bytes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import polars
import pyarrow.compute
import pyarrow.parquet

from hudi_core.engine.protocol import TaskAttempt
from hudi_core.engine.serializer import from_text
from hudi_core.services.compaction.merge_slice import CompactionUnit, compact_operation
from hudi_core.timeline.actions.write_stats import stat_to_json
from tests.support.compaction_units import configured
from tests.support.peak_memory import measured

LIBRARIES = (polars, pyarrow.compute, pyarrow.parquet)
"""Imported before the first measurement: the engine imports polars late, and what libraries take up is no data."""


def main(folder: str, budget: int) -> None:
    """Runs the unit stored in the folder."""
    unit = from_text(CompactionUnit, Path(folder, "unit.json").read_text())
    unit = configured(unit, memory_bytes=budget)
    result, peak, _ = measured(lambda: compact_operation(unit, TaskAttempt(0, 0, budget % 1000)))
    assert result.stat is not None
    print(
        json.dumps(
            {
                "peak": peak,
                "records": asdict(result.records),
                "stat": stat_to_json(result.stat),
                "copied": result.copied,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
