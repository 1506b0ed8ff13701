"""What a golden table's metadata table holds, down to the datum, beside what the kinds make of the table's data
files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.log.blocks import BlockType, CorruptBlock, walk
from hudi_core.config.table_config import TableConfig
from hudi_core.engine.serializer import from_text, to_text
from hudi_core.history.archived import load_history
from hudi_core.metadata_table.extract.data_file import StatisticsRequirements, read_file_statistics
from hudi_core.metadata_table.indexed_table import IndexedTable, load_index_definitions
from hudi_core.metadata_table.partitions.registry import partition_type_of, requirements_of
from hudi_core.metadata_table.read.file_group import ROOT
from hudi_core.metadata_table.read.snapshot import MetadataTableSnapshot
from hudi_core.metadata_table.record import Datum, MetadataCodec, RecordEncoder, RecordRules
from hudi_core.metadata_table.records.file_statistics import CommitUpdate, DataFileRef, FileStatistics, Record
from hudi_core.model.names import META_FIELDS, BaseFileName, LogFileName, parse_data_file
from hudi_core.storage.local import LocalStorage
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.schemas import schema_of
from hudi_core.view.file_system_view import load_view
from hudi_core.view.listing import StorageListing

Cells = dict[str, dict[str, Any]]
"""By key: the datum, without what says where it lies (the key and the `_hoodie_*` fields)."""
KINDS = ("files", "column_stats", "partition_stats", "bloom_filters")


class GoldenCells:
    """One table. `settings` are options of the writer that its records depend on."""

    def __init__(self, path: Path, settings: Mapping[str, str] | None = None) -> None:
        self.storage = LocalStorage(path)
        self.config = TableConfig.load(self.storage)
        self.active = ActiveTimeline(self.storage, self.config)
        self.timeline = self.active.load()
        self.settings = settings or {}

    def listed(self) -> list[str]:
        """The metadata partitions whose kinds are of this package."""
        return sorted(
            name for name in self.config.metadata_partitions if name in KINDS or name.startswith("expr_index_")
        )

    @cached_property
    def table(self) -> IndexedTable:
        created = self.config.raw.get("hoodie.table.create.schema")
        schema = schema_of(self.timeline, self.active.read_details, create_schema=created)
        return IndexedTable(self.config, schema, load_index_definitions(self.storage, self.config), self.settings)

    def theirs(self, partition: str, instant: str) -> Cells:
        """What instant `instant` wrote into a metadata partition: cells of its log blocks and of base files that it
        wrote itself.
        """
        found: Cells = {}
        for info in self.storage.list_files(f"{ROOT}/{partition}"):
            name = parse_data_file(info.name)
            data = self.storage.read(info.path) if name is not None else b""
            if isinstance(name, BaseFileName) and name.instant == instant:
                reader = HFileReader.of_bytes(data, info.path)
                found.update(_decoded(reader, reader.schema() or "", info.path))
            elif isinstance(name, LogFileName):
                found.update(_of_log(data, info.path, instant))
        return found

    def merged(self, partition: str) -> Cells:
        """What readers take from a metadata partition as a whole."""
        metadata_snapshot = MetadataTableSnapshot(self.storage, self.config, self.timeline)
        return {key: _bare(datum) for key, datum in metadata_snapshot.partition(partition, _Newest()).all()}

    def built(self, partition: str) -> str:
        """The instant at which a metadata partition began: of its first base file, or of its first log file."""
        names = [parse_data_file(info.name) for info in self.storage.list_files(f"{ROOT}/{partition}")]
        return min(name.instant for name in names if name is not None)

    def files(self) -> list[DataFileRef]:
        """Every base and log file of the table, of any slice."""
        listing = StorageListing(self.storage)
        named = [
            (partition, info, parse_data_file(info.name))
            for partition in listing.partitions()
            for info in listing.files(partition)
        ]
        return [
            DataFileRef(partition, info.name, info.size, isinstance(name, BaseFileName))
            for partition, info, name in named
            if name is not None
        ]

    def commits(self) -> list[tuple[Instant, CommitMetadata]]:
        """The data table's completed writes, oldest first."""
        return [
            (instant, self.active.read_commit(instant)) for instant in self.timeline.commits() if instant.is_completed
        ]

    def ours(self, partition: str, instant: Instant, metadata: CommitMetadata) -> Cells:
        """What our partition type writes for a commit.

        For rows that are only rewritten it leaves the ranges of whole partitions as they are (CommitUpdate.rewrites),
        where Hudi writes them as after any write: here it is called as after one.
        """
        kind = partition_type_of(partition, self.table)
        requirements = requirements_of(self.table, [kind])
        written = [
            self._reference(name, stat.path)
            for name, stats in metadata.partition_to_write_stats.items()
            for stat in stats
        ]
        remaining = self._remaining(instant, metadata, written, requirements) if kind.needs.remaining else {}
        statistics = CommitUpdate(
            instant.requested_time,
            "UPSERT" if kind.needs.remaining and metadata.operation_type == "COMPACT" else metadata.operation_type,
            metadata.partition_to_write_stats,
            tuple(self.statistics(written, requirements)),
            metadata.replaced_file_ids or {},
            remaining.get,
        )
        return self.encoded(partition, kind.of_commit(statistics))

    def initial(self, partition: str, instant: str, files: Iterable[DataFileRef]) -> Cells:
        """What our kind begins with."""
        kind = partition_type_of(partition, self.table)
        return self.encoded(
            partition, kind.initial(instant, self.statistics(files, requirements_of(self.table, [kind])))
        )

    def requirements(self, partition: str) -> StatisticsRequirements:
        """What our kind asks of each file."""
        return requirements_of(self.table, [partition_type_of(partition, self.table)])

    def statistics(self, files: Iterable[DataFileRef], requirements: StatisticsRequirements) -> list[FileStatistics]:
        """Each as an engine carries them."""
        passed = from_text(StatisticsRequirements, to_text(requirements))
        return [from_text(FileStatistics, to_text(read_file_statistics(self.storage, file, passed))) for file in files]

    def slices(self, last: Instant) -> list[DataFileRef]:
        """The files of the latest slices when a commit completed."""
        timeline = self.timeline.completed().filter(lambda item: item.completed_at <= last.completed_at)
        view = load_view(
            self.active, StorageListing(self.storage), timeline, lambda: load_history(self.storage, self.config)
        )
        return [
            DataFileRef(file.partition, file.name, file.size, isinstance(parse_data_file(file.name), BaseFileName))
            for partition in view.partitions()
            for item in view.latest_merged_slices(partition)
            for file in (*(() if item.base_file is None else (item.base_file,)), *item.log_files)
        ]

    def encoded(self, partition: str, records: Iterable[Record]) -> Cells:
        """Our records as the metadata table would hold them: through its own schema."""
        text = self._schema_text(partition)
        return _decoded(
            RecordEncoder(text).cells((key, datum) for key, datum in records if datum is not None), text, partition
        )

    def _remaining(
        self,
        instant: Instant,
        metadata: CommitMetadata,
        written: Sequence[DataFileRef],
        requirements: StatisticsRequirements,
    ) -> dict[str, tuple[FileStatistics, ...]]:
        names = {file.name for file in written}
        touched = {*metadata.partition_to_write_stats, *(metadata.replaced_file_ids or {})}
        others = [file for file in self.slices(instant) if file.name not in names and file.partition in touched]
        return {
            name: tuple(self.statistics([file for file in others if file.partition == name], requirements))
            for name in touched
        }

    def _reference(self, partition: str, path: str) -> DataFileRef:
        name = path.rpartition("/")[2]
        return DataFileRef(
            partition, name, self.storage.stat(path).size, isinstance(parse_data_file(name), BaseFileName)
        )

    def _schema_text(self, partition: str) -> str:
        for info in self.storage.list_files(f"{ROOT}/{partition}"):
            name = parse_data_file(info.name)
            data = self.storage.read(info.path) if name is not None else b""
            if isinstance(name, BaseFileName):
                return HFileReader.of_bytes(data, info.path).schema() or ""
            for block in walk(_reader(data), len(data), info.path) if isinstance(name, LogFileName) else ():
                if not isinstance(block, CorruptBlock) and block.type is BlockType.HFILE_DATA:
                    return block.schema or ""
        raise AssertionError(f"nothing in {partition}")


def _reader(data: bytes) -> Any:
    return lambda offset, length: data[offset : offset + length]


def _of_log(data: bytes, path: str, instant: str) -> Cells:
    found: Cells = {}
    for block in walk(_reader(data), len(data), path):
        if not isinstance(block, CorruptBlock) and block.type is BlockType.HFILE_DATA and block.instant_time == instant:
            content = data[block.content_offset : block.content_offset + block.content_length]
            found.update(_decoded(HFileReader.of_bytes(content, path), block.schema or "", path))
    return found


def _decoded(cells: HFileReader | Iterable[tuple[bytes, bytes]], schema: str, path: str) -> Cells:
    codec = MetadataCodec(schema, path=path)
    pairs = cells.items() if isinstance(cells, HFileReader) else cells
    found: Cells = {}
    for key, value in pairs:
        name, datum = codec.decode(key, value)
        found[name] = _bare(datum)
    return found


def plain_datum(datum: Datum | None) -> dict[str, Any]:
    """A datum as what decodes it takes it."""
    assert isinstance(datum, Mapping)
    return dict(datum)


def _bare(datum: Mapping[str, Any]) -> dict[str, Any]:
    return {field: item for field, item in datum.items() if field not in ("key", *META_FIELDS)}


class _Newest(RecordRules[dict[str, Any]]):
    """Data as they are, the newest of each key."""

    def decode(self, key: str, datum: dict[str, Any], *, path: str) -> dict[str, Any]:
        return datum


def differences(theirs: Cells, ours: Cells) -> list[str]:
    """What of two sets of cells is not the same, key by key."""
    lines = []
    for key in sorted(theirs.keys() | ours.keys()):
        if key not in ours:
            lines.append(f"only theirs: {key} {theirs[key]}")
        elif key not in theirs:
            lines.append(f"only ours: {key} {ours[key]}")
        elif theirs[key] != ours[key]:
            lines.append(f"{key}\n  theirs {theirs[key]}\n  ours   {ours[key]}")
    return lines
