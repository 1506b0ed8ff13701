"""The verbs write, insert-overwrite and delete-partition."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hudi_core.config.engine_config import EngineConfig, Extent
from hudi_core.config.new_table import TABLE_NAMES, NewTable
from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_core.request.results import Result
from hudi_core.request.secrets import refuse_secret_address, refuse_secrets
from hudi_core.verbs.metadata import MetadataCreateRequest
from hudi_core.verbs.request import WHAT, Request, Work

if TYPE_CHECKING:
    from hudi_core.config.table_config import TableConfig
    from hudi_core.services.context import TableContext
    from hudi_core.services.overwrite.job import OverwriteJob
    from hudi_core.services.overwrite.plan import Overwrite
    from hudi_core.services.source.files import RowsFrom
    from hudi_core.services.write.job import WriteJob
    from hudi_core.services.write.plan import RowsWork
    from hudi_core.storage.base import Storage
    from hudi_core.transaction.owner import Owner

OPERATIONS: Final = ("bulk_insert", "insert", "upsert", "delete")
"""The operations of a write."""
MAX_TOKEN: Final = 250
"""How many characters a token may have."""
_TOKEN: Final = re.compile(rf"[^\x00-\x1f\x7f]{{1,{MAX_TOKEN}}}")
_FUNCTION: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class _WriteRequest(Request):
    looks_once = True
    has_units = True  # rows are written, and replaced rows are removed from indexes
    token: str | None = None
    dry_run: bool = False

    def check_fields(self) -> None:
        if self.token is not None and _TOKEN.fullmatch(self.token) is None:
            remedy = f"use 1 to {MAX_TOKEN} printable characters"
            raise ConfigError(f"{WHAT}: {self.token!r} is no token", remedy=remedy)

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_core.services.write.verb import nothing_to_write

        before = nothing_to_write(context, self._work())
        return None if before is None else Result(document=before.to_dict())

    def run(self, work: Work) -> Result:
        from hudi_core.services.write.verb import run_write

        done = run_write(
            work.context, self._work(), self._job(), work.engine, work.owner, work.progress, dry_run=self.dry_run
        )
        return Result(document=done.to_dict())

    @abstractmethod
    def _work(self) -> Any:
        """Returns the work, of a class of services.write.work.Work."""

    @abstractmethod
    def _job(self) -> Any:
        """Returns the class of its job."""


@dataclass(frozen=True, slots=True)
class _RowsRequest(_WriteRequest):
    source: str = ""
    query: str = ""
    dataframe: str = ""
    dataframe_args: Mapping[str, str] = field(default_factory=dict)

    @property
    def asks_session(self) -> bool:
        return bool(self.query or self.dataframe)

    rows_fields: ClassVar[tuple[str, ...]] = ("source", "query", "dataframe")
    """The fields that say where the rows come from: exactly one is given."""

    def check_fields(self) -> None:
        _WriteRequest.check_fields(self)
        given = [name for name in self.rows_fields if getattr(self, name).strip()]
        if not given:
            *others, last = self.rows_fields
            raise ConfigError(f"{WHAT}: {self.verb} needs a {', '.join(others)} or {last}", remedy="give one of them")
        if len(given) > 1:
            raise ConfigError(f"{WHAT}: {' and '.join(given)} exclude each other", remedy="give one of them")
        if self.dataframe and _FUNCTION.fullmatch(self.dataframe) is None:
            raise ConfigError(f"{WHAT}: {self.dataframe!r} is no function", remedy="give package.module:function")
        if self.dataframe_args and not self.dataframe:
            raise ConfigError(
                f"{WHAT}: dataframe_args are for a dataframe",
                remedy="name its function in `dataframe`, or leave them out",
            )
        refuse_secrets(self.dataframe_args, where="dataframe_args")
        refuse_secret_address(self.source, what="the address of the source")

    def extent(self, context: TableContext, config: EngineConfig) -> Extent:
        from hudi_core.services.source.files import find_source

        if not self.source:
            return Extent(for_spark="it answers the query" if self.query else "it has the DataFrame")
        return Extent.of((part.size for part in find_source(self.source, context.storage_options)[1]), config)

    def _rows_from(self) -> RowsFrom:
        from hudi_core.services.source.files import RowsFrom

        return RowsFrom(self.source, self.query, self.dataframe, self.dataframe_args)


@dataclass(frozen=True, slots=True)
class WriteRequest(_RowsRequest):
    """Writes rows: `operation` is bulk_insert, insert, upsert or delete. Where the rows come from, `token` and
    `dry_run` are as in InsertOverwriteRequest. Rows to delete need only the columns of keys and partitions. Or `where`,
    a predicate in SQL of Spark's dialect, selects the rows of the table to delete. A folder without a table becomes one
    by the options of a `source`, as with Spark's data source: `hoodie.table.name` and those of `create`.
    """

    verb = "write"
    rows_fields = ("source", "query", "dataframe", "where")
    operation: str = ""
    where: str = ""

    def check_fields(self) -> None:
        _RowsRequest.check_fields(self)
        if self.where and self.operation.lower() != "delete":
            raise ConfigError(f"{WHAT}: `where` is for the operation delete", remedy="give a source")
        if self.operation.lower() not in OPERATIONS:
            remedy = f"give one of {', '.join(OPERATIONS)}"
            raise ConfigError(f"{WHAT}: {self.operation!r} is no operation of {self.verb}", remedy=remedy)

    @property
    def may_make_table(self) -> bool:
        """As Spark's data source: by the options, which then have a name, and with the columns of the source."""
        named = any(self.options.get(name, "").strip() for name in TABLE_NAMES)
        return named and bool(self.source) and self.operation.lower() != "delete"

    def make_table(self, storage: Storage, storage_options: Mapping[str, str]) -> Result:
        """Makes the table by the options (HoodieSparkSqlWriter). Its version is that of Hudi 1.2 where they name none.
        Raises the errors of a `create`.
        """
        from hudi_core.services.create.verb import Creation
        from hudi_core.services.write.work import WriteResult

        table = NewTable.of_writer(self.options)
        creation = Creation(storage, table, self.options, storage_options, like=self.source)
        made = creation.run(dry_run=self.dry_run)
        if not self.dry_run:
            return Result(document={"created": made.reason is None})
        reason = "a dry run: there is no table yet, and the write makes it"
        would = WriteResult(None, self.operation.upper(), 0, 0, 0, 0, reason=reason)
        return Result(document=would.to_dict(), reason=reason)

    def after_making(self, config: TableConfig) -> Request | None:
        """Its metadata table, with the indexes that Hudi's first write makes."""
        from hudi_core.services.create.verb import first_indexes

        names = first_indexes(config, self.options)
        if names is None or self.dry_run:
            return None
        shared = {item.name: getattr(self, item.name) for item in fields(Request) if item.name != "result_name"}
        return MetadataCreateRequest(**shared, partitions=names)

    def extent(self, context: TableContext, config: EngineConfig) -> Extent:
        """Returns the extent of the rows. Where file groups of the table may be rewritten, that of the table."""
        of_rows = Extent() if self.where else _RowsRequest.extent(self, context, config)
        if of_rows.for_spark or self.operation.lower() in ("bulk_insert", "insert"):
            return of_rows
        return Extent.of(context.slice_sizes(), config)

    def _work(self) -> RowsWork:
        from hudi_core.services.write.plan import RowsWork

        rows = replace(self._rows_from(), where=self.where)
        return RowsWork(self.operation.upper(), token=self.token, rows_from=rows)

    def _job(self) -> type[WriteJob]:
        from hudi_core.services.write.job import WriteJob

        return WriteJob


@dataclass(frozen=True, slots=True)
class InsertOverwriteRequest(_RowsRequest):
    """Replaces the partitions that the rows belong to, or `partitions`, or with `whole_table` all.

    The rows are those of `source`, or of `query`, or of `dataframe`. `source` is a Parquet file or a folder of them, on
    the table's storage or where its storage options are good. Spark answers `query`. `dataframe` is a `module:function`
    that returns a DataFrame: the driver imports it, and calls it with the Spark session and `dataframe_args` by their
    names. The same `token` again does nothing. With `dry_run` the table stays as it is; rows of a query or a DataFrame
    are kept beside it until they are counted.
    """

    verb = "insert_overwrite"
    partitions: tuple[str, ...] = ()
    whole_table: bool = False

    def check_fields(self) -> None:
        _RowsRequest.check_fields(self)
        _check_partitions(self.partitions)
        if self.whole_table and self.partitions:
            raise ConfigError(
                f"{WHAT}: partitions and whole_table exclude each other",
                remedy="leave `partitions` empty to replace all of the table, or turn `whole_table` off",
            )

    def _work(self) -> Overwrite:
        from hudi_core.services.overwrite.plan import Overwrite
        from hudi_core.timeline.actions.commit import Operation

        operation = Operation.INSERT_OVERWRITE_TABLE if self.whole_table else Operation.INSERT_OVERWRITE
        return Overwrite(operation, token=self.token, rows_from=self._rows_from(), partitions=self.partitions or None)

    def _job(self) -> type[OverwriteJob]:
        from hudi_core.services.overwrite.job import OverwriteJob

        return OverwriteJob


@dataclass(frozen=True, slots=True)
class DeletePartitionRequest(_WriteRequest):
    """Replaces the file groups of `partitions` by none. `token` and `dry_run` are as in InsertOverwriteRequest."""

    verb = "delete_partition"
    partitions: tuple[str, ...] = ()

    def check_fields(self) -> None:
        _WriteRequest.check_fields(self)
        _check_partitions(self.partitions)
        if not self.partitions:
            raise ConfigError(
                f"{WHAT}: {self.verb} needs a partition",
                remedy="name them in `partitions`, as their folders are named; of hudictl: --partition",
            )

    def extent(self, context: TableContext, config: EngineConfig) -> Extent:
        from hudi_core.metadata_table.partition_type import is_row_level

        if not any(map(is_row_level, context.config.metadata_partitions)):
            return Extent()
        return Extent.of(context.slice_sizes(), config)

    def _work(self) -> Overwrite:
        from hudi_core.services.overwrite.plan import Overwrite
        from hudi_core.timeline.actions.commit import Operation

        return Overwrite(Operation.DELETE_PARTITION, token=self.token, partitions=self.partitions or None)

    def _job(self) -> type[OverwriteJob]:
        from hudi_core.services.overwrite.job import OverwriteJob

        return OverwriteJob


def _check_partitions(partitions: Collection[str]) -> None:
    if len(set(partitions)) != len(partitions):
        raise ConfigError(f"{WHAT}: a partition is named twice", remedy="name each partition once in `partitions`")
