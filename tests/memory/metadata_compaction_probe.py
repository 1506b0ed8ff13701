"""Compacts a table's metadata table in a process of its own and prints the peak of anonymous memory, the seconds and
what was written, as JSON.

Argument: the table's folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hudi_core.metadata_table.services.compaction import MetadataCompaction
from tests.support.metadata_records import TOKEN, Table
from tests.support.peak_memory import measured


def main(folder: str) -> None:
    """Runs what is due after one deltacommit."""
    table = Table(Path(folder))
    done, peak, seconds = measured(lambda: MetadataCompaction(table.storage, table.config, TOKEN).run(trigger=1))
    print(json.dumps({"peak": peak, "seconds": seconds, "bytes": done.size, "instants": len(done.instants)}))


if __name__ == "__main__":
    main(sys.argv[1])
