"""The Avro files of a clean: the plan (HoodieCleanerPlan) and what was done (HoodieCleanMetadata).

A plan names files by the absolute paths of its writer, and all these files will be deleted. So no path is followed.
Only the file's name counts: it must be that of a base or log file, and the folder before it must end in the partition
that lists it (content.py, model/partition.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, field
from functools import partial
from typing import Any, Final

from hudi_core.codec.avro.container import read_large_record, write_large_record
from hudi_core.errors import CorruptFileError, FormatError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.model.names import parse_data_file
from hudi_core.model.partition import check_partition, join
from hudi_core.timeline.actions.content import (
    load_schema,
    member,
    name_in_partition,
    plan_version,
    record_map,
    text,
    text_map,
    texts,
)

PLAN_VERSION: Final = 2
"""Plans of version 2 hold full paths, plans of version 1 file names in another field (CleanPlanV2MigrationHandler)."""
METADATA_VERSION: Final = 2
SAVEPOINTED_KEY: Final = "savepointed_timestamps"
"""Extra metadata of a clean: the savepoints at its planning, joined by commas (CleanerUtils.SAVEPOINTED_TIMESTAMPS)."""

_REMEDY: Final = "the plan does not fit this table: find out which process wrote it before it is run"


@dataclass(frozen=True, slots=True)
class RetainedInstant:
    """The earliest commit whose files a clean keeps: requested time, action and state, as the plan writes them."""

    timestamp: str
    action: str
    state: str = "COMPLETED"


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """What a clean deletes: plain names of base and log files, by partition path. `last_completed` is the last
    completed commit at the planning, `""` for none. `dropped_partitions` are deleted as a whole. `earliest` is None
    when the policy keeps file versions.
    """

    policy: str
    files: Mapping[str, tuple[str, ...]]
    last_completed: str = ""
    earliest: RetainedInstant | None = None
    dropped_partitions: tuple[str, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_count(self) -> int:
        return sum(len(names) for names in self.files.values())


@dataclass(frozen=True, slots=True)
class CleanedPartition:
    """What was deleted in one partition, in plain names. `is_deleted` says that the partition itself was deleted."""

    files: tuple[str, ...]
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """What a clean did. `earliest` is the plan's earliest commit to retain, `""` when it has none."""

    start_time: str
    policy: str
    partitions: Mapping[str, CleanedPartition]
    earliest: str = ""
    last_completed: str = ""
    time_taken_ms: int = 0
    extra_metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LastClean:
    """What planning needs of the last completed clean. Texts are empty when its metadata lacks them."""

    requested_time: str
    earliest: str
    last_completed: str
    savepoints: frozenset[str] = frozenset()


def encode_clean_plan(plan: CleanPlan, address: Callable[[str], str]) -> bytes:
    """Returns the content of `<T>.clean.requested`. `address` makes the full path, for Hudi, of a table path."""

    def located(partition: str, name: str) -> dict[str, Any]:
        return {"filePath": address(join(partition, name)), "isBootstrapBaseFile": False}

    return write_large_record(
        load_schema("HoodieCleanerPlan"),
        {
            "earliestInstantToRetain": None if plan.earliest is None else asdict(plan.earliest),
            "lastCompletedCommitTimestamp": plan.last_completed,
            "policy": plan.policy,
            "filesToBeDeletedPerPartition": {},
            "version": PLAN_VERSION,
            "partitionsToBeDeleted": list(plan.dropped_partitions),
            "extraMetadata": dict(plan.extra_metadata),
        },
        {
            "filePathsToBeDeletedPerPartition": (
                len(plan.files),
                ((key, [located(key, name) for name in names]) for key, names in plan.files.items()),
            )
        },
    )


def decode_clean_plan(data: bytes, *, path: str) -> CleanPlan:
    """Decodes a plan of either version. Raises CorruptFileError when the bytes are no plan, FormatError for a file or
    partition that cannot be this table's, UnsupportedError for base files of a bootstrapped table.
    """
    names = partial(_names, path=path)
    _, raw = read_large_record(
        data, path=path, maps={"filesToBeDeletedPerPartition": names, "filePathsToBeDeletedPerPartition": names}
    )
    if "policy" not in raw or "filePathsToBeDeletedPerPartition" not in raw:
        raise CorruptFileError("the Avro record is no clean plan", path=path)
    version = plan_version(raw, "clean plan", path=path)
    source = "filesToBeDeletedPerPartition" if version == 1 else "filePathsToBeDeletedPerPartition"
    dropped = tuple(
        check_partition(item, source=path) for item in texts(raw, "partitionsToBeDeleted", path=path) if item
    )
    retained = member(raw, "earliestInstantToRetain", dict, path=path)
    earliest = (
        [] if retained is None else [text(retained, name, path=path) for name in ("timestamp", "action", "state")]
    )
    return CleanPlan(
        policy=text(raw, "policy", path=path),
        files=member(raw, source, dict, path=path, default={}),
        last_completed=text(raw, "lastCompletedCommitTimestamp", path=path),
        earliest=RetainedInstant(*earliest) if earliest else None,
        dropped_partitions=dropped,
        extra_metadata=text_map(raw, "extraMetadata", path=path),
    )


def _names(partition: str, items: Any, *, path: str) -> tuple[str, ...]:
    check_partition(partition, source=path)
    if not isinstance(items, list):
        raise CorruptFileError(f"the files of partition {partition!r} are not a list", path=path)
    names = tuple(_data_file(item, partition, path) for item in items)
    if len(set(names)) != len(names):
        raise FormatError(f"the plan names a file of partition {partition!r} twice", path=path, remedy=_REMEDY)
    return names


def _data_file(item: Any, partition: str, path: str) -> str:
    """Returns the name of a file to delete. `item` is its path, in a record (version 2) or alone (version 1)."""
    value = item.get("filePath") if isinstance(item, dict) else item
    if not isinstance(value, str):
        raise CorruptFileError(f"a file of partition {partition!r} has no path", path=path)
    if isinstance(item, dict) and item.get("isBootstrapBaseFile"):
        message = f"the plan deletes {value}, a bootstrap base file outside the table"
        raise UnsupportedError(message, path=path, remedy="run this clean with Hudi itself")
    name = name_in_partition(value, partition, path=path, remedy=_REMEDY)
    if parse_data_file(name) is None:
        raise FormatError(f"{value!r} is neither a base file nor a log file", path=path, remedy=_REMEDY)
    return name


def encode_clean_metadata(metadata: CleanMetadata) -> bytes:
    """Returns the completed file's content. Files that were missing count as well (CleanActionExecutor of 1.2)."""
    return write_large_record(
        load_schema("HoodieCleanMetadata"),
        {
            "startCleanTime": metadata.start_time,
            "timeTakenInMillis": metadata.time_taken_ms,
            "totalFilesDeleted": sum(len(done.files) for done in metadata.partitions.values()),
            "earliestCommitToRetain": metadata.earliest,
            "lastCompletedCommitTimestamp": metadata.last_completed,
            "version": METADATA_VERSION,
            "bootstrapPartitionMetadata": {},
            "extraMetadata": dict(metadata.extra_metadata),
        },
        {
            "partitionMetadata": (
                len(metadata.partitions),
                ((key, _cleaned(key, metadata.policy, done)) for key, done in metadata.partitions.items()),
            )
        },
    )


def _cleaned(partition: str, policy: str, done: CleanedPartition) -> dict[str, Any]:
    return {
        "partitionPath": partition,
        "policy": policy,
        "deletePathPatterns": done.files,
        "successDeleteFiles": done.files,
        "failedDeleteFiles": (),
        "isPartitionDeleted": done.is_deleted,
    }


def decode_last_clean(data: bytes, requested_time: str, *, path: str) -> LastClean:
    """Returns where the next clean starts, by the completed file of a clean. Raises CorruptFileError naming `path`."""
    _, raw = read_large_record(data, path=path, maps={"partitionMetadata": lambda partition, done: None})
    earliest = _earliest_retained(raw, path)
    saved = text_map(raw, "extraMetadata", path=path).get(SAVEPOINTED_KEY, "")
    savepoints = frozenset(time for time in saved.split(",") if time)
    return LastClean(requested_time, earliest, text(raw, "lastCompletedCommitTimestamp", path=path), savepoints)


@dataclass(frozen=True, slots=True)
class RemovedFiles:
    """A clean's earliest commit to retain, the files that it tried to delete, by partition, and its policy, or `""`."""

    earliest: str
    files: Mapping[str, tuple[str, ...]]
    policy: str


def decode_removed_files(data: bytes, *, path: str) -> RemovedFiles:
    """Returns the removed files from a clean's completed file. Raises CorruptFileError naming `path`."""
    removed = partial(_removed, path=path)
    _, raw = read_large_record(data, path=path, maps={"partitionMetadata": lambda partition, done: removed(done)})
    return _all_removed(raw, raw["partitionMetadata"], path)


def removed_files_of(raw: dict[str, Any], *, path: str) -> RemovedFiles:
    """Returns the removed files from the archived metadata of a clean. Raises CorruptFileError naming `path`."""
    done = record_map(raw, "partitionMetadata", path=path)
    return _all_removed(raw, {key: _removed(item, path=path) for key, item in done.items()}, path)


def _all_removed(raw: dict[str, Any], done: Mapping[str, tuple[str, tuple[str, ...]]], path: str) -> RemovedFiles:
    policies = (policy for policy, _ in done.values())
    files = {partition: names for partition, (_, names) in done.items()}
    return RemovedFiles(_earliest_retained(raw, path), files, next(policies, ""))


def _earliest_retained(raw: dict[str, Any], path: str) -> str:
    if "startCleanTime" not in raw:
        raise CorruptFileError("the Avro record is no clean metadata", path=path)
    return text(raw, "earliestCommitToRetain", path=path).strip()


def _removed(done: dict[str, Any], *, path: str) -> tuple[str, tuple[str, ...]]:
    listed = [*texts(done, "deletePathPatterns", path=path), *texts(done, "successDeleteFiles", path=path)]
    return text(done, "policy", path=path), tuple(sorted({name.rsplit("/", 1)[-1] for name in listed}))
