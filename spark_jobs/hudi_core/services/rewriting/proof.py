"""Proves that a compaction or log compaction has the file of each operation, and no other. compaction/job.py and
new_file_groups.py count rows. row_sums.py compares all rows. checks.py says what must hold before a rewrite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hudi_core.errors import ExecutionError, FormatError
from hudi_core.frozen import dataclass
from hudi_core.metadata_table.records.file_statistics import DataFileRef, FileStatistics
from hudi_core.model.names import parse_base_file, parse_log_file
from hudi_core.model.partition import join
from hudi_core.timeline.actions.compaction import CompactionOperation
from hudi_core.timeline.actions.write_stats import WriteStat


@dataclass(frozen=True, slots=True)
class Rewritten:
    """New files that were checked against the plan, with stats and, if required, statistics in the same order."""

    files: Sequence[DataFileRef]
    stats: Sequence[WriteStat]
    statistics: Sequence[FileStatistics]
    corrupt_blocks: int = 0


@dataclass(frozen=True, slots=True)
class OperationResult:
    """The result of an operation of a compaction or log compaction. `stat` is None where there was nothing to write.
    `statistics` is None also where none were required. `corrupt` counts corrupt log blocks that were passed over.
    """

    stat: WriteStat | None
    statistics: FileStatistics | None
    corrupt: int


Result = TypeVar("Result", bound=OperationResult)


def prove_operations(
    operations: Sequence[CompactionOperation],
    results: Sequence[Result],
    instant: str,
    check: Callable[[CompactionOperation, Result, str], None],
    *,
    is_base: bool,
    with_statistics: bool,
) -> Rewritten:
    """Returns the new files, base files or log files, once each is shown to be that of its operation and has passed
    `check`. `check` gets the text by which errors name the result. Raises ExecutionError where they do not agree.
    """
    if len(results) != len(operations):
        raise unproved(f"the plan has {len(operations)} operations, the engine returned {len(results)} results")
    stats: list[WriteStat] = []
    statistics: list[FileStatistics] = []
    for operation, result in zip(operations, results, strict=True):
        source = f"result of {join(operation.partition, operation.file_id)}"
        if result.stat is not None:
            _check_identity(operation, result.stat, instant, source, is_base=is_base)
        check(operation, result, source)
        if result.stat is None:
            continue
        stats.append(result.stat)
        if with_statistics:
            file = file_of(result.stat, is_base=is_base)
            if result.statistics is None:
                raise unproved("the result has no statistics of the file for the metadata table", source)
            if result.statistics.file != file:
                raise unproved(f"the engine wrote {file}, and read {result.statistics.file}", source)
            statistics.append(result.statistics)
    files = [file_of(stat, is_base=is_base) for stat in stats]
    return Rewritten(files, stats, statistics, sum(result.corrupt for result in results))


def _check_identity(
    operation: CompactionOperation, stat: WriteStat, instant: str, source: str, *, is_base: bool
) -> None:
    partition, _, name = stat.path.rpartition("/")
    try:
        parsed = parse_base_file(name) if is_base else parse_log_file(name)
    except FormatError as error:
        raise unproved(f"the engine returned {stat.path!r}: {error.message}", source) from error
    here = (partition, stat.partition_path, parsed.file_id, stat.file_id)
    expected = (operation.partition, operation.partition, operation.file_id, operation.file_id)
    # In layout 1 a log file is named after its slice.
    is_named = parsed.instant == instant or (not is_base and parsed.instant == operation.base_instant)
    if here != expected or not is_named or name in operation.log_files or stat.file_size_in_bytes <= 0:
        raise unproved(f"the engine returned {stat.path!r} of {stat.file_size_in_bytes} bytes", source)


def file_of(stat: WriteStat, *, is_base: bool = True) -> DataFileRef:
    return DataFileRef(stat.partition_path, stat.name, stat.file_size_in_bytes, is_base=is_base)


def unproved(what: str, source: str | None = None) -> ExecutionError:
    """Returns the error that says why a rewrite is not published. `source` is what the error is about."""
    return ExecutionError(what, path=source, remedy="nothing was published; please report this with the log of the run")
