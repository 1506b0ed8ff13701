"""The check of one partition type: its input during the walk of a table, and its findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hudi_core.config.table_config import TableConfig
from hudi_core.model.names import RECORD_KEY
from hudi_core.storage.base import FileInfo
from hudi_core.view.file_group import DataFile, FileSlice

KEPT: Final = 1000
"""Differences of each partition type that are kept; all are counted."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Of a metadata partition, a data partition, and a plain file name or file group id, where there is one."""

    partition_type: str
    partition: str | None
    file: str | None
    what: str

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.partition_type, "partition": self.partition, "file": self.file, "what": self.what}


@dataclass(frozen=True, slots=True)
class NotChecked:
    partition_type: str
    why: str


class Findings:
    """Collects differences; memory is bounded by KEPT per partition type."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Difference]] = {}
        self._counts: Counter[str] = Counter()
        self._not_checked: dict[NotChecked, None] = {}

    def add(self, partition_type: str, what: str, *, partition: str | None = None, file: str | None = None) -> None:
        self.add_all(partition_type, 1, (Difference(partition_type, partition, file, what),))

    def add_all(self, partition_type: str, count: int, differences: Iterable[Difference]) -> None:
        """Adds `count` differences of a partition type; `differences` is read as far as they are kept."""
        if count:
            self._counts[partition_type] += count
            kept = self._kept.setdefault(partition_type, [])
            kept.extend(islice(differences, KEPT - len(kept)))

    def not_checked(self, partition_type: str, why: str) -> None:
        """Says that something was not compared, once for each reason."""
        self._not_checked.setdefault(NotChecked(partition_type, why))

    def report(self, partition_types: Iterable[str], partitions: int, files: int, rows: int) -> ValidationReport:
        differences = tuple(item for partition_type in sorted(self._kept) for item in self._kept[partition_type])
        return ValidationReport(
            differences,
            dict(sorted(self._counts.items())),
            tuple(self._not_checked),
            tuple(sorted(partition_types)),
            partitions,
            files,
            rows,
        )


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """`differences` are up to KEPT of each partition type, `counts` all of them. `partition_types` were compared."""

    differences: tuple[Difference, ...]
    counts: dict[str, int]
    not_checked: tuple[NotChecked, ...]
    partition_types: tuple[str, ...]
    partitions: int
    files: int
    rows: int

    @property
    def is_clean(self) -> bool:
        return not self.counts

    def to_dict(self) -> dict[str, Any]:
        """The document of `hudictl metadata validate --json`."""
        return {
            "differences": [item.to_dict() for item in self.differences],
            "counts": dict(self.counts),
            "not_checked": [{"kind": item.partition_type, "why": item.why} for item in self.not_checked],
            "kinds": list(self.partition_types),
            "partitions": self.partitions,
            "files": self.files,
            "rows": self.rows,
        }


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """What `files` lists of a data partition (names, bytes), and its data files that are, or should be, listed."""

    partition: str
    listed: Mapping[str, int]
    there: Mapping[str, FileInfo]


@dataclass(frozen=True, slots=True)
class FileHead:
    """A base or log file whose records are about to be read. `columns` are the top-level columns that it holds, if
    known; `footer` the key-value metadata of a Parquet base file. `is_latest`: queries of the table as it is now read
    it.
    """

    file: DataFile
    is_base: bool
    columns: frozenset[str] | None
    footer: Mapping[str, str] = field(default_factory=dict)
    is_latest: bool = True

    def holds(self, column: str, carried: frozenset[str] | None = None) -> bool:
        """Whether a top-level column may be in it, and in those of its records that carry `carried` (None is all)."""
        return all(names is None or column in names for names in (self.columns, carried))


class FileCheck(Protocol):
    def add(self, batch: pa.RecordBatch, columns: frozenset[str] | None) -> None:
        """Some of its records, as stored; `columns`: those that they carry, None is all of the file's."""
        ...

    def close(self) -> None: ...


class PartitionCheck:
    """Partition by partition: it opens, its files follow, then the rows of its latest slices; then it closes."""

    def __init__(self, name: str, findings: Findings) -> None:
        self.name = name
        self.findings = findings

    def add_difference(self, what: str, *, partition: str | None = None, file: str | None = None) -> None:
        self.findings.add(self.name, what, partition=partition, file=file)

    def add_of_file(self, head: FileHead, what: str) -> None:
        self.add_difference(what, partition=head.file.partition, file=head.file.name)

    def add_each(self, describe: Callable[..., Difference], *positions: NDArray[np.int64]) -> None:
        """The differences that `describe` makes of each position, or of each pair of positions."""
        self.findings.add_all(self.name, len(positions[0]), map(describe, *(found.tolist() for found in positions)))

    def file_columns(self) -> frozenset[str]:
        """The stored top-level columns that are needed of every file."""
        return frozenset()

    def row_columns(self) -> frozenset[str]:
        """The columns that are needed of every row."""
        return frozenset()

    def open_partition(self, files: PartitionFiles) -> None: ...

    def open_file(self, head: FileHead) -> FileCheck | None:
        """None when the check compares nothing of it."""
        return None

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        """Rows of a latest slice, merged; at least `row_columns`."""

    def close_partition(self, files: PartitionFiles) -> None: ...

    def finish(self) -> None: ...


def key_columns(config: TableConfig) -> tuple[str, ...]:
    """The columns of stored rows that make the record key (filegroup.merge.record_keys.record_keys)."""
    return (RECORD_KEY,) if config.populate_meta_fields else tuple(config.record_key_fields)
