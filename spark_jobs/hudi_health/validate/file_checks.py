"""The checks of index records about single files and about whole partitions. docs/guarantees/metadata-table.md,
"validate", says what is compared exactly and what loosely, and the memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.bloom import BloomFilter, filter_in_footer
from hudi_core.codec.columns import top_columns
from hudi_core.expr.functions import evaluate
from hudi_core.filegroup.merge.record_keys import record_keys
from hudi_core.metadata_table.keys import PARTITION_STATISTICS, bloom_filter_key, column_id, partition_id
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.record import RecordRules
from hudi_core.metadata_table.records.column_stats import ColumnStats, ColumnStatsRules, statistics_table
from hudi_core.metadata_table.records.file_statistics import BloomFilterRules, StoredFilter
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.view.file_group import FileSlice
from hudi_health.validate.check import FileHead, PartitionCheck, PartitionFiles
from hudi_health.validate.subject import Subject
from hudi_health.validate.true_ranges import (
    UNLISTED,
    VALUE,
    Counts,
    IndexedOperands,
    Statistic,
    StatisticsCheck,
    TrueRanges,
    contradictions,
    statistics_by,
)

_OTHERS = 3


class ColumnStatsCheck(StatisticsCheck):
    def __init__(self, subject: Subject) -> None:
        super().__init__(COLUMN_STATS, IndexedOperands(subject.columns(COLUMN_STATS)), subject.findings)
        self._subject = subject
        self._unlisted: dict[str, set[str]] = {}

    def open_partition(self, files: PartitionFiles) -> None:
        tables = self._subject.metadata.column_stats(list(self.indexed.operands), partitions=[files.partition])
        self.stored = {name: statistics_by(table, "file") for name, table in tables.items()}
        known = {file for stored in self.stored.values() for file in stored}
        if unlisted := known - files.listed.keys():
            self._unlisted[files.partition] = unlisted

    def finish(self) -> None:
        may_be_left = self._unlisted and self._subject.context.config.features.cleans_leave_statistics
        for changes in self._subject.cleans() if may_be_left else ():
            for partition, names in changes.deleted.items():
                self._unlisted.get(partition, set()).difference_update(names)
        for partition, files in self._unlisted.items():
            for file in sorted(files):
                self.add_difference(UNLISTED, partition=partition, file=file)

    def lacks(self, head: FileHead, names: Sequence[str], records: int) -> None:
        if records and (COLUMN_STATS in self._subject.definitions or len(names) == len(self.indexed.of(head))):
            more = "" if len(names) <= _OTHERS else f" and {len(names) - _OTHERS} more"
            self.add_of_file(head, f"has no statistics of {', '.join(names[:_OTHERS])}{more}")


class PartitionStatsCheck(PartitionCheck):
    def __init__(self, subject: Subject, columns: IndexedOperands) -> None:
        super().__init__(PARTITION_STATS, subject.findings)
        self._columns = columns
        tables = subject.metadata.partition_stats(list(columns.operands))
        self._stored = {name: statistics_by(table, "partition") for name, table in tables.items()}
        self._true = TrueRanges(columns)
        self._rows = 0
        self._has_logs = False

    def row_columns(self) -> frozenset[str]:
        return self._columns.columns()

    def open_partition(self, files: PartitionFiles) -> None:
        self._true = TrueRanges(self._columns)
        self._rows = 0
        self._has_logs = False

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        self._has_logs |= bool(file_slice.log_files)
        self._true.add(batch, self._columns.operands)

    def close_partition(self, files: PartitionFiles) -> None:
        if not self._rows:
            return
        for name, by_partition in self._stored.items():
            stored = by_partition.get(files.partition)
            if stored is None:
                # The partition has no statistics of a column that was added after the partition's last write.
                if self._true.of(name).has_values:
                    what = f"the partition has values of {name}, but no statistics"
                    self.add_difference(what, partition=files.partition)
                continue
            counts = Counts.AT_LEAST if stored.is_tight and not self._has_logs else Counts.LOOSE
            for what in contradictions(stored, self._true.of(name), counts):
                self.add_difference(f"column {name}: {what}", partition=files.partition)


class ExpressionStatsCheck(StatisticsCheck):
    """The check of an expression index with statistics. The keys of the index contain the hash of `column`."""

    def __init__(self, name: str, column: str, value: IndexedOperands, subject: Subject) -> None:
        super().__init__(name, value, subject.findings)
        self._column = column_id(column)
        self._partition = subject.snapshot.partition(name, ColumnStatsRules())
        self._rows = TrueRanges(value)

    def row_columns(self) -> frozenset[str]:
        return self.indexed.columns()

    def open_partition(self, files: PartitionFiles) -> None:
        self._rows = TrueRanges(self.indexed)
        stored = self._read(files.partition, self._column + partition_id(files.partition))
        self.stored = {VALUE: stored}
        for file in sorted(stored.keys() - files.listed.keys()):
            self.add_difference(UNLISTED, partition=files.partition, file=file)

    def lacks(self, head: FileHead, names: Sequence[str], records: int) -> None:
        if head.is_base and head.is_latest and records:
            self.add_of_file(head, "has no statistics")

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        self._rows.add(batch, [VALUE])

    def close_partition(self, files: PartitionFiles) -> None:
        """Compares the statistics of the whole partition, if they are stored."""
        prefix = self._column + partition_id(PARTITION_STATISTICS) + partition_id(files.partition)
        for stored in self._read(files.partition, prefix).values():
            for what in contradictions(stored, self._rows.of(VALUE), Counts.LOOSE, bounds=self.indexed.has_values):
                self.add_difference(f"of the whole partition: {what}", partition=files.partition)

    def _read(self, partition: str, prefix: str) -> dict[str, Statistic]:
        rows: list[tuple[str, ColumnStats]] = [
            (partition, item) for _, item in self._partition.with_prefixes([prefix]) if not item.is_deleted
        ]
        # Hudi counts the values of an expression without the nulls (SparkMetadataWriterUtils.getExprIndexRecords).
        found = statistics_by(statistics_table(rows, None), "file")
        return {name: replace(item, value_count=item.value_count + item.null_count) for name, item in found.items()}


class DigestRules(RecordRules[bytes]):
    """Decodes a stored filter into a digest, or b"" if there is none. A filter itself takes about 430 kB."""

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> bytes:
        stored = BloomFilterRules().decode(key, datum, path=path)
        return b"" if stored.is_deleted or not stored.text else _digest(stored.type_code, stored.text)


class FiltersCheck(PartitionCheck):
    """The check of an index with Bloom filters. The filters contain texts that are made of the top-level `columns`."""

    def __init__(self, name: str, columns: frozenset[str], subject: Subject) -> None:
        super().__init__(name, subject.findings)
        self._columns = columns
        self._digests: MetadataPartition[bytes] = subject.snapshot.partition(name, DigestRules())
        self._filters = subject.snapshot.partition(name, BloomFilterRules())
        self.stored: dict[str, bytes] = {}
        """The digests of the open partition's filters, by key."""

    def file_columns(self) -> frozenset[str]:
        return self._columns

    def open_partition(self, files: PartitionFiles) -> None:
        """Adds a difference for each filter of a file that is not a listed base file of the partition."""
        found = self._digests.with_prefixes([partition_id(files.partition)])
        self.stored = {key: digest for key, digest in found if digest}
        known = {
            bloom_filter_key(files.partition, name)
            for name in files.listed
            if isinstance(parse_data_file(name), BaseFileName)
        }
        for key in sorted(self.stored.keys() - known):
            what = f"key {key}: a filter of a file that is no listed base file of the partition"
            self.add_difference(what, partition=files.partition)

    def read(self, head: FileHead) -> StoredFilter | None:
        stored = self._filters.get(bloom_filter_key(head.file.partition, head.file.name))
        return None if stored is None or stored.is_deleted or not stored.text else stored


class BloomFiltersCheck(FiltersCheck):
    def __init__(self, subject: Subject) -> None:
        super().__init__(BLOOM_FILTERS, top_columns(subject.key_columns), subject)
        self._key_columns = subject.key_columns

    def open_file(self, head: FileHead) -> FilterCheck | None:
        if not head.is_base:
            return None
        if head.file.name.rpartition(".")[2] != "parquet":
            self.findings.not_checked(BLOOM_FILTERS, "filters of base files that are not Parquet")
            return None
        digest = self.stored.get(bloom_filter_key(head.file.partition, head.file.name))
        in_footer = filter_in_footer(head.footer)
        if digest is None:
            if in_footer is not None:
                self.add_of_file(head, "has a filter in its footer, and none here")
            return None
        found: BloomFilter | None
        if in_footer is not None and digest == _digest(in_footer[0], in_footer[1].encode("utf-8")):
            found = BloomFilter.parse(in_footer[1], in_footer[0], path=head.file.path)
        else:
            if in_footer is not None:
                self.add_of_file(head, "the filter is not that of the file's footer")
            stored = self.read(head)
            found = None if stored is None else stored.parse()
        if found is None:
            return None
        return FilterCheck(self, head, found, partial(record_keys, fields=self._key_columns, path=head.file.path))


class ExpressionFiltersCheck(FiltersCheck):
    def __init__(self, name: str, value: IndexedOperands, subject: Subject) -> None:
        super().__init__(name, value.columns(), subject)
        self._value = value

    def open_file(self, head: FileHead) -> FilterCheck | None:
        if not head.is_base or not self._value.of(head):
            return None
        stored = self.read(head)
        if stored is None:
            if head.is_latest:
                self.add_of_file(head, "has no filter")
            return None
        return FilterCheck(self, head, stored.parse(), self._texts) if self._value.has_values else None

    def _texts(self, batch: pa.RecordBatch) -> pa.Array:
        return pc.drop_null(evaluate(self._value.operands[VALUE], batch, self._value.zone).cast(pa.string()))


class FilterCheck:
    """Tests whether a filter contains the texts (string, no nulls) that `texts` makes of a file's records."""

    def __init__(
        self, check: PartitionCheck, head: FileHead, stored: BloomFilter, texts: Callable[[pa.RecordBatch], pa.Array]
    ) -> None:
        self._check = check
        self._head = head
        self._stored = stored
        self._texts = texts
        self._requested = 0
        self._lacking = 0

    def add(self, batch: pa.RecordBatch, columns: frozenset[str] | None) -> None:
        texts = self._texts(batch)
        self._requested += len(texts)
        self._lacking += self._stored.lacking(texts)

    def close(self) -> None:
        if self._lacking:
            what = f"the filter lacks {self._lacking} of the file's {self._requested} keys"
            self._check.add_of_file(self._head, what)


def _digest(type_code: str, text: bytes) -> bytes:
    return hashlib.blake2b(b"%s\0%s" % (type_code.encode("utf-8"), text), digest_size=16).digest()
