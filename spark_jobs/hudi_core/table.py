"""One table as a caller sees it: a facade over opening, reading, listing and running services.

A method imports what it needs when it is called. To look at a timeline needs none of what reads and writes data files,
which takes a second of CPU time to import.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from hudi_core.config.engine_config import EngineConfig, Extent
from hudi_core.config.options import check_options, warn_of_misspelt
from hudi_core.config.rows_config import ALLOW_CORRUPT, WriteConfig
from hudi_core.config.table_config import TableConfig, timeline_zone
from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_core.model.size_limits import limit_options
from hudi_core.query.request import MetadataMode, Query, ReadRequest
from hudi_core.request.results import Progress, Result
from hudi_core.storage.base import Storage
from hudi_core.storage.one_look import OneLookStorage, one_look
from hudi_core.storage.overlapped import both, is_remote, look_ahead
from hudi_core.storage.recorded_changes import exit_code_of_changes
from hudi_core.storage.registry import open_storage
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.owner import Owner
from hudi_core.verbs.request import Request, Work

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_core.codec.avro.schema import AvroSchema
    from hudi_core.codec.log.blocks import CorruptBlock
    from hudi_core.engine.protocol import Engine
    from hudi_core.query.read_plan import ReadPlan
    from hudi_core.query.show import ShownInstant
    from hudi_core.request.policy import Policy
    from hudi_core.services.context import TableContext
    from hudi_core.services.engine_choice import Choice
    from hudi_core.services.policy import Decisions
    from hudi_core.services.restore.savepoint import Savepoint
    from hudi_core.timeline.actions.commit import CommitTotals
    from hudi_core.timeline.instant import Instant
    from hudi_core.verbs.run import RunRequest
    from hudi_core.view.file_group import FileSlice
    from hudi_core.view.file_system_view import FileSystemView


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The result of a query. `batches` can be read once, and reads the files meanwhile; `corrupt` then fills with
    corrupt log blocks. `files_read` counts files of the slices read, `files_pruned` those that the predicate ruled out.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    files_read: int
    files_pruned: int = 0
    corrupt: list[CorruptBlock] = field(default_factory=list)


class HudiTable:
    """An open table. Every query reads the timeline again, so one object may live as long as the process."""

    def __init__(
        self,
        uri: str,
        storage: Storage,
        config: TableConfig,
        options: Mapping[str, str],
        storage_options: Mapping[str, str],
    ) -> None:
        self.uri = uri
        """The address as it was given."""
        self.config = config
        """The table's properties."""
        self._storage = storage
        self._active = ActiveTimeline(storage, config, zone=timeline_zone(config, options))
        self._options = options
        self._storage_options = storage_options

    @staticmethod
    def open(
        uri: str, storage_options: Mapping[str, str] | None = None, options: Mapping[str, str] | None = None
    ) -> HudiTable:
        """Opens a table. Raises ConfigError without one or for an option, UnsupportedVersionError, CorruptFileError."""
        check_options(options or {})
        warn_of_misspelt(options or {})
        given = {**(storage_options or {}), **limit_options(options or {})}
        storage = OneLookStorage(open_storage(uri, given))
        config = TableConfig.load(storage)
        return HudiTable(uri, storage, config, dict(options or {}), given)

    def timeline(self, *, archived: bool = False) -> Timeline:
        """Returns the active timeline now; with `archived`, that and every archived instant."""
        active = self._active.load()
        return Timeline([*self.archived(active), *active]) if archived else active

    def archived(self, active: Timeline) -> list[Instant]:
        """Returns the archived instants that `active` lacks: archival copies instants before it removes them."""
        history = self.context.history().timeline()
        return [item for item in history if active.find(item.requested_time, item.action) is None]

    def schema(self, timeline: Timeline | None = None) -> AvroSchema:
        """Returns the Avro schema, without meta fields. Raises FormatError when no commit or property has one."""
        from hudi_core.filegroup.read.schema_resolver import table_schema

        return table_schema(self.context.storage, self.context.config, timeline or self.timeline())

    def view(self, metadata: MetadataMode = "auto") -> FileSystemView:
        """Returns the file slices now. Raises MetadataUnavailableError for `on` without a readable metadata table."""
        return self.context.view(self.timeline(), metadata)

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
        """Plans a query over the table as it is now: splits that any process with the table's storage may read. `as_of`
        (an instant or a date) is for snapshot and read_optimized. `begin` (exclusive, `000` is from the start) and
        `end` (inclusive) are for incremental and cdc: instants in table version 6, completion times from 8 on. `where`
        is SQL of `dialect`. Raises ConfigError for a wrong column, query or predicate, and for times that are not held.
        """
        from hudi_core.query.plan import plan_read

        chosen = None if columns is None else tuple(columns)
        request = ReadRequest(query, chosen, metadata, as_of, begin, end, where, dialect)
        with one_look(self._storage):
            return plan_read(self.context, request)

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
        """Returns the rows: the `_hoodie_*` columns, then the table's in schema order, or only `columns`; types are
        Spark's. Arguments and errors are those of `plan`. Batches raise FormatError and StorageError.
        """
        plan = self.plan(query, columns, metadata, as_of=as_of, begin=begin, end=end, where=where, dialect=dialect)
        corrupt: list[CorruptBlock] = []
        batches = plan.batches(self.data, corrupt.append)
        return ReadResult(plan.schema, batches, plan.files_read, plan.files_pruned, corrupt)

    def files(
        self, partition: str | None = None, metadata: MetadataMode = "auto", *, as_of: str | None = None
    ) -> list[FileSlice]:
        """Returns the file slices that a snapshot query reads, now or as of an instant or a date, of one partition or
        all. Raises the errors of `plan`, and ConfigError for a partition that does not exist.
        """
        from hudi_core.query.plan import as_of_instant

        timeline = self.timeline()
        instant = None if as_of is None else as_of_instant(self.context, timeline, as_of)
        view = self.context.view(timeline, metadata)
        partitions = view.partitions() if partition is None else [partition]
        found = [item for name in partitions for item in view.latest_merged_slices(name, instant)]
        if not found and partition is not None and partition not in view.partitions():
            raise ConfigError(
                f"the table has no partition {partition!r}", path=self.uri, remedy="list them: `hudictl files TABLE`"
            )
        return found

    def show(self, instant: str, action: str | None = None) -> ShownInstant:
        from hudi_core.query.show import show_instant

        return show_instant(self.context, instant, action)

    def commit_totals(
        self, active: Collection[Instant], archived: Collection[Instant] = ()
    ) -> dict[Instant, CommitTotals]:
        """Returns operation, rows and bytes of each completed commit among the instants, except damaged ones."""
        from hudi_core.timeline.actions.commit import CommitTotals, commit_totals

        totals = commit_totals(active, self._active.read_commit)
        older = self.context.history().commits(archived) if archived else ()
        return {**totals, **{instant: CommitTotals.of(commit) for instant, commit in older}}

    def savepoints(self) -> list[Savepoint]:
        from hudi_core.services.restore.savepoint import savepoint_list

        return savepoint_list(self.context)

    def due(self, policy: Policy) -> Decisions:
        """Returns which services the policy finds due now, and why (services.policy). Writes nothing."""
        from hudi_core.services.policy import decide

        with one_look(self._storage):
            return decide(self.context, policy, Owner.current())

    def nothing_to_do(self, request: Request) -> Result | None:
        """Returns the result of a request that has nothing to do; else None. See Request.nothing."""
        with one_look(self._storage, goes_on=True):
            return request.nothing(self._context_of(request), _owner_of(request))

    def make_plan(self, request: Request) -> Result | None:
        """Writes the plan that the request's run carries out. See Request.plan."""
        with self.one_command():
            return request.plan(self._context_of(request), _owner_of(request))

    def preview(self, request: RunRequest) -> Result:
        with one_look(self._storage):
            return request.preview(self._context_of(request), _owner_of(request))

    def choose_engine(self, request: Request, *, at_once: int = 1, here: bool = False) -> Choice:
        """Returns the engine for what the request finds now, by services.engine_choice; with `here` the local one in
        any case. `at_once` is how many such requests share this machine. Writes nothing.
        """
        from hudi_core.services.engine_choice import choose

        with one_look(self._storage, goes_on=True):
            context = self._context_of(request)
            config = EngineConfig.of(context.options)
            extent = request.extent(context, config) if request.needs_executors else Extent()
        waits = is_remote(self._storage)
        choice = choose(extent, config, WriteConfig.of(context.options), at_once=at_once, waits=waits)
        return replace(choice, local=True) if here else choice

    def run(
        self,
        request: Request,
        engine: Engine,
        progress: Progress | None = None,
        choose: Callable[[Request], Choice] | None = None,
    ) -> Result:
        """Does what the request says, with its options before those of `open`. `progress` and `choose` are as in
        verbs.request.Work. Raises HudiError: for bad input (exit code 2) before anything is written; later as a failure
        (exit code 1) that says what was rolled back and what stays; ConflictError when it is safe to retry.
        """
        with self.one_command(), self.one_look(request):
            result = request.run(Work(self._context_of(request), engine, _owner_of(request), progress, choose))
        has_worked = (result.instants and result.reason is None) or result.document
        return replace(result, engine=engine.name if has_worked else None)

    def one_look(self, request: Request) -> AbstractContextManager[None]:
        """Makes what is called within one look at the table, where the request allows it (storage.one_look)."""
        return one_look(self._storage, goes_on=True) if request.looks_once else nullcontext()

    def one_command(self) -> AbstractContextManager[None]:
        """Counts what is called within as one command: bad input that is found after any of it wrote is a failure."""
        return exit_code_of_changes(self._storage)

    @cached_property
    def context(self) -> TableContext:
        from hudi_core.services.context import TableContext

        return TableContext(self.uri, self._storage, self.config, self._active, self._options, self._storage_options)

    @cached_property
    def data(self) -> Storage:
        """The storage of the data path."""
        from hudi_core.storage.arrow_store import open_data_storage

        return open_data_storage(self.uri, self._storage_options)

    def _context_of(self, request: Request) -> TableContext:
        options = {**self._options, **request.options}
        if request.allow_corrupt_log_blocks:
            options[ALLOW_CORRUPT.name] = "true"
        check_options(options)
        context, config = both(self._storage, lambda: self.context, self._current)
        return replace(context, config=config, options=options)

    def _current(self) -> TableConfig:
        """Returns the properties now; the timeline is listed as well, as every step needs it."""
        config = TableConfig.load(self._storage)
        look_ahead(self._storage, self._active.load)
        return config


def _owner_of(request: Request) -> Owner:
    return Owner.current(request.owner, request.run_id)
