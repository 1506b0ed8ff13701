"""Builds file groups and slices from the names of a partition's files and the timeline.

Pure; layouts are in slicing.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from hudi_core.model.names import BaseFileName, FileGroupId, LogFileName, parse_data_file
from hudi_core.storage.base import FileInfo
from hudi_core.view.file_group import DataFile, FileGroup, FileSlice
from hudi_core.view.slicing import Slicing


@dataclass(slots=True)
class _Files:
    """The files found for one group: base files by instant, log files, and the instants of pending compactions."""

    bases: dict[str, list[DataFile]] = field(default_factory=dict)
    logs: list[tuple[LogFileName, DataFile]] = field(default_factory=list)
    compactions: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Parts:
    """The files of one slice; logs in scan order."""

    bases: list[DataFile] = field(default_factory=list)
    logs: list[tuple[LogFileName, DataFile]] = field(default_factory=list)


def build_file_groups(
    partition: str, files: Iterable[FileInfo], slicing: Slicing, *, compactions: Iterable[tuple[FileGroupId, str]] = ()
) -> list[FileGroup]:
    """The file groups of one partition, sorted by file id; replaced groups are among them.

    `files` are what a listing shows; names that are no data files are passed over. `compactions` are the pending
    compactions' file groups and instants: each gets a slice at that instant, though no file is in it yet.
    """
    groups: dict[str, _Files] = defaultdict(_Files)
    for info in files:
        parsed = parse_data_file(info.name)
        if parsed is None:
            continue
        data_file = DataFile(partition, info.name, info.size)
        if isinstance(parsed, BaseFileName):
            groups[parsed.file_id].bases.setdefault(parsed.instant, []).append(data_file)
        else:
            groups[parsed.file_id].logs.append((parsed, data_file))
    for group, instant in compactions:
        if group.partition == partition and group.file_id in groups:
            groups[group.file_id].compactions.append(instant)
    return [_group(FileGroupId(partition, file_id), groups[file_id], slicing) for file_id in sorted(groups)]


def _group(group: FileGroupId, files: _Files, slicing: Slicing) -> FileGroup:
    """Base files, then pending compactions, then logs in scan order: the order in which HoodieFileGroup adds them."""
    visible: dict[str, _Parts] = {}
    hidden: dict[str, _Parts] = {}
    for instant, bases in files.bases.items():
        parts = visible if slicing.visibility.file_visible(instant) else hidden
        parts[instant] = _Parts(bases)
    for instant in files.compactions:
        visible.setdefault(instant, _Parts())
    starts = sorted(visible)
    for name, data_file in sorted(files.logs, key=lambda item: item[0].scan_order):
        instant, shown = slicing.place(name, starts)
        if shown and instant not in visible:
            insort(starts, instant)
        (visible if shown else hidden).setdefault(instant, _Parts()).logs.append((name, data_file))
    return FileGroup(group, _slices(group, visible), _slices(group, hidden))


def _slices(group: FileGroupId, parts: dict[str, _Parts]) -> tuple[FileSlice, ...]:
    if not parts:
        return ()  # as hidden ones mostly are: no generator for each of many file groups
    return tuple(_slice(group, instant, parts[instant]) for instant in sorted(parts, reverse=True))


def _slice(group: FileGroupId, instant: str, parts: _Parts) -> FileSlice:
    """One slice.

    Of several base files of one instant, which only a retried task leaves, the longest is the whole one (addBaseFile).
    """
    base = (
        parts.bases[0]
        if len(parts.bases) == 1
        else max(parts.bases, key=lambda item: (item.size, item.name), default=None)
    )
    if not parts.logs:
        return FileSlice(group, instant, base, (), ())
    return FileSlice(
        group,
        instant,
        base,
        tuple(data_file for name, data_file in parts.logs if not name.cdc),
        tuple(data_file for name, data_file in parts.logs if name.cdc),
    )
