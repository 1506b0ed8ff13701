"""The check of one partition type: its input during the walk of a table, and its findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from itertools import islice
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hudi_core.config.table_config import TableConfig
from hudi_core.frozen import dataclass
from hudi_core.model.names import RECORD_KEY
from hudi_core.storage.base import FileInfo
from hudi_core.view.file_group import DataFile, FileSlice

KEPT: Final = 1000
"""The most differences that are kept for each partition type. All are counted."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in a partition of the metadata table. `partition` is the data partition, and `file` the plain file
    name or file group id, if there is one.
    """

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
        """Adds `count` differences of a partition type. Reads only as many of `differences` as are kept."""
        if count:
            self._counts[partition_type] += count
            kept = self._kept.setdefault(partition_type, [])
            kept.extend(islice(differences, KEPT - len(kept)))

    def not_checked(self, partition_type: str, why: str) -> None:
        """Records that something was not compared, once for each reason."""
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
    """The result of a validation. `differences` has up to KEPT of each partition type; `counts` counts all.
    `partition_types` are the compared ones.
    """

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
        """Returns the document of `hudictl metadata validate --json`."""
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
    """The files of a data partition. `listed` has the names and bytes in the partition `files` of the metadata table.
    `there` has the existing data files that are, or should be, listed.
    """

    partition: str
    listed: Mapping[str, int]
    there: Mapping[str, FileInfo]


@dataclass(frozen=True, slots=True)
class FileHead:
    """A base or log file before its records are read. `columns` are the file's top-level columns, if known. `footer` is
    the key-value metadata of a Parquet base file. `is_latest` says whether queries of the current table read the file.
    """

    file: DataFile
    is_base: bool
    columns: frozenset[str] | None
    footer: Mapping[str, str] = field(default_factory=dict)
    is_latest: bool = True

    def holds(self, column: str, carried: frozenset[str] | None = None) -> bool:
        """Whether a top-level column may be in the file and in records of the columns `carried` (None: all columns)."""
        return all(names is None or column in names for names in (self.columns, carried))


class FileCheck(Protocol):
    def add(self, batch: pa.RecordBatch, columns: frozenset[str] | None) -> None:
        """Adds some of the file's records, as stored. `columns` are theirs; None means all columns of the file."""
        ...

    def close(self) -> None: ...


class PartitionCheck:
    """The check of one partition type. For each data partition the walk calls `open_partition`, then passes the files,
    then the rows of the latest file slices, and then calls `close_partition`.
    """

    def __init__(self, name: str, findings: Findings) -> None:
        self.name = name
        self.findings = findings

    def add_difference(self, what: str, *, partition: str | None = None, file: str | None = None) -> None:
        self.findings.add(self.name, what, partition=partition, file=file)

    def add_of_file(self, head: FileHead, what: str) -> None:
        self.add_difference(what, partition=head.file.partition, file=head.file.name)

    def add_each(self, describe: Callable[..., Difference], *positions: NDArray[np.int64]) -> None:
        """Adds the differences that `describe` makes of each position, or of each pair of positions."""
        self.findings.add_all(self.name, len(positions[0]), map(describe, *(found.tolist() for found in positions)))

    def file_columns(self) -> frozenset[str]:
        """Returns the stored top-level columns that the check needs from every file."""
        return frozenset()

    def row_columns(self) -> frozenset[str]:
        """Returns the columns that the check needs from every row."""
        return frozenset()

    def open_partition(self, files: PartitionFiles) -> None: ...

    def open_file(self, head: FileHead) -> FileCheck | None:
        """Returns the check of a file, or None if nothing of the file is compared."""
        return None

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        """Takes merged rows of a latest file slice, with at least the columns `row_columns`."""

    def close_partition(self, files: PartitionFiles) -> None: ...

    def finish(self) -> None: ...


def key_columns(config: TableConfig) -> tuple[str, ...]:
    """Returns the columns of stored rows that make the record key (filegroup.merge.record_keys.record_keys)."""
    return (RECORD_KEY,) if config.populate_meta_fields else tuple(config.record_key_fields)
