"""The input of one partition type's check during the walk of a table: partitions, the records of files, and current
rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from hudi_core.storage.base import FileInfo
from hudi_core.view.file_group import DataFile, FileSlice


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """A data partition: what `files` lists of it (names and bytes), and its data files in the storage that count, by
    name.

    A file counts when it is listed, or should be.
    """

    partition: str
    listed: Mapping[str, int]
    there: Mapping[str, FileInfo]


@dataclass(frozen=True, slots=True)
class FileHead:
    """A base or log file whose records are about to be read.

    `columns` are the top-level columns that it holds, None where that is not known; `footer` the key-value metadata of
    a Parquet base file. `is_latest`: queries of the table as it is now read it; else it is in an older slice, or in a
    file group that was replaced.
    """

    file: DataFile
    is_base: bool
    columns: frozenset[str] | None
    footer: Mapping[str, str] = field(default_factory=dict)
    is_latest: bool = True

    def holds(self, column: str) -> bool:
        """Whether a top-level column may be in it."""
        return self.columns is None or column in self.columns


class FileCheck(Protocol):
    """Compares one file."""

    def add(self, batch: pa.RecordBatch, columns: frozenset[str] | None) -> None:
        """Some of its records, as stored, in the table's types; `columns`: those that the records carry, None is all of
        the file's.
        """
        ...

    def close(self) -> None:
        """After the last."""
        ...


class PartitionCheck:
    """Compares one metadata partition. Methods that a check does not need do nothing by default.

    The order: a partition opens, its listed and existing base and log files follow, then the rows of its latest slices;
    then it closes.
    """

    def file_columns(self) -> frozenset[str]:
        """The stored top-level columns that are needed of every file."""
        return frozenset()

    def row_columns(self) -> frozenset[str]:
        """The columns that are needed of every row."""
        return frozenset()

    def open_partition(self, files: PartitionFiles) -> None:
        """Starts a partition."""

    def open_file(self, head: FileHead) -> FileCheck | None:
        """Starts a file; None when the check compares nothing of it."""
        return None

    def add_rows(self, file_slice: FileSlice, batch: pa.RecordBatch) -> None:
        """Rows of a latest slice, merged; at least `row_columns`."""

    def close_partition(self, files: PartitionFiles) -> None:
        """A partition ends."""

    def finish(self) -> None:
        """After the last partition."""
