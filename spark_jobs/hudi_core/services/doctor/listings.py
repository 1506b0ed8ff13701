"""The files in the storage compared with the timeline and with the metadata table's list of files.

A file of an instant that never completed is of a write that was rolled back and whose upload landed afterwards, or of
one that died. A reader takes an instant for committed that is older than the timeline's first commit
(HoodieTimeline.containsOrBeforeTimelineStarts). Files of such an instant are visible; those of a later one turn visible
when the timeline's first commits are archived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from hudi_core.errors import FormatError, MetadataUnavailableError, StorageNotFoundError
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.model.partition import join
from hudi_core.services.archive.listing import Search, is_wrong_size, search
from hudi_core.services.archive.planner import start_after
from hudi_core.services.doctor.findings import Counted, DataFiles, Finding
from hudi_core.services.metadata.validate.files import deletions_at_work
from hudi_core.storage.one_look import look_again
from hudi_core.timeline.instant import REPLACING_ACTIONS

_REBUILD: Final = (
    "stop the writers, drop the metadata table with Hudi (hoodie.metadata.enable=false), and let the next "
    "write rebuild it"
)


def orphans(files: DataFiles) -> Iterator[Finding]:
    """Files of instants that never completed. In version 6, and of log files that are named after clusterings, the
    headers of log blocks are read as well. What is older than the archive counts as committed, as it may be truncated.
    Raises FormatError for an archive or a log file that is damaged.
    """
    timeline = files.timeline
    start = start_after(timeline, frozenset())
    if start is None:
        return
    archived = files.history().timeline()
    known = timeline.commits().requested_times | timeline.pending().requested_times | archived.commits().requested_times
    resized = (
        timeline.of_actions(*REPLACING_ACTIONS).requested_times
        | archived.of_actions(*REPLACING_ACTIONS).requested_times
    )
    later = Search(start, None, known, written=files.written, clusterings=resized)
    earlier = replace(later, begin=min(archived.requested_times, default=start), end=start)
    hidden, visible = (search(files.storage, files.by_partition.items(), scope).orphans for scope in (later, earlier))
    look_again(files.storage)
    new = files.context.active.load().requested_times  # instants that started, or completed, while files were listed
    for instant, paths in sorted(visible.items()):
        yield Finding(
            "orphan_visible",
            "error",
            f"{_named(paths)} of instant {instant}, which never completed and is older than the timeline: readers take "
            "them for committed",
            "delete them when no writer is at work on that instant; a late upload after a rollback leaves such "
            "files (hudi#18783)",
            instant,
            min(paths),
        )
    for instant, paths in sorted(hidden.items()):
        if instant not in new:
            yield Finding(
                "orphan_hidden",
                "warning",
                f"{_named(paths)} of instant {instant}, which is neither completed nor pending: hidden until the "
                "commits before it are archived",
                "delete them when no writer is at work on that instant; our archival refuses to go past them",
                instant,
                min(paths),
            )


def _named(paths: Iterable[str]) -> str:
    ordered = sorted(set(paths))
    return Counted(ordered, len(ordered)).named()


def listings(files: DataFiles) -> Iterator[Finding]:
    """Entries without a file, committed files without an entry, entries of another size, an unreadable list. Nothing
    where no metadata table is in use, nor while a clean, rollback or restore is inflight: both lists may be right then.
    Not listed count base files of completed commits on the timeline only: an incomplete write has no records yet.
    Raises FormatError for a damaged commit or rollback of a merge-on-read table of version 6.
    """
    if not files.context.has_metadata_table or deletions_at_work(files.timeline):
        return
    written = files.written
    try:
        yield from list(_differences(files, written))
    except (FormatError, MetadataUnavailableError, StorageNotFoundError) as error:
        what = f"the metadata table's list of files cannot be read: {error}"
        yield Finding("metadata_unreadable", "error", what, _REBUILD)


def _differences(files: DataFiles, written: Mapping[str, int] | None) -> Iterator[Finding]:
    metadata, committed = files.metadata, files.timeline.commits().requested_times
    missing, unlisted, hidden, wrong_size = Counted[str](), Counted[str](), Counted[str](), Counted[str]()
    wrong: list[str] = []
    not_walked = set(metadata.list_partitions())
    for partition, infos in files.by_partition.items():
        not_walked.discard(partition)
        listed, there = metadata.list_files(partition), {info.name: info for info in infos}
        missing.add(*(join(partition, name) for name in sorted(listed.keys() - there.keys())))
        for name in sorted(there.keys() - listed.keys()):
            parsed = parse_data_file(name)
            if isinstance(parsed, BaseFileName) and parsed.instant in committed:
                unlisted.add(join(partition, name))
        for name in sorted(there.keys() & listed.keys()):
            info = there[name]
            if listed[name] != info.size and is_wrong_size(listed[name], info, written):
                wrong.append(info.path)
                wrong_size.add(f"{info.path}: {listed[name]} bytes listed, {info.size} there")
    for partition in sorted(not_walked):
        names = {info.name for info in files.storage.list_files(partition)}
        for name in sorted(metadata.list_files(partition)):
            (hidden if name in names else missing).add(join(partition, name))
    if unlisted.count:
        yield Finding(
            "metadata_unlisted",
            "error",
            f"the metadata table does not list {unlisted.named()} of completed commits: readers that use it miss rows",
            _REBUILD,
            path=unlisted.first[0],
        )
    if hidden.count:
        yield Finding(
            "partition_below_another",
            "error",
            f"{hidden.named()} in partitions that lie below other ones, or have lost their .hoodie_partition_metadata: "
            "readers without the metadata table miss their rows, and it cannot be rebuilt",
            "write the rows to partitions of other names, and keep the metadata table until then",
            path=hidden.first[0],
        )
    if missing.count:
        what = f"the metadata table lists {missing.named()} not in the storage: readers that use it may fail"
        yield Finding("metadata_missing_file", "warning", what, _REBUILD, path=missing.first[0])
    if wrong_size.count:
        what = f"the metadata table has the wrong size of {wrong_size.named()}: readers that use it fail, or miss rows"
        fix = f"a file that was cut short has to come back from a copy; where the files are whole, {_REBUILD}"
        yield Finding("metadata_wrong_size", "error", what, fix, path=wrong[0])
