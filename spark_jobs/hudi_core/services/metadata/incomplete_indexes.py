"""Mends what Hudi's writers left out of indexes (metadata_table.read.completeness), and records in the table's
properties up to when the indexes are whole (metadata_table.whole_until).

Ranges of whole partitions are widened by the statistics of the files. A secondary index that lacks rows is rebuilt,
where the options allow it (REBUILD_ROW_INDEXES), the record index only behind a restore: that keys may have been
written again says too little for its cost. Until then a lookup reads the file groups concerned.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from hudi_core.config.metadata_config import REBUILD_ROW_INDEXES
from hudi_core.config.properties_update import update_properties
from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.partition_type import PARTITION_STATS, RECORD_INDEX, is_secondary_index
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.metadata_table.timeline import MetadataTimeline
from hudi_core.metadata_table.whole_until import marks
from hudi_core.metadata_table.write.staged_logs import Workers
from hudi_core.model.names import FileGroupId
from hudi_core.services.metadata.action_updates import ActionUpdates
from hudi_core.services.metadata.row_changes import RowsUnknownError

if TYPE_CHECKING:
    from hudi_core.services.context import TableContext

log = logging.getLogger(__name__)

Doubts = Mapping[str, frozenset[FileGroupId] | None]
"""By row-level index, MetadataTable.groups_in_doubt."""


def doubts_of(metadata: MetadataTable) -> Doubts:
    """What the record index and the secondary indexes may lack."""
    return {
        name: metadata.groups_in_doubt(name)
        for name in sorted(metadata.partition_types)
        if (name == RECORD_INDEX or is_secondary_index(name)) and metadata.has_index(name)
    }


def complete_indexes(
    context: TableContext, workers: Workers, rebuilt: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the data partitions whose ranges were too narrow, and the row-level indexes that lack rows or may.
    `rebuilt` are indexes that were just built.

    The caller holds the table lock; `context.config` was loaded under it. Raises RowsUnknownError, naming indexes that
    are to be rebuilt; the errors of widen_ranges. Cost: where ranges may be too narrow (indexes_in_doubt), the
    statistics of all current files are read. Nothing is mended while the indexes hold rows of a pending commit.
    """
    data = context.active.load()
    metadata = MetadataTable(context.storage, context.config, data)
    doubts = doubts_of(metadata)
    may_lack = {name for name, groups in doubts.items() if groups is None or groups} - set(rebuilt)
    if metadata.has_true_locations:
        may_lack.discard(RECORD_INDEX)
    incomplete = tuple(sorted(may_lack))
    if metadata.uncommitted:
        log.warning(
            "row-level indexes and ranges of partitions hold rows of %s, which is not committed: no query uses them "
            "until it is rolled back",
            ", ".join(sorted(metadata.uncommitted)),
        )
        return (), incomplete
    if incomplete and REBUILD_ROW_INDEXES.read(context.options):
        error = RowsUnknownError(
            f"{', '.join(incomplete)} may lack rows that writers of Hudi did not record", path=ROOT, remedy="rebuild it"
        )
        error.indexes = frozenset(incomplete)
        raise error
    for name in incomplete:
        log.warning("%s may lack rows; %s=true rebuilds it", name, REBUILD_ROW_INDEXES.name)
    whole = [name for name, groups in doubts.items() if groups == frozenset() or name in rebuilt]
    widened: set[str] = set()
    if metadata.indexes_in_doubt:
        metadata_timeline = MetadataTimeline(context.storage, context.config, context.clock())
        updates = ActionUpdates(context, workers, metadata_timeline)
        for name in sorted(metadata.indexes_in_doubt):
            try:
                found = updates.widen_ranges(metadata.list_partitions(), {name})
            except UnsupportedError as error:
                if name == PARTITION_STATS:
                    raise
                log.warning("the ranges of %s, an index that is not kept here, are not compared: %s", name, error)
                continue
            for partition in found:
                log.warning("the ranges of partition %r in %s were too narrow and were widened", partition, name)
            widened.update(found)
    if metadata.has_index(PARTITION_STATS):
        whole.append(PARTITION_STATS)
    update_properties(
        context.storage, marks(data, {name: context.storage.list_files(f"{ROOT}/{name}") for name in whole})
    )
    return tuple(sorted(widened)), incomplete
