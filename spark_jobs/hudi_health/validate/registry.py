"""The check of each partition type, one line each, and the check of `files`, which always runs.
docs/guarantees/metadata-table.md, "validate", says what is compared. run.py walks over the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from hudi_core.config.rows_config import READ_ZONE
from hudi_core.expr.functions import needs_zone
from hudi_core.expr.tree import Column
from hudi_core.index.skipping import indexed_operand
from hudi_core.metadata_table.partition_type import BLOOM_FILTERS, COLUMN_STATS, FILES_PARTITION
from hudi_core.metadata_table.partitions.protocol import PartitionType
from hudi_core.metadata_table.partitions.registry import registered
from hudi_core.metadata_table.partitions.row_indexes import RecordIndexPartition, SecondaryIndexPartition
from hudi_core.metadata_table.partitions.single_files import BloomFiltersPartition, ColumnStatsPartition
from hudi_core.metadata_table.partitions.whole_ranges import ExpressionIndexPartition, PartitionStatsPartition
from hudi_core.model.names import LogFileName, parse_data_file
from hudi_core.services.archive.listing import is_wrong_size
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.instant import Action, State
from hudi_core.timeline.timeline import Timeline
from hudi_health.validate.check import KEPT, PartitionCheck, PartitionFiles
from hudi_health.validate.file_checks import (
    BloomFiltersCheck,
    ColumnStatsCheck,
    ExpressionFiltersCheck,
    ExpressionStatsCheck,
    PartitionStatsCheck,
)
from hudi_health.validate.row_indexes import RecordIndexCheck, SecondaryIndexCheck, can_print
from hudi_health.validate.subject import Subject
from hudi_health.validate.true_ranges import VALUE, IndexedOperands

_DELETES_FIRST: Final = frozenset({Action.CLEAN, Action.ROLLBACK, Action.RESTORE})
"""The actions that first delete files, and then update the metadata table."""


def deletions_at_work(timeline: Timeline) -> Timeline:
    """Returns the inflight actions that may have deleted listed files."""
    return timeline.filter(lambda item: item.action in _DELETES_FIRST and item.state is State.INFLIGHT)


class FilesCheck:
    """The check of `files`, by data partition. `judges_missing` is off while an inflight action may delete files."""

    def __init__(self, subject: Subject, *, judges_missing: bool) -> None:
        self._subject = subject
        self._metadata = subject.metadata
        self._judges_missing = judges_missing
        self._unseen = set(self._metadata.partitions())
        self._missing: dict[str, str] = {}
        self._unlisted: dict[str, str] = {}

    def open_partition(self, partition: str, files: Sequence[FileInfo]) -> PartitionFiles | None:
        """Compares a partition, and returns its files that count. Returns None for a listed partition without files."""
        listed = self._metadata.list_files(partition)
        if not files:
            if self._judges_missing:
                self._add("the partition is in the list of partitions, but it is not there", partition)
            self._add_missing(partition, sorted(listed))
            return None
        data = {info.name: info for info in files if parse_data_file(info.name) is not None}
        unlisted = sorted(name for name in data.keys() - listed.keys() if self._counts(data[name]))
        there = {name: data[name] for name in [*(name for name in data if name in listed), *unlisted]}
        if partition in self._unseen:
            self._unseen.discard(partition)
        elif there:
            self._add("the partition is not in the list of partitions, and has files of completed commits", partition)
        for name in unlisted:
            self._remember(self._unlisted, name, partition)
            self._add(f"not listed: {data[name].size} bytes of a completed commit", partition, name)
        self._add_missing(partition, sorted(listed.keys() - data.keys()))
        for name in sorted(data.keys() & listed.keys()):
            if listed[name] != data[name].size and is_wrong_size(listed[name], data[name], self._subject.written):
                self._add(f"listed with {listed[name]} bytes, but it has {data[name].size}", partition, name)
        return PartitionFiles(partition, listed, there)

    def not_walked(self) -> list[str]:
        """Returns the listed partitions that `open_partition` has not compared yet, sorted."""
        return sorted(self._unseen)

    def finish(self) -> None:
        """Reports files that are listed in one partition, but are in another."""
        for name in sorted(self._missing.keys() & self._unlisted.keys()):
            what = f"listed in partition {self._missing[name]!r}, but it is in {self._unlisted[name]!r}"
            self._add(what, self._missing[name], name)

    def _add(self, what: str, partition: str, file: str | None = None) -> None:
        self._subject.findings.add(FILES_PARTITION, what, partition=partition, file=file)

    def _add_missing(self, partition: str, names: Sequence[str]) -> None:
        if not self._judges_missing:
            return
        for name in names:
            self._remember(self._missing, name, partition)
            self._add("listed, but it is not there", partition, name)

    def _counts(self, info: FileInfo) -> bool:
        """Returns whether an unlisted file should be listed, because a completed commit wrote it. For log files of
        version 6 only commits on the active timeline count.
        """
        parsed = parse_data_file(info.name)
        written = self._subject.written
        if isinstance(parsed, LogFileName) and written is not None:
            return info.path in written
        return parsed is not None and self._subject.writes.wrote(parsed.instant, info.path)

    @staticmethod
    def _remember(found: dict[str, str], name: str, partition: str) -> None:
        if len(found) < KEPT:
            found.setdefault(name, partition)


def partition_checks(subject: Subject) -> list[PartitionCheck]:
    checks: list[PartitionCheck] = []
    for name in sorted(subject.metadata.partition_types - {FILES_PARTITION}):
        partition_type = registered(name)
        make = None if partition_type is None else _CHECKS.get(partition_type)
        if make is None:
            subject.findings.not_checked(name, "a partition type that this release does not know")
        else:
            checks.extend(make(subject, name))
    return checks


def _partition_stats(subject: Subject, name: str) -> Iterator[PartitionCheck]:
    columns = subject.columns_as_stored(name, subject.columns(COLUMN_STATS))
    yield PartitionStatsCheck(subject, IndexedOperands(columns))


def _secondary_index(subject: Subject, name: str) -> Iterator[PartitionCheck]:
    definition, findings = subject.definitions.get(name), subject.findings
    fields = () if definition is None else definition.source_fields
    column = subject.resolved(name, Column(tuple(fields[0].split(".")))) if len(fields) == 1 else None
    if definition is None or not isinstance(column, Column):
        findings.not_checked(name, "its definition names no single column of the table")
        return
    if not subject.columns_as_stored(name, {"": column}):
        return
    value_type = subject.type_of(column)
    if not can_print(value_type):
        findings.not_checked(name, f"values of type {value_type}, whose printed form depends on the writer")
        return
    yield SecondaryIndexCheck(name, column, subject, by_value=definition.version > 1)


def _expression_index(subject: Subject, name: str) -> Iterator[PartitionCheck]:
    definition, findings = subject.definitions.get(name), subject.findings
    written = None if definition is None else indexed_operand(definition)
    operand = None if written is None else subject.resolved(name, written)
    if definition is None or operand is None:
        findings.not_checked(name, "an expression that predicates cannot name")
        return
    zone = READ_ZONE.read(subject.context.options)
    has_values = zone is not None or not needs_zone(operand, subject.no_rows(), "UTC")
    if not has_values:
        findings.not_checked(
            name, f"values, as they depend on the zone of local time; give the writers' as {READ_ZONE.name}"
        )
    value = IndexedOperands({VALUE: operand}, zone or "UTC", has_values)
    if definition.type == COLUMN_STATS:
        yield ExpressionStatsCheck(name, definition.source_fields[0], value, subject)
    elif definition.type == BLOOM_FILTERS:
        yield ExpressionFiltersCheck(name, value, subject)
    else:
        findings.not_checked(name, f"an index of type {definition.type!r}")


_CHECKS: Final[Mapping[type[PartitionType], Callable[[Subject, str], Iterable[PartitionCheck]]]] = {
    ColumnStatsPartition: lambda subject, _: [ColumnStatsCheck(subject)],
    PartitionStatsPartition: _partition_stats,
    BloomFiltersPartition: lambda subject, _: [BloomFiltersCheck(subject)],
    RecordIndexPartition: lambda subject, _: [RecordIndexCheck(subject)],
    SecondaryIndexPartition: _secondary_index,
    ExpressionIndexPartition: _expression_index,
}
