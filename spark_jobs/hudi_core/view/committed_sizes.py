"""Data files that lost bytes: their commit wrote more of them than there are. Files of the metadata table:
metadata_table/read/whole_files.py.

A query that lists the storage fails on such a file. In the metadata table it would be left out, where it has no byte,
or be listed with the bytes that are left: readers would miss its rows without an error. So it is not listed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hudi_core.errors import CorruptFileError
from hudi_core.history.archived import ArchivedTimeline
from hudi_core.model.names import BaseFileName, parse_data_file
from hudi_core.storage.base import FileInfo
from hudi_core.timeline.actions.commit import CommitMetadata
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.instant import Instant
from hudi_core.timeline.timeline import Timeline

REMEDY: Final = (
    "restore the file from a copy; without one its rows are lost: restore the table to the commit before, or delete "
    "the file and write the rows again"
)


class CutFileError(CorruptFileError):
    """A data file has fewer bytes than its commit wrote."""

    usual_remedy = REMEDY


class CommittedSizes:
    """What the completed commits of a timeline say of the sizes of data files. Each is read once; memory: a path and a
    number for each of their files. Of archived commits only those are read that seem to have written a base file
    without any byte.
    """

    def __init__(
        self,
        timeline: Timeline,
        read_commit: Callable[[Instant], CommitMetadata],
        history: Callable[[], ArchivedTimeline],
    ) -> None:
        self._commits = timeline.commits()
        self._history = history
        self._least: dict[str, tuple[int, str]] = {}
        for instant in self._commits:
            for stat in read_commit(instant).write_stats():
                known = self._least.get(stat.path, (0, ""))
                self._least[stat.path] = max(known, (least_size(stat), instant.requested_time))

    def cut(self, info: FileInfo) -> str | None:
        """What a commit says against the bytes of a file; None where it has as many as are known of."""
        size, instant = self._least.get(info.path, (0, ""))
        if info.size < size:
            return _says(instant, size, info)
        name = parse_data_file(info.name)
        if info.size or not isinstance(name, BaseFileName) or not self._is_archived(name.instant, info.path):
            return None
        return f"commit {name.instant}, which is archived, wrote this file, but it has no bytes"

    def refuse_cut(self, info: FileInfo) -> None:
        what = self.cut(info)
        if what is not None:
            raise CutFileError(what, path=info.path)

    def _is_archived(self, instant: str, path: str) -> bool:
        """Whether a commit before the timeline wrote the file, or nothing says which did: then it is committed."""
        times = self._commits.requested_times
        if instant in times or not self._commits.contains_or_before_start(instant):
            return False
        commit = self._history().commit(instant)
        return commit is None or any(stat.path == path for stat in commit.write_stats())


def least_size(stat: WriteStat) -> int:
    """The bytes that a file has at least behind its commit; in version 6 a stat tells those of its own append."""
    appended = 0 if stat.log_version is None else (stat.log_offset or 0) + stat.total_write_bytes
    return max(stat.file_size_in_bytes, appended)


def refuse_cut_stat(stat: WriteStat, instant: str, info: FileInfo) -> None:
    """Raises CutFileError where the file has fewer bytes than commit `instant` says in this stat of it."""
    if info.size < least_size(stat):
        raise CutFileError(_says(instant, least_size(stat), info), path=info.path)


def _says(instant: str, size: int, info: FileInfo) -> str:
    return f"commit {instant} wrote this file with {size} bytes, but it has {info.size}"
