"""The compaction plan (HoodieCompactionPlan), with every path in it checked before it can be followed.

A plan is a file in the table, so any process that can write there can name any path. No path of a plan is followed:
each operation must name a partition below the table and plain file names that parse and belong to the operation's own
file group and base instant. model/partition.py and content.py have the two checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Final

from hudi_core.errors import FormatError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId, parse_base_file, parse_log_file
from hudi_core.model.partition import check_file_name, check_partition
from hudi_core.timeline.actions.content import (
    decode_record,
    encode_datum,
    member,
    name_in_partition,
    numbers,
    parsed,
    plan_version,
    records,
    text,
    texts,
)

PLAN_VERSION: Final = 2
"""Plans of version 2 hold file names, plans of version 1 full paths (CompactionPlanMigrator)."""

IO_MB: Final = "TOTAL_IO_MB"
LOG_BYTES: Final = "TOTAL_LOG_FILES_SIZE"
"""Metrics of a slice by which strategies choose (FileSliceMetricUtils)."""
NO_BASE_BYTES: Final = 120 << 20
"""The size that Hudi assumes for a base file that does not exist yet (the default of hoodie.parquet.max.file.size)."""
MIB: Final = 1 << 20
MISSING_PARTITIONS: Final = "missingSchedulePartitions"
MISSING_FIELD: Final = {
    "name": MISSING_PARTITIONS,
    "type": ["null", {"type": "array", "items": {"type": "string", "avro.java.string": "String"}}],
    "default": None,
}
_REMEDY: Final = (
    "the plan does not fit this table: find out which process wrote it. Do not simply delete it: later log files "
    "belong to it"
)


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """One operation, with plain file names in `partition`. `log_files` are in scan order, without change-data logs;
    `metrics` are Hudi's.
    """

    partition: str
    file_id: str
    base_instant: str
    base_file: str | None
    log_files: tuple[str, ...]
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)
    cdc_files: tuple[str, ...] = ()

    @property
    def file_group(self) -> FileGroupId:
        return FileGroupId(self.partition, self.file_id)

    @property
    def data_logs(self) -> tuple[str, ...]:
        """The log files that hold rows, in scan order, as in ClusteringSlice."""
        return self.log_files


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A compaction or log compaction plan. `missing_partitions` are those that the planner left out, wholly or in part.
    The next planning of Hudi 1.0.2 and later looks only into these and into what was written since. It is None in plans
    of older releases.
    """

    operations: tuple[CompactionOperation, ...]
    extra_metadata: Mapping[str, str] | None = None
    strategy: Mapping[str, Any] | None = None
    preserve_hoodie_metadata: bool | None = False
    missing_partitions: tuple[str, ...] | None = None


def decode_compaction_plan(data: bytes, *, path: str, layout: int = 1) -> CompactionPlan:
    """Decodes the plan in `<T>.compaction.requested`. In layout 1, a log file's name has the base instant of its slice;
    in layout 2, it has the instant that wrote the file, which may be older. Raises CorruptFileError when the bytes are
    no plan, FormatError when an operation names a file that cannot be its own, UnsupportedError for bootstrap files.
    """
    raw = decode_record(data, "operations", "compaction plan", path=path)
    version = plan_version(raw, "compaction plan", path=path)
    operations = tuple(_operation(item, version, layout, path) for item in records(raw, "operations", path=path))
    groups = {operation.file_group for operation in operations}
    if len(groups) != len(operations):
        raise FormatError("the plan names a file group twice", path=path, remedy=_REMEDY)
    extra, strategy = member(raw, "extraMetadata", dict, path=path), member(raw, "strategy", dict, path=path)
    preserves = member(raw, "preserveHoodieMetadata", bool, path=path)
    missing = None if raw.get(MISSING_PARTITIONS) is None else tuple(texts(raw, MISSING_PARTITIONS, path=path))
    return CompactionPlan(operations, extra, strategy, preserves, missing)


def _operation(raw: dict[str, Any], version: int, layout: int, path: str) -> CompactionOperation:
    partition = check_partition(text(raw, "partitionPath", path=path), source=path)
    file_id, base_instant = _required(raw, "fileId", path), _required(raw, "baseInstantTime", path)
    if raw.get("bootstrapFilePath"):
        raise UnsupportedError(
            "the plan names a bootstrap file", path=path, remedy="compact bootstrapped tables with Hudi itself"
        )
    base = text(raw, "dataFilePath", path=path)
    base_file = _name(base, partition, version, path) if base else None
    if base_file is not None:
        name = parsed(parse_base_file, base_file, path=path, remedy=_REMEDY)
        if (name.file_id, name.instant) != (file_id, base_instant):
            what = f"base file {base_file!r} does not belong to {file_id} at {base_instant}"
            raise FormatError(what, path=path, remedy=_REMEDY)
    named = [_name(item, partition, version, path) for item in texts(raw, "deltaFilePaths", path=path)]
    logs = sorted((_log(name, file_id, base_instant if layout == 1 else None, path), name) for name in named)
    if len(set(named)) != len(named):
        raise FormatError(f"the plan names a log file of {file_id} twice", path=path, remedy=_REMEDY)
    if base_file is None and not logs:
        raise FormatError(f"the plan names no file for {file_id}", path=path, remedy=_REMEDY)
    return CompactionOperation(
        partition,
        file_id,
        base_instant,
        base_file,
        tuple(name for order, name in logs if not order[-1]),
        numbers(raw, "metrics", path=path),
        tuple(name for order, name in logs if order[-1]),
    )


def _required(raw: dict[str, Any], name: str, path: str) -> str:
    value = text(raw, name, path=path)
    if not value:
        raise FormatError(f"a compaction operation has no {name}", path=path, remedy=_REMEDY)
    return value


def _name(value: str, partition: str, version: int, path: str) -> str:
    if version == PLAN_VERSION:
        return check_file_name(value, source=path)
    return name_in_partition(value, partition, path=path, remedy=_REMEDY)


def _log(name: str, file_id: str, base_instant: str | None, path: str) -> tuple[str, int, str, bool]:
    """Checks a log file of the operation and returns its scan order. `base_instant` None: it is not in the name."""
    found = parsed(parse_log_file, name, path=path, remedy=_REMEDY)
    if found.file_id != file_id or not found.instant:
        raise FormatError(f"log file {name!r} does not belong to {file_id}", path=path, remedy=_REMEDY)
    # A change-data log is named after its commit in both layouts, so only its file id can be checked.
    if base_instant is not None and not found.cdc and found.instant != base_instant:
        raise FormatError(
            f"log file {name!r} does not belong to {file_id} at {base_instant}", path=path, remedy=_REMEDY
        )
    return found.scan_order


def encode_compaction_plan(plan: CompactionPlan) -> bytes:
    """Returns a version 2 plan in the schema of Hudi 0.15, or of 1.x when it has `missing_partitions`. Names the branch
    of the operations, which the codec would find by checking each value.
    """
    datum: dict[str, Any] = {
        "operations": ("array", [_to_avro(operation) for operation in plan.operations]),
        "extraMetadata": None if plan.extra_metadata is None else dict(plan.extra_metadata),
        "version": PLAN_VERSION,
        "strategy": None if plan.strategy is None else dict(plan.strategy),
        "preserveHoodieMetadata": plan.preserve_hoodie_metadata,
    }
    if plan.missing_partitions is None:
        return encode_datum("HoodieCompactionPlan", datum)
    datum[MISSING_PARTITIONS] = list(plan.missing_partitions)
    return encode_datum("HoodieCompactionPlan", datum, later_fields=[MISSING_FIELD])


def _to_avro(operation: CompactionOperation) -> dict[str, Any]:
    logs = [*operation.log_files, *operation.cdc_files]
    if len(logs) > 1:
        logs.sort(key=lambda name: (parse_log_file(name).scan_order, name))
    return {
        "baseInstantTime": operation.base_instant,
        "deltaFilePaths": logs,
        "dataFilePath": operation.base_file,
        "fileId": operation.file_id,
        "partitionPath": operation.partition,
        "metrics": dict(operation.metrics),
    }


def metrics_of(
    slices: Iterable[tuple[int | None, Iterable[int]]], *, no_base_bytes: int = NO_BASE_BYTES
) -> dict[str, float]:
    """Returns the metrics of slices that are rewritten together, from the bytes of base file (or None) and log files.
    MiB are whole ones. A new base file counts as large as the present one, or as `no_base_bytes`.
    """
    count = logged = stored = written = 0
    for base_bytes, log_bytes in slices:
        sizes = list(log_bytes)
        count, logged = count + len(sizes), logged + sum(sizes)
        stored, written = stored + (base_bytes or 0), written + (base_bytes or no_base_bytes)
    read_mb, written_mb = (stored + logged) // MIB, written // MIB
    return {
        "TOTAL_LOG_FILES": float(count),
        IO_MB: float(read_mb + written_mb),
        "TOTAL_IO_READ_MB": float(read_mb),
        LOG_BYTES: float(logged),
        "TOTAL_IO_WRITE_MB": float(written_mb),
    }
