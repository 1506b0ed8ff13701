"""Says which file slices may have some keys, by the indexes of the metadata table, before base files are opened: by the
record index where writers look keys up in it (SparkMetadataTableGlobalRecordLevelIndex), and by the ranges and Bloom
filters of keys (HoodieBloomIndex with `hoodie.bloom.index.use.metadata`).

Slices are only left out: where a key is, its base file says. What is believed of an index, and when, is as for queries
(index/key_lookups.py).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hudi_core.filegroup.merge.table_policy import key_fields
from hudi_core.index.key_lookups import groups_of_keys
from hudi_core.index.row_group_skipping import filter_mask
from hudi_core.index.value_ranges import indexed_columns, slice_ranges
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS, COLUMN_STATS, RECORD_INDEX
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import RECORD_KEY
from hudi_core.services.context import TableContext
from hudi_core.services.source.key_scope import BY_RECORD_INDEX, KeyScope, index_type
from hudi_core.services.write.tagging.keys import any_between
from hudi_core.storage.one_look import look_again
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice

MANY_SLICES: Final = 16
"""The footers of fewer slices are read sooner than indexes."""

log = logging.getLogger(__name__)


def slices_of_keys(
    context: TableContext,
    timeline: Timeline,
    slices: Mapping[int, FileSlice],
    wanted: Mapping[str, frozenset[str]],
    logged: Set[int],
) -> Mapping[int, FileSlice]:
    """Returns those of the numbered `slices` at `timeline` that may have one of the keys `wanted` in their partition.
    Those `logged` may have keys in log files alone. Raises CorruptFileError for a damaged index, StorageError.
    """
    if len(slices) < MANY_SLICES or key_fields(context.config) != (RECORD_KEY,):
        return slices
    metadata = context.metadata_table("auto", timeline)
    if metadata is None:
        return slices
    if index_type(context.options) in BY_RECORD_INDEX:
        chosen = _by_record_index(context, timeline, metadata, slices, wanted)
        if chosen is not None:
            return chosen
    tested = [number for number in slices if number not in logged]
    # All keys of their log files are in the base files, which alone count then.
    bases = [replace(slices[number], log_files=()) for number in tested]
    mask = _in_ranges(metadata, bases, wanted) if tested else np.ones(0, np.bool_)
    in_range = [at for at in range(len(tested)) if mask[at]]
    mask[in_range] = _in_filters(metadata, [bases[at] for at in in_range], wanted)
    kept = {number for number, keeps in zip(tested, mask.tolist(), strict=True) if keeps}
    return {number: item for number, item in slices.items() if number in kept or number in logged}


def _by_record_index(
    context: TableContext,
    timeline: Timeline,
    metadata: MetadataTable,
    slices: Mapping[int, FileSlice],
    wanted: Mapping[str, frozenset[str]],
) -> Mapping[int, FileSlice] | None:
    if not metadata.has_index(RECORD_INDEX):
        return None
    if not KeyScope.of(context.options).is_global and not metadata.record_index.is_partitioned:
        return None  # a global index names one place of a key that several partitions have
    keys = {key for keys in wanted.values() for key in keys}
    groups = groups_of_keys(metadata, keys, {item.file_group for item in slices.values()})
    if groups is None:
        log.info("the record index of %s is not believed: keys are looked for in base files", context.config.path)
        return None
    # A key may have moved, and then the index names a file group whose slice here does not have it.
    look_again(context.storage)
    if context.active.load().commits().requested_times != timeline.commits().requested_times:
        return None
    return {number: item for number, item in slices.items() if item.file_group in groups}


def _in_ranges(
    metadata: MetadataTable, bases: Sequence[FileSlice], wanted: Mapping[str, frozenset[str]]
) -> NDArray[np.bool_]:
    """Returns which base files have one of the keys within the range of theirs."""
    mask = np.ones(len(bases), np.bool_)
    if not metadata.has_index(COLUMN_STATS) or not indexed_columns(metadata, (RECORD_KEY,)):
        return mask
    files: dict[str, list[str]] = defaultdict(list)
    for item in bases:
        files[item.file_group.partition] += [file.name for file in item.data_files]
    statistics = metadata.column_stats((RECORD_KEY,), files=files)[RECORD_KEY]
    ranges = slice_ranges(bases, statistics, pa.string())
    if ranges is None:
        return mask
    ordered = {keys: sorted(key.encode() for key in keys) for keys in {*wanted.values()}}  # one for a global index
    bounds = zip(ranges.minimum.to_pylist(), ranges.maximum.to_pylist(), strict=True)
    for at, (item, (low, high)) in enumerate(zip(bases, bounds, strict=True)):
        mask[at] = any_between(ordered[wanted[item.file_group.partition]], low, high)
    return mask


def _in_filters(
    metadata: MetadataTable, bases: Sequence[FileSlice], wanted: Mapping[str, frozenset[str]]
) -> NDArray[np.bool_]:
    """Returns which base files may have one of the keys by their Bloom filters."""
    mask = np.ones(len(bases), np.bool_)
    by_partition: dict[str, list[int]] = defaultdict(list)
    for at, item in enumerate(bases):
        by_partition[item.file_group.partition].append(at)
    for partition, places in by_partition.items() if metadata.has_index(BLOOM_FILTERS) else ():
        of_partition = [bases[at] for at in places]
        mask[places] = filter_mask(of_partition, wanted[partition], metadata.bloom_filters)
    return mask
