"""Clustering without sort columns: slices are joined, and row groups that are large enough are copied, not decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_core.codec.parquet.statistics import SPARK_VERSION, proleptic_version
from hudi_core.errors import ExecutionError
from hudi_core.filegroup.read.base_file import open_base_file
from hudi_core.model.partition import check_file_name, check_partition, join
from hudi_core.services.rewriting.new_file_groups import DEFAULT_CODEC, FileGroupWriter, NewFile
from hudi_core.services.rewriting.row_group_copies import RowGroupPlan, copy_source
from hudi_core.services.rewriting.slice_rows import ClusteringTarget, SliceCount, SliceRows, open_slice
from hudi_core.storage.arrow_store import open_data_storage
from hudi_core.timeline.actions.replacecommit import ClusteringSlice

if TYPE_CHECKING:
    from hudi_core.engine.protocol import TaskAttempt
    from hudi_core.storage.base import Storage

UNIT = "clustering unit"
_NO_KEYS = pa.array([], pa.string())


@dataclass(frozen=True, slots=True)
class JoinUnit:
    """Slices of one partition that become the file groups `<prefix>-0` and so on: one, unless it gets too large."""

    target: ClusteringTarget
    partition: str
    slices: tuple[ClusteringSlice, ...]
    prefix: str


@dataclass(frozen=True, slots=True)
class Clustered:
    """What a task wrote and read. A shard of an exchange does one of the two."""

    files: tuple[NewFile, ...] = ()
    counts: tuple[SliceCount, ...] = ()


def join_slices(unit: JoinUnit, attempt: TaskAttempt) -> Clustered:
    """The UnitTask of a clustering without sort columns. Memory: that of one slice (open_slice), a row group of output
    or a column chunk that is copied.

    Raises HudiError only, as open_slice, and ExecutionError where writing fails.
    """
    storage = open_data_storage(unit.target.uri, unit.target.storage_options)
    partition = check_partition(unit.partition, source=UNIT)
    prefix = check_file_name(unit.prefix, source=UNIT)
    try:
        codec, version = form_of(storage, unit.target, unit.slices)
        counts = []
        with FileGroupWriter(
            storage, unit.target.files, partition, prefix, codec, attempt, spark_version=version
        ) as writer:
            for item in unit.slices:
                with open_slice(storage, unit.target, item) as rows:
                    _append(rows, writer)
                    counts.append(rows.count())
            return Clustered(writer.close(), tuple(counts))
    except (pa.ArrowException, MemoryError) as error:
        raise ExecutionError(f"joining file slices failed: {error!r}", path=partition) from error


def form_of(storage: Storage, target: ClusteringTarget, slices: Sequence[ClusteringSlice]) -> tuple[str, str | None]:
    """The compression of new files: that of the options, else of the first base file there is; and the version of Spark
    in their footers (proleptic_version). Reads the footers of the base files, up to one that names none.
    """
    codec, footers = target.config.parquet_codec, []
    for item in slices:
        if item.base_file is not None:
            with open_base_file(storage, join(item.partition, item.base_file)) as base:
                codec = codec or base.compression
                footers.append(base.footer)
            if SPARK_VERSION not in footers[-1]:
                break
    return codec or DEFAULT_CODEC, proleptic_version(footers)


def _append(rows: SliceRows, writer: FileGroupWriter) -> None:
    base, target = rows.base, rows.target
    source = None
    if base is not None and base.num_rows and rows.merge is None and not target.files.stamps_rows:
        source = copy_source(base, writer.handle.schema, target.policy, target.config)
    if base is None or source is None:
        for batch in rows.batches():
            writer.write(batch)
        return
    with writer.joining(base) as joined:
        keys = _NO_KEYS if target.files.has_meta else None
        plan = RowGroupPlan(source, keys, target.config, writer.codec.upper(), with_keys=not joined)
        for part in plan.parts():
            if part.copied:
                writer.copy(source, part.numbers[0], part.keys)
                rows.rows += base.metadata.row_group(part.numbers[0]).num_rows
                continue
            for batch in rows.base_rows(row_groups=part.numbers):
                writer.write(batch)
                rows.rows += batch.num_rows
    rows.check()
