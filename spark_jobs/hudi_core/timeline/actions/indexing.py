"""The Avro files of an indexing action: the plan (HoodieIndexPlan) and what was built (HoodieIndexCommitMetadata)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from hudi_core.codec.avro.container import write_container
from hudi_core.errors import CorruptFileError, UnsupportedError
from hudi_core.model.partition import check_file_name
from hudi_core.timeline.actions.content import decode_record, load_schema, member, records, text, text_map

PLAN_VERSION: Final = 1
_PLAN: Final = "HoodieIndexPlan"
_METADATA: Final = "HoodieIndexCommitMetadata"


@dataclass(frozen=True, slots=True)
class IndexedPartition:
    """A partition of the metadata table, and the last instant in it, `""` for none; Hudi writes no `extra`."""

    name: str
    up_to: str
    extra: Mapping[str, str] = field(default_factory=dict)


def encode_index_plan(partitions: Sequence[IndexedPartition], *, extra: bool) -> bytes:
    """The content of `<T>.indexing.requested`; `extra`: with the field of that name (TableVersion.index_plan_extra)."""
    return write_container(
        _schema(_PLAN, extra), [{"version": PLAN_VERSION, "indexPartitionInfos": _infos(partitions, extra)}]
    )


def encode_index_metadata(partitions: Sequence[IndexedPartition], *, extra: bool) -> bytes:
    """The content of the completed file; Hudi leaves the operation type empty (RunIndexActionExecutor)."""
    datum = {"version": PLAN_VERSION, "operationType": None, "indexPartitionInfos": _infos(partitions, extra)}
    return write_container(_schema(_METADATA, extra), [datum])


def decode_index_plan(data: bytes, *, path: str) -> tuple[IndexedPartition, ...]:
    """The partitions of a plan, or of a completed file. Raises CorruptFileError when the bytes are neither or name no
    partition, FormatError for a name outside the metadata table, UnsupportedError for an unknown version.
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


def _infos(partitions: Sequence[IndexedPartition], extra: bool) -> list[dict[str, Any]]:
    return [
        {"version": PLAN_VERSION, "metadataPartitionPath": item.name, "indexUptoInstant": item.up_to}
        | ({"extraMetadata": dict(item.extra)} if extra else {})
        for item in partitions
    ]


@cache
def _schema(name: str, extra: bool) -> dict[str, Any]:
    schema = load_schema(name)
    if not extra:
        return schema
    schema = copy.deepcopy(schema)
    texts = {"type": "string", "avro.java.string": "String"}
    info = next(item for item in schema["fields"] if item["name"] == "indexPartitionInfos")["type"][1]["items"]
    extra_type = ["null", {"type": "map", "values": texts, "avro.java.string": "String"}]
    info["fields"].append({"name": "extraMetadata", "type": extra_type, "default": None})
    return schema
