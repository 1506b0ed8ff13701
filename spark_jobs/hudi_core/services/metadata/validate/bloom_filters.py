"""`bloom_filters` against the footers and the record keys of base files, `expr_index_*` of type bloom_filters against
the expression's values in them.

Exact: a listed Parquet base file has the filter of its footer, bit for bit, and no other file has one; every key of the
file is in it. A file whose footer holds no filter may have one, which then has to hold every key, or none. Of an
expression, exact: a base file in a latest slice has a filter, which has every value of its file, and no file that is
not listed has one; what is not compared says column_stats.

Memory: a digest for each filter of one data partition, two filters of one file, and a batch of its keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.codec.bloom import BloomFilter, filter_in_footer
from hudi_core.codec.columns import top_columns
from hudi_core.expr.functions import evaluate
from hudi_core.filegroup.merge.record_keys import record_keys
from hudi_core.metadata_table.keys import bloom_filter_key, partition_id
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS
from hudi_core.metadata_table.read.partition import MetadataPartition
from hudi_core.metadata_table.record import RecordRules
from hudi_core.metadata_table.records.file_statistics import BloomFilterRules, StoredFilter
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.services.metadata.validate.check import FileHead, PartitionCheck, PartitionFiles
from hudi_core.services.metadata.validate.subject import Subject
from hudi_core.services.metadata.validate.true_ranges import VALUE, IndexedOperands


class DigestRules(RecordRules[bytes]):
    """Of filters of which a digest is enough, b"" for none: a filter has some 430 kB."""

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> bytes:
        stored = BloomFilterRules().decode(key, datum, path=path)
        return b"" if stored.is_deleted or not stored.text else _digest(stored.type_code, stored.text)


class FiltersCheck(PartitionCheck):
    """`columns` are the top-level ones that a filter's texts are made of."""

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
        """Filters of a file that is no listed base file of the partition are differences."""
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
    """Tests a filter with the texts (string, no nulls) that `texts` makes of a file's records."""

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
