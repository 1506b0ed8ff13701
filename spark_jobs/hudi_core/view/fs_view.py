"""The file system view: the slices that a query or a service works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hudi_core.errors import FormatError, TimelineError
from hudi_core.model.ids import FileGroupId
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.plans import CompactionPlan
from hudi_core.timeline.query import Timeline
from hudi_core.timeline.replaced import replaced_file_groups
from hudi_core.view.builder import build_file_groups
from hudi_core.view.file_group import DataFile, FileGroup, FileSlice
from hudi_core.view.listing import FileListing


class FileSystemView:
    """File groups of a table as of one timeline (AbstractTableFileSystemView of 0.15).

    `plans` are the pending compactions' plans by requested time; `replaced` maps a replaced file group to the replacecommit's requested
    time; load_view reads both. `as_of`, where a method takes it, is the last instant to be seen, inclusive; None means all. Results are
    sorted by file id.
    """

    def __init__(
        self,
        listing: FileListing,
        timeline: Timeline,
        plans: Mapping[str, CompactionPlan] | None = None,
        replaced: Mapping[FileGroupId, str] | None = None,
        layout: int = 1,
    ) -> None:
        self.timeline = timeline
        self._listing = listing
        self._layout = layout
        self._replaced = dict(replaced or {})
        self._compacting = _compacting(plans or {})
        unread = timeline.pending_compactions().requested_times - (plans or {}).keys()
        if unread:
            raise TimelineError(f"the plans of the pending compactions {sorted(unread)} are needed to tell the slices", path=".hoodie")
        self._groups: dict[str, list[FileGroup]] = {}

    def partitions(self) -> list[str]:
        """All partition paths, sorted."""
        return self._listing.partitions()

    def all_file_groups(self, partition: str) -> list[FileGroup]:
        """Every file group of a partition: replaced ones, and ones without a visible slice, included."""
        if partition not in self._groups:
            files = self._listing.files(partition)
            self._groups[partition] = build_file_groups(partition, files, self.timeline, self._layout, compactions=self._compacting.items())
        return self._groups[partition]

    def file_groups(self, partition: str, as_of: str | None = None) -> Iterator[FileGroup]:
        """The file groups that no replacecommit up to `as_of` has replaced."""
        for group in self.all_file_groups(partition):
            replaced_at = self._replaced.get(group.id)
            if replaced_at is None or (as_of is not None and replaced_at > as_of):
                yield group

    def replaced_at(self, group: FileGroupId) -> str | None:
        """The requested time of the replacecommit that replaced the group; None when none did."""
        return self._replaced.get(group)

    def pending_compaction(self, group: FileGroupId) -> str | None:
        """The requested time of the pending compaction whose plan names the group; None when none does."""
        return self._compacting.get(group)

    def latest_slices(self, partition: str) -> list[FileSlice]:
        """The newest slice of each file group, which is where a writer appends: an empty one right after a compaction was requested."""
        return [latest for group in self.file_groups(partition) if (latest := group.latest_slice()) is not None]

    def latest_merged_slices(self, partition: str, as_of: str | None = None) -> list[FileSlice]:
        """What a snapshot query reads: the newest slice of each file group with rows.

        Where a compaction of the group is pending, the slice before it and the logs written since are one slice, under the older base
        instant. Log blocks are not judged here: the scan leaves out those of uncommitted instants and those after `as_of`.
        """
        merged = (self._merged(group, as_of) for group in self.file_groups(partition, as_of))
        return [item for item in merged if item is not None and not item.is_empty]

    def _merged(self, group: FileGroup, as_of: str | None) -> FileSlice | None:
        latest = group.latest_slice() if as_of is None else group.latest_slice_up_to(as_of)
        compaction = self._compacting.get(group.id)
        if latest is None or latest.base_instant != compaction:
            return latest
        before = group.latest_slice_before(compaction)
        if before is None:
            return latest
        return FileSlice(group.id, before.base_instant, before.base_file, before.log_files + latest.log_files, before.cdc_files + latest.cdc_files)

    def latest_base_files(self, partition: str, as_of: str | None = None) -> list[DataFile]:
        """What a read-optimized query reads: the newest visible base file of each file group."""
        found = []
        for group in self.file_groups(partition, as_of):
            bases = (item.base_file for item in group.slices if item.base_file is not None and (as_of is None or item.base_instant <= as_of))
            base = next(bases, None)
            if base is not None:
                found.append(base)
        return found


def _compacting(plans: Mapping[str, CompactionPlan]) -> dict[FileGroupId, str]:
    compacting: dict[FileGroupId, str] = {}
    for instant in sorted(plans):
        for operation in plans[instant].operations:
            other = compacting.setdefault(operation.file_group, instant)
            if other != instant:
                raise FormatError(
                    f"file group {operation.file_id} is in the pending compactions {other} and {instant}",
                    path=f".hoodie/{instant}.compaction.requested",
                    remedy="unschedule one of the two with Hudi's CLI",
                )
    return compacting


def load_view(active: ActiveTimeline, listing: FileListing, timeline: Timeline | None = None) -> FileSystemView:
    """A view with everything it needs read from storage: the timeline (unless given), pending plans, and replacecommits."""
    loaded = active.load() if timeline is None else timeline
    return FileSystemView(listing, loaded, active.read_plans(loaded), replaced_file_groups(loaded, active.read_commit))
