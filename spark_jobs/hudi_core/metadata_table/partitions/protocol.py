"""The base class of all partition types on the write side, which the registry lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Protocol

from hudi_core.config.keys import ConfigKey
from hudi_core.errors import UnsupportedError
from hudi_core.metadata_table.indexed_table import IndexDefinition, IndexedTable
from hudi_core.metadata_table.records.file_statistics import (
    CommitUpdate,
    Expression,
    FileChanges,
    FileStatistics,
    Needs,
    Record,
)

Data = Mapping[str, Any]


class MergeData(Protocol):
    """The datum that replaces two of one key when a compaction writes them, in the newer one's form."""

    def __call__(self, key: str, older: Data, newer: Data, *, path: str) -> Data:
        """`path` is the file of `newer`. Raises CorruptFileError for data that do not merge."""
        ...


class PartitionType:
    """One partition on the write side. By default no action deletes records, and the newer of two remains."""

    name: ClassVar[str]
    """The partition's name; of partitions that are named after an index, their prefix, which ends with `_`."""
    by_file: ClassVar[bool] = False
    """Whether of_files has records: those of a commit can be prepared before the table lock is acquired."""
    updated_by_clean: ClassVar[bool] = False
    """Whether of_clean has records."""
    merges: ClassVar[Mapping[int, MergeData]] = {}
    """How two records of a type (RecordType) merge; of others the newer remains."""
    groups: ClassVar[ConfigKey[int] | None] = None
    """The option that gives the number of file groups of a new partition; None: it has one."""

    def __init__(self, partition: str, table: IndexedTable) -> None:
        """`partition` is the folder's name in the metadata table."""
        self.partition = partition
        self.table = table

    @property
    def needs(self) -> Needs:
        return Needs()

    def check(self) -> None:
        """Raises UnsupportedError where this release knows too little of the partition to update it at all."""

    def check_commit(self) -> None:
        """Raises UnsupportedError where this release makes no exact records of this table's files."""

    def of_commit(self, update: CommitUpdate) -> Iterable[Record]:
        """The records of a commit; no two share a key. By default those of each file that it wrote."""
        return () if update.by_partition else self.of_files(update.instant, update.written, self.needs.expression)

    @classmethod
    def of_files(cls, instant: str, files: Iterable[FileStatistics], expression: Expression | None) -> Iterable[Record]:
        """The records that follow from each file by itself; `expression` is that of an expression index."""
        return ()

    def of_clean(self, instant: str, changes: FileChanges) -> Iterable[Record]:
        return ()

    def of_restore(self, instant: str, changes: FileChanges) -> Iterable[Record]:
        """Blocks of the restored instants are rolled back anyway. Real Hudi updates `column_stats` alone."""
        return self.of_clean(instant, changes)

    def of_rollback(self, changes: FileChanges) -> Iterable[Record]:
        """In version 6, of the log files `changes.written`; blocks of the failed instant are rolled back anyway."""
        return ()

    def initial(self, instant: str, files: Iterable[FileStatistics]) -> Iterable[Record]:
        return self.of_files(instant, files, self.needs.expression)

    def definition(self) -> IndexDefinition | None:
        """The definition that a new partition gets, where Hudi of the table's version writes one."""
        return None

    def group_count(self, settings: Mapping[str, str]) -> int:
        """Of a new partition; `settings` are by Hudi's option names. Raises ConfigError for no positive number."""
        return 1 if self.groups is None else self.groups.read(not_blank(settings))

    def file_ids(self, count: int) -> list[str]:
        """The ids of `count` file groups, in order: underscores of the folder's name become hyphens."""
        return numbered_file_ids(f"{self.partition.replace('_', '-')}-", count)

    @classmethod
    def hashed_part(cls, definition: Callable[[], IndexDefinition | None]) -> Callable[[str], str]:
        """What of a key chooses its file group: all of it by default. `definition` is that of the index."""
        return str


def not_blank(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that have a text: of any other the default holds."""
    return {name: text for name, text in settings.items() if text.strip()}


def numbered_file_ids(prefix: str, count: int) -> list[str]:
    """`<prefix>0000-0` and so on (HoodieTableMetadataUtil.getFileIDForFileGroup)."""
    return [f"{prefix}{number:04d}-0" for number in range(count)]


def unknown_partition(name: str) -> UnsupportedError:
    """For a metadata partition that Hudi 0.15 to 1.2 do not make, or whose records no code here makes."""
    message = f"the metadata partition `{name}` holds records that this release cannot keep true"
    remedy = (
        f"drop it with `hudictl metadata drop TABLE --partition {name}`, or the metadata table: Hudi's next write "
        "rebuilds it"
    )
    return UnsupportedError(message, path=f".hoodie/metadata/{name}", remedy=remedy)
