"""Whether the log records of a file slice are merged with base rows by their positions, or by their keys
(PositionBasedFileGroupRecordBuffer).

Hudi 1.x goes over to keys, for the whole slice, at the first block that does not name positions in the slice's own base
file: those of a bucket index, of inserts, of a writer with `hoodie.write.record.positions=false`, of a batch with two
records for one row, of an older base file, of a log compaction of Hudi.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_core.codec.log.blocks import LogBlock
from hudi_core.codec.log.positions import RecordPositions, decode_positions
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.model.names import parse_base_file


def block_positions(
    blocks: Sequence[LogBlock], base: str | None, policy: MergePolicy
) -> tuple[RecordPositions, ...] | None:
    """The positions of each block's records in the base file of path `base`; None where these are merged by keys.

    Raises CorruptFileError for positions that cannot be read, naming the log file.
    """
    if base is None or not policy.by_position:
        return None
    name = parse_base_file(base.rpartition("/")[2])
    if name.extension != "parquet":
        return None
    if not all(block.record_positions and block.positions_instant == name.instant for block in blocks):
        return None
    found = tuple(decode_positions(block.record_positions or "", path=block.path) for block in blocks)
    return found if all(positions.count for positions in found) else None
