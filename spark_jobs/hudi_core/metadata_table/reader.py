"""Reading the metadata table's `files` partition: which partitions a table has, and which files of what size (HoodieBackedTableMetadata)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hudi_core.codec.hfile.reader import HFileReader
from hudi_core.codec.log.frames import ReadAt
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, MetadataUnavailableError
from hudi_core.metadata_table.file_group import FILES_PARTITION, FOLDER, ROOT, LatestSlice, latest_slice
from hudi_core.metadata_table.files import live_entries, merge, partition_key, partition_of_key
from hudi_core.metadata_table.log_records import BlockFilter, merged_records
from hudi_core.metadata_table.record import ALL_PARTITIONS, FilesRecord, RecordCodec, schema_text
from hudi_core.metadata_table.validity import rolled_back_by, valid_instants
from hudi_core.model.partition import check_file_name, check_partition
from hudi_core.storage.base import ByteRange, FileInfo, Storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.query import Timeline

_WHOLE_FILE = 1 << 20
"""Log files up to this many bytes are read with one request."""


@dataclass(frozen=True, slots=True)
class _Base:
    reader: HFileReader
    codec: RecordCodec
    path: str


class MetadataTableReader:
    """The `files` partition as it stands at `data_timeline`, read once and on demand: one value is one view.

    The log files are read as a whole at the first question, the base file only where a key's block is. Other partitions of the metadata
    table are left alone. Raises MetadataUnavailableError from the first question on when the table has no metadata table that could be
    read, and CorruptFileError when it is damaged or names files outside the table.
    """

    def __init__(self, storage: Storage, table_config: TableConfig, data_timeline: Timeline) -> None:
        self._storage = storage
        self._config = table_config
        self._data_timeline = data_timeline

    def list_partitions(self) -> list[str]:
        """All partition paths, sorted; `[""]` for a table without partitions."""
        partitions = [partition_of_key(key) for key in live_entries(self._record(ALL_PARTITIONS))]
        return sorted(check_partition(partition, source=FOLDER) for partition in partitions)

    def list_files(self, partition: str) -> dict[str, int]:
        """Names and sizes in bytes of a partition's files; empty for an unknown partition."""
        files = live_entries(self._record(partition_key(partition)))
        return {check_file_name(name, source=FOLDER): size for name, size in files.items()}

    def check_available(self) -> None:
        """Raises MetadataUnavailableError when there is no metadata table that could be read."""
        _ = self._timeline

    def _record(self, key: str) -> FilesRecord | None:
        newer = self._log_records.get(key)
        base = self._base
        value = None if base is None else base.reader.lookup(key.encode("utf-8"))
        if base is None or value is None:
            return newer
        older = base.codec.decode(key.encode("utf-8"), value)
        return older if newer is None else merge(older, newer, path=base.path)

    @cached_property
    def _timeline(self) -> Timeline:
        """The metadata table's own timeline."""
        if FILES_PARTITION not in self._config.metadata_partitions:
            raise MetadataUnavailableError(
                "the table has no metadata table: hoodie.table.metadata.partitions does not name `files`",
                path=self._config.path,
                remedy="read it without the metadata table",
            )
        try:
            config = TableConfig.load(self._storage, base=ROOT)
        except ConfigError as error:
            raise MetadataUnavailableError(
                f"the table's metadata table cannot be read: {error.message}", path=error.path, remedy="read it without the metadata table"
            ) from error
        timeline = ActiveTimeline(self._storage, config, ROOT).load()
        if timeline.last_completed() is None:
            raise MetadataUnavailableError(
                "the table's metadata table holds no completed instant", path=ROOT, remedy="read it without the metadata table"
            )
        return timeline

    @cached_property
    def _slice(self) -> LatestSlice:
        return latest_slice(self._storage, self._timeline)

    @cached_property
    def _base(self) -> _Base | None:
        info = self._slice.base_file
        if info is None:
            return None
        path = info.path
        reader = HFileReader(lambda start, length: self._storage.read_range(path, ByteRange(start, length)), info.size, path)
        return _Base(reader, RecordCodec(reader.schema() or schema_text(), path=path), path)

    @cached_property
    def _log_records(self) -> dict[str, FilesRecord]:
        timeline = self._timeline
        last = timeline.last_completed()
        data = ActiveTimeline(self._storage, self._config)
        valid = valid_instants(self._data_timeline, timeline, lambda instant: rolled_back_by(data, instant))
        commits = timeline.commits()
        pending = timeline.pending().requested_times
        blocks = BlockFilter(
            committed=lambda instant: instant not in pending and commits.contains_or_before_start(instant),
            valid=valid,
            latest="" if last is None else last.requested_time,
        )
        return merged_records(self._slice.logs, self._open_log, blocks)

    def _open_log(self, info: FileInfo) -> ReadAt:
        if info.size > _WHOLE_FILE:
            return lambda start, length: self._storage.read_range(info.path, ByteRange(start, length))
        data = self._storage.read(info.path) if info.size else b""
        return lambda start, length: data[start : start + length]
