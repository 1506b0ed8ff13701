"""Pending files of clusterings and of overwrites (insert_overwrite, insert_overwrite_table, delete_partition).

The requested file is a HoodieRequestedReplaceMetadata; that of a clustering has its plan (HoodieClusteringPlan). In
layout 1 both have the action `replacecommit`, and only the requested file tells a clustering from an overwrite. In
layout 2 the action of a clustering is `clustering`. A plan holds absolute paths of its writer. Only a path's file name
counts, and it must belong to the slice's file group in a partition of this table. The inflight file is a
HoodieCommitMetadata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final

from hudi_core.errors import FormatError
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId, parse_base_file, parse_log_file
from hudi_core.model.partition import check_partition, join
from hudi_core.timeline.actions.commit import Operation, decode_commit, encode_inflight, to_come
from hudi_core.timeline.actions.compaction import MISSING_FIELD, MISSING_PARTITIONS
from hudi_core.timeline.actions.content import (
    decode_record,
    encode_datum,
    member,
    name_in_partition,
    numbers,
    parsed,
    records,
    text,
    text_map,
    texts,
)
from hudi_core.timeline.actions.write_stats import NULL_COMMIT, WriteStat
from hudi_core.timeline.instant import Action

_SCHEMA: Final = "HoodieRequestedReplaceMetadata"
_PLAN: Final = "org.apache.hudi.avro.model.HoodieClusteringPlan"
TOKEN_KEY: Final = "airflow_hudi.token"
"""The extra-metadata key of the token that identifies an overwrite when it is requested again."""
_REMEDY: Final = "the plan does not fit this table: find out which process wrote it"


@dataclass(frozen=True, slots=True)
class ClusteringSlice:
    """A slice to cluster: plain file names in `partition`, log files in the plan's order, with change-data logs."""

    partition: str
    file_id: str
    base_file: str | None
    log_files: tuple[str, ...]

    @property
    def file_group(self) -> FileGroupId:
        return FileGroupId(self.partition, self.file_id)

    @property
    def data_logs(self) -> tuple[str, ...]:
        """The log files that hold rows, in scan order: without change-data logs."""
        parsed_names = sorted((parse_log_file(name).scan_order, name) for name in self.log_files)
        return tuple(name for order, name in parsed_names if not order[-1])


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """Slices whose rows go into about `outputs` new file groups. `metrics` are Hudi's sizes and counts by name."""

    slices: tuple[ClusteringSlice, ...]
    outputs: int
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    """What a clustering replaces. `strategy_class` is the execution strategy that its planner chose, `strategy_params`
    are the strategy's parameters: sort columns, layout, bytes of a file. `preserves_metadata` says that rows keep their
    commit times and sequence numbers. `missing_partitions` is that of CompactionPlan.
    """

    groups: tuple[ClusteringGroup, ...]
    strategy_class: str = ""
    strategy_params: Mapping[str, str] = field(default_factory=dict, hash=False)
    preserves_metadata: bool = True
    extra_metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    missing_partitions: tuple[str, ...] | None = None

    @property
    def slices(self) -> tuple[ClusteringSlice, ...]:
        return tuple(item for group in self.groups for item in group.slices)

    def file_groups(self) -> list[FileGroupId]:
        return [item.file_group for item in self.slices]


def decode_clustering_plan(data: bytes, *, path: str) -> ClusteringPlan | None:
    """Decodes a requested file; None for an overwrite. Raises CorruptFileError, and FormatError when a slice names a
    file that cannot belong to it.
    """
    if not data:
        return None  # an overwrite may be requested with an empty file
    return clustering_plan_of(decode_record(data, "operationType", "requested replacecommit", path=path), path=path)


def clustering_plan_of(raw: dict[str, Any], *, path: str) -> ClusteringPlan | None:
    """Returns the plan of a requested file that is decoded already (`{}`: it was empty). See decode_clustering_plan."""
    if raw.get("operationType") != Operation.CLUSTER:
        return None
    plan = member(raw, "clusteringPlan", dict, path=path, default={})
    strategy = member(plan, "strategy", dict, path=path, default={})
    decoded = ClusteringPlan(
        tuple(_group(item, path) for item in records(plan, "inputGroups", path=path)),
        text(strategy, "strategyClassName", path=path),
        text_map(strategy, "strategyParams", path=path),
        bool(member(plan, "preserveHoodieMetadata", bool, path=path, default=True)),
        text_map(plan, "extraMetadata", path=path),
        None if plan.get(MISSING_PARTITIONS) is None else tuple(texts(plan, MISSING_PARTITIONS, path=path)),
    )
    if len(set(decoded.file_groups())) != len(decoded.slices):
        raise FormatError("the plan names a file group twice", path=path, remedy=_REMEDY)
    return decoded


def _group(raw: dict[str, Any], path: str) -> ClusteringGroup:
    outputs = member(raw, "numOutputFileGroups", int, path=path, default=1)
    slices = tuple(_slice(item, path) for item in records(raw, "slices", path=path))
    return ClusteringGroup(slices, outputs, numbers(raw, "metrics", path=path))


def _slice(raw: dict[str, Any], path: str) -> ClusteringSlice:
    partition = check_partition(text(raw, "partitionPath", path=path), source=path)
    file_id = text(raw, "fileId", path=path)
    if not file_id:
        raise FormatError("a slice to cluster has no fileId", path=path, remedy=_REMEDY)
    base = text(raw, "dataFilePath", path=path)
    base_file = name_in_partition(base, partition, path=path, remedy=_REMEDY) if base else None
    paths = texts(raw, "deltaFilePaths", path=path)
    logs = tuple(name_in_partition(item, partition, path=path, remedy=_REMEDY) for item in paths)
    owners = {parsed(parse_log_file, name, path=path, remedy=_REMEDY).file_id for name in logs}
    if base_file is not None:
        owners.add(parsed(parse_base_file, base_file, path=path, remedy=_REMEDY).file_id)
    if owners - {file_id}:
        message = f"the plan names files of {sorted(owners - {file_id})} for {file_id}"
        raise FormatError(message, path=path, remedy=_REMEDY)
    return ClusteringSlice(partition, file_id, base_file, logs)


def encode_clustering_plan(plan: ClusteringPlan, address: Callable[[str], str]) -> bytes:
    """Returns the requested file. `address` makes the full address of a path, which real Hudi opens. The schema is that
    of 0.15, or of 1.x when `missing_partitions` needs it. Names the branches of large values, which the codec would
    find by checking each value.
    """
    clustering: dict[str, Any] = {
        "inputGroups": ("array", [_group_to_avro(group, address) for group in plan.groups]),
        "strategy": {"strategyClassName": plan.strategy_class, "strategyParams": dict(plan.strategy_params)},
        "extraMetadata": dict(plan.extra_metadata),
        "preserveHoodieMetadata": plan.preserves_metadata,
    }
    if plan.missing_partitions is not None:
        clustering[MISSING_PARTITIONS] = list(plan.missing_partitions)
    requested = {"operationType": Operation.CLUSTER, "clusteringPlan": (_PLAN, clustering), "extraMetadata": {}}
    return _encoded(requested, of_hudi_1=plan.missing_partitions is not None)


def _encoded(requested: dict[str, Any], *, of_hudi_1: bool) -> bytes:
    return encode_datum(
        _SCHEMA, requested, later_fields=[MISSING_FIELD] if of_hudi_1 else (), later_in="clusteringPlan"
    )


def encode_inflight_clustering(plan: ClusteringPlan, *, layout: int) -> bytes:
    """Returns the inflight file: the file groups that will be replaced. In Hudi it is empty. A writer of 0.15 or 1.0
    that checks for conflicts then sees no file group in an inflight clustering
    (MetadataConversionUtils.createMetaWrapper reads this file, not the plan).
    """
    profile: dict[str, list[WriteStat]] = {}
    for item in plan.slices:
        prev = NULL_COMMIT if item.base_file is None else parse_base_file(item.base_file).instant
        profile.setdefault(item.partition, []).append(to_come(item.file_id, prev))
    return encode_inflight(Operation.CLUSTER, profile, layout=layout)


def _group_to_avro(group: ClusteringGroup, address: Callable[[str], str]) -> dict[str, Any]:
    return {
        "slices": ("array", [_slice_to_avro(item, address) for item in group.slices]),
        "metrics": dict(group.metrics),
        "numOutputFileGroups": group.outputs,
    }


def _slice_to_avro(item: ClusteringSlice, address: Callable[[str], str]) -> dict[str, Any]:
    return {
        "dataFilePath": "" if item.base_file is None else address(join(item.partition, item.base_file)),
        "deltaFilePaths": [address(join(item.partition, name)) for name in item.log_files],
        "fileId": item.file_id,
        "partitionPath": item.partition,
        "bootstrapFilePath": "",
    }


def encode_requested_overwrite(
    operation: str, *, token: str | None, layout: int, names_deletes: bool, process: Mapping[str, str] | None = None
) -> bytes:
    """Returns the requested file: all null, in the schema of Hudi 0.15 (layout 1) or of 1.x. With `names_deletes`, that
    of a delete_partition has the operation's name, as in Hudi 1.2. The token, and the `process`
    (transaction.writer_heartbeats), are this engine's own.
    """
    named = names_deletes and operation == Operation.DELETE_PARTITION
    extra = {**({} if token is None else {TOKEN_KEY: token}), **(process or {})}
    requested = {
        "operationType": operation if named else None,
        "extraMetadata": extra if extra or named else None,
        "version": 1 if named else None,
    }
    return _encoded(requested, of_hudi_1=layout == 2)


def encode_inflight_overwrite(operation: str, rows: Mapping[str, int], *, layout: int) -> bytes:
    """Returns the inflight file: how many `rows` will go to each partition."""
    profile = {partition: (to_come(inserts=count),) for partition, count in rows.items()}
    return encode_inflight(operation, profile, layout=layout)


def encode_requested_write(operation: str, extra: Mapping[str, str], *, layout: int) -> bytes:
    """Returns the requested file of a commit or deltacommit of this engine, a HoodieCommitMetadata with `extra`
    metadata. Hudi's is empty, and Hudi reads none.
    """
    return encode_inflight(operation, {}, layout=layout, extra=extra)


def requested_extra(data: bytes, action: str, *, path: str) -> Mapping[str, str]:
    """Returns the extra metadata of a requested replacecommit, commit or deltacommit. Raises CorruptFileError naming
    `path`.
    """
    if not data:
        return {}
    if action != Action.REPLACE_COMMIT:
        extra = decode_commit(data, path=path, stats=False).extra_metadata
        return {key: value for key, value in extra.items() if value is not None}
    raw = decode_record(data, "operationType", "requested replacecommit", path=path)
    return text_map(raw, "extraMetadata", path=path)
