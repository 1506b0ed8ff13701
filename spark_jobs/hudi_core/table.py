"""One table as a caller sees it: a facade over opening, reading, listing and running services."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.codec.log.blocks import CorruptBlock
from hudi_core.config.options import check_options
from hudi_core.config.table_config import TableConfig, timeline_zone
from hudi_core.config.write_config import ALLOW_CORRUPT
from hudi_core.engine.protocol import Engine
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.model.size_limits import limit_options
from hudi_core.query.plan import plan_read
from hudi_core.query.read_plan import ReadPlan
from hudi_core.query.request import MetadataMode, Query, ReadRequest
from hudi_core.query.show import ShownInstant, show_instant
from hudi_core.query.time_travel import as_of_instant
from hudi_core.request.requests import Request, RunRequest
from hudi_core.request.results import RunResult
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.examine import DoctorReport, examine
from hudi_core.services.metadata.perf import Timings, measure
from hudi_core.services.metadata.validate.check import ValidationReport
from hudi_core.services.metadata.validate.run import validate
from hudi_core.services.runner import Progress
from hudi_core.services.savepoint.verb import Savepoint, savepoint_list
from hudi_core.services.verbs import nothing_to_run, perform
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.storage.base import Storage
from hudi_core.storage.recorded_changes import RecordingStorage, exit_code_of_changes
from hudi_core.storage.registry import open_storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner
from hudi_core.view.file_group import FileSlice
from hudi_core.view.file_system_view import FileSystemView

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What a query returns: `batches` is read once, while the files are.

    `files_read` counts base and log files of the slices read, `files_pruned` those that the predicate ruled out.
    `corrupt` fills while `batches` are read: corrupt log blocks that were skipped.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    files_read: int
    files_pruned: int = 0
    corrupt: list[CorruptBlock] = field(default_factory=list)


class HudiTable:
    """An open table. Every query reads the timeline again, so one value may live as long as the process."""

    def __init__(self, context: TableContext, data: Storage) -> None:
        """Use `open`. `data` is the storage of the data path."""
        self._context = context
        self._data = data

    @staticmethod
    def open(
        uri: str, storage_options: Mapping[str, str] | None = None, options: Mapping[str, str] | None = None
    ) -> HudiTable:
        """Opens the table at `uri`; `options` have Hudi's names. Raises ConfigError when there is no table or an option
        is wrong, UnsupportedVersionError and CorruptFileError for its properties.
        """
        check_options(options or {})
        given = {**(storage_options or {}), **limit_options(options or {})}
        storage = RecordingStorage(open_storage(uri, given))
        config = TableConfig.load(storage)
        zone = timeline_zone(config, options or {})
        context = TableContext(
            uri,
            storage,
            config,
            ActiveTimeline(storage, config, zone=zone),
            dict(options or {}),
            given,
        )
        return HudiTable(context, open_data_storage(uri, given))

    @property
    def uri(self) -> str:
        """The address as it was given."""
        return self._context.uri

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        return self._context.config

    def timeline(self, *, archived: bool = False) -> Timeline:
        """The active timeline now, or with `archived` that and every archived instant."""
        active = self._context.active.load()
        if not archived:
            return active
        # Archival copies instants before it removes them, so one may be in both.
        older = (
            item for item in self._context.history().timeline() if active.find(item.requested_time, item.action) is None
        )
        return Timeline([*older, *active])

    def schema(self, timeline: Timeline | None = None) -> AvroSchema:
        """The table's Avro schema, without meta fields. Raises FormatError when no commit and no property has one."""
        return table_schema(self._context.storage, self._context.config, timeline or self.timeline())

    def view(self, metadata: MetadataMode = "auto") -> FileSystemView:
        """The file slices now. Raises MetadataUnavailableError for `on` when there is no metadata table to read."""
        return self._context.view(self.timeline(), metadata)

    def plan(
        self,
        query: Query = "snapshot",
        columns: Sequence[str] | None = None,
        metadata: MetadataMode = "auto",
        *,
        as_of: str | None = None,
        begin: str | None = None,
        end: str | None = None,
        where: str | None = None,
        dialect: str = "spark",
    ) -> ReadPlan:
        """A query planned over the table as it is now: splits that any process with the table's storage may read.

        `as_of` (an instant or a date) is for snapshot and read_optimized; `begin` (exclusive, `000` is from the start)
        and `end` (inclusive) for incremental and cdc: instants in table version 6, completion times from 8 on. `where`
        is a predicate in SQL of `dialect`. Raises ConfigError for an unknown column or query, for a predicate that
        cannot be read, and for times that the table does not hold.
        """
        chosen = None if columns is None else tuple(columns)
        request = ReadRequest(query, chosen, metadata, as_of, begin, end, where, dialect)
        return plan_read(self._context, request)

    def read(
        self,
        query: Query = "snapshot",
        columns: Sequence[str] | None = None,
        metadata: MetadataMode = "auto",
        *,
        as_of: str | None = None,
        begin: str | None = None,
        end: str | None = None,
        where: str | None = None,
        dialect: str = "spark",
    ) -> ReadResult:
        """The rows: the `_hoodie_*` columns, then the table's in schema order, or only `columns`; types are Spark's.

        Arguments and errors are those of `plan`; the batches raise FormatError and StorageError as files are read.
        """
        plan = self.plan(query, columns, metadata, as_of=as_of, begin=begin, end=end, where=where, dialect=dialect)
        corrupt: list[CorruptBlock] = []
        batches = plan.batches(self._data, corrupt.append)
        return ReadResult(plan.schema, batches, plan.files_read, plan.files_pruned, corrupt)

    def files(
        self, partition: str | None = None, metadata: MetadataMode = "auto", *, as_of: str | None = None
    ) -> list[FileSlice]:
        """The file slices that a snapshot query reads, now or as of an instant or a date, of one partition or all.

        Errors are those of `plan`.
        """
        timeline = self.timeline()
        instant = None if as_of is None else as_of_instant(self._context, timeline, as_of)
        view = self._context.view(timeline, metadata)
        partitions = view.partitions() if partition is None else [partition]
        return [item for name in partitions for item in view.latest_merged_slices(name, instant)]

    def show(self, instant: str, action: str | None = None) -> ShownInstant:
        """An instant's plan and metadata, decoded; see query.show.show_instant."""
        return show_instant(self._context, instant, action)

    def savepoints(self) -> list[Savepoint]:
        """The savepoints, oldest first."""
        return savepoint_list(self._context)

    def doctor(self, *, files: bool = True) -> DoctorReport:
        """Examines the table, its writers' options, clocks, lock and storage; see services.doctor."""
        return examine(self._context, files=files)

    def validate_metadata(self) -> ValidationReport:
        """Compares the metadata table with the data files and rows; see services.metadata.validate.run."""
        return validate(self._context, self._data)

    def metadata_timings(self, partition_types: Collection[str] = ()) -> Timings:
        """How long lookups in the metadata table and in the storage take; see services.metadata.perf."""
        return measure(self._context, self._data, partition_types)

    def nothing_to_run(self, request: RunRequest) -> RunResult | None:
        """The result of `run` where it would find nothing to do; None where it has work. With `schedule` an instant is
        planned if none is pending: what is left for `run` is to run it.
        """
        with self.one_command():
            return nothing_to_run(self._context_of(request), request, Owner.current(request.owner, request.run_id))

    def run(self, request: Request, engine: Engine, progress: Progress | None = None) -> RunResult:
        """Does what the request says. Its options take precedence over those of `open`; its table and storage options
        are ignored, as `open` has fixed them.

        Raises HudiError: bad input (exit code 2) before anything is written, later as a failure (exit code 1) that says
        what was taken back and what stays; ConflictError when it is safe to retry.
        """
        owner = Owner.current(request.owner, request.run_id)
        with self.one_command():
            return perform(self._context_of(request), request, engine, owner, progress)

    def one_command(self) -> AbstractContextManager[None]:
        """What is called within counts as one command: bad input that is found after any of it wrote is a failure."""
        return exit_code_of_changes(self._context.storage)

    def _context_of(self, request: Request) -> TableContext:
        options = {**self._context.options, **request.options}
        if request.allow_corrupt_log_blocks:
            options[ALLOW_CORRUPT.name] = "true"
        check_options(options)
        config = TableConfig.load(self._context.storage)
        return replace(self._context, config=config, options=options)
