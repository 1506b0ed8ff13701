"""Finds base files that have fewer bytes than their commit wrote, or none, and the rule on them."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_core.errors import FormatError, StorageNotFoundError
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.finding import KEPT, Counted, Finding, Observations
from hudi_core.timeline.timeline import Timeline
from hudi_core.view.committed_sizes import REMEDY, CommittedSizes
from hudi_core.view.listing import walk_partitions


def find_cut_files(context: TableContext, timeline: Timeline) -> Counted[tuple[str, str]]:
    """The paths of such files, each with what is wrong. Lists the storage once, with a metadata table or without;
    nothing beside a commit that cannot be read, which others report. Log files: see log_files.
    """
    found: Counted[tuple[str, str]] = Counted()
    try:
        sizes = CommittedSizes(timeline, context.active.read_commit, context.history)
        for _, files in walk_partitions(context.storage, context.storage.list_files):
            for info in files:
                what = sizes.cut(info) if isinstance(parse_data_file(info.name), BaseFileName) else None
                if what is not None:
                    found.add((info.path, what))
    except (FormatError, StorageNotFoundError):
        return Counted()
    return found


def cut_files(observed: Observations) -> Iterator[Finding]:
    """Base files that lost bytes."""
    cut = observed.cut
    for path, what in cut.first:
        yield Finding("base_file_cut", "error", f"{what}: queries fail on it, or miss its rows", REMEDY, path=path)
    if cut.count > KEPT:
        yield Finding("base_file_cut", "error", f"{cut.count - KEPT} more base files lost bytes", REMEDY)
