"""The Avro files of an indexing action: the plan (HoodieIndexPlan) and what was built (HoodieIndexCommitMetadata)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.model.partition import check_file_name
from hudi_core.timeline.actions.content import decode_record, encode_datum, member, records, text, text_map

PLAN_VERSION: Final = 1
_INFOS: Final = "indexPartitionInfos"
_TEXTS: Final = {
    "type": "map",
    "values": {"type": "string", "avro.java.string": "String"},
    "avro.java.string": "String",
}
_EXTRA: Final = {"name": "extraMetadata", "type": ["null", _TEXTS], "default": None}


@dataclass(frozen=True, slots=True)
class IndexedPartition:
    """A partition of the metadata table, and the last instant in it, `""` for none. Hudi writes no `extra`."""

    name: str
    up_to: str
    extra: Mapping[str, str] = field(default_factory=dict)


def encode_index_plan(partitions: Sequence[IndexedPartition], *, extra: bool) -> bytes:
    """Returns `<T>.indexing.requested`. `extra` adds the field extraMetadata (TableVersion.index_plan_extra)."""
    return _encoded("HoodieIndexPlan", partitions, extra)


def encode_index_metadata(partitions: Sequence[IndexedPartition], *, extra: bool) -> bytes:
    """Returns the content of the completed file. Hudi leaves the operation type empty (RunIndexActionExecutor)."""
    return _encoded("HoodieIndexCommitMetadata", partitions, extra)


def decode_index_plan(data: bytes, *, path: str) -> tuple[IndexedPartition, ...]:
    """Returns the partitions of a plan, or of a completed file. Raises CorruptFileError when the bytes are neither,
    name no partition, or one twice; FormatError for a name outside the metadata table, UnsupportedError for an unknown
    version.
    """
    raw = decode_record(data, "indexPartitionInfos", "plan of an indexing action", path=path)
    version = member(raw, "version", int, path=path, default=PLAN_VERSION)
    if version != PLAN_VERSION:
        raise UnsupportedError(
            f"version {version} of an indexing plan is not supported", path=path, remedy="version 1 is"
        )
    partitions = tuple(
        IndexedPartition(
            check_file_name(text(info, "metadataPartitionPath", path=path), source=path),
            text(info, "indexUptoInstant", path=path),
            text_map(info, "extraMetadata", path=path),
        )
        for info in records(raw, "indexPartitionInfos", path=path)
    )
    if len({partition.name for partition in partitions}) != len(partitions) or not partitions:
        what = "a partition of the metadata table twice" if partitions else "no partition of the metadata table"
        raise CorruptFileError(f"the plan names {what}", path=path, remedy="drop it with `hudictl unschedule`")
    return partitions


def _encoded(schema: str, partitions: Sequence[IndexedPartition], extra: bool) -> bytes:
    infos: list[dict[str, Any]] = [
        {"metadataPartitionPath": item.name, "indexUptoInstant": item.up_to}
        | ({"extraMetadata": dict(item.extra)} if extra else {})
        for item in partitions
    ]
    return encode_datum(schema, {_INFOS: infos}, later_fields=[_EXTRA] if extra else (), later_in=_INFOS)
