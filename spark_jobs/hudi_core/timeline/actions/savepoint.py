"""What a savepoint keeps: HoodieSavepointMetadata, the same in every table version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_core.model.partition import check_file_name, check_partition
from hudi_core.timeline.actions.container import decode_datum, encode_datum
from hudi_core.timeline.actions.plan_fields import record_map, text, texts
from hudi_core.timeline.actions.pretty_json import member


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """Author and epoch milliseconds of a savepoint; `files` maps a partition to names of base and log files."""

    by: str
    at_ms: int
    comment: str
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


def encode_savepoint(metadata: SavepointMetadata) -> bytes:
    """The content of the completed `savepoint` file."""
    return encode_datum(
        "HoodieSavepointMetadata",
        {
            "savepointedBy": metadata.by,
            "savepointedAt": metadata.at_ms,
            "comments": metadata.comment,
            "partitionMetadata": {
                partition: {"partitionPath": partition, "savepointDataFile": list(names)}
                for partition, names in metadata.files.items()
            },
            "version": 1,
        },
    )


def decode_savepoint(data: bytes, *, path: str) -> SavepointMetadata:
    """Decodes the completed file. Raises CorruptFileError, FormatError for a path outside the table, naming `path`."""
    raw = decode_datum(data, path=path)
    files: dict[str, tuple[str, ...]] = {}
    for partition, item in record_map(raw, "partitionMetadata", path=path).items():
        names = texts(item, "savepointDataFile", path=path)
        files[check_partition(partition, source=path)] = tuple(check_file_name(name, source=path) for name in names)
    at_ms = member(raw, "savepointedAt", int, path=path, default=0)
    return SavepointMetadata(text(raw, "savepointedBy", path=path), at_ms, text(raw, "comments", path=path), files)
