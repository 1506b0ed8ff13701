"""Archives a synthetic timeline in a process of its own and prints its peak of anonymous memory, in bytes, as JSON.

Arguments: table version, instants, bytes of each commit's extra metadata. The timeline lies on the local disk, in a
temporary folder.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from hudi_core.config.table_config import TableConfig
from hudi_core.services.archive.job import ArchiveService
from hudi_core.services.context import TableContext
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit, encode_commit_avro
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.owner import Owner
from tests.support.peak_memory import measured

KEEP = 20


def make_table(base: Path, version: str, count: int, size: int) -> None:
    """A table of `count` commits, each with its three state files."""
    layout = "1" if version == "6" else "2"
    (base / ".hoodie").mkdir(parents=True)
    lines = (
        "hoodie.table.name=t",
        "hoodie.table.type=COPY_ON_WRITE",
        f"hoodie.table.version={version}",
        f"hoodie.timeline.layout.version={layout}",
    )
    (base / ".hoodie" / "hoodie.properties").write_text("\n".join(lines) + "\n")
    storage = LocalStorage(base)
    active = ActiveTimeline(storage, TableConfig.load(storage), zone="UTC")
    (base / active.folder).mkdir(parents=True, exist_ok=True)
    metadata = CommitMetadata(operation_type="UPSERT", extra_metadata={"schema": "x" * size})
    data = encode_commit(metadata) if version == "6" else encode_commit_avro(metadata)
    for number in range(count):
        instant = f"2026{number:013d}"
        for state, content in ((State.REQUESTED, b""), (State.INFLIGHT, b""), (State.COMPLETED, data)):
            path = active.path(
                instant, Action.COMMIT, state, f"{instant[:-1]}9" if instant[-1] != "9" else f"{instant}0"
            )
            (base / path).write_bytes(content)


def main(version: str, count: int, size: int) -> None:
    """Makes the table, then archives it."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "t"
        make_table(base, version, count, size)
        storage = LocalStorage(base)
        config = TableConfig.load(storage)
        options = {"hoodie.keep.min.commits": str(KEEP), "hoodie.keep.max.commits": str(KEEP + 1)}
        context = TableContext(str(base), storage, config, ActiveTimeline(storage, config, zone="UTC"), options, {})
        results, peak, seconds = measured(
            lambda: ArchiveService().run_now(context, Owner.current("probe"), None).instants
        )
        print(
            json.dumps(
                {
                    "archived": len(results),
                    "kept": len(context.active.load()),
                    "history": len(context.history().instants()),
                    "peak": peak,
                    "seconds": round(seconds, 1),
                }
            )
        )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
