"""Writes the rows of an overwrite to new file groups of their partitions.

An exchange brings the rows of a partition together, so that a task has one file open at a time. Nothing of the rows
comes to the driver.
"""

from __future__ import annotations

import sys
from functools import partial
from uuid import uuid4

from hudi_core.codec.avro.schema import without_fields
from hudi_core.config.services.compaction_config import MAX_FILE_BYTES
from hudi_core.config.write_config import WriteConfig
from hudi_core.filegroup.merge.merge_mode import reads_as_hudi_1
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements
from hudi_core.services.lifecycle import Run
from hudi_core.services.new_file_groups import NewFiles
from hudi_core.services.overwrite.combined_rows import produce_combined, write_combined
from hudi_core.services.overwrite.row_shards import RowsUnit, produce_rows, spread_of
from hudi_core.services.overwrite.shard_files import RowsTarget, Written, write_shard
from hudi_core.services.overwrite.source import CountedRows
from hudi_core.transaction.claim import Claim


def write_rows(
    run: Run,
    rows: CountedRows,
    requirements: StatisticsRequirements | None,
    held: Claim,
) -> list[Written]:
    """Lets the engine write all rows; errors as produce_rows and write_shard, or as produce_combined and
    write_combined.
    """
    context = run.context
    config = WriteConfig.of(context.options)
    file_bytes = MAX_FILE_BYTES.read(context.options)
    spread = spread_of(rows, file_bytes)
    if not spread.shards:
        return []
    files = NewFiles(
        run.instant,
        without_fields(rows.rows.schema, context.config.dropped_columns),
        config,
        # A bucket is one file, whatever its size. Others get a tenth more than what they are expected to take, so that
        # rows that are a little larger leave no small file behind (HoodieBaseParquetWriter, compression ratio).
        file_bytes + file_bytes // 10 if rows.rows.buckets is None else sys.maxsize,
        as_hudi_1=reads_as_hudi_1(context.config),
        stamps_rows=context.config.populate_meta_fields,
        requirements=requirements,
        has_meta=context.config.populate_meta_fields,
    )
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
