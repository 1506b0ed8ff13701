"""The file system view: the slices that a query or a service works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from hudi_core.errors import TimelineError
from hudi_core.history.archived import ArchivedTimeline
from hudi_core.history.completion import CompletionTimes
from hudi_core.model.ids import FileGroupId
from hudi_core.model.names import parse_data_file
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.commit import replaced_file_groups
from hudi_core.timeline.actions.compaction import CompactionOperation
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.builder import build_file_groups
from hudi_core.view.file_group import DataFile, FileGroup, FileSlice
from hudi_core.view.listing import FileListing
from hudi_core.view.pending import PendingWork
from hudi_core.view.slicing import BaseInstantSlicing, Slicing, slicing_for


class FileSystemView:
    """File groups of a table as of one timeline: the verbs of RFC-15 (AbstractTableFileSystemView).

    `pending` are the plans of pending work; `replaced` maps a replaced file group to its replacecommit; load_view reads
    both. `slicing` is the rule of the timeline's layout, layout 1's when None. `as_of`, where a method takes it, is the
    last requested time to be seen, inclusive, in every layout; None means all. Results are sorted by file id.
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
        self._compacting = {group: instant for group, (instant, _) in self.pending.compacting.items()}
        self._listing = listing
        self._replaced = dict(replaced or {})
        self._slicing = slicing or BaseInstantSlicing(timeline)
        self._groups: dict[str, list[FileGroup]] = {}
        self._by_id: dict[str, dict[FileGroupId, FileGroup]] = {}

    def partitions(self) -> list[str]:
        """All partition paths, sorted."""
        return self._listing.partitions()

    def files(self, partition: str) -> list[FileInfo]:
        """Every data file of a partition, committed or not, sorted by path."""
        return [info for info in self._listing.files(partition) if parse_data_file(info.name) is not None]

    def all_file_groups(self, partition: str) -> list[FileGroup]:
        """Every file group of a partition: replaced ones, and ones without a visible slice, included."""
        if partition not in self._groups:
            compactions = self._compacting.items()
            self._groups[partition] = build_file_groups(
                partition, self._listing.files(partition), self._slicing, compactions=compactions
            )
        return self._groups[partition]

    def file_groups(self, partition: str, as_of: str | None = None) -> Iterator[FileGroup]:
        """The file groups that no replacecommit up to `as_of` has replaced."""
        for group in self.all_file_groups(partition):
            replaced_at = self.replaced_at(group.id)
            if replaced_at is None or (as_of is not None and replaced_at > as_of):
                yield group

    def file_group(self, group: FileGroupId) -> FileGroup | None:
        """One file group, replaced or not; None when the partition has no file of it."""
        if group.partition not in self._by_id:
            self._by_id[group.partition] = {item.id: item for item in self.all_file_groups(group.partition)}
        return self._by_id[group.partition].get(group)

    def all_slices(self, partition: str) -> list[FileSlice]:
        """Every visible slice of the groups that are not replaced, newest first within a group."""
        return [item for group in self.file_groups(partition) for item in group.slices]

    def latest_slices(self, partition: str) -> list[FileSlice]:
        """The newest slice of each file group, to which writers append: empty after a compaction was requested."""
        return [latest for group in self.file_groups(partition) if (latest := group.latest_slice()) is not None]

    def latest_slices_up_to(self, partition: str, as_of: str, *, pending_compaction: bool = True) -> list[FileSlice]:
        """The newest slice with files and a base instant at or before `as_of` of each file group.

        Without `pending_compaction`, file groups that a pending compaction names are omitted
        (getLatestFileSlicesBeforeOrOn).
        """
        groups = (
            group
            for group in self.file_groups(partition, as_of)
            if pending_compaction or group.id not in self._compacting
        )
        found = (
            next((item for item in group.slices if item.base_instant <= as_of and not item.is_empty), None)
            for group in groups
        )
        return [item for item in found if item is not None]

    def latest_slices_in_range(self, partition: str, instants: Iterable[str]) -> list[FileSlice]:
        """The newest slice of each file group among those with these base instants (getLatestFileSliceInRange).

        File groups that were replaced up to the newest of `instants` are omitted.
        """
        requested = frozenset(instants)
        found = (
            next((item for item in group.slices if item.base_instant in requested), None)
            for group in self._groups_of_range(partition, requested)
        )
        return [item for item in found if item is not None]

    def latest_uncompacted_slices(self, partition: str) -> list[FileSlice]:
        """The newest slice of each file group; where a compaction is pending, the one that it will compact.

        That one is without the logs written since.
        """
        found = (self._before_compaction(group) for group in self.file_groups(partition))
        return [item for item in found if item is not None]

    def latest_merged_slices(self, partition: str, as_of: str | None = None) -> list[FileSlice]:
        """What a snapshot query reads: the newest slice of each file group with rows.

        Where a compaction of the group is pending, the slice before it and the logs written since are one slice, under
        the older base instant. Time travel is by requested time in every layout, as in Hudi: a slice counts when its
        base instant is not after `as_of`. Log blocks are not judged here: the scan skips those of uncommitted instants
        and those after `as_of`.
        """
        merged = (self._merged(group, as_of) for group in self.file_groups(partition, as_of))
        return [item for item in merged if item is not None and not item.is_empty]

    def all_base_files(self, partition: str) -> list[DataFile]:
        """Every visible base file of the groups that are not replaced, newest first within a group."""
        return [item.base_file for item in self.all_slices(partition) if item.base_file is not None]

    def latest_base_files(self, partition: str, as_of: str | None = None) -> list[DataFile]:
        """What a read-optimized query reads: the newest visible base file of each file group."""
        found = (
            _newest_base(group, lambda item: as_of is None or item.base_instant <= as_of)
            for group in self.file_groups(partition, as_of)
        )
        return [base for base in found if base is not None]

    def latest_base_files_in_range(self, partition: str, instants: Iterable[str]) -> list[DataFile]:
        """The newest base file of each file group among those that these instants wrote.

        Otherwise as latest_slices_in_range.
        """
        requested = frozenset(instants)
        found = (
            _newest_base(group, lambda item: item.base_instant in requested)
            for group in self._groups_of_range(partition, requested)
        )
        return [base for base in found if base is not None]

    def base_file_on(self, group: FileGroupId, instant: str) -> DataFile | None:
        """The visible base file that `instant` wrote; None when there is none, or the group was replaced up to then."""
        replaced_at = self.replaced_at(group)
        found = None if replaced_at is not None and replaced_at <= instant else self.file_group(group)
        return None if found is None else _newest_base(found, lambda item: item.base_instant == instant)

    def pending_compaction(self, group: FileGroupId) -> str | None:
        """The requested time of the pending compaction whose plan names the group; None when none does."""
        return self._compacting.get(group)

    def pending_compaction_operations(self) -> list[tuple[str, CompactionOperation]]:
        """The operations of pending compactions with the compaction's requested time, sorted by file group."""
        return [item for _, item in sorted(self.pending.compacting.items())]

    def pending_log_compaction_operations(self) -> list[tuple[str, CompactionOperation]]:
        """The operations of pending log compactions, likewise."""
        return [item for _, item in sorted(self.pending.log_compacting.items())]

    def pending_clustering(self, group: FileGroupId) -> str | None:
        """The requested time of the pending clustering whose plan names the group; None when none does."""
        return self.pending.clustering.get(group)

    def groups_in_pending_clustering(self) -> dict[FileGroupId, str]:
        """The file groups that pending clusterings will replace, with the clustering's requested time."""
        return dict(sorted(self.pending.clustering.items()))

    def replaced_at(self, group: FileGroupId) -> str | None:
        """The requested time of the replacecommit that replaced the group; None when none did."""
        replaced = self._replaced.get(group)
        return None if replaced is None else replaced.requested_time

    def replaced_groups(
        self, partition: str, when: Callable[[Instant], bool] = lambda instant: True
    ) -> list[FileGroup]:
        """The replaced file groups with files whose replacecommit passes `when` (getReplacedFileGroups…).

        `replaced_before(t)`, `replaced_up_to(t)`, `replaced_from(t)` go by requested time,
        `replaced_completed_in(begin, end)` by completion.
        """
        return [
            group
            for group in self.all_file_groups(partition)
            if (by := self._replaced.get(group.id)) is not None and when(by)
        ]

    def _groups_of_range(self, partition: str, instants: frozenset[str]) -> Iterator[FileGroup]:
        return self.file_groups(partition, max(instants)) if instants else iter(())

    def _before_compaction(self, group: FileGroup) -> FileSlice | None:
        compaction = self._compacting.get(group.id)
        return group.latest_slice() if compaction is None else group.latest_slice_before(compaction)

    def _merged(self, group: FileGroup, as_of: str | None) -> FileSlice | None:
        latest = group.latest_slice() if as_of is None else group.latest_slice_up_to(as_of)
        compaction = self._compacting.get(group.id)
        if latest is None or latest.base_instant != compaction:
            return latest
        before = group.latest_slice_before(compaction)
        return latest if before is None else before.merged_with(latest)


def _newest_base(group: FileGroup, keep: Callable[[FileSlice], bool]) -> DataFile | None:
    return next((item.base_file for item in group.slices if item.base_file is not None and keep(item)), None)


def replaced_before(time: str) -> Callable[[Instant], bool]:
    """Replaced by an instant requested before `time`."""
    return lambda instant: instant.requested_time < time


def replaced_up_to(time: str) -> Callable[[Instant], bool]:
    """Replaced by an instant requested at or before `time`."""
    return lambda instant: instant.requested_time <= time


def replaced_from(time: str) -> Callable[[Instant], bool]:
    """Replaced by an instant requested at or after `time`."""
    return lambda instant: instant.requested_time >= time


def replaced_completed_in(begin: str | None, end: str | None) -> Callable[[Instant], bool]:
    """Replaced by an instant completed after `begin` and at or before `end`; in layout 1, requested then.

    Layout 1 records no completion time.
    """
    return lambda instant: (
        (begin is None or instant.completed_at > begin) and (end is None or instant.completed_at <= end)
    )


def load_view(
    active: ActiveTimeline,
    listing: FileListing,
    timeline: Timeline | None = None,
    history: Callable[[], ArchivedTimeline] | None = None,
) -> FileSystemView:
    """A view with everything it needs read: the timeline (unless given), pending plans, and replacecommits.

    `timeline` is the whole active timeline. `history` opens the table's archive; it is called only when the slice of a
    log file depends on when an archived instant completed, which is possible in layout 2 only. Without it, that case
    raises TimelineError.
    """
    loaded = active.load() if timeline is None else timeline
    completion = CompletionTimes(loaded, history or _no_history(active.folder))
    slicing = slicing_for(active.layout, loaded, completion.of)
    return FileSystemView(
        listing, loaded, PendingWork.read(active, loaded), replaced_file_groups(loaded, active.read_commit), slicing
    )


def _no_history(folder: str) -> Callable[[], ArchivedTimeline]:
    def refuse() -> ArchivedTimeline:
        raise TimelineError(
            "a log file's slice depends on an archived instant, and the archive was not given", path=folder
        )

    return refuse
