"""The units of a clean: each deletes some of the plan's files. A file that is gone already is as good as deleted, so a
unit may run again.

Memory of a task: the names of its unit, which are at most the plan's files divided by `hoodie.clean.parallelism`, and
not fewer than 100.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING

from hudi_core.errors import ExecutionError, FormatError
from hudi_core.model.names import parse_data_file
from hudi_core.model.partition import check_file_name, check_partition, join
from hudi_core.storage.arrow_store import open_deleting_storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hudi_core.engine.protocol import TaskAttempt
    from hudi_core.timeline.actions.clean import CleanPlan

SMALLEST_UNIT = 100
"""Files of a unit at least: less is not worth a task."""
_THREADS = 16
"""Deletes of one task at a time: on object stores each is a request that waits."""


@dataclass(frozen=True, slots=True)
class CleanUnit:
    """Files that one task deletes: plain names by partition path."""

    uri: str
    storage_options: Mapping[str, str]
    files: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class CleanedFiles:
    """What came of a unit: how many of its files are gone now, and how many were gone before."""

    files: int
    missing: int


def clean_units(plan: CleanPlan, *, uri: str, storage_options: Mapping[str, str], parallelism: int) -> list[CleanUnit]:
    """At most `parallelism` units of about equal size; a partition may be spread over several and a unit may hold
    several partitions.
    """
    size = max(SMALLEST_UNIT, -(-plan.file_count // parallelism))
    return [CleanUnit(uri, storage_options, files) for files in _chunks(plan.files, size)]


def _chunks(files: Mapping[str, Sequence[str]], size: int) -> Iterator[dict[str, tuple[str, ...]]]:
    named = ((partition, name) for partition, names in sorted(files.items()) for name in names)
    while chunk := list(islice(named, size)):
        yield {
            partition: tuple(name for _, name in group) for partition, group in groupby(chunk, key=lambda pair: pair[0])
        }


def delete_files(unit: CleanUnit, attempt: TaskAttempt) -> CleanedFiles:
    """Deletes the unit's files; the UnitTask of a clean.

    Raises FormatError for a name that is no data file's, StorageError for the first file that cannot be deleted: the
    clean is not complete then, and the next run goes on.
    """
    storage = open_deleting_storage(unit.uri, unit.storage_options)
    paths = [_path(partition, name) for partition, names in unit.files.items() for name in names]
    shares = [paths[number::_THREADS] for number in range(min(_THREADS, len(paths)))]
    with ThreadPoolExecutor(max_workers=max(1, len(shares)), thread_name_prefix="clean") as pool:
        deleted = sum(pool.map(lambda share: sum(map(storage.delete, share)), shares))
    return CleanedFiles(len(paths), len(paths) - deleted)


def _path(partition: str, name: str) -> str:
    check_partition(partition, source="clean unit")
    if parse_data_file(check_file_name(name, source="clean unit")) is None:
        raise FormatError(f"{name!r} is neither a base file nor a log file", path="clean unit")
    return join(partition, name)


def prove(plan: CleanPlan, results: Iterable[CleanedFiles]) -> int:
    """How many files were deleted, once the results cover the plan; ExecutionError when they do not."""
    done = missing = 0
    for result in results:
        done, missing = done + result.files, missing + result.missing
    if done != plan.file_count:
        raise ExecutionError(
            f"the plan has {plan.file_count} files, but the units deleted {done}",
            remedy="nothing was published; run the clean again",
        )
    return done - missing
