"""Tags the rows of a write with the file groups of their keys: which units read which keys, in how many shards; what
must come out of it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Final

from hudi_core.engine.protocol import Engine
from hudi_core.engine.serializer import to_text
from hudi_core.errors import UnsupportedError
from hudi_core.filegroup.merge.table_policy import MergePolicy, key_fields
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.query.context import reader_spec
from hudi_core.services.context import TableContext
from hudi_core.services.rewriting.proof import unproved
from hudi_core.services.source.files import UNIT_BYTES, CountedRows
from hudi_core.services.write.plan import TAGGING, RowsWork, WritePlan, merges_fields
from hudi_core.services.write.tagging.keys import KEYS_PER_SHARD, KeysUnit, ordering_of, produce_keys
from hudi_core.services.write.tagging.lookup import slices_of_keys
from hudi_core.services.write.tagging.tag import Tagged, TagTarget, tag_shard
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice

_MOST_WANTED = 1_000_000
_ROW_BYTES: Final = 16
"""A base file has no more rows than bytes divided by this, as a guess for the number of shards."""

log = logging.getLogger(__name__)


def tag_rows(
    context: TableContext,
    engine: Engine,
    timeline: Timeline,
    plan: WritePlan,
    work: RowsWork,
    rows: CountedRows,
    folder: str,
    run_epoch: int,
) -> list[Tagged]:
    """Stages the tagged `rows` of the work in `folder`, and returns the files. `plan` was made at `timeline`. Raises
    ExecutionError where rows were lost or doubled, UnsupportedError for a predicate whose rows are not where their
    columns say.
    """
    is_delete = work.operation == Operation.DELETE
    slices: Mapping[int, FileSlice] = {number: item for number, item in enumerate(plan.slices) if item.base_file}
    if plan.buckets is not None or work.operation not in TAGGING:
        slices = {}
    keys = _keys(rows, {item.file_group.partition for item in slices.values()})
    if keys is not None:
        slices = slices_of_keys(context, timeline, slices, keys, plan.logged)
    wanted = _wanted(keys or {}, [item.file_group.partition for item in slices.values()])
    row_bytes = max(_ROW_BYTES, rows.size // max(1, rows.count))
    of_table = 0 if wanted else sum(item.base_file.size for item in slices.values() if item.base_file) // row_bytes
    shards = 1 + max((rows.count + of_table) // KEYS_PER_SHARD, rows.size // UNIT_BYTES)
    target = TagTarget(
        context.uri,
        dict(context.storage_options),
        folder,
        rows.rows,
        tuple(item.file_group.partition for item in plan.slices),
        plan.buckets,
        drops_new=is_delete,
        merges_fields=not is_delete and merges_fields(MergePolicy.for_table(context.config, context.options)),
        positions=plan.positions,
    )
    units = _units(context, plan, rows, shards, slices, wanted)
    tagged = engine.exchange(produce_keys, units, partial(tag_shard, target), shards=shards, run_epoch=run_epoch)
    is_repeated = any(shard.repeated for shard in tagged)
    if is_repeated and not rows.rows.scope.by_rows and any(file_slice.log_files for file_slice in slices.values()):
        # Base files of several file groups have a key. A log file may have deleted its row in some of them: a row that
        # went there, too, would be there twice. Few tables have such keys, so only these pay for reading log files.
        counted = replace(rows, rows=replace(rows.rows, scope=replace(rows.rows.scope, in_record_index=True)))
        return tag_rows(context, engine, timeline, plan, work, counted, folder, run_epoch)
    there = sum((Counter(item.rows) for item in tagged), Counter[str]())
    newer = sum((Counter(item.dropped) for item in tagged), Counter[str]())
    if there + newer != Counter(rows.by_partition):
        raise unproved(f"{rows.count} rows were counted, but {there.total()} and {newer.total()} newer ones tagged")
    absent = sum(item.absent for item in tagged)
    if absent and work.selects:
        raise UnsupportedError(
            f"{absent} rows that the predicate selects are in another partition than their columns say",
            path=context.uri,
            remedy="delete them with Hudi, or by a source with the values of their partitions",
        )
    if newer:
        log.info("%d rows of the source have a newer row of their key", newer.total())
    return tagged


def _units(
    context: TableContext,
    plan: WritePlan,
    rows: CountedRows,
    shards: int,
    slices: Mapping[int, FileSlice],
    wanted: Mapping[str, tuple[str, ...]],
) -> list[KeysUnit]:
    shared = rows.rows, context.uri, dict(context.storage_options), key_fields(context.config), shards
    ordered, by_rows = ordering_of(rows.rows) is not None, rows.rows.scope.by_rows
    merged = plan.logged.union(at for at, item in slices.items() if ordered or (by_rows and item.log_files))
    reader = _reader(context) if merged else ""
    return [
        *(KeysUnit(*shared, number, part=part) for number, part in enumerate(rows.parts)),
        *(
            KeysUnit(
                *shared,
                number,
                file_slice=item,
                wanted=wanted.get(item.file_group.partition),
                logged=number in plan.logged,
                reader=reader if number in merged else "",
                positions=plan.positions,
            )
            for number, item in slices.items()
        ),
    ]


def _reader(context: TableContext) -> str:
    timeline = context.active.load()
    schema = table_schema(context.storage, context.config, timeline)
    return to_text(reader_spec(context, schema, timeline, merge_logs=True))


def _keys(rows: CountedRows, partitions: Set[str]) -> Mapping[str, frozenset[str]] | None:
    """Returns the keys to look for in each of the partitions; None where the rows' keys are not known."""
    if rows.keys is None:
        return None
    if rows.rows.scope.is_global:
        return dict.fromkeys(partitions, frozenset().union(*rows.keys.values()))
    return {name: rows.keys.get(name, frozenset()) for name in partitions}


def _wanted(keys: Mapping[str, frozenset[str]], partitions: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Returns the keys to look for in base files, by partition; none where the units of all base files, in these
    partitions, would have more than _MOST_WANTED: then all keys are looked for.
    """
    if sum(len(keys.get(name, ())) for name in partitions) > _MOST_WANTED:
        return {}
    return {name: tuple(sorted(keys[name])) for name in {*partitions} & keys.keys()}
