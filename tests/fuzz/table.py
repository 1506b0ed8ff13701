"""A whole table in memory with one damaged file, read as a user reads it: what one codec lets through, the next layer
must bear.
"""

from __future__ import annotations

from functools import cache

from hudi_core.config.table_config import TableConfig
from hudi_core.query.context import ReadContext
from hudi_core.query.plan import plan_read
from hudi_core.query.request import ReadRequest
from hudi_core.timeline.active import ActiveTimeline
from tests.fuzz import seeds
from tests.fuzz.target import Target
from tests.support.memory_storage import MemoryStorage

CASES = (("6", "mor_basic"), ("6", "mor_compaction_requested"), ("9", "mor_basic"), ("9", "mdt_record_index_lookup"))


@cache
def files() -> tuple[tuple[int, str, bytes], ...]:
    """Every small file of the tables: the table's number, its path, its content."""
    return tuple(
        (number, path, data)
        for number, case in enumerate(CASES)
        for path, data in sorted(seeds.members(*case).items())
        if 0 < len(data) <= seeds.LARGEST
    )


def table_seeds() -> list[bytes]:
    """Each file behind two bytes that say which one it is."""
    return [index.to_bytes(2, "big") + data for index, (_, _, data) in enumerate(files())]


def run_table(data: bytes) -> None:
    number, damaged, _ = files()[int.from_bytes(data[:2], "big") % len(files())]
    storage = MemoryStorage(clock=lambda: 1.0)
    for path, content in seeds.members(*CASES[number]).items():
        storage.write(path, data[2:] if path == damaged else content)
    config = TableConfig.load(storage)
    context = ReadContext(storage.uri, storage, config, ActiveTimeline(storage, config))
    plan = plan_read(context, ReadRequest())
    for batch in plan.batches(storage):
        batch.validate(full=True)


TABLE = Target(table_seeds, run_table, share=0.1)
