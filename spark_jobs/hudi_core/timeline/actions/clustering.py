"""The clustering plan: which file groups a clustering will replace (HoodieClusteringPlan).

The requested file is a HoodieRequestedReplaceMetadata. In layout 1 a clustering shares the action `replacecommit` with
overwrites, and only the requested file shows which of the two it is. In layout 2 its action is `clustering`. A plan
holds absolute paths of its writer; only a path's file name counts, and it must belong to the slice's file group in a
partition of this table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hudi_core.errors import CorruptFileError, FormatError
from hudi_core.model.names import FileGroupId, parse_base_file, parse_log_file
from hudi_core.model.partition import check_partition
from hudi_core.timeline.actions.commit import Operation
from hudi_core.timeline.actions.container import decode_datum
from hudi_core.timeline.actions.plan_fields import name_in_partition, numbers, parsed, records, text, texts
from hudi_core.timeline.actions.pretty_json import member

_REMEDY: Final = "the plan does not fit this table: find out which process wrote it"


@dataclass(frozen=True, slots=True)
class ClusteringSlice:
    """One file slice: plain names of files in `partition`; a slice may consist of log files only."""

    partition: str
    file_id: str
    base_file: str | None
    log_files: tuple[str, ...]

    @property
    def file_group(self) -> FileGroupId:
        """The file group that the clustering replaces."""
        return FileGroupId(self.partition, self.file_id)


@dataclass(frozen=True, slots=True)
class ClusteringGroup:
    """Slices that are merged into `output_groups` new file groups. `metrics` are Hudi's sizes and counts by name."""

    slices: tuple[ClusteringSlice, ...]
    output_groups: int = 1
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ClusteringPlan:
    """A clustering plan. `strategy` is kept as it is: its class name means nothing to this engine."""

    groups: tuple[ClusteringGroup, ...]
    strategy: Mapping[str, Any] | None = field(default=None, hash=False)
    extra_metadata: Mapping[str, str] | None = field(default=None, hash=False)
    preserve_hoodie_metadata: bool | None = None

    def file_groups(self) -> Iterator[FileGroupId]:
        """The file groups that the clustering replaces."""
        for group in self.groups:
            for item in group.slices:
                yield item.file_group


def decode_clustering_plan(data: bytes, *, path: str) -> ClusteringPlan | None:
    """Decodes the requested file of a replacecommit or clustering; None for that of an overwrite.

    Raises CorruptFileError when the bytes are no such file, FormatError when a slice names a file that cannot belong to
    it; both name `path`.
    """
    if not data:
        return None  # an overwrite may be requested with an empty file
    raw = decode_datum(data, path=path)
    if "operationType" not in raw:
        raise CorruptFileError("the Avro record is no requested replacecommit", path=path)
    if raw["operationType"] != Operation.CLUSTER:
        return None
    plan = member(raw, "clusteringPlan", dict, path=path, default={})
    decoded = ClusteringPlan(
        tuple(_group(item, path) for item in records(plan, "inputGroups", path=path)),
        member(plan, "strategy", dict, path=path),
        member(plan, "extraMetadata", dict, path=path),
        member(plan, "preserveHoodieMetadata", bool, path=path),
    )
    named = list(decoded.file_groups())
    if len(set(named)) != len(named):
        raise FormatError("the plan names a file group twice", path=path, remedy=_REMEDY)
    return decoded


def _group(raw: dict[str, Any], path: str) -> ClusteringGroup:
    slices = tuple(_slice(item, path) for item in records(raw, "slices", path=path))
    return ClusteringGroup(
        slices, member(raw, "numOutputFileGroups", int, path=path, default=1), numbers(raw, "metrics", path=path)
    )


def _slice(raw: dict[str, Any], path: str) -> ClusteringSlice:
    partition = check_partition(text(raw, "partitionPath", path=path), source=path)
    file_id = text(raw, "fileId", path=path)
    if not file_id:
        raise FormatError("a slice to cluster has no fileId", path=path, remedy=_REMEDY)
    base = text(raw, "dataFilePath", path=path)
    base_file = name_in_partition(base, partition, path=path, remedy=_REMEDY) if base else None
    logs = tuple(
        name_in_partition(item, partition, path=path, remedy=_REMEDY)
        for item in texts(raw, "deltaFilePaths", path=path)
    )
    owners = {parsed(parse_log_file, name, path=path, remedy=_REMEDY).file_id for name in logs}
    if base_file is not None:
        owners.add(parsed(parse_base_file, base_file, path=path, remedy=_REMEDY).file_id)
    if owners - {file_id}:
        message = f"the plan names files of {sorted(owners - {file_id})} for {file_id}"
        raise FormatError(message, path=path, remedy=_REMEDY)
    return ClusteringSlice(partition, file_id, base_file, logs)
