"""One table as a caller sees it: opened once, read, listed, and served. Everything else is behind this facade."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.config.service_config import ALLOW_CORRUPT, check_options
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError, MetadataUnavailableError, StorageNotFoundError
from hudi_core.filegroup.reader import SliceReader
from hudi_core.metadata_table.listing import MetadataTableListing
from hudi_core.metadata_table.reader import MetadataTableReader
from hudi_core.model.engine import Engine
from hudi_core.model.ids import FileGroupId
from hudi_core.model.names import parse_base_file
from hudi_core.request.model import RunRequest, RunResult
from hudi_core.services.context import TableContext
from hudi_core.services.runner import Progress, ServiceRunner
from hudi_core.storage.base import Storage
from hudi_core.storage.data_registry import open_data_storage
from hudi_core.storage.registry import open_storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.query import Timeline
from hudi_core.timeline.table_schema import schema_of
from hudi_core.transaction.owner import Owner
from hudi_core.view.file_group import FileSlice
from hudi_core.view.fs_view import FileSystemView, load_view
from hudi_core.view.listing import FileListing, StorageListing

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

MetadataMode = Literal["auto", "on", "off"]
"""Whether files are listed by the metadata table: where the table has one, always, or never."""
Query = Literal["snapshot", "read_optimized"]


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What a query returns: `batches` is read once, while the files are; `files_read` counts base and log files of the slices read."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    files_read: int


@dataclass(frozen=True, slots=True)
class ShownInstant:
    """An instant with its decoded files: `plan` is the requested one, `metadata` the completed one; None where there is no content."""

    instant: Instant
    plan: dict[str, Any] | None
    metadata: dict[str, Any] | None


class HudiTable:
    """An opened table. Every query reads the timeline anew, so one value may live as long as the process."""

    def __init__(self, context: TableContext, data: Storage) -> None:
        """Use `open`. `data` is the storage of the data path."""
        self._context = context
        self._data = data

    @staticmethod
    def open(uri: str, storage_options: Mapping[str, str] | None = None, options: Mapping[str, str] | None = None) -> HudiTable:
        """Opens the table at `uri`. `options` carry Hudi's own names.

        Raises ConfigError when there is no table or an option is wrong, UnsupportedVersionError, CorruptFileError for its properties.
        """
        check_options(options or {})
        storage = open_storage(uri, storage_options)
        config = TableConfig.load(storage)
        context = TableContext(uri, storage, config, ActiveTimeline(storage, config), dict(options or {}), dict(storage_options or {}))
        return HudiTable(context, open_data_storage(uri, storage_options))

    @property
    def uri(self) -> str:
        """The address as it was given."""
        return self._context.uri

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        return self._context.config

    def timeline(self) -> Timeline:
        """The active timeline now."""
        return self._context.active.load()

    def schema(self, timeline: Timeline | None = None) -> AvroSchema:
        """The table's Avro schema, without meta fields. Raises FormatError when no commit and no property records one."""
        created = self.config.raw.get("hoodie.table.create.schema")
        return schema_of(timeline or self.timeline(), self._context.active.read_details, create_schema=created)

    def view(self, metadata: MetadataMode = "auto") -> FileSystemView:
        """The file slices now. Raises MetadataUnavailableError for `on` when there is no metadata table to read."""
        timeline = self.timeline()
        return load_view(self._context.active, self._listing(metadata, timeline), timeline)

    def read(self, query: Query = "snapshot", columns: Sequence[str] | None = None, metadata: MetadataMode = "auto") -> ReadResult:
        """The rows: `_hoodie_*` columns first, then the table's in schema order, or just `columns`, in the types that Spark reports.

        Raises ConfigError for an unknown column or query; the batches raise FormatError and StorageError as files are read.
        """
        if query not in ("snapshot", "read_optimized"):
            raise ConfigError(f"unknown query {query!r}", remedy="snapshot and read_optimized are known")
        view = self.view(metadata)
        reader = SliceReader.for_query(
            self._data, self.config, self.schema(view.timeline), view.timeline, snapshot=query == "snapshot", options=self._context.options
        )
        slices = [item for partition in view.partitions() for item in _slices(view, partition, query)]
        files = sum(len(item.log_files) + (item.base_file is not None) for item in slices)
        batches = (batch for item in slices for batch in reader.read(item, columns))
        return ReadResult(reader.output_schema(columns), batches, files)

    def files(self, partition: str | None = None, metadata: MetadataMode = "auto") -> list[FileSlice]:
        """The slices that a snapshot query reads, of one partition or all."""
        view = self.view(metadata)
        partitions = view.partitions() if partition is None else [partition]
        return [item for name in partitions for item in view.latest_merged_slices(name)]

    def show(self, instant: str) -> ShownInstant:
        """An instant's plan and metadata, decoded. Raises ConfigError when the timeline does not hold it."""
        active = self._context.active
        found = [item for item in self.timeline() if item.requested_time == instant]
        if not found:
            raise ConfigError(f"the timeline holds no instant {instant}", path=active.folder, remedy="list the instants with `hudictl timeline`")
        # A savepoint shares the instant of the commit that it holds; the commit is the one that was meant.
        chosen = min(found, key=lambda item: item.action == Action.SAVEPOINT)
        completed = active.read_any(instant, chosen.action, State.COMPLETED) if chosen.is_completed else {}
        return ShownInstant(chosen, self._plan(chosen) or None, completed or None)

    def run(self, request: RunRequest, engine: Engine, progress: Progress | None = None) -> RunResult:
        """Runs a service on this table. The request's options go before those of `open`; its table and storage options are those of `open`.

        Raises HudiError with the exit code of hudictl: bad input before anything is written, ConflictError when safe to retry.
        """
        options = {**self._context.options, **request.options}
        if request.allow_corrupt_log_blocks:
            options[ALLOW_CORRUPT.name] = "true"
        check_options(options)
        config = TableConfig.load(self._context.storage)
        context = replace(self._context, config=config, options=options)
        return ServiceRunner(context, engine, Owner.current(request.owner), progress).run(request)

    def _listing(self, metadata: MetadataMode, timeline: Timeline) -> FileListing:
        if metadata not in ("auto", "on", "off"):
            raise ConfigError(f"unknown metadata mode {metadata!r}", remedy="auto, on and off are known")
        if metadata == "off" or (metadata == "auto" and not self._context.has_metadata_table):
            return StorageListing(self._context.storage)
        reader = MetadataTableReader(self._context.storage, self.config, timeline)
        if metadata == "on":
            reader.check_available()
            return MetadataTableListing(reader)
        try:
            reader.check_available()
        except MetadataUnavailableError as error:
            log.warning("%s; the files are listed in storage", error)
            return StorageListing(self._context.storage)
        return MetadataTableListing(reader)

    def _plan(self, instant: Instant) -> dict[str, Any]:
        try:
            return self._context.active.read_any(instant.requested_time, instant.pending_action, State.REQUESTED)
        except StorageNotFoundError:
            return {}  # a savepoint has no requested file, and archival may be removing it


def _slices(view: FileSystemView, partition: str, query: Query) -> list[FileSlice]:
    if query == "snapshot":
        return view.latest_merged_slices(partition)
    return [
        FileSlice(FileGroupId(partition, name.file_id), name.instant, base)
        for base in view.latest_base_files(partition)
        for name in [parse_base_file(base.name)]
    ]
