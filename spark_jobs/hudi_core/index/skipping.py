"""Data skipping: which partitions and file slices a predicate excludes before a file is opened (RFC-27).
page_skipping.py chooses row groups and pages. value_ranges.py has the ranges of a file; expr/ranges.py says whether a
predicate may hold in them.

Works like HoodieFileIndex.filterFileSlices. Every index is used only where its answer holds. Statistics and bloom
filters of files serve every query. The record index, the secondary indexes and the statistics of whole partitions serve
only the newest snapshot. What is not known is kept, and rows are checked again when they are read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, field
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hudi_core.codec.avro.arrow_types import counts_millis, field_at
from hudi_core.config.rows_config import DATA_SKIPPING, FOOTER_SKIPPING, MERGE_FUNCTION
from hudi_core.engine.protocol import Json
from hudi_core.expr.bind import depends_on_zone, kind_of
from hudi_core.expr.bound import Bound
from hudi_core.expr.functions import FUNCTIONS
from hudi_core.expr.ranges import ColumnRange, may_match, operands_of
from hudi_core.expr.tree import Call, Column, Literal, Operand
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.frozen import dataclass
from hudi_core.index.key_lookups import equal_texts, groups_of_keys, groups_of_values, key_candidates
from hudi_core.index.page_skipping import row_choice
from hudi_core.index.row_group_skipping import (
    columns_not_in_files,
    filter_mask,
    flat_columns,
    footer_may_match,
)
from hudi_core.index.value_ranges import indexed_columns, partition_ranges, partition_statistics, slice_ranges
from hudi_core.metadata_table.indexed_table import IndexDefinition
from hudi_core.metadata_table.partition_type import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
)
from hudi_core.metadata_table.read.metadata_table import MetadataTable
from hudi_core.model.names import FILE_NAME, RECORD_KEY, FileGroupId
from hudi_core.storage.base import Storage
from hudi_core.view.file_group import FileSlice

_FORMATTED: Final = frozenset({"date_format", "from_unixtime"})
_PLAIN: Final = frozenset(FUNCTIONS) - {*_FORMATTED, "substring"}


def indexed_operand(definition: IndexDefinition) -> Operand | None:
    """Returns the expression that the index is built over; None for an index without one that predicates can name."""
    if len(definition.source_fields) != 1:
        return None
    column = Column(tuple(definition.source_fields[0].split(".")))
    if definition.function in _PLAIN:
        # An option makes it another function, such as to_date with a format.
        return Call(definition.function, (column,)) if set(definition.options) <= {"expr"} else None
    if definition.function in _FORMATTED and set(definition.options) <= {"expr", "format"}:
        pattern = definition.options.get("format")
        return Call(definition.function, (column,) if pattern is None else (column, Literal("text", pattern)))
    return None


def expression_mask(
    slices: Sequence[FileSlice], bound: Bound, metadata: MetadataTable, hidden: Collection[str]
) -> NDArray[np.bool_]:
    """Returns which slices may hold a matching row, by statistics and bloom filters of expressions of the predicate.
    `hidden` are columns whose values in the query are not those that the indexes are built over.
    """
    requested = {operand for operand in operands_of(bound.node) if _applies(operand, bound, hidden)}
    mask = np.ones(len(slices), dtype=np.bool_)
    ranges: dict[Operand, ColumnRange] = {}
    for name, definition in sorted(metadata.definitions.items()):
        operand = indexed_operand(definition)
        if operand is None or operand not in requested or not metadata.has_index(name):
            continue
        if definition.type == COLUMN_STATS:
            known = slice_ranges(slices, _computed(metadata.expression_stats(name)), kind_of(operand, bound))
            if known is not None:
                ranges[operand] = known
        elif definition.type == BLOOM_FILTERS:
            values = equal_texts(bound.node, operand)
            if values is not None:
                mask &= filter_mask(slices, values, partial(metadata.expression_blooms, name))
    return mask & may_match(bound, ranges, len(slices)) if ranges else mask


def _computed(statistics: pa.Table) -> pa.Table:
    """Returns statistics of expressions in the form of column_stats. They count values without the nulls, and their
    sizes are the file's (SparkMetadataWriterUtils.getExprIndexRecords). They are of rows, for which the size is 0.
    """
    counts = pc.add(statistics["value_count"], statistics["null_count"])
    rest = statistics.drop_columns(["value_count", "uncompressed_size"])
    return rest.append_column("value_count", counts).append_column("uncompressed_size", pc.multiply(counts, 0))


def _applies(operand: Operand, bound: Bound, hidden: Collection[str]) -> bool:
    """Whether an index of the expression answers as this query would: same zone, and columns that it reads. Not for
    milliseconds: an index that is older than their label in the table's schema took them for microseconds.
    """
    column = operand.arguments[0] if isinstance(operand, Call) else None
    if not isinstance(column, Column):
        return False
    stored = field_at(bound.schema, column.path)
    return (
        column.path[0] not in hidden
        and (stored is None or not counts_millis(stored))
        and (bound.zone_given or not depends_on_zone(operand, bound))
    )


Mask: TypeAlias = NDArray[np.bool_]
Slices: TypeAlias = Sequence[FileSlice]
_PARQUET = "PARQUET"
_PARTITION_PATH: Final = "partition_path"
_FOOTERS: Final = "footers"
# fmt: off
_IN_ORDER: Final = (
    _PARTITION_PATH, PARTITION_STATS, RECORD_INDEX, SECONDARY_INDEX, COLUMN_STATS, EXPRESSION_INDEX, BLOOM_FILTERS,
    _FOOTERS,
)
# fmt: on
"""What excludes files, in the order of its use."""


@dataclass(frozen=True, slots=True)
class PruneReport:
    """Counts of partitions and files, and of excluded files by index. Files that were not listed do not count."""

    partitions: int = 0
    partitions_pruned: int = 0
    files: int = 0
    files_pruned: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> Json:
        return asdict(self)


class SkippingPlan:
    """What a predicate excludes from one query. One object serves one query: it counts its lookups."""

    def __init__(
        self,
        bound: Bound,
        spec: ReaderSpec,
        *,
        current: bool,
        metadata: MetadataTable | None = None,
        storage: Storage | None = None,
    ) -> None:
        """`current`: the slices are those of the newest snapshot, not of other commits. `storage` is the data path, for
        the footers of base files when the option enables them. Raises ConfigError.
        """
        config, options = spec.config, spec.options
        self._bound = bound
        self._spec = spec
        self._config = config
        self._storage = storage if FOOTER_SKIPPING.read(options) and config.base_file_format == _PARQUET else None
        self._metadata = metadata if DATA_SKIPPING.read(options) else None
        self._free_merge = MERGE_FUNCTION.read(options) is not None and config.is_merge_on_read and spec.merge_logs
        self._current = current and spec.merge_logs and spec.commit_times is None
        self._hidden = {*columns_not_in_files(spec), FILE_NAME}
        self._keys = key_candidates(bound, config, self._hidden)
        flat = flat_columns(bound, self._hidden).items()
        self._columns = {column: kind for column, kind in flat if not any("." in name for name in column.path)}
        self._verdicts: dict[str, str | None] = {}
        self._groups: frozenset[FileGroupId] = frozenset()

    def partitions(self, partitions: Sequence[str]) -> list[str]:
        """Returns those of the partitions that may hold a matching row. The others need not be listed."""
        self._judge(partitions)
        return [partition for partition in partitions if self._verdicts[partition] is None]

    def prune(self, slices: Slices) -> tuple[list[FileSlice], PruneReport]:
        """Returns the slices that may match, in their order, and a report on the others. The slices are as they will be
        read: without log files where those are not merged. Raises CorruptFileError for a damaged index, StorageError.
        """
        self._judge([item.file_group.partition for item in slices])
        by_kind: Counter[str] = Counter()
        kept: list[FileSlice] = []
        for item in slices:
            verdict = self._verdicts[item.file_group.partition]
            if verdict is None:
                kept.append(item)
            else:
                by_kind[verdict] += len(item.data_files)
        self._groups = frozenset(item.file_group for item in kept)
        stages: tuple[tuple[str, Callable[[Slices], Mask | None]], ...] = (
            (RECORD_INDEX, self._by_record_index),
            (SECONDARY_INDEX, self._by_secondary_index),
            (COLUMN_STATS, self._by_column_stats),
            (EXPRESSION_INDEX, self._by_expression_indexes),
            (BLOOM_FILTERS, self._by_bloom_filters),
            (_FOOTERS, self._by_footers),
        )
        for index, stage in stages:
            mask = stage(kept) if kept else None
            if mask is not None:
                by_kind[index] += sum(len(item.data_files) for item, keep in zip(kept, mask, strict=True) if not keep)
                kept = [item for item, keep in zip(kept, mask, strict=True) if keep]
        ruled_out = sum(verdict is not None for verdict in self._verdicts.values())
        files = sum(len(item.data_files) for item in slices)
        counts = {index: by_kind[index] for index in _IN_ORDER if by_kind[index]}
        return kept, PruneReport(len(self._verdicts), ruled_out, files, sum(counts.values()), counts)

    def _judge(self, partitions: Sequence[str]) -> None:
        new = sorted({partition for partition in partitions if partition not in self._verdicts})
        if not new:
            return
        ranges = partition_ranges(new, self._bound, self._config, self._spec.output.rule)
        by_path = may_match(self._bound, ranges, len(new))
        by_stats = by_path
        if (
            self._current
            and not self._free_merge
            and self._metadata is not None
            and by_path.any()
            and self._metadata.has_index(PARTITION_STATS)
            and not self._metadata.may_have_narrow_ranges
        ):
            keys = (RECORD_KEY,) if self._config.populate_meta_fields else self._config.record_key_fields
            stats = partition_statistics(new, self._metadata, self._columns, *keys[:1])
            by_stats = by_path & may_match(self._bound, {**ranges, **stats}, len(new))
        for partition, in_path, in_stats in zip(new, by_path, by_stats, strict=True):
            self._verdicts[partition] = _PARTITION_PATH if not in_path else None if in_stats else PARTITION_STATS

    def _by_record_index(self, slices: Slices) -> Mask | None:
        if self._metadata is None or not self._current or self._keys is None:
            return None
        return _of_groups(slices, groups_of_keys(self._metadata, self._keys, self._groups))

    def _by_secondary_index(self, slices: Slices) -> Mask | None:
        if self._metadata is None or not self._current or self._free_merge:
            return None
        return _of_groups(slices, groups_of_values(self._metadata, self._bound, self._hidden, self._groups))

    def _by_column_stats(self, slices: Slices) -> Mask | None:
        if self._metadata is None or COLUMN_STATS not in self._metadata.partition_types:
            return None
        names = {".".join(column.path): (column, kind) for column, kind in self._columns.items()}
        requested = indexed_columns(self._metadata, names)
        if not requested or not self._metadata.has_index(COLUMN_STATS):
            return None
        files: dict[str, list[str]] = defaultdict(list)
        for item in slices:
            files[item.file_group.partition].extend(file.name for file in item.data_files)
        tables = self._metadata.column_stats(requested, files=files)
        ranges = self._partition_values([item.file_group.partition for item in slices])
        for name in requested:
            known = slice_ranges(slices, tables[name], names[name][1])
            if known is not None:
                ranges[names[name][0]] = known
        return self._match(slices, ranges)

    def _by_expression_indexes(self, slices: Slices) -> Mask | None:
        if self._metadata is None or self._free_merge:
            return None
        return expression_mask(slices, self._bound, self._metadata, self._hidden)

    def _by_bloom_filters(self, slices: Slices) -> Mask | None:
        if self._metadata is None or self._keys is None or not self._metadata.has_index(BLOOM_FILTERS):
            return None
        return filter_mask(slices, self._keys, self._metadata.bloom_filters)

    def _by_footers(self, slices: Slices) -> Mask | None:
        if self._storage is None:
            return None
        choice = row_choice(self._bound, self._spec)
        mask = np.ones(len(slices), dtype=np.bool_)
        if choice is None and self._keys is None:
            return mask
        for number, item in enumerate(slices):
            if item.base_file is not None and not item.log_files:
                mask[number] = footer_may_match(self._storage, item.base_file, choice, self._keys)
        return mask

    def _match(self, slices: Slices, ranges: Mapping[Operand, ColumnRange]) -> Mask:
        """Returns which slices may match by ranges. Where a merge may make up values, keeps slices that need one."""
        mask = may_match(self._bound, ranges, len(slices))
        return mask | np.array([bool(item.log_files) for item in slices], dtype=np.bool_) if self._free_merge else mask

    def _partition_values(self, partitions: Sequence[str]) -> dict[Operand, ColumnRange]:
        distinct = sorted(set(partitions))
        number = {partition: at for at, partition in enumerate(distinct)}
        at = pa.array([number[partition] for partition in partitions], pa.int64())
        ranges = partition_ranges(distinct, self._bound, self._config, self._spec.output.rule)
        return {operand: known.take(at) for operand, known in ranges.items()}


def _of_groups(slices: Slices, groups: Collection[FileGroupId] | None) -> Mask | None:
    return None if groups is None else np.array([item.file_group in groups for item in slices], dtype=np.bool_)
