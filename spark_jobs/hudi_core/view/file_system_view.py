"""The file system view: which slices of a file group a query or a service reads, also while a compaction of it is
pending (AbstractTableFileSystemView); and which slices of version 6 a downgrade cut off from their base files.
slicing.py says which files a slice has.

A log file of version 8 or 9 has its own instant in its name. A downgrade to version 6 renames none: it compacts all
file groups. As of an earlier instant, each such log file is a slice without the rows below it. Hudi 0.15 fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Final

from hudi_core.errors import FormatError, StorageNotFoundError, TimelineError, UnsupportedError
from hudi_core.frozen import dataclass
from hudi_core.history.archived import ArchivedTimeline, CompletionTimes
from hudi_core.model.names import FileGroupId, parse_data_file
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.commit import replaced_file_groups
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan
from hudi_core.timeline.actions.replacecommit import ClusteringPlan
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, Instant, State
from hudi_core.timeline.pending_plans import read_clustering_plans
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.file_group import DataFile, FileGroup, FileSlice
from hudi_core.view.latest_slices import latest_slices
from hudi_core.view.listing import FileListing
from hudi_core.view.slice_columns import LatestSlices, ids_by_partition
from hudi_core.view.slicing import Slicing, build_file_groups, slicing_for

_FILES_AT_ONCE: Final = 1 << 16
"""The files whose slices are made columns at once. More take memory and hardly less time."""


class FileSystemView:
    """The file groups of a table as of one timeline. `replaced` maps a replaced file group to its replacecommit.
    `slicing` None is that of layout 1. `as_of`, where a method takes it, is the last requested time to be seen,
    inclusive, in every layout; None means all. Results are sorted by file id.
    """

    def __init__(
        self,
        listing: FileListing,
        timeline: Timeline,
        pending: PendingWork | None = None,
        replaced: Mapping[FileGroupId, Instant] | None = None,
        slicing: Slicing | None = None,
    ) -> None:
        self.timeline = timeline
        self.pending = pending or PendingWork()
        self.pending.check_complete(timeline)
        self._compactions = self.pending.compacting_by_partition
        self._listing = listing
        self._replaced = replaced or {}
        self._slicing = slicing or Slicing(timeline)
        self._groups: dict[str, list[FileGroup]] = {}
        self._by_id: dict[str, dict[FileGroupId, FileGroup]] = {}

    def partitions(self) -> list[str]:
        return self._listing.partitions()

    def files(self, partition: str) -> list[FileInfo]:
        """Returns every data file of a partition, committed or not, sorted by path."""
        return [info for info in self._listing.files(partition) if parse_data_file(info.name) is not None]

    def all_file_groups(self, partition: str) -> list[FileGroup]:
        """Returns every file group of a partition, also replaced ones, and ones without a visible slice."""
        if partition not in self._groups:
            files, compactions = self._listing.files(partition), self._compactions.get(partition, ())
            self._groups[partition] = build_file_groups(partition, files, self._slicing, compactions=compactions)
        return self._groups[partition]

    def file_groups(self, partition: str, as_of: str | None = None) -> Iterator[FileGroup]:
        """Yields the file groups that no replacecommit up to `as_of` has replaced."""
        for group in self.all_file_groups(partition):
            replaced_at = self.replaced_at(group.id)
            if replaced_at is None or (as_of is not None and replaced_at > as_of):
                yield group

    def file_group(self, group: FileGroupId) -> FileGroup | None:
        """Returns one file group, replaced or not; None when the partition has no file of it."""
        if group.partition not in self._by_id:
            self._by_id[group.partition] = {known.id: known for known in self.all_file_groups(group.partition)}
        return self._by_id[group.partition].get(group)

    def all_slices(self, partition: str) -> list[FileSlice]:
        """Returns every visible slice of the groups that are not replaced, newest first within a group."""
        return [file_slice for group in self.file_groups(partition) for file_slice in group.slices]

    def all_base_files(self, partition: str) -> list[DataFile]:
        """Returns every visible base file of the groups that are not replaced, newest first within a group."""
        return [file_slice.base_file for file_slice in self.all_slices(partition) if file_slice.base_file is not None]

    def latest_slices(self, partition: str) -> list[FileSlice]:
        """Returns each file group's newest slice, for writers. It is empty after a compaction was requested."""
        return [group.slices[0] for group in self.file_groups(partition) if group.slices]

    def latest_slice_columns(self, partitions: Sequence[str]) -> Iterator[LatestSlices]:
        """Yields the slices of latest_slices as columns, and keeps none. Each time it lists twice as many partitions,
        up to some number of files, so that a caller who stops early has listed few in vain.
        """
        replaced, first, count = ids_by_partition(self._replaced), 0, 1
        while first < len(partitions):
            listed: list[tuple[str, list[FileInfo]]] = []
            files = 0
            for partition in partitions[first : first + count]:
                listed.append((partition, self._listing.files(partition)))
                files += len(listed[-1][1])
                if files >= _FILES_AT_ONCE:
                    break
            yield latest_slices(listed, self._slicing, self._compactions, replaced)
            first, count = first + len(listed), 2 * count

    def latest_slices_up_to(self, partition: str, as_of: str) -> list[FileSlice]:
        """Returns of each file group the newest slice with files and a base instant at or before `as_of`."""
        slices = (
            [item for item in group.slices if item.base_instant <= as_of and not item.is_empty]
            for group in self.file_groups(partition, as_of)
        )
        return [of_group[0] for of_group in slices if of_group]

    def latest_merged_slices(self, partition: str, as_of: str | None = None) -> list[FileSlice]:
        """Returns what a snapshot query reads: the newest slice of each file group with rows. Where a compaction of the
        group is pending, the slice before it and the logs written since are one slice, under the older base instant.
        The scan judges log blocks. Raises UnsupportedError where a slice is cut off as of that instant.
        """
        merged = (self._merged(group, as_of) for group in self.file_groups(partition, as_of))
        return [file_slice for file_slice in merged if file_slice is not None and not file_slice.is_empty]

    def latest_base_files(self, partition: str, as_of: str | None = None) -> list[DataFile]:
        """Returns what a read-optimized query reads: the newest visible base file of each file group."""
        groups = self.file_groups(partition, as_of)
        bases = (
            (file_slice.base_file for file_slice in group.slices if as_of is None or file_slice.base_instant <= as_of)
            for group in groups
        )
        newest = (next(filter(None, of_group), None) for of_group in bases)
        return [base for base in newest if base is not None]

    def replaced_at(self, group: FileGroupId) -> str | None:
        """Returns the requested time of the replacecommit that replaced the group; None when none did."""
        replaced = self._replaced.get(group)
        return None if replaced is None else replaced.requested_time

    def _merged(self, group: FileGroup, as_of: str | None) -> FileSlice | None:
        latest = group.latest_slice() if as_of is None else group.latest_slice_up_to(as_of)
        compaction = self.pending.compaction_of(group.id)
        if latest is None:
            return None
        if latest.base_instant != compaction:
            self._check(group, latest, as_of)
            return latest
        before = group.latest_slice_before(compaction)
        if before is None:
            return latest
        self._check(group, before, as_of)
        return before.merged_with(latest)

    def _check(self, group: FileGroup, file_slice: FileSlice, as_of: str | None) -> None:
        """Refuses a cut off slice as of an instant. As of now, a downgrade's compaction begins the newest slices."""
        if as_of is not None and self._slicing.is_by_name:
            refuse_cut_off(group, file_slice)


def load_view(
    active: ActiveTimeline, listing: FileListing, timeline: Timeline, history: Callable[[], ArchivedTimeline]
) -> FileSystemView:
    """Returns the view with pending plans and replacecommits read. Opens `history` only if needed."""
    slicing = slicing_for(active.layout, timeline, CompletionTimes(timeline, history).of)
    replaced = replaced_file_groups(timeline, active.read_commit)
    return FileSystemView(listing, timeline, PendingWork.read(active, timeline), replaced, slicing)


def refuse_cut_off(group: FileGroup, file_slice: FileSlice) -> None:
    """Raises UnsupportedError where `file_slice`, at no pending compaction, is cut off from what is below it."""
    if group.is_cut_off(file_slice):
        raise UnsupportedError(
            f"the log files of slice {file_slice.base_instant} have no base file there, as an older writer's of table "
            "version 8 or 9 after a downgrade to 6: which rows lie below them is unknown",
            path=file_slice.log_files[0].path,
            remedy="read at or after the compaction that the downgrade made",
        )


@dataclass(frozen=True, slots=True)
class CutOff:
    """A cut off slice: its first log file, and the instant that ended it (None where it is the newest of its group)."""

    path: str
    end: str | None


def cut_off_slices(active: ActiveTimeline, timeline: Timeline, listing: FileListing) -> list[CutOff]:
    """Returns every cut off slice of a table in layout 1. Reads no plan, so that a damaged one is not in the way."""
    replaced = replaced_file_groups(timeline, active.read_commit)
    slicing, pending = Slicing(timeline), timeline.pending_compactions().requested_times
    slices = []
    for partition in listing.partitions():
        for group in build_file_groups(partition, listing.files(partition), slicing):
            gone = replaced.get(group.id)
            end = None if gone is None else gone.requested_time
            for file_slice in group.slices:
                if file_slice.base_instant not in pending and group.is_cut_off(file_slice):
                    slices.append(CutOff(file_slice.log_files[0].path, end))
                end = file_slice.base_instant
    return slices


@dataclass(frozen=True)
class PendingWork:
    """The pending plans of a timeline, by requested time. `folder` is the timeline's, for messages. Slices depend only
    on the plans of compactions. The others are read on first use, so that a wrong one does not prevent reading.
    """

    compactions: Mapping[str, CompactionPlan] = field(default_factory=dict)
    read_log_compactions: Callable[[], Mapping[str, CompactionPlan]] = dict
    read_clusterings: Callable[[], Mapping[str, ClusteringPlan]] = dict
    folder: str = ".hoodie"

    @staticmethod
    def read(active: ActiveTimeline, timeline: Timeline) -> PendingWork:
        """Reads the plans. Raises StorageNotFoundError and FormatError for a plan's file, also on later reads."""
        return PendingWork(
            active.read_plans(timeline),
            lambda: _log_compaction_plans(active, timeline),
            lambda: read_clustering_plans(active, timeline),
            active.folder,
        )

    def check_complete(self, timeline: Timeline) -> None:
        """Raises TimelineError where the plan of a pending compaction is missing: the slices depend on it."""
        unread = timeline.pending_compactions().requested_times - self.compactions.keys()
        if unread:
            message = f"the plans of the pending compactions {sorted(unread)} are needed to determine the slices"
            raise TimelineError(message, path=self.folder)

    @cached_property
    def compacting(self) -> dict[FileGroupId, tuple[str, CompactionOperation]]:
        """The file groups of pending compactions and their instants. Raises FormatError for a group in two plans."""
        return self._operations(self.compactions, Action.COMPACTION)

    @cached_property
    def compacting_by_partition(self) -> dict[str, list[tuple[FileGroupId, str]]]:
        """The groups of `compacting` by partition, so that no partition goes through the groups of all."""
        groups: dict[str, list[tuple[FileGroupId, str]]] = {}
        for group, (instant, _) in self.compacting.items():
            groups.setdefault(group.partition, []).append((group, instant))
        return groups

    def compaction_of(self, group: FileGroupId) -> str | None:
        """Returns the requested time of the pending compaction whose plan names the group; None when none does."""
        instant, _ = self.compacting.get(group, (None, None))
        return instant

    @cached_property
    def log_compacting(self) -> dict[FileGroupId, tuple[str, CompactionOperation]]:
        return self._operations(self.read_log_compactions(), Action.LOG_COMPACTION)

    def _operations(
        self, plans: Mapping[str, CompactionPlan], action: str
    ) -> dict[FileGroupId, tuple[str, CompactionOperation]]:
        operations: dict[FileGroupId, tuple[str, CompactionOperation]] = {}
        for instant, plan in sorted(plans.items()):
            for operation in plan.operations:
                group = operation.file_group
                first, _ = operations.setdefault(group, (instant, operation))
                if first != instant:
                    raise FormatError(
                        f"file group {group.file_id} is in the pending {action}s {first} and {instant}",
                        path=f"{self.folder}/{instant}.{action}.{State.REQUESTED.value}",
                        remedy=f"drop one of the two plans: hudictl unschedule TABLE {instant}",
                    )
        return operations


def _log_compaction_plans(active: ActiveTimeline, timeline: Timeline) -> dict[str, CompactionPlan]:
    """Returns the plans of pending log compactions. Passes over one rolled back since `timeline` was listed."""
    plans: dict[str, CompactionPlan] = {}
    for instant in timeline.pending_log_compactions():
        try:
            plans[instant.requested_time] = active.read_plan(instant.requested_time, Action.LOG_COMPACTION)
        except StorageNotFoundError:
            continue
    return plans
