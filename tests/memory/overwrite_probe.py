"""Overwrites a table by the rows of a folder in a process of its own, and prints rows and the peak of anonymous memory
as JSON. Arguments: table, source, memory budget in bytes. Without a source (an empty word) all partitions are deleted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars

from hudi_core.engine.local import LocalEngine
from hudi_core.services.overwrite.job import OverwriteJob
from hudi_core.services.overwrite.plan import Overwrite
from hudi_core.services.source.files import RowsFrom
from hudi_core.services.write.verb import run_write
from hudi_core.services.write.work import WriteResult
from hudi_core.timeline.actions.commit import Operation
from tests.support.changed_tables import an_owner, open_context
from tests.support.peak_memory import measured

LIBRARIES = (polars,)
"""Imported before the first measurement: what libraries take up is no data."""


def main(table: Path, source: str, budget: int) -> None:
    context = open_context(table, {"airflow_hudi.memory.bytes": str(budget)})
    engine = LocalEngine(1, exchange_bytes=budget)

    def work() -> WriteResult:
        if source:
            whole = Overwrite(Operation.INSERT_OVERWRITE_TABLE, rows_from=RowsFrom(source))
            return run_write(context, whole, OverwriteJob, engine, an_owner())
        return run_write(
            context, Overwrite(Operation.DELETE_PARTITION, partitions=partitions), OverwriteJob, engine, an_owner()
        )

    partitions = tuple(sorted(path.name for path in table.iterdir() if not path.name.startswith(".")))
    done, peak, _ = measured(work)
    print(json.dumps({"rows": done.records, "replaced": done.replaced_file_groups, "peak": peak}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
