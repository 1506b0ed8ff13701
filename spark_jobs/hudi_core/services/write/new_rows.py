"""Writes the counted rows of a source to new file groups, by an exchange."""

from __future__ import annotations

import sys
from functools import partial
from uuid import uuid4

from hudi_core.config.services.compaction_config import MAX_FILE_BYTES
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.services.lifecycle import Run
from hudi_core.services.rewriting.new_file_groups import NewFiles
from hudi_core.services.source.files import CountedRows
from hudi_core.services.write.row_shards import RowsUnit, produce_combined, produce_rows, spread_of, write_combined
from hudi_core.services.write.shard_files import RowsTarget, Written, write_shard
from hudi_core.transaction.claim import Claim


def write_rows(run: Run, rows: CountedRows, requirements: StatisticsRequirements | None, held: Claim) -> list[Written]:
    """Writes the rows by an exchange. Raises as produce_rows, write_shard, produce_combined, write_combined."""
    context = run.context
    file_bytes = MAX_FILE_BYTES.read(context.options)
    spread = spread_of(rows, file_bytes)
    if not spread.shards:
        return []
    files = NewFiles.of(context, run.instant, rows.rows.schema, target_bytes(file_bytes, rows), requirements)
    target = RowsTarget(context.uri, dict(context.storage_options), files, str(uuid4()), rows.rows.policy)
    combines = rows.rows.combines
    return run.engine.exchange(
        produce_combined if combines else produce_rows,
        [RowsUnit(rows.rows, part, spread, number) for number, part in enumerate(rows.parts)],
        partial(write_combined if combines else write_shard, target),
        shards=spread.shards,
        run_epoch=held.epoch,
        progress=run.progress,
    )


def target_bytes(file_bytes: int, rows: CountedRows) -> int:
    """Returns from how many bytes on a new file ends. A bucket is one file, whatever its size. Other files may be a
    tenth larger than expected, so that rows that are a little larger leave no small file behind
    (HoodieBaseParquetWriter, compression ratio).
    """
    return file_bytes + file_bytes // 10 if rows.rows.buckets is None else sys.maxsize
