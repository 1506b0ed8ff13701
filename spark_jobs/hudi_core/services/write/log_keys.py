"""Keys that only the log files of a file slice have. An index of base files misses them.

A key that is deleted, and put back while a compaction is pending, goes to a log file, since the old base file has it.
The compaction leaves it out of the new base file. Hudi's SIMPLE and BLOOM indexes then take the key for new, and double
its row at the next upsert.

A writer whose index has the keys of log files puts new rows there: Flink's state index, Spark's INMEMORY and HBASE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial

import pyarrow as pa

from hudi_core.engine.serializer import from_text
from hudi_core.filegroup.read.read_spec import ReaderSpec
from hudi_core.filegroup.read.slice_reader import SliceReader
from hudi_core.model.names import FileGroupId, parse_base_file, parse_log_file
from hudi_core.services.context import TableContext
from hudi_core.storage.base import Storage
from hudi_core.storage.overlapped import look_ahead
from hudi_core.timeline.instant import Action, Instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import FileSlice


def slices_with_own_keys_in_logs(
    context: TableContext, timeline: Timeline, slices: Sequence[FileSlice]
) -> frozenset[int]:
    """Returns the numbers of the slices whose log files may have keys that their base files lack: a write appended a
    log file while the compaction of the base file was pending. It may have begun before the compaction was planned.
    Where an archival took the compaction, also since the look at `timeline`, any log file counts. So do all where a
    write has put new rows into log files (_inserts_into_logs says at which cost that is known).
    """
    numbered = [
        (number, item.file_group, parse_base_file(item.base_file.name).instant)
        for number, item in enumerate(slices)
        if item.base_file is not None and item.log_files
    ]
    completed = context.active.completion_times(timeline) if numbered else {}
    commits = timeline.commits()

    @cache
    def written_beside(compaction: Instant) -> frozenset[FileGroupId]:
        beside = (
            item
            for item in commits.of_actions(Action.DELTA_COMMIT).before(completed[compaction])
            if max(item.requested_time, completed.get(item, "")) > compaction.requested_time
        )
        stats = (stat for item in beside for stat in context.active.read_commit(item).write_stats())
        return frozenset(FileGroupId(stat.partition_path, stat.file_id) for stat in stats)

    def may_have_own(group: FileGroupId, instant: str) -> bool:
        compaction = commits.find(instant, Action.COMMIT)
        if compaction is None:
            return not commits.contains(instant)  # else a write made the base file
        return compaction not in completed or group in written_beside(compaction)

    own = frozenset(number for number, group, instant in numbered if may_have_own(group, instant))
    others = [slices[number] for number, _, _ in numbered if number not in own]
    if others and _inserts_into_logs(context, commits, others):
        return frozenset(number for number, _, _ in numbered)
    return own


def _inserts_into_logs(context: TableContext, commits: Timeline, slices: Sequence[FileSlice]) -> bool:
    """Returns whether a write to the log files of `slices` has put new rows into any log file, by its metadata: none of
    a writer does whose index looks only at base files. It counts for all slices, as Flink counts the new rows of a file
    group that was there before as updates (BucketAssigner.addInsert). Where no such write began a file group, nothing
    tells those of Flink. Reads the metadata of each active deltacommit that log files name; in layout 1, of those since
    the oldest base file: one small file for each write since the compactions, at once on a remote storage.
    """
    writes = commits.of_actions(Action.DELTA_COMMIT)
    if context.config.features.log_name_has_delta_commit:
        named = {parse_log_file(log.name).instant for file_slice in slices for log in file_slice.log_files}
        writes = writes.filter(lambda write: write.requested_time in named)
    else:
        writes = writes.after(min(file_slice.base_instant for file_slice in slices))
    look_ahead(context.storage, *(partial(context.active.read_details, write) for write in writes))
    stats = (stat for write in writes for stat in context.active.read_commit(write).write_stats())
    return any(stat.log_version is not None and stat.num_inserts > 0 for stat in stats)


def rows_of_slice(storage: Storage, reader: str, item: FileSlice, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a file slice, merged with its log files, with the top-level columns of these names (dotted
    where nested). `reader` is a ReaderSpec as text. Raises the errors of SliceReader.read.
    """
    top = list(dict.fromkeys(name.partition(".")[0] for name in columns))
    return SliceReader(storage, from_text(ReaderSpec, reader)).read(item, top)
