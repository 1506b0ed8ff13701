"""The hashing metadata of partitions with buckets by consistent hashing: which hashes belong to which file group
(HoodieConsistentHashingMetadata, ConsistentBucketIndexUtils).

The first file of a partition is made before its first row. Each clustering that splits or merges buckets adds a file
with its instant, before it completes. Hudi marks files of completed clusterings later, by an empty file. All that
Hudi makes of a new partition follows from its path, so that it does not matter which of two writers makes it.
"""

from __future__ import annotations

import json
from hashlib import md5
from typing import Any, Final
from uuid import UUID

from hudi_core.errors import FormatError, StorageExistsError
from hudi_core.filegroup.write.buckets import BUCKETS_FOLDER, Ring
from hudi_core.model.names import parse_base_file
from hudi_core.model.partition import check_file_name, join
from hudi_core.storage.base import Storage
from hudi_core.timeline.actions.content import read_stable
from hudi_core.timeline.instant import Action
from hudi_core.view.file_system_view import FileSystemView

HASHING_FOLDER: Final = f"{BUCKETS_FOLDER}/consistent_hashing_metadata"
_FIRST: Final = "00000000000000"
_FILE: Final = ".hashing_meta"
_MARK: Final = ".commit"
_LAST_HASH: Final = 0x7FFFFFFF
_REMEDY: Final = "restore the file from a copy, or write with Hudi"


def folder_of(partition: str) -> str:
    """Returns the folder of a partition's files."""
    return join(HASHING_FOLDER, partition) if partition else HASHING_FOLDER


def ring_of(storage: Storage, view: FileSystemView, partition: str) -> Ring | None:
    """Returns the buckets of a partition: those of the newest file that Hudi would take (loadMetadata). None where it
    has no file yet. Raises FormatError for a damaged file.
    """
    folder = folder_of(partition)
    names = storage.list_names(folder)
    instants = sorted(name.removesuffix(_FILE) for name in names if name.endswith(_FILE) and name[0] != ".")
    for instant in reversed(instants):
        path = join(folder, instant + _FILE)
        is_marked = instant == _FIRST or instant + _MARK in names
        replaces = view.timeline.find(instant, Action.REPLACE_COMMIT)
        if is_marked or (replaces is not None and replaces.is_completed):
            return _ring(read_stable(storage, path), path)
        if replaces is None and not view.timeline.contains(instant):
            # Its clustering was archived, or rolled back: Hudi then looks for base files of its buckets.
            ring = _ring(read_stable(storage, path), path)
            bases = {parse_base_file(base.name).file_id for base in view.latest_base_files(partition)}
            if bases & set(ids_of(ring)):
                return ring
    return None


def ids_of(ring: Ring) -> list[str]:
    """Returns the file ids of the buckets: each is one file group."""
    return [f"{prefix}-0" for prefix in ring.prefixes]


def create_ring(storage: Storage, partition: str, count: int) -> Ring:
    """Returns the buckets of a partition that had none: `count` ones, or those that another writer has just made."""
    path, content = join(folder_of(partition), _FIRST + _FILE), first_content(partition, count)
    try:
        storage.create_exclusive(path, content)
    except StorageExistsError:
        content = read_stable(storage, path)
    return _ring(content, path)


def first_content(partition: str, count: int) -> bytes:
    """Returns the first file of a partition, byte by byte as Hudi writes it (constructDefaultHashingNodes)."""
    step, start, nodes = (_LAST_HASH + count - 1) // count, 0, []
    for number in range(1, count + 1):
        end = min(step * number, _LAST_HASH)
        named = md5(start.to_bytes(8, "big") + end.to_bytes(8, "big") + partition.encode(), usedforsecurity=False)
        prefix = UUID(bytes=named.digest(), version=3)
        nodes.append(f'{{\n    "value" : {end},\n    "fileIdPrefix" : "{prefix}",\n    "tag" : "NORMAL"\n  }}')
        start = end
    return (
        f'{{\n  "version" : 0,\n  "partitionPath" : {json.dumps(partition, ensure_ascii=False)},\n'
        f'  "instant" : "{_FIRST}",\n  "numBuckets" : {count},\n  "seqNo" : 0,\n  "nodes" : [ {", ".join(nodes)} ]\n}}'
    ).encode()


def _ring(data: bytes, path: str) -> Ring:
    try:
        nodes: Any = json.loads(data)["nodes"]
        ends = sorted((node["value"], str(node["fileIdPrefix"]), node["tag"]) for node in nodes)
    except (ValueError, TypeError, KeyError) as error:
        raise FormatError(f"this is no hashing metadata: {error!r}", path=path, remedy=_REMEDY) from error
    for end, prefix, tag in ends:
        if type(end) is not int or not 0 <= end <= _LAST_HASH or tag != "NORMAL" or "_" in prefix:
            raise FormatError(f"{(end, prefix, tag)!r} is no bucket", path=path, remedy=_REMEDY)
        check_file_name(prefix, source=path)
    ring = Ring(tuple(end for end, _, _ in ends), tuple(prefix for _, prefix, _ in ends))
    if not ends or len({*ring.ends}) < len(ends) or len({*ring.prefixes}) < len(ends):
        raise FormatError("buckets are not apart from each other", path=path, remedy=_REMEDY)
    return ring
