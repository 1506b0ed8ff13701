"""Finds the files that speak against an archival: orphans, and files of replaced file groups. planner.py says which
instants then stay. is_wrong_size says whether the metadata table lists a wrong size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from hudi_core.codec.log.blocks import LogBlock
from hudi_core.filegroup.read.log_scan import DATA_TYPES, log_blocks
from hudi_core.frozen import dataclass
from hudi_core.model.names import FileGroupId, LogFileName, parse_data_file
from hudi_core.model.partition import join
from hudi_core.services.archive.planner import Findings
from hudi_core.services.context import TableContext
from hudi_core.storage.base import FileInfo, Storage
from hudi_core.timeline.actions.rollback import metadata_of
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile

Partition = tuple[str, Sequence[FileInfo]]
"""A partition's path and files."""


@dataclass(frozen=True, slots=True)
class Search:
    """What to search for. Orphans are files of instants from `begin` to before `end` that are not in `committed`; with
    `begin` None, no orphans are searched for. `replaced` are the file groups of replacecommits that may go. The blocks
    of a log file say which instants wrote it where `written` is given (appended_log_bytes), or where the file is named
    after one of `clusterings` (rollback_files.is_named_after_another). `hidden` are the files of commits after a
    savepointed one, with the requested times of these commits.
    """

    begin: str | None
    end: str | None
    committed: frozenset[str]
    replaced: Mapping[FileGroupId, Instant] = field(default_factory=dict)
    written: Mapping[str, int] | None = None
    hidden: Mapping[str, str] = field(default_factory=dict)
    clusterings: frozenset[str] = frozenset()

    def is_orphan(self, instant: str) -> bool:
        """Whether files of this instant are invisible to readers, and would become visible by the archival."""
        return (
            self.begin is not None
            and self.begin <= instant
            and (self.end is None or instant < self.end)
            and instant not in self.committed
        )

    def looks_into(self, log_file: LogFileName) -> bool:
        """Whether the blocks of a log file, not its name, say which instants wrote it."""
        return self.written is not None or log_file.instant in self.clusterings


def search(storage: Storage, partitions: Iterable[Partition], requested: Search) -> Findings:
    """Searches every given partition. Raises FormatError for a file that is read as a log file and is none."""
    uncleaned: dict[str, str] = {}
    orphans: dict[str, list[str]] = {}
    hidden: dict[str, str] = {}
    for partition, files in partitions:
        logs: list[tuple[LogFileName, FileInfo]] = []
        for info in files:
            parsed = parse_data_file(info.name)
            if parsed is None:
                continue
            replacing = requested.replaced.get(FileGroupId(partition, parsed.file_id))
            if replacing is not None:
                uncleaned.setdefault(replacing.requested_time, info.path)
            if info.path in requested.hidden:
                hidden.setdefault(requested.hidden[info.path], info.path)
            if isinstance(parsed, LogFileName) and parsed.cdc:
                continue  # a CDC file is read when a completed commit names it, never by its name
            if isinstance(parsed, LogFileName) and requested.looks_into(parsed):
                logs.append((parsed, info))
            elif requested.is_orphan(parsed.instant):
                orphans.setdefault(parsed.instant, []).append(info.path)
        for instant, path in _orphan_blocks(storage, partition, logs, requested):
            orphans.setdefault(instant, []).append(path)
    return Findings(uncleaned, {instant: tuple(paths) for instant, paths in orphans.items()}, hidden)


def appended_log_bytes(context: TableContext, timeline: Timeline) -> Mapping[str, int] | None:
    """Returns written_log_bytes where writers append to each other's log files, as in table version 6; else None."""
    appended = context.config.is_merge_on_read and not context.config.features.log_name_has_delta_commit
    return written_log_bytes(context.active, timeline) if appended else None


def written_log_bytes(active: ActiveTimeline, timeline: Timeline) -> dict[str, int]:
    """Returns each log file's size, by path, after the timeline's completed deltacommits and rollbacks."""
    written: dict[str, int] = {}
    for instant in timeline.commits():
        for stat in active.read_commit(instant).write_stats():
            if stat.log_version is not None:
                written[stat.path] = max(written.get(stat.path, 0), (stat.log_offset or 0) + stat.total_write_bytes)
    for instant in timeline.completed().of_actions(Action.ROLLBACK):
        raw = active.read_of(instant)
        for part in metadata_of(raw, path=active.path_of(instant)).partitions if raw else ():
            for name, size in part.rollback_log_files.items():
                written[join(part.partition, name.rsplit("/", 1)[-1])] = size
    return written


def _orphan_blocks(
    storage: Storage, partition: str, logs: Sequence[tuple[LogFileName, FileInfo]], requested: Search
) -> Iterator[tuple[str, str]]:
    """Yields instant and file of log blocks that never committed and that no command of their slice rolls back."""
    if requested.begin is None:
        return
    written = requested.written or {}
    suspects: list[tuple[LogFileName, str, str]] = []
    for parsed, info in logs:
        if info.size > written.get(info.path, -1):
            blocks = _blocks(storage, partition, [info])
            times = {block.instant_time or "" for block in blocks if block.type in DATA_TYPES} - {""}
            suspects += [(parsed, time, info.path) for time in sorted(filter(requested.is_orphan, times))]
    slices = {(parsed.file_id, parsed.instant) for parsed, _, _ in suspects}
    rolled_back = {
        (*slice_, block.target_instant_time)
        for slice_ in slices
        for block in _blocks(
            storage, partition, [info for parsed, info in logs if (parsed.file_id, parsed.instant) == slice_]
        )
        if block.is_rollback
    }
    for parsed, time, path in suspects:
        if (parsed.file_id, parsed.instant, time) not in rolled_back:
            yield time, path


def _blocks(storage: Storage, partition: str, files: Sequence[FileInfo]) -> Iterator[LogBlock]:
    names = [DataFile(partition, info.name, info.size) for info in files]
    return (block for block in log_blocks(storage, names) if isinstance(block, LogBlock))


def is_wrong_size(listed: int, info: FileInfo, written: Mapping[str, int] | None) -> bool:
    """Whether a wrong listed size hides committed bytes or promises missing ones. A log file of version 6 (`written` is
    written_log_bytes) may be longer than listed: a pending write appended to it, or one that was rolled back. Hudi
    lists the latter with 1 byte (MarkerBasedRollbackStrategy). The listed size must contain what completed.
    """
    if written is None or listed > info.size or not isinstance(parse_data_file(info.name), LogFileName):
        return True
    return listed < min(info.size, written.get(info.path, 0))
