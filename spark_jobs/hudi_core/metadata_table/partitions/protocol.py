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
    """Merges two data of one key when a compaction writes them."""

    def __call__(self, key: str, older: Data, newer: Data, *, path: str) -> Data:
        """Returns the merged datum, in the form of `newer` from file `path`. Raises CorruptFileError if impossible."""
        ...


class PartitionType:
    """One partition on the write side. By default no action deletes records, and the newer of two records remains."""

    name: ClassVar[str]
    """The partition's name; for partitions named after an index, the prefix of their names, which ends with `_`."""
    by_file: ClassVar[bool] = False
    """Whether of_files returns records: a commit can prepare them before it acquires the table lock."""
    updated_by_clean: ClassVar[bool] = False
    """Whether of_clean returns records."""
    merges: ClassVar[Mapping[int, MergeData]] = {}
    """The merge of two records, by RecordType; for other types the newer record remains."""
    groups: ClassVar[ConfigKey[int] | None] = None
    """The option with the number of file groups of a new partition; None: the partition has one."""

    def __init__(self, partition: str, table: IndexedTable) -> None:
        """Takes the name of the partition's folder in the metadata table, and the indexed table."""
        self.partition = partition
        self.table = table

    @property
    def needs(self) -> Needs:
        return Needs()

    def check(self) -> None:
        """Raises UnsupportedError where this release cannot update the partition at all."""

    def check_commit(self) -> None:
        """Raises UnsupportedError where this release cannot make exact records of this table's files."""

    def of_commit(self, update: CommitUpdate) -> Iterable[Record]:
        """Returns the records of a commit; no two share a key. By default each written file has its records."""
        return () if update.by_partition else self.of_files(update.instant, update.written, self.needs.expression)

    @classmethod
    def of_files(cls, instant: str, files: Iterable[FileStatistics], expression: Expression | None) -> Iterable[Record]:
        """Returns the records that follow from single files. `expression` is the expression of an expression index."""
        return ()

    def of_clean(self, instant: str, changes: FileChanges) -> Iterable[Record]:
        return ()

    def of_restore(self, instant: str, changes: FileChanges) -> Iterable[Record]:
        """Returns a restore's records beyond the rollback of blocks: as for a clean (Hudi: only `column_stats`)."""
        return self.of_clean(instant, changes)

    def of_rollback(self, changes: FileChanges) -> Iterable[Record]:
        """Returns a rollback's records in version 6 for the log files `changes.written`, besides rolled back blocks."""
        return ()

    def initial(self, instant: str, files: Iterable[FileStatistics]) -> Iterable[Record]:
        return self.of_files(instant, files, self.needs.expression)

    def definition(self) -> IndexDefinition | None:
        """Returns the definition of a new partition, where Hudi of the table's version writes one."""
        return None

    def group_count(self, settings: Mapping[str, str]) -> int:
        """Returns a new partition's file group count by Hudi's options. Raises ConfigError for no positive number."""
        return 1 if self.groups is None else self.groups.read(not_blank(settings))

    def file_ids(self, count: int) -> list[str]:
        """Returns the ids of `count` file groups, in order. Underscores of the folder's name become hyphens."""
        return numbered_file_ids(f"{self.partition.replace('_', '-')}-", count)

    @classmethod
    def hashed_part(cls, definition: Callable[[], IndexDefinition | None]) -> Callable[[str], str]:
        """Returns the function that cuts from a key the part that chooses its file group; by default the whole key."""
        return str


def not_blank(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings that have a text; for a blank setting the default holds."""
    return {name: text for name, text in settings.items() if text.strip()}


def numbered_file_ids(prefix: str, count: int) -> list[str]:
    """Returns the file ids `<prefix>0000-0` and so on (HoodieTableMetadataUtil.getFileIDForFileGroup)."""
    return [f"{prefix}{number:04d}-0" for number in range(count)]


def unknown_partition(name: str) -> UnsupportedError:
    """Returns the error for a metadata partition that Hudi 0.15 to 1.2 do not make, or whose records we do not make."""
    message = f"the metadata partition `{name}` holds records that this release cannot keep true"
    remedy = (
        f"drop it with `hudictl metadata drop TABLE --partition {name}`, or the metadata table: Hudi's next write "
        "rebuilds it"
    )
    return UnsupportedError(message, path=f".hoodie/metadata/{name}", remedy=remedy)
