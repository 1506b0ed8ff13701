"""The base file of one file group of a new partition, written by the task that receives its cells from an exchange."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hudi_core.metadata_table.initialize.target import NewBaseFile, NewPartition
from hudi_core.model.names import WriteToken

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_core.engine.protocol import TaskAttempt
    from hudi_core.storage.base import Storage


@dataclass(frozen=True, slots=True)
class WrittenShard:
    """The base file of one file group, None without cells."""

    file: NewBaseFile | None = None


def write_shard(
    storage: Storage, target: NewPartition, shard: int, batches: Iterator[pa.RecordBatch], attempt: TaskAttempt
) -> WrittenShard:
    """Writes sorted cells (key, value), each key once, to the base file of the group at `shard`. Memory: see
    MetadataBaseFile, and one batch.
    """
    cells = (batch for batch in batches if batch.num_rows)
    first = next(cells, None)
    if first is None:
        return WrittenShard()
    token = WriteToken(attempt.partition_id, attempt.stage_id, attempt.attempt_id)
    name = target.base_name(shard, token)
    target.check_initialized(storage, shard)
    with target.base_file(storage, shard, token) as file:
        file.add_batch(first.column(0), first.column(1))
        for batch in cells:
            file.add_batch(batch.column(0), batch.column(1))
        target.check_initialized(storage, shard)
        size = file.close()
    return WrittenShard(NewBaseFile(name.file_id, str(name), file.count, size))


def written_files(results: Sequence[WrittenShard]) -> list[NewBaseFile]:
    """What the tasks of an exchange wrote, in the order of shards."""
    return [item.file for item in results if item.file is not None]
