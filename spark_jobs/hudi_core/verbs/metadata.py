"""The verbs metadata create, update and drop, and their documents. hudi_health/verbs has metadata validate."""

from __future__ import annotations

import re
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hudi_core.config.engine_config import EngineConfig, Extent
from hudi_core.config.metadata_config import STATISTICS_COLUMNS
from hudi_core.config.table_config import TableConfig
from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_core.request.results import Result
from hudi_core.verbs.request import WHAT, Request, Work

if TYPE_CHECKING:
    from hudi_core.services.context import TableContext
    from hudi_core.services.metadata.maintain import Updated
    from hudi_core.transaction.owner import Owner

_FILES: Final = "files"
_COLUMN_STATS: Final = "column_stats"
_PARTITION: Final = re.compile(r"[^./\\\0][^/\\\0]{0,254}")
_THERE: Final = "all of them are there"
_NOT_THERE: Final = "none of them was there"
_EPOCHS: Final = 1 << 30
"""These verbs have no claim with an epoch: a random number in file names keeps two attempts apart."""


@dataclass(frozen=True, slots=True)
class _ColumnsRequest(Request):
    partitions: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def check_fields(self) -> None:
        _check_partitions(self.partitions)
        if any(not name.strip() for name in self.columns):
            raise ConfigError(
                f"{WHAT}: a column has no name", remedy="name columns of the table, nested ones with dots"
            )


@dataclass(frozen=True, slots=True)
class MetadataCreateRequest(_ColumnsRequest):
    """Initializes partitions of the metadata table; `columns`, by dotted names, are added to `column_stats`."""

    verb = "metadata_create"
    has_units = True

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        """Returns a result where all partitions are there, and no column is named."""
        from hudi_core.services.metadata.maintain import lost_partitions

        there = context.config.metadata_partitions
        if self.columns or not {_FILES, *self.partitions} <= there or lost_partitions(context):
            return None
        return Result(document={"created": [], "partitions": sorted(there), "columns": [], "reason": _THERE})

    def extent(self, context: TableContext, config: EngineConfig) -> Extent:
        if not self.columns and {*self.partitions} <= {_FILES}:
            return Extent()
        return Extent.of(context.slice_sizes(), config)

    def run(self, work: Work) -> Result:
        """Creates the partitions. The named columns initialize `column_stats`, or are added to an existing one."""
        from hudi_core.services.metadata.columns import add_columns, check_columns
        from hudi_core.services.metadata.initialization import index_warnings
        from hudi_core.services.metadata.maintain import create_metadata, lost_partitions

        context, engine, owner, epoch = work.context, work.engine, work.owner, _new_epoch()
        before = context.config.metadata_partitions - lost_partitions(context)
        is_new = bool(self.columns) and _COLUMN_STATS not in before
        if self.columns:
            check_columns(context, self.columns)
        options = {**context.options, STATISTICS_COLUMNS.name: ",".join(self.columns)} if is_new else context.options
        names = {*self.partitions, *((_COLUMN_STATS,) if is_new else ())}
        config = create_metadata(replace(context, options=options), names, engine, owner, epoch)
        added = tuple(self.columns)
        if self.columns and not is_new:
            added = add_columns(replace(context, config=config), self.columns, engine, owner, epoch)
        after = config.metadata_partitions
        warnings = index_warnings(config, names - before)
        document = {
            "created": sorted(after - before),
            "partitions": sorted(after),
            "columns": list(added),
            "reason": None if after - before or added else _THERE,
        }
        return Result(document=document | ({"warnings": warnings} if warnings else {}))


@dataclass(frozen=True, slots=True)
class MetadataDropRequest(_ColumnsRequest):
    """Removes partitions of the metadata table, or `columns` of `column_stats`; by default the whole table."""

    verb = "metadata_drop"

    def check_fields(self) -> None:
        _ColumnsRequest.check_fields(self)
        if self.columns and set(self.partitions) - {_COLUMN_STATS}:
            raise ConfigError(
                f"{WHAT}: columns are dropped from {_COLUMN_STATS}, not with {', '.join(self.partitions)}",
                remedy="drop one after the other",
            )

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        """Returns a result where the partitions are not there and left nothing. Columns are left to the run."""
        from hudi_core.services.metadata.index_drop import left_over

        there = context.config.metadata_partitions
        if self.columns or there & {*self._names} or left_over(context.storage, context.config, self._names):
            return None
        return Result(document=_dropped([], sorted(there), [], is_nothing=True))

    def run(self, work: Work) -> Result:
        from hudi_core.services.metadata.columns import drop_columns
        from hudi_core.services.metadata.index_drop import drop_metadata, left_over

        context, before = work.context, work.context.config.metadata_partitions
        if self.columns:
            columns = [*drop_columns(context, self.columns, work.owner)]
            return Result(document=_dropped([], sorted(before), columns, is_nothing=not columns))
        # Partitions that an interrupted drop delisted are dropped, too.
        before = before.union(left_over(context.storage, context.config, self._names))
        after = drop_metadata(context, self._names, work.owner).metadata_partitions
        return Result(document=_dropped(sorted(before - after), sorted(after), [], is_nothing=not before - after))

    @property
    def _names(self) -> tuple[str, ...]:
        return self.partitions or (_FILES,)


@dataclass(frozen=True, slots=True)
class MetadataUpdateRequest(Request):
    """Applies missing instants to the metadata table, which must have `partitions`."""

    verb = "metadata_update"
    has_units = True
    partitions: tuple[str, ...] = ()

    def check_fields(self) -> None:
        _check_partitions(self.partitions)

    def extent(self, context: TableContext, config: EngineConfig) -> Extent:
        from hudi_core.metadata_table.timeline import MetadataTimeline
        from hudi_core.services.metadata.catch_up import missing_actions

        if not context.has_metadata_table:
            return Extent()
        # The update may read what each of them wrote.
        return Extent(max(1, len(missing_actions(context, MetadataTimeline(context.storage, context.config)))))

    def nothing(self, context: TableContext, owner: Owner) -> Result | None:
        from hudi_core.services.metadata.maintain import updated_already

        self._check_partitions(context)
        done = updated_already(context)
        return None if done is None else _updated(context, done)

    def run(self, work: Work) -> Result:
        """Updates `partitions` and all others: deltacommits are of the metadata table as a whole."""
        from hudi_core.services.metadata.maintain import update_metadata

        self._check_partitions(work.context)
        return _updated(work.context, update_metadata(work.context, work.engine, work.owner, _new_epoch()))

    def _check_partitions(self, context: TableContext) -> None:
        absent = sorted({*self.partitions} - context.config.metadata_partitions) if context.has_metadata_table else []
        if absent:
            raise ConfigError(
                f"the metadata table has no partition {', '.join(absent)}",
                path=context.config.path,
                remedy="create it with `hudictl metadata create TABLE --partition …`",
            )


def _updated(context: TableContext, done: Updated) -> Result:
    return Result(
        document={
            "applied": list(done.applied),
            "rebuilt": sorted(done.rebuilt),
            "widened": list(done.widened),
            "incomplete": list(done.incomplete),
            "rolled_back": list(done.upkeep.rolled_back),
            "compacted": {
                "instants": list(done.upkeep.compacted.instants),
                "files": done.upkeep.compacted.files,
                "bytes": done.upkeep.compacted.size,
            },
            "cleaned": {"instants": list(done.upkeep.cleaned.instants), "files": done.upkeep.cleaned.files},
            "archived": len(done.upkeep.archived.instants),
            "partitions": sorted(TableConfig.load(context.storage).metadata_partitions),
        }
    )


def _new_epoch() -> int:
    return 1 + secrets.randbelow(_EPOCHS)


def _dropped(dropped: list[str], partitions: list[str], columns: list[str], *, is_nothing: bool) -> dict[str, Any]:
    reason = _NOT_THERE if is_nothing else None
    return {"dropped": dropped, "partitions": partitions, "columns": columns, "reason": reason}


def _check_partitions(names: tuple[str, ...]) -> None:
    wrong = next((name for name in names if _PARTITION.fullmatch(name) is None), None)
    if wrong is not None:
        raise ConfigError(
            f"{wrong!r} is no partition of a metadata table",
            remedy="name one such as files, column_stats or record_index",
        )
